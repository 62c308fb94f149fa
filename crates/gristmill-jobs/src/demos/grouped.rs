//! A conversion and a split of demonstrations as jobs on groups of files: which options change a byte, how a group is read, and to which
//! side each trajectory goes. Refuses options whose meaning needs all files together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use gristmill_engine::demos::{ShardOptions, shard_ending};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::stage::split::Side;
use gristmill_engine::store::place::{resolved, writable};
use gristmill_format::demo::native::Semantics;
use gristmill_format::demo::shard::Members;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::gather::Gathered;
use super::groups::{Extent, Grouped, Groups, Sum, make};
use super::part::{CONVERT, INTO, SPLIT};
use super::task::Task;
use super::{ConvertOptions, Converted, LEVEL, Progress, SplitOptions, SplitUp, read, shards, spaces};
use crate::shares::{Share, place};

/// The option with the number of files of a group.
const SIZE: &str = "files_per_shard";

/// Converts each group of `size` files to a shard of its own.
///
/// Errors: as [`super::convert`]; `Config` for options that need all files together.
pub(super) fn convert(
    options: &ConvertOptions,
    task: &Task,
    (files, shards): (Vec<PathBuf>, bool),
    size: u64,
    progress: &mut Progress<'_>,
) -> Result<Converted> {
    let refused = |name: &str, why: &str| Err(Error::config(name, format!("{why}; leave files_per_shard out")));
    let name = options.output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if shard_ending(&name).is_some() || name.ends_with(".npz") {
        return Err(Error::config(
            "output",
            "several shards lie in a folder: name one, and files_per_shard names its shards",
        ));
    }
    if options.choice.n_traj.is_some() || options.choice.shuffle {
        return refused("n_traj", "trajectories are chosen and drawn from all files");
    }
    if options.max_frames.is_some() {
        return refused("max_frames", "a shard has the frames of its files");
    }
    if options.overwrite {
        return refused("overwrite", "shards of groups go to a new folder");
    }
    let extent = extent((&options.input, &options.output), options.share, options.dry_run, &options.stop)?;
    let groups = Groups::of(&options.input, files, size)?;
    let (sum, share) = make(&Converting { options, task, shards, extent, size }, &groups, progress)?;
    Ok(Converted { share, dry_run: options.dry_run, ..Converted::of(&sum, &options.output) })
}

struct Converting<'a> {
    options: &'a ConvertOptions,
    task: &'a Task,
    /// Whether shards are read.
    shards: bool,
    extent: Extent<'a>,
    size: u64,
}

impl Grouped for Converting<'_> {
    fn job(&self) -> &'static str {
        CONVERT
    }

    fn extent(&self) -> &Extent<'_> {
        &self.extent
    }

    fn sides(&self) -> Vec<String> {
        vec![String::new()]
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let (task, spaces) = (&self.options.task, &self.options.spaces);
        let config = match &task.config {
            Some(path) => {
                let bytes = std::fs::read(path).map_err(|e| Error::path(path, &e))?;
                json!(format!("{:016x}", xxh3_64(&bytes)))
            }
            None => Value::Null,
        };
        let options = json!({
            SIZE: self.size,
            "config": config,
            "benchmark": task.benchmark,
            "task": task.task,
            "magical_preproc": task.magical_preproc,
            "remove_null_actions": task.remove_null_actions,
            "frame_stack": task.frame_stack,
            "compat": self.options.semantics == Semantics::Compat,
            "n_actions": spaces.n_actions,
            "action_bounds": spaces.action_bounds,
            "obs_bounds": spaces.obs_bounds,
            "color_space": spaces.color_space,
            "members": member(self.options.members.unwrap_or_default()),
            "level": self.options.level.unwrap_or(LEVEL),
        });
        Ok(options.as_object().map(|all| all.clone().into_iter().collect()).unwrap_or_default())
    }

    fn shards(&self) -> ShardOptions {
        let level = self.options.level.unwrap_or(LEVEL).cast_signed();
        how(level, self.options.members.unwrap_or_default())
    }

    fn read(&self, files: &[PathBuf], scratch: Option<&Path>) -> Result<Gathered> {
        read(self.options, self.task, (files, self.shards), scratch, &mut |_| {})
    }

    fn deal(&self, found: &Gathered) -> Result<(Vec<u8>, Vec<String>, Vec<usize>)> {
        let benchmark = &self.task.env_cfg.benchmark_name;
        if found.meta.is_none() && spaces::is_of_data(&found.layout, benchmark, &self.options.spaces) {
            let text = "say how many discrete actions there are: a shard of some files cannot know it of the others";
            return Err(Error::config("n_actions", text));
        }
        let (meta, remarks) = shards::meta(found, &self.options.task, self.task, &self.options.spaces)?;
        Ok((meta, remarks, vec![0; found.parts.len()]))
    }
}

impl Converted {
    /// What came of some groups, in the folder `output`.
    pub(super) fn of(sum: &Sum, output: &Path) -> Self {
        let (trajectories, frames) = sum.all();
        Converted {
            output: sum.files.iter().map(|(name, _)| output.join(name)).collect(),
            from: sum.from.clone(),
            to: "shards",
            read: trajectories,
            trajectories,
            frames,
            truncated: sum.truncated,
            unended: sum.unended,
            remarks: sum.remarks.clone(),
            ..Converted::default()
        }
    }
}

/// Splits each group of `size` files into shards of its own.
///
/// Errors: as [`super::split()`].
pub(super) fn split(
    options: &SplitOptions,
    sides: &[Side],
    files: Vec<PathBuf>,
    size: u64,
    progress: &mut Progress<'_>,
) -> Result<SplitUp> {
    let extent = extent((&options.input, &options.output), options.share, options.dry_run, &options.stop)?;
    let groups = Groups::of(&options.input, files, size)?;
    let (sum, share) = make(&Splitting { options, sides, extent, size }, &groups, progress)?;
    Ok(SplitUp { share, dry_run: options.dry_run, ..SplitUp::of(&sum, &options.output) })
}

struct Splitting<'a> {
    options: &'a SplitOptions,
    sides: &'a [Side],
    extent: Extent<'a>,
    size: u64,
}

impl Grouped for Splitting<'_> {
    fn job(&self) -> &'static str {
        SPLIT
    }

    fn extent(&self) -> &Extent<'_> {
        &self.extent
    }

    fn sides(&self) -> Vec<String> {
        self.options.sides.iter().map(|(name, _)| name.clone()).collect()
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let fold = self.options.fold.as_ref().map(|fold| (fold.of, fold.number));
        let options = [
            (SIZE, json!(self.size)),
            (INTO, json!(self.options.sides)),
            ("fold", json!(fold)),
            ("members", json!(member(self.options.members))),
        ];
        Ok(options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn shards(&self) -> ShardOptions {
        how(LEVEL.cast_signed(), self.options.members)
    }

    fn read(&self, files: &[PathBuf], scratch: Option<&Path>) -> Result<Gathered> {
        self.options.read(files, scratch, &mut |_| {})
    }

    fn deal(&self, found: &Gathered) -> Result<(Vec<u8>, Vec<String>, Vec<usize>)> {
        Ok((SplitOptions::meta(found)?, Vec::new(), SplitOptions::dealt(self.sides, found)))
    }
}

impl SplitUp {
    /// What came of some groups, in folders below `output`.
    pub(super) fn of(sum: &Sum, output: &Path) -> Self {
        let (trajectories, frames) = sum.all();
        SplitUp {
            out: sum.sides.iter().map(|side| output.join(&side.name)).collect(),
            sides: sum.sides.clone(),
            trajectories,
            frames,
            files_out: sum.files.len() as u64,
            ..SplitUp::default()
        }
    }
}

/// Refuses a share without groups, of which it would have some.
pub(super) fn check_share(share: Option<Share>, size: Option<u64>, shared: &str) -> Result<()> {
    match (share, size) {
        (Some(_), None) => {
            let text = format!(
                "{shared} is one shard, compressed as a whole; with files_per_shard, the same in all shares, each some of the files \
                 become a shard of their own, and loaders read the folder of shards as one data set"
            );
            Err(Error::config("share", text))
        }
        _ => Ok(()),
    }
}

/// What a job has to do, with input and output as this machine reaches them; only shares go to a bucket by themselves.
fn extent<'a>(
    (input, output): (&Path, &Path),
    share: Option<Share>,
    dry_run: bool,
    stop: &'a AtomicBool,
) -> Result<Extent<'a>> {
    let output = if share.is_some() { place(output)? } else { writable(output, "output")?.into_owned() };
    Ok(Extent { input: resolved(input)?.into_owned(), output, share, dry_run, stop })
}

fn how(level: i32, members: Members) -> ShardOptions {
    ShardOptions { level, max_frames: None, members, overwrite: false }
}

fn member(members: Members) -> &'static str {
    match members {
        Members::Pickle => "pickle",
        Members::Npy => "npy",
    }
}
