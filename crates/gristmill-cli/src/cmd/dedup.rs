//! `dedup`: a pack in, its repeated games out; and a mark of them.

use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_jobs::dedup::{self, Duplicates};
use gristmill_jobs::mark::MarkOptions;

use crate::args::dedup::Dedup;
use crate::failure::Result;
use crate::report::{self, duplicates};
use crate::stopping;

pub(crate) fn run(args: &Dedup) -> Result<()> {
    let pack = selection::open(&args.pack, Residence::Mapped)?;
    let mut options = MarkOptions::new(args.mark.as_deref().unwrap_or_default());
    options.replace = args.overwrite;
    options.dry_run = args.dry_run;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut bar = None;
    let mut progress = |done, all| {
        bar.get_or_insert_with(|| report::Progress::new(all, "games", !args.json)).at(done, "");
    };
    let Some(sharing) = args.reporting.sharing(args.dry_run) else {
        let found = dedup::dedup(&pack, &options, &mut progress);
        if let Some(bar) = bar {
            bar.end();
        }
        return told(args.json, &found?, args.report);
    };
    let made = dedup::share(&pack, &options, &sharing, &mut progress);
    if let Some(bar) = bar {
        bar.end();
    }
    Ok(report::either(args.json, &made?, duplicates::shared)?)
}

/// Says what was found, with its groups if `groups` is set or no mark was made.
pub(super) fn told(json: bool, found: &Duplicates, groups: bool) -> Result<()> {
    let groups = groups || found.mark.is_none();
    Ok(report::either(json, found, |found| duplicates::text(found, groups))?)
}
