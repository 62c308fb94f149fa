//! `bench`: throughput, ceilings and the bottleneck's name.

use gristmill_jobs::bench::{self, BenchOptions};

use super::river;
use crate::args::Bench;
use crate::failure::{Failure, Result};
use crate::report::{self, flow};
use crate::stopping;

/// Passes over the sample for a ceiling; the best counts.
const PASSES: usize = 5;

pub(crate) fn run(args: &Bench) -> Result<()> {
    let described = river::config(&args.river)?;
    described.loader()?;
    let stop = stopping::flag()?;
    let options = BenchOptions { batches: args.batches, threads: args.threads.clone(), passes: PASSES };
    let found = bench::bench(&described.config, &options, &stop, &mut |doing| {
        if !args.json {
            report::note(doing);
        }
    })?;
    report::either(args.json, &found, flow::bench)?;
    if stopping::is_raised() { Err(Failure::Stopped(None)) } else { Ok(()) }
}
