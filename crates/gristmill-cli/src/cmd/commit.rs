//! `commit`: the shares of a job in, its output out, as one process would have made it.

use gristmill_jobs::commit::{Committed, Made, commit};
use gristmill_jobs::pack::Packed;
use gristmill_jobs::shares::CommitOptions;

use super::{dedup, demos, notation, page, rewrite, stats, tokenizer, verify};
use crate::args::page::Page;
use crate::args::shares::Commit;
use crate::failure::{Failure, Result};
use crate::report::{self, marking, packing};
use crate::stopping;

pub(crate) fn run(args: &Commit) -> Result<()> {
    let options = CommitOptions {
        output: args.out.clone(),
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        stop: stopping::flag()?,
    };
    let page = Page { html: args.html.clone(), overwrite: args.overwrite, dry_run: args.dry_run };
    page::check(&page)?;
    let mut progress = None;
    let made = commit(&options, &mut |now| {
        progress.get_or_insert_with(|| report::Progress::new(now.all, "inputs", !args.json)).at(now.done, "");
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let Committed { paths, made, .. } = made?;
    if args.html.is_some() && !matches!(made, Made::Stats(_)) {
        report::note("--html: only shares of `stats` have a page; none was written");
    }
    match made {
        Made::Pack(packed) => self::packed(args, &packed),
        Made::Games(done) => rewrite::committed(args.json, &done),
        Made::Verification(found) => verify::told(args.json, &found),
        Made::Stats(found) => stats::told(&paths, &found, &page, args.json),
        Made::Duplicates(found) => dedup::told(args.json, &found, false),
        Made::Shards(converted) => demos::converted(&converted, args.json),
        Made::Sides(split) => demos::split_up(&split, args.json),
        Made::Told(told) => notation::told(args.json, &told),
        Made::Tokenizer(summary) => tokenizer::told(&summary, &args.out, args.dry_run, args.json),
        Made::Mark(marked) => Ok(report::either(args.json, &marked, |marked| marking::marked(marked))?),
    }
}

/// Says what came of a pack.
fn packed(args: &Commit, packed: &Packed) -> Result<()> {
    report::either(args.json, packed, packing::packed)?;
    match packing::left_out(packed) {
        Some(text) if !args.skip_bad && !packed.dry_run => Err(Failure::LeftOut(text)),
        _ => Ok(()),
    }
}
