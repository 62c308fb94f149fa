//! Options of a conversion in, what came of it out, as JSON text: rows of 2048, games of chess as text, demonstrations.
//! What lies at a path decides which of them takes it; Ctrl-C ends a job between two blocks, files or trajectories.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_format::demo::native::Semantics;
use gristmill_format::demo::shard::Members;
use gristmill_jobs::convert::{ConvertOptions, Kind, convert};
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::demos::{self, Choice, SpaceOptions, TaskOptions};
use gristmill_jobs::notation::{NotationOptions, Words, notation};
use gristmill_jobs::shares::Share;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::Fault;
use crate::packing::watched;

/// What would be converted: `games`, `rows` or `demonstrations`.
#[pyfunction]
pub(crate) fn convertible(py: Python<'_>, path: PathBuf, output: PathBuf) -> Result<&'static str, Fault> {
    Ok(match py.detach(|| Kind::of(&path, &output))? {
        Kind::Games => "games",
        Kind::Rows => "rows",
        Kind::Demonstrations => "demonstrations",
    })
}

/// Converts rows of 2048.
#[pyfunction]
pub(crate) fn convert_rows(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let options = ConvertOptions::from_json(options)?;
    watched(py, &options.stop, |look| {
        let delivery = Delivery::to(&options.output, Earlier::Removed, options.dry_run)?;
        let mut converted =
            convert(&ConvertOptions { output: delivery.folder(), ..options.clone() }, &mut |_, _| look())?;
        converted.output = delivery.deliver(&options.stop, &mut |_, _| look())?;
        Ok(converted)
    })
}

/// Options for games that become text, checked in Python.
#[derive(Deserialize)]
struct Text {
    input: PathBuf,
    output: PathBuf,
    to: Words,
    overwrite: bool,
    dry_run: bool,
    share: Option<String>,
}

/// Writes games, or a share of them, as one file of text or boards. Returns the report as JSON.
#[pyfunction]
pub(crate) fn tell_games(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let Text { input: path, output: out, to: words, overwrite, dry_run, share } = parsed(options)?;
    let share = share.map(|share| share.parse::<Share>()).transpose()?;
    let stop = Arc::default();
    let options = NotationOptions { path, out, words, overwrite, dry_run, share, stop: Arc::clone(&stop) };
    watched(py, &stop, |look| notation(&options, &mut |_| look()))
}

/// Options for demonstrations, checked in Python.
#[derive(Deserialize)]
struct Demonstrations {
    input: PathBuf,
    output: PathBuf,
    config: Option<PathBuf>,
    benchmark: Option<String>,
    task: Option<String>,
    magical_preproc: Option<String>,
    remove_null_actions: bool,
    frame_stack: Option<u64>,
    compat: bool,
    n_traj: Option<u64>,
    sample: bool,
    shuffle: bool,
    seed: Option<u64>,
    max_frames: Option<u64>,
    files_per_shard: Option<u64>,
    share: Option<String>,
    members: Option<String>,
    level: Option<u32>,
    n_actions: Option<u32>,
    action_bounds: Option<(f64, f64)>,
    obs_bounds: Option<(f64, f64)>,
    color_space: Option<String>,
    overwrite: bool,
    dry_run: bool,
}

/// Converts demonstrations.
#[pyfunction]
pub(crate) fn convert_demos(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let given: Demonstrations = parsed(options)?;
    let options = demos::ConvertOptions {
        input: given.input,
        output: given.output,
        task: TaskOptions {
            config: given.config,
            benchmark: given.benchmark,
            task: given.task,
            magical_preproc: given.magical_preproc,
            remove_null_actions: given.remove_null_actions,
            frame_stack: given.frame_stack,
        },
        spaces: SpaceOptions {
            n_actions: given.n_actions,
            action_bounds: given.action_bounds,
            obs_bounds: given.obs_bounds,
            color_space: given.color_space.map(|colors| colors.to_uppercase()),
        },
        semantics: if given.compat { Semantics::Compat } else { Semantics::Strict },
        choice: Choice { n_traj: given.n_traj, sample: given.sample, shuffle: given.shuffle },
        seed: given.seed,
        level: given.level,
        max_frames: given.max_frames,
        files_per_shard: given.files_per_shard,
        share: given.share.map(|share| share.parse()).transpose()?,
        members: given.members.map(|members| if members == "npy" { Members::Npy } else { Members::Pickle }),
        overwrite: given.overwrite,
        dry_run: given.dry_run,
        stop: Arc::default(),
    };
    watched(py, &options.stop, |look| demos::convert(&options, &mut |_| look()))
}

/// Options from their JSON, which Python checked.
pub(crate) fn parsed<'o, T: Deserialize<'o>>(options: &'o str) -> Result<T, Fault> {
    serde_json::from_str(options).map_err(|e| PyValueError::new_err(e.to_string()).into())
}
