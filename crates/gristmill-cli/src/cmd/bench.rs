//! `bench`: throughput, what this machine can do, each stage as a share of that, and the bottleneck's name.

use std::path::Path;

use gristmill_engine::config::{IndexConfig, LastBatch as Left};
use gristmill_jobs::bench::{self, BenchOptions, Target};

use super::{page, plan, river};
use crate::args::bench::Bench;
use crate::args::river::LastBatch;
use crate::failure::{Failure, Result};
use crate::report::{self, bench as words};
use crate::stopping;

/// Passes over the sample for what inflating and encoding alone take; the best counts.
const PASSES: usize = 5;

pub(crate) fn run(args: &Bench) -> Result<()> {
    page::check(&args.page)?;
    let target = match args.river.inputs.as_slice() {
        [one] if plan::holds_rows(Path::new(one))? => of_pack(args, one)?,
        _ => of_stream(args)?,
    };
    let stop = stopping::flag()?;
    let options = BenchOptions { batches: args.batches, threads: args.threads.clone(), passes: PASSES };
    let found = bench::bench(&target, &options, &stop, &mut |doing| {
        if !args.json {
            report::note(doing);
        }
    })?;
    if !stopping::is_raised() {
        page::write(&args.page, || words::html(&args.river.inputs.join(" "), &found))?;
    }
    report::either(args.json, &found, words::text)?;
    if stopping::is_raised() { Err(Failure::Stopped(None)) } else { Ok(()) }
}

fn of_pack(args: &Bench, pack: &str) -> Result<Target> {
    let river = &args.river;
    plan::refuse_options_of_streams(river, pack)?;
    let defaults = IndexConfig::default();
    let config = IndexConfig {
        batch_size: river.batch_size.unwrap_or(defaults.batch_size),
        tensors: river.tensors.clone().unwrap_or_default(),
        seed: river.seed,
        last_batch: match river.last_batch {
            None | Some(LastBatch::Keep) => Left::Keep,
            Some(LastBatch::Drop) => Left::Drop,
            Some(LastBatch::Pad) => Left::Pad,
        },
        ..defaults
    };
    Ok(Target::Rows(pack.into(), Box::new(config)))
}

fn of_stream(args: &Bench) -> Result<Target> {
    let mut described = river::config(&args.river)?;
    if described.is_usual() {
        bench::declare(&mut described.config, args.river.tensors.is_some(), args.river.reservoir.is_some())?;
    }
    if args.page.dry_run {
        let config = &mut described.config;
        (config.index, config.ledger, config.spill) = (Some("off".into()), None, None);
        config.journal = config.journal.take().filter(|_| config.replay);
    }
    described.loader()?;
    Ok(Target::Stream(Box::new(described.config)))
}
