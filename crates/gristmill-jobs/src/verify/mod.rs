//! Paths -> every check over every chunk, frame and row of a pack, and a list of what failed.
//! Damage is data here, not an error: the job continues to the last file. The findings do not depend on the threads.

mod against;
mod chunk_pack;
mod chunks;
mod metadata_check;
mod pack;
mod part;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::chunks::is_pack;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::holdings::Holdings;
use gristmill_engine::kinds;
use gristmill_engine::pack::STAGING;
use gristmill_engine::store::newest;
use gristmill_engine::store::publish::is_interrupted;
use gristmill_format::{Error as FormatError, Kind};

use super::files::{Found, Unlisted};
use super::in_order::{Hands, InOrder};
use crate::inputs::{Inputs, OwnFile};
use crate::shares::Portion;
use chunks::Hand;

pub use self::part::share;
pub(crate) use self::part::{JOB, commit};
pub use crate::work::findings::{Example, Fault, Verification};

/// What to verify, and how.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// Files, packs, and folders of them.
    pub paths: Vec<PathBuf>,
    /// Folder of games that one pack, which is then the only path, is compared with: each must be in it.
    pub against: Option<PathBuf>,
    /// Faults that are listed, at most; all are counted.
    pub max_faults: usize,
    /// Worker threads, from 1 on. Changes nothing in the result.
    pub workers: usize,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

impl VerifyOptions {
    /// Verifies `paths` with one worker per core, listing up to a hundred faults.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        VerifyOptions { paths, against: None, max_faults: 100, workers, stop: Arc::default() }
    }
}

/// Told what was found so far; within a pack, also how many of its rows were checked, and how many there are.
pub type Progress<'a> = dyn FnMut(&Verification, Option<(u64, u64)>) + 'a;

/// Verifies every file and pack at or below the paths. It calls `progress` after each file, and after each block
/// of a pack.
///
/// Errors: `Config`, `Stopped`, and what else is no fault of the data; `Format`, of `Io`, for a path where nothing is.
pub fn verify(options: &VerifyOptions, progress: &mut Progress<'_>) -> Result<Verification> {
    crate::in_order::check(options.workers)?;
    let mut report = Verification::default();
    if let Some(sources) = &options.against {
        against::verify(sources, options, &mut report, progress)?;
        report.ok = report.fault_count == 0;
        return Ok(report);
    }
    let inputs = Inputs::there(&options.paths)?;
    for ((path, listing), own) in inputs.paths.iter().zip(inputs.own(Portion::Whole)) {
        let (files, faults) = (report.files, report.fault_count);
        if let Some(e) = interrupted(path)? {
            report.files += 1;
            report.add(options.max_faults, Fault::new(&e));
            continue;
        }
        match listing {
            Ok(listing) => {
                of_files(path, own.files, options, &mut report, progress)?;
                beside(path, options, &mut report)?;
                for folder in &listing.packs {
                    pack::verify(folder, options, &mut report, progress)?;
                }
                for unlisted in &listing.unlisted {
                    report.add(options.max_faults, fault_of(path, unlisted));
                }
            }
            Err(e) => {
                report.files += 1;
                report.add(options.max_faults, Fault::new(e));
            }
        }
        if (report.files, report.fault_count) == (files, faults) {
            report.add(options.max_faults, nothing(path));
        }
    }
    report.ok = report.fault_count == 0;
    Ok(report)
}

/// What a job that was interrupted left at a path.
fn interrupted(path: &Path) -> Result<Option<FormatError>> {
    let path = &*newest(path)?;
    let detail = || {
        let shown = path.display();
        format!("a job was interrupted while it put its files in place; `gristmill recover {shown}` finishes it")
    };
    let fault = || FormatError::new(Kind::Corrupt, detail()).in_source(path.display().to_string());
    Ok(is_interrupted(path, STAGING).then(fault))
}

/// What was not found was not verified.
fn nothing(path: &Path) -> Fault {
    let holds = Holdings::of(path).told(path);
    let detail = format!("nothing to verify: it {holds}; expected {}", kinds::files());
    Fault::new(&FormatError::new(Kind::Empty, detail).in_source(path.display().to_string()))
}

/// Verifies files, each by itself.
fn of_files(
    path: &Path,
    files: Vec<OwnFile>,
    options: &VerifyOptions,
    report: &mut Verification,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let keep = options.max_faults;
    let (count, hands) = (files.len(), Hands::default());
    let check = move |i: usize| one_file(&files[i], keep, &hands);
    let workers = options.workers.min(count.max(1));
    let started = InOrder::start(workers, count, options.stop.clone(), check);
    let mut flow = started.map_err(|e| Error::path(path, &e))?;
    while let Some(found) = flow.next()? {
        report.absorb(keep, found);
        progress(report, None);
    }
    Ok(())
}

/// Holds the files of a chunk pack against each other.
fn beside(path: &Path, options: &VerifyOptions, report: &mut Verification) -> Result<()> {
    let path = &*newest(path)?;
    if is_pack(path)? {
        chunk_pack::verify(path, options.max_faults, report);
    } else {
        chunk_pack::verify_file(path, options.max_faults, report);
    }
    Ok(())
}

fn one_file(own: &OwnFile, keep: usize, hands: &Hands<Hand>) -> Verification {
    let mut found = Verification::default();
    match own.file.open() {
        Found::File(file) => chunks::verify(&file, own.place, keep, hands, &mut found),
        _ if !own.place.begins() => {}
        Found::Fault(e) => {
            found.files += 1;
            found.add(keep, Fault::new(&e));
        }
        Found::Other | Found::Pack(_) | Found::Unlisted(_) => found.skipped += 1,
    }
    found
}

/// Files or folders at or below `path` that could not be read.
fn fault_of(path: &Path, unlisted: &Unlisted) -> Fault {
    let detail = format!("{} files or folders could not be read; the latest: {}", unlisted.count, unlisted.latest);
    let unreadable = unlisted.is_unreadable();
    Fault { file: Some(path.display().to_string()), kind: unlisted.kind, unreadable, detail, ..Fault::default() }
}
