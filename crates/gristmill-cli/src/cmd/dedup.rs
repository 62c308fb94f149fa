//! `dedup`: a pack in, its repeated games out; and a mark of them.

use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_jobs::dedup;
use gristmill_jobs::mark::MarkOptions;

use crate::args::dedup::Dedup;
use crate::failure::{Failure, Result};
use crate::report::{self, duplicates};
use crate::stopping;

pub(crate) fn run(args: &Dedup) -> Result<()> {
    if args.share.is_some() {
        return Err(Failure::Usage(
            "--share: the keys of games are in the database of the pack, and one process compares all of them"
                .to_owned(),
        ));
    }
    let pack = selection::open(&args.pack, Residence::Mapped)?;
    let mut options = MarkOptions::new(args.mark.as_deref().unwrap_or_default());
    options.replace = args.overwrite;
    options.dry_run = args.dry_run;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut bar = None;
    let found = dedup::dedup(&pack, &options, &mut |done, all| {
        bar.get_or_insert_with(|| report::Progress::new(all, "games", !args.json)).at(done, "");
    });
    if let Some(bar) = bar {
        bar.end();
    }
    let found = found?;
    let groups = args.report || args.mark.is_none();
    Ok(report::either(args.json, &found, |found| duplicates::text(found, groups))?)
}
