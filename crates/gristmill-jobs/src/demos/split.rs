//! Shards, or a pack of them -> shards in one folder for each side. A whole trajectory goes where the published hash of its file
//! and its number there says, loose or packed; the order is kept. The folders appear together or not at all.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::demos::{ShardFiles, ShardOptions, shard_ending};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::demo::is_trajectories;
use gristmill_engine::stage::split::{Fold, Side};
use gristmill_engine::store::publish::{Found, Staging};
use gristmill_format::demo::native::Semantics;
use gristmill_format::demo::shard::Members;
use serde::Serialize;

use super::gather::{Gathered, Reading, Steps};
use super::task::{Task, TaskOptions};
use super::{LEVEL, Phase, Progress, shards, source};
use crate::rewrite::check_sides;

/// What to split, and where to.
#[derive(Debug, Clone)]
pub struct SplitOptions {
    /// A shard, a folder of them, or a pack of demonstrations.
    pub input: PathBuf,
    /// The folder that gets the folders of the sides.
    pub output: PathBuf,
    /// Name and weight of each side.
    pub sides: Vec<(String, u64)>,
    /// With it what the first two sides have together is dealt again: the second gets the fold, the first all others.
    pub fold: Option<Fold>,
    /// How the shards of the sides hold their values.
    pub members: Members,
    /// Read everything, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

/// What came of a split.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SplitUp {
    /// The folders of the sides.
    pub out: Vec<PathBuf>,
    /// The sides, in order.
    pub sides: Vec<SideCount>,
    /// Trajectories in all.
    pub trajectories: u64,
    /// Frames in all.
    pub frames: u64,
    /// Trajectories whose pack does not say in which shard they began: their content decided.
    pub by_content: u64,
    /// Files written.
    pub files_out: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// What a side got.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SideCount {
    /// Its name.
    pub name: String,
    /// Trajectories.
    pub trajectories: u64,
    /// Frames.
    pub frames: u64,
}

/// The name of a shard in the folder of its side.
const SHARD: &str = "demos.tar.zst";

/// The name of the job, as long as its output is not whole.
const STAGING: &str = "split";

/// Splits shards of demonstrations. A side that gets no trajectory gets no shard.
///
/// Errors: `Config` for weights that are all zero, and for native files (which have to be converted first); `Format`, `Path`
/// (of kind `AlreadyExists` for a side that is there), `Stopped`. Nothing is written then.
pub fn split(options: &SplitOptions, progress: &mut Progress<'_>) -> Result<SplitUp> {
    let weights: Vec<u64> = options.sides.iter().map(|(_, weight)| *weight).collect();
    let sides = Side::all(&weights, options.fold).map_err(|text| Error::config("into", text))?;
    check_sides(options.sides.iter().map(|(name, _)| name))?;
    let pack = is_trajectories(&options.input)?;
    let files = if pack { Vec::new() } else { source::files(&options.input)? };
    if !pack && files.first().is_none_or(|first| shard_ending(&first.to_string_lossy()).is_none()) {
        let detail = "these are native files; `convert` makes shards of them, which can be split";
        return Err(Error::config("path", detail));
    }
    for (name, _) in &options.sides {
        let side = options.output.join(name);
        if side.exists() {
            let e =
                std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; choose a new folder to split to");
            return Err(Error::path(side, &e));
        }
    }
    let near = options.output.ancestors().find(|folder| folder.is_dir());
    let reading = Reading {
        files: &files,
        options: &Task::new(&TaskOptions::default())?.reading(Semantics::Strict)?,
        forms: None,
        enough: None,
        scratch: near.filter(|_| !options.dry_run),
        stop: &options.stop,
    };
    let mut found = match pack {
        true => Gathered::of_pack(&options.input)?,
        false => Gathered::read(&reading, &mut |done| progress(Phase::Reading(done, files.len() as u64)))?,
    };
    shards::check_fields(&found)?;
    let Some(meta) = found.meta.as_ref().map(|meta| meta.pickle.clone()) else {
        let detail =
            "the data has no metadata of shards; `convert` writes it, with options that name benchmark and task";
        return Err(Error::config("path", detail));
    };
    let side_of = |part: &super::gather::Part| sides.iter().position(|side| side.holds(&part.key, part.index));
    let dealt: Vec<usize> = found.parts.iter().filter_map(side_of).collect();
    let mut up = SplitUp {
        out: options.sides.iter().map(|(name, _)| options.output.join(name)).collect(),
        sides: options.sides.iter().map(|(name, _)| SideCount { name: name.clone(), ..SideCount::default() }).collect(),
        dry_run: options.dry_run,
        ..SplitUp::default()
    };
    for (part, side) in found.parts.iter().zip(&dealt) {
        let count = &mut up.sides[*side];
        count.trajectories += 1;
        count.frames += part.frames as u64;
        up.trajectories += 1;
        up.by_content += u64::from(part.key.is_empty());
        up.frames += part.frames as u64;
    }
    if !options.dry_run {
        up.files_out = write(options, &mut found, &dealt, &meta, up.frames, progress)?;
    }
    Ok(up)
}

fn write(
    options: &SplitOptions,
    found: &mut Gathered,
    dealt: &[usize],
    meta: &[u8],
    frames: u64,
    progress: &mut Progress<'_>,
) -> Result<u64> {
    let (mut staging, left) = Staging::open(&options.output, STAGING, "split")?;
    if left == Found::Unfinished {
        staging.clear("split")?;
    }
    let files = sides(options, found, dealt, meta, frames, &staging, progress)?;
    staging.publish(&[])?;
    Ok(files)
}

/// Writes the shards of all sides in the staging.
fn sides(
    options: &SplitOptions,
    found: &mut Gathered,
    dealt: &[usize],
    meta: &[u8],
    frames: u64,
    staging: &Staging,
    progress: &mut Progress<'_>,
) -> Result<u64> {
    let mut files = Vec::new();
    let mut of_side: Vec<Option<usize>> = vec![None; options.sides.len()];
    for (i, (name, _)) in options.sides.iter().enumerate() {
        let folder = staging.path(name);
        std::fs::create_dir_all(&folder).map_err(|e| Error::path(&folder, &e))?;
        if dealt.contains(&i) {
            let to = ShardOptions {
                level: LEVEL.cast_signed(),
                max_frames: None,
                members: options.members,
                overwrite: false,
            };
            of_side[i] = Some(files.len());
            files.push(ShardFiles::create(&folder.join(SHARD), meta.to_vec(), to)?);
        }
    }
    let (mut steps, mut done) = (Steps::default(), 0);
    let written = dealt.iter().enumerate().try_for_each(|(i, side)| {
        if let Some(at) = of_side[*side] {
            done += shards::write(found, i, &mut steps, &mut files[at])?;
        }
        progress(Phase::Writing(done, frames));
        if options.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    });
    Ok(shards::end(files, written)?.len() as u64)
}
