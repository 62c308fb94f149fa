//! Data that people bring -> one report: what it is, what is wrong with it and where, what repeats, what leaks, how long it takes.
//! Puts together what `verify` and `stats` find, and adds the signs that no rule forbids; judges by one table of checks.

mod checks;
mod look;
mod pace;
mod stand_ins;
mod twins;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::place::resolved;
use serde::Serialize;

use self::look::{Look, Manner};
use self::stand_ins::StandIns;
use crate::stats::{self, Stats, StatsOptions};
use crate::verify::{self, VerifyOptions};
use crate::work::findings::{FIRST, Firsts};
use crate::work::{Fault, Verification};

pub use checks::{CHECKS, Check};
pub use pace::Pace;
pub use stand_ins::{Pieces, Reported, StandIn};
pub use twins::Twins;

/// What to examine, and how.
#[derive(Debug, Clone)]
pub struct DoctorOptions {
    /// A file, a pack, or a folder of them.
    pub path: PathBuf,
    /// Data that must share no game with it: the other sides of a split.
    pub held_out: Vec<PathBuf>,
    /// Data sets at or below these paths that the engine does not read itself, as files in their stead.
    pub stand_ins: Vec<StandIn>,
    /// Worker threads, from 1 on. Changes nothing in what is found.
    pub workers: usize,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

impl DoctorOptions {
    /// Examines a path with one worker per core.
    pub fn new(path: PathBuf) -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        DoctorOptions { path, held_out: Vec::new(), stand_ins: Vec::new(), workers, stop: Arc::default() }
    }
}

/// What a check found.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The check, by its name in [`CHECKS`].
    pub check: &'static str,
    /// What it says.
    pub says: &'static str,
    /// How often.
    pub count: u64,
    /// How often by rule, or by kind of damage.
    pub of: BTreeMap<&'static str, u64>,
    /// What causes it, most often.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// The first places.
    pub first: Vec<Fault>,
}

/// Sizes in bytes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sizes {
    /// Of the files.
    pub files: u64,
    /// Of the good chunks as stored.
    pub stored: u64,
    /// Of their records.
    pub inflated: u64,
    /// Of the same in a pack, by a sample; absent where it is packed already, or where packing was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packed: Option<u64>,
}

/// How long one pass would take here: reading and decoding alone, without a trainer.
#[derive(Debug, Clone, Serialize)]
pub struct Epoch {
    /// Seconds, with all workers.
    pub seconds: f64,
    /// Frames a second that one worker reads and decodes.
    pub frames_per_second: f64,
    /// The workers.
    pub workers: usize,
    /// Frames that were measured.
    pub sample: u64,
}

/// The report.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    /// The path.
    pub path: String,
    /// Whether no check found anything.
    pub healthy: bool,
    /// Files by format.
    pub formats: BTreeMap<String, u64>,
    /// Files that are of no known format.
    pub other_files: u64,
    /// Games or trajectories, bad ones included.
    pub chunks: u64,
    /// Frames.
    pub frames: u64,
    /// What was found, in the order of [`CHECKS`].
    pub findings: Vec<Finding>,
    /// How many games repeat.
    pub games: Twins,
    /// Sizes, and what packing would save.
    pub sizes: Sizes,
    /// How long a pass would take here; absent where nothing could be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// The distributions.
    pub stats: Stats,
}

/// What is under way, and how many files of it are done.
pub type Progress<'a> = dyn FnMut(&'static str, u64) + 'a;

/// Examines data.
///
/// Errors: `Config`, `Stopped`, and what else is no fault of the data; `Format`, of `Io`, for a path where nothing is.
pub fn doctor(options: &DoctorOptions, progress: &mut Progress<'_>) -> Result<Diagnosis> {
    let DoctorOptions { path, held_out, stand_ins, workers, stop } = options;
    let stand_ins = StandIns::new(stand_ins);
    let paths = stand_ins.paths(0, path);
    let of_verify =
        VerifyOptions { workers: *workers, stop: stop.clone(), max_faults: FIRST, ..VerifyOptions::new(paths.clone()) };
    let mut found = verify::verify(&of_verify, &mut |so_far, _| progress("files verified", so_far.files))?;
    let of_stats = StatsOptions { workers: *workers, stop: stop.clone(), ..StatsOptions::default() };
    let stats = stats::stats(&paths, &of_stats, &mut |so_far| {
        progress("files counted", so_far.files);
    })?;
    let mut look = Look::new(&stand_ins);
    let manner = Manner { workers: *workers, stop };
    for (side, path) in (0..).zip(std::iter::once(path).chain(held_out)) {
        let paths = stand_ins.paths(side, path);
        if side > 0 && paths == [path.as_path()] {
            there(path)?;
        }
        for path in &paths {
            look.path((side, path), &manner, &mut |files| progress("files examined", files))?;
        }
    }
    let (games, formats, size) = (look.index.told(), std::mem::take(&mut look.formats), look.size);
    found.absorb(FIRST, look.finish().found);
    stand_ins.settle(path, FIRST, &mut found);
    let pace = pace::sample(&resolved(path)?);
    let findings = findings(&found);
    let (mut sizes, mut epoch) = (sizes(size, &stats, &pace), epoch(&stats, &pace, *workers));
    stand_ins.measures(&mut sizes, &mut epoch, stats.frames);
    Ok(Diagnosis {
        path: path.display().to_string(),
        healthy: findings.is_empty(),
        formats,
        other_files: found.skipped - stand_ins.covered(path).min(found.skipped),
        chunks: stats.chunks,
        frames: stats.frames,
        findings,
        games,
        sizes,
        epoch,
        stats,
    })
}

/// Refuses held-out data that are not there: they would leak nothing.
fn there(path: &Path) -> Result<()> {
    let listing = crate::files::list(&resolved(path)?).map_err(Error::from)?;
    if listing.files.is_empty() && listing.packs.is_empty() {
        let text = format!("{} holds no file; name the other side of the split", path.display());
        return Err(Error::config("held_out", text));
    }
    Ok(())
}

fn findings(found: &Verification) -> Vec<Finding> {
    let mut all: BTreeMap<usize, Finding> = BTreeMap::new();
    for ((nature, name), firsts) in &found.firsts {
        let check = checks::of(*nature, name);
        let place = CHECKS.iter().position(|other| other.name == check.name).unwrap_or_default();
        let finding = all.entry(place).or_insert_with(|| Finding {
            check: check.name,
            says: check.says,
            count: 0,
            of: BTreeMap::new(),
            cause: check.cause,
            remedy: check.remedy,
            first: Vec::new(),
        });
        add(finding, name, firsts);
    }
    all.into_values().collect()
}

fn add(finding: &mut Finding, name: &'static str, firsts: &Firsts) {
    finding.count += firsts.count;
    *finding.of.entry(name).or_default() += firsts.count;
    finding.first.extend(firsts.faults.iter().cloned());
}

fn sizes(files: u64, stats: &Stats, pace: &Pace) -> Sizes {
    let share = |packed: u64| (stats.stored_bytes as f64 * packed as f64 / pace.stored.max(1) as f64) as u64;
    Sizes {
        files,
        stored: stats.stored_bytes,
        inflated: stats.inflated_bytes,
        packed: pace.packed.filter(|_| pace.stored > 0).map(share),
    }
}

fn epoch(stats: &Stats, pace: &Pace, workers: usize) -> Option<Epoch> {
    if pace.frames == 0 || stats.frames == 0 {
        return None;
    }
    // One thread reads a game: more of them than games have nothing to do.
    let workers = workers.min(usize::try_from(stats.chunks.max(1)).unwrap_or(usize::MAX));
    let frames_per_second = pace.frames as f64 / pace.seconds.max(1e-6);
    let seconds = stats.frames as f64 / frames_per_second / workers as f64;
    Some(Epoch { seconds, frames_per_second, workers, sample: pace.frames })
}
