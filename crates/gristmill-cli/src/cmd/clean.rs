//! `clean`: a place in a bucket -> a list of what a killed writer left there. Removes these files and no others.

use gristmill_engine::store::outgoing::{self, Left};

use crate::args::pack::Clean;
use crate::failure::Result;
use crate::report;

pub(crate) fn run(args: &Clean) -> Result<()> {
    let left = outgoing::left(&args.place)?;
    if !args.dry_run {
        outgoing::clean(&left, args.dead)?;
    }
    report::either(args.json, &left, |left| text(left, args.dry_run))?;
    Ok(())
}

fn text(left: &Left, dry_run: bool) -> String {
    let Some(claim) = &left.claim else { return format!("{}: no writer left anything here", left.place) };
    let bytes: u64 = left.files.iter().map(|(_, len)| len).sum();
    let removed = if dry_run { "would be removed" } else { "removed" };
    let what = match left.whole {
        true => format!("the pack is whole and stays; the claim {removed}"),
        false => format!("{} files of it ({}) {removed}", left.files.len(), report::bytes(bytes)),
    };
    let who = match claim.writer.is_empty() {
        true => "a writer that says nothing of itself".to_owned(),
        false => format!("process {} of {}", claim.process, claim.host),
    };
    let mut out = format!("{}: {who} wrote there; {what}", left.place);
    if !left.whole {
        left.files.iter().for_each(|(name, len)| out += &format!("\n  {} {name}", report::bytes(*len)));
    }
    out
}
