//! `clean`: a place in a bucket -> a list of what killed jobs left there, and beside it of shares. Removes these files and no others.

use gristmill_jobs::shares::{Left, clean, left};

use crate::args::pack::Clean;
use crate::failure::Result;
use crate::report;

pub(crate) fn run(args: &Clean) -> Result<()> {
    let left = left(&args.place, args.dead)?;
    if !args.dry_run {
        clean(&left, args.dead)?;
    }
    report::either(args.json, &left, |left| text(left, args.dry_run))?;
    Ok(())
}

fn text(left: &Left, dry_run: bool) -> String {
    let (shares, running) = (&left.shares, left.running);
    let place = &left.output.place;
    let mut out = output(left, dry_run);
    if !shares.is_empty() {
        let bytes: u64 = shares.iter().map(|(_, len)| len).sum();
        let removed = removed(dry_run);
        out += &format!("\n{place}.shares: {} files of no share ({}) {removed}", shares.len(), report::bytes(bytes));
        shares.iter().for_each(|(name, len)| out += &format!("\n  {} {name}", report::bytes(*len)));
    }
    if running > 0 {
        out += &format!(
            "\n{place}.shares: processes work on {running} shares, whose files stay; --dead says that none lives"
        );
    }
    out
}

fn output(left: &Left, dry_run: bool) -> String {
    let left = &left.output;
    if left.claim.is_none() && left.files.is_empty() {
        return format!("{}: no writer left anything here", left.place);
    }
    let (count, bytes) = (left.files.len(), report::bytes(left.files.iter().map(|(_, len)| len).sum()));
    let removed = removed(dry_run);
    let what = match (left.whole, count) {
        (true, 0) => format!("the pack is whole and stays; the claim {removed}"),
        (true, _) => format!(
            "the pack is whole and stays; {count} files of older versions of it, and of unfinished ones ({bytes}) {removed}"
        ),
        (false, _) => format!("{count} files of it ({bytes}) {removed}"),
    };
    let who = match &left.claim {
        None => String::new(),
        Some(claim) if claim.writer.is_empty() => "a writer that says nothing of itself wrote there; ".to_owned(),
        Some(claim) => format!("process {} of {} wrote there; ", claim.process, claim.host),
    };
    let mut out = format!("{}: {who}{what}", left.place);
    left.files.iter().for_each(|(name, len)| out += &format!("\n  {} {name}", report::bytes(*len)));
    out
}

fn removed(dry_run: bool) -> &'static str {
    if dry_run { "would be removed" } else { "removed" }
}
