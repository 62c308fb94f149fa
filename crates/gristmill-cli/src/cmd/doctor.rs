//! `doctor`: one report on data that people bring, and a page of it.

use gristmill_jobs::doctor::{DoctorOptions, StandIn, doctor};
use tempfile::TempDir;

use super::page;
use crate::args::doctor::Doctor;
use crate::failure::{Failure, Result};
use crate::handover;
use crate::report::{self, diagnosis};
use crate::stopping;

pub(crate) fn run(args: &Doctor) -> Result<()> {
    page::check(&args.page)?;
    let mut options = DoctorOptions::new(args.path.clone());
    options.held_out.clone_from(&args.held_out);
    // They are there until the report is made.
    let (_folder, stand_ins) = stand_ins(args)?;
    options.stand_ins = stand_ins;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = doctor(&options, &mut |what, files| progress.at(files, what))?;
    progress.end();
    page::write(&args.page, || diagnosis::html(&found))?;
    report::either(args.json, &found, diagnosis::text)?;
    if found.healthy { Ok(()) } else { Err(Failure::Faults) }
}

/// Shards in the stead of what Python alone reads, and the folder in which they lie.
fn stand_ins(args: &Doctor) -> Result<(Option<TempDir>, Vec<StandIn>)> {
    let sides = (0..).zip(std::iter::once(&args.path).chain(&args.held_out));
    let there = sides.filter(|(side, path)| (*side == 0 && args.fields.is_some()) || handover::is_read_there(path));
    let there: Vec<_> = there.map(|(side, path)| (side, path.as_path())).collect();
    if there.is_empty() {
        return Ok((None, Vec::new()));
    }
    let failed = |e| Failure::Failed(format!("a folder for temporary files cannot be made: {e}"));
    let folder = tempfile::Builder::new().prefix("gristmill-doctor-").tempdir().map_err(failed)?;
    let told = handover::stand_ins(args.python.as_deref(), folder.path(), args.fields.as_deref(), &there)?;
    Ok((Some(folder), StandIn::read(&told)?))
}
