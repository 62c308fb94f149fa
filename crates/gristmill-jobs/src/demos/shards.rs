//! Trajectories, one after another -> frames of shards, with the metadata that belongs to them.

use std::path::PathBuf;

use gristmill_engine::demos::ShardFiles;
use gristmill_engine::error::{Error, Result};
use gristmill_format::demo::pickled::{fields, json_pickle, made_with};
use gristmill_format::demo::shard::metadata;
use gristmill_format::{Error as FormatError, Kind};

use super::gather::{Gathered, Steps};
use super::spaces::{SpaceOptions, spaces};
use super::task::{Task, TaskOptions};

/// The metadata of new shards, a pickle, and remarks about it: that of the shards that were read, else what the task, the
/// options and the data say.
///
/// Errors: `Config` where no option says what the frames are of, or where options contradict the shards; as [`spaces`].
pub(super) fn meta(
    found: &Gathered,
    said: &TaskOptions,
    task: &Task,
    of_spaces: &SpaceOptions,
) -> Result<(Vec<u8>, Vec<String>)> {
    if let Some(meta) = &found.meta {
        if !said.is_empty() || !of_spaces.is_empty() {
            let detail = "the shards say themselves what they are of; options about task and spaces do not apply";
            return Err(Error::config("task", detail));
        }
        return Ok((meta.pickle.clone(), Vec::new()));
    }
    let mut task = task.clone();
    if let Some(env_name) = &found.env_name {
        check_env_name(env_name, &task)?;
        if !task.task_said {
            task.env_cfg.task_name.clone_from(env_name);
            task.task_said = true;
        }
    }
    if !task.benchmark_said || !task.task_said {
        let detail = "a shard says what it is of: name the benchmark and the task (or a configuration that does)";
        return Err(Error::config(if task.benchmark_said { "task_name" } else { "benchmark_name" }, detail));
    }
    let benchmark = task.env_cfg.benchmark_name.as_str();
    let (observation, action, remarks) = spaces(&found.layout, found.acts, benchmark, of_spaces)?;
    let color = of_spaces.color_space.clone().unwrap_or_else(|| task.color_space().to_owned());
    if !["RGB", "GRAY"].contains(&color.as_str()) {
        return Err(Error::config("color_space", format!("`{color}`; expected RGB or GRAY")));
    }
    let cfg = json_pickle(&task.stored())?;
    let (action, observation) = (made_with(&action)?, made_with(&observation)?);
    let pickle = metadata(&cfg, (action.0, &action.1), (observation.0, &observation.1), &color)?;
    Ok((pickle, remarks))
}

/// A MAGICAL file must be of the kind that the task says.
fn check_env_name(env_name: &str, task: &Task) -> Result<()> {
    let kind = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    if task.task_said && kind(env_name) != kind(&task.env_cfg.task_name) {
        let detail = format!("the files are of `{env_name}`; the task is `{}`", task.env_cfg.task_name);
        return Err(Error::config("task_name", detail));
    }
    Ok(())
}

/// Benchmark and task of frames, for the name of the folder where loaders look for them.
///
/// Errors: `Config` where neither metadata nor options name them.
pub(super) fn benchmark_and_task(found: &Gathered, task: &Task) -> Result<(String, String)> {
    let unknown = || Error::config("output", "benchmark and task are unknown; name a file to write to");
    let cfg: serde_json::Value = match &found.meta {
        Some(meta) => serde_json::from_str(&meta.env_cfg).unwrap_or_default(),
        None if task.benchmark_said && (task.task_said || found.env_name.is_some()) => {
            let mut cfg = task.stored();
            if let Some(env_name) = found.env_name.as_ref().filter(|_| !task.task_said) {
                cfg["task_name"] = env_name.clone().into();
            }
            cfg
        }
        None => return Err(unknown()),
    };
    let name = |key: &str| {
        let name = cfg.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
        if plain { Ok(name.to_owned()) } else { Err(unknown()) }
    };
    Ok((name("benchmark_name")?, name("task_name")?))
}

/// Writes trajectory `i`; the number of its frames.
///
/// Errors: `Format` with trajectory and frame, for extras that are no plain data; what [`ShardFiles::frame`] says.
pub(super) fn write(found: &mut Gathered, i: usize, steps: &mut Steps, to: &mut ShardFiles) -> Result<u64> {
    found.steps(i, steps)?;
    let (layout, size) = (found.layout.clone(), found.layout.size());
    let frames = steps.extras.len();
    for (t, (record, extras)) in steps.records.chunks_exact(size).zip(&steps.extras).enumerate() {
        let place = |e: FormatError| e.in_frame(t).in_chunk(i);
        let extras = extras.iter().map(|(name, extra)| (name.as_str(), extra));
        to.frame(&fields(&layout, record, extras).map_err(place)?, t + 1 == frames)?;
    }
    Ok(frames as u64)
}

/// Ends some shards: all are published, or after `e` none.
///
/// Errors: `e`; what publishing says.
pub(super) fn end(files: Vec<ShardFiles>, written: Result<()>) -> Result<Vec<PathBuf>> {
    match written {
        Ok(()) => {
            let mut paths = Vec::new();
            for file in files {
                paths.extend(file.finish()?);
            }
            Ok(paths)
        }
        Err(e) => {
            // Only the first error is reported.
            files.into_iter().for_each(|file| _ = file.abort());
            Err(e)
        }
    }
}

/// That a field of this name is in every frame, as readers expect.
pub(super) fn check_fields(found: &Gathered) -> Result<()> {
    match found.layout.field("dones") {
        Some(_) => Ok(()),
        None => {
            let detail =
                "there is no `dones`: nothing says where trajectories end, and no reader could tell them apart";
            Err(FormatError::new(Kind::Missing, detail).into())
        }
    }
}
