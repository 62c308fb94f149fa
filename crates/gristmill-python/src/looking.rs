//! Paths in, what was checked, counted or made there out, as JSON text: `verify`, `stats`, `doctor` and `generate` from Python.
//! The GIL is free while the engine works; Ctrl-C ends a job between two files or blocks.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::runtime::seed;
use gristmill_engine::sink::quantity::families;
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions, G2048Generator, G2048Options, Generated};
use gristmill_jobs::doctor::{DoctorOptions, StandIn, doctor};
use gristmill_jobs::reports::Sharing;
use gristmill_jobs::stats::{self, StatsOptions};
use gristmill_jobs::verify::{self, VerifyOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::packing::watched;

/// A share of a report: its number, the report, and whether this is a dry run.
pub(crate) type OfReport = (String, PathBuf, bool);

/// How files are verified.
#[derive(Deserialize)]
struct Verifying {
    max_faults: usize,
    workers: Option<usize>,
    share: Option<OfReport>,
}

/// How games are counted.
#[derive(Deserialize)]
struct Counting {
    q_weight: f32,
    pol_scale: f32,
    workers: Option<usize>,
    share: Option<OfReport>,
}

/// Checks every frame of files, folders and packs; or a share of them.
#[pyfunction]
pub(crate) fn verify_paths(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    against: Option<PathBuf>,
    options: &str,
) -> Result<String, Fault> {
    let Verifying { max_faults, workers, share } = parsed(options)?;
    let mut options = VerifyOptions::new(paths);
    (options.against, options.max_faults) = (against, max_faults);
    options.workers = workers.unwrap_or(options.workers);
    let stop = options.stop.clone();
    if let Some(sharing) = share.map(sharing).transpose()? {
        return watched(py, &stop, |look| verify::share(&options, &sharing, &mut |_, _| look()));
    }
    watched(py, &stop, |look| verify::verify(&options, &mut |_, _| look()))
}

/// Counts what files, folders and packs hold; or a share of them.
#[pyfunction]
pub(crate) fn stats_of_paths(py: Python<'_>, paths: Vec<PathBuf>, options: &str) -> Result<String, Fault> {
    let Counting { q_weight, pol_scale, workers, share } = parsed(options)?;
    let mut options = StatsOptions { q_weight, pol_scale, ..StatsOptions::default() };
    options.workers = workers.unwrap_or(options.workers);
    let stop = options.stop.clone();
    if let Some(sharing) = share.map(sharing).transpose()? {
        return watched(py, &stop, |look| stats::share(&paths, &options, &sharing, &mut |_| look()));
    }
    watched(py, &stop, |look| stats::stats(&paths, &options, &mut |_| look()))
}

/// Examines data; `stand_ins` says of which data sets files stand for what the engine does not read.
#[pyfunction]
pub(crate) fn examine(
    py: Python<'_>,
    path: PathBuf,
    held_out: Vec<PathBuf>,
    stand_ins: &str,
    workers: Option<usize>,
) -> Result<String, Fault> {
    let mut options = DoctorOptions::new(path);
    (options.held_out, options.stand_ins) = (held_out, StandIn::read(stand_ins)?);
    options.workers = workers.unwrap_or(options.workers);
    let stop = options.stop.clone();
    watched(py, &stop, |look| doctor(&options, &mut |_, _| look()))
}

/// A share of a report as the jobs take it.
///
/// Errors: `Config` in `share`.
pub(crate) fn sharing((share, output, dry_run): OfReport) -> gristmill_engine::Result<Sharing> {
    Ok(Sharing { output, share: share.parse()?, dry_run })
}

/// What was made.
#[derive(Debug, Default, Serialize)]
struct Made {
    files: u64,
    games: u64,
    frames: u64,
    bytes: u64,
    seed: u64,
}

impl Made {
    fn add(&mut self, file: &Generated) {
        self.games += file.games;
        self.frames += file.frames;
        self.bytes += file.bytes;
    }
}

/// What games of chess are generated, and where.
#[derive(Deserialize)]
struct Chess {
    folder: PathBuf,
    games: u64,
    first: u64,
    seed: Option<u64>,
    plies_max: usize,
    version: u32,
    games_per_tar: Option<u64>,
}

/// Plays games of chess into `.gz` files or tars.
#[pyfunction]
pub(crate) fn generate_chess(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let Chess { folder, games, first, seed, plies_max, version, games_per_tar } = parsed(options)?;
    let seed = seed.unwrap_or_else(seed::fresh_root);
    let version = if version == 7 { Version::V7 } else { Version::V6 };
    let options = ChessOptions { folder, games, first, seed, plies_max, version, games_per_tar };
    let stop = AtomicBool::new(false);
    watched(py, &stop, |look| {
        let mut generator = ChessGenerator::new(options)?;
        let mut made = Made { files: generator.files(), seed, ..Made::default() };
        while let Some(file) = generator.write_next()? {
            made.add(&file);
            look();
            if stop.load(Ordering::Relaxed) {
                return Err(gristmill_engine::Error::Stopped);
            }
        }
        Ok(made)
    })
}

/// What games of 2048 are generated, and where.
#[derive(Deserialize)]
struct G2048 {
    folder: PathBuf,
    games: u64,
    first: u64,
    seed: Option<u64>,
    depth: u32,
    moves_max: Option<u64>,
    threads: Option<usize>,
}

/// Plays games of 2048 into raw logs. Ctrl-C lets the few that were begun end first.
#[pyfunction]
pub(crate) fn generate_2048(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let G2048 { folder, games, first, seed, depth, moves_max, threads } = parsed(options)?;
    // Seeds of games are written as ten digits; a drawn one looks like those of real logs.
    let seed = seed.unwrap_or_else(|| seed::fresh_root() >> 32);
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let moves_max = moves_max.unwrap_or(u64::MAX);
    let last = first.checked_add(games).ok_or_else(|| PyValueError::new_err("the game numbers leave 64 bits"))?;
    let together = 4 * threads.max(1) as u64;
    let stop = AtomicBool::new(false);
    watched(py, &stop, |look| {
        let mut made = Made { files: 2 * games, seed, ..Made::default() };
        let mut next = first;
        while next < last && !stop.load(Ordering::Relaxed) {
            let games = together.min(last - next);
            let folder = folder.clone();
            let options = G2048Options { folder, games, first: next, seed, depth, moves_max, level: LEVEL, threads };
            G2048Generator::new(options)?.run(&mut |game| {
                made.add(game);
                look();
            })?;
            next += games;
        }
        if stop.load(Ordering::Relaxed) { Err(gristmill_engine::Error::Stopped) } else { Ok(made) }
    })
}

/// Level of compression of raw logs, as the command has it by default.
const LEVEL: u8 = 6;

fn parsed<'a, T: Deserialize<'a>>(options: &'a str) -> Result<T, Fault> {
    serde_json::from_str(options).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

/// Every family of metrics that a loader may export: series, type and help.
#[pyfunction]
pub(crate) fn metric_families() -> Vec<(String, &'static str, String)> {
    families().into_iter().map(|one| (one.series, one.kind, one.help.into_owned())).collect()
}
