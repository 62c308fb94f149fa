//! `clean`: a place in a bucket in, what a killed writer left there out; it is removed, and nothing else.

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
        true => format!("the pack is whole and stays; what says who writes it {removed}"),
        false => format!("{} files of it ({}) {removed}", left.files.len(), report::bytes(bytes)),
    };
    let mut out = format!("{}: process {} of {} wrote there; {what}", left.place, claim.process, claim.host);
    if !left.whole {
        left.files.iter().for_each(|(name, len)| out += &format!("\n  {} {name}", report::bytes(*len)));
    }
    out
}
