//! `merge`: packs in, one pack out.

use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::merge::{self, MergeOptions};

use super::delivery::deliver;
use crate::args::pack::Merge;
use crate::failure::Result;
use crate::report::{self, packing};
use crate::stopping;

pub(crate) fn run(args: &Merge) -> Result<()> {
    let named = [&args.left, &args.right].into_iter().flatten();
    let delivery = Delivery::to(&args.out, Earlier::Removed, args.dry_run)?;
    delivery.keeps_inputs("delete_inputs", args.delete_inputs)?;
    let mut options = MergeOptions::new(named.chain(&args.packs).cloned().collect(), delivery.folder());
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.shard_rows = args.shard_rows;
    options.layout = args.layout.into();
    options.overwrite = args.overwrite;
    options.delete_inputs = args.delete_inputs;
    options.dry_run = args.dry_run;
    options.stop = stopping::flag()?;
    let mut progress = None;
    let merged = merge::merge(&options, &mut |done, all| {
        progress.get_or_insert_with(|| report::Progress::new(all, "rows", !args.json)).at(done, "");
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let mut merged = merged?;
    merged.pack = deliver(delivery, &options.stop, args.json, "the same command begins again")?;
    if args.json {
        return Ok(report::json(&merged)?);
    }
    Ok(report::text_out(&packing::merged(&merged))?)
}
