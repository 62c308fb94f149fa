//! Shards, or a pack of them -> shards in one folder for each side. A whole trajectory goes where the published hash of its file
//! and its number there says, loose or packed; the order is kept. The folders appear together or not at all.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::demos::{ShardOptions, shard_ending};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::demo::is_trajectories;
use gristmill_engine::stage::split::{Fold, Side};
use gristmill_engine::store::publish::{Found, Staging};
use gristmill_format::demo::native::Semantics;
use gristmill_format::demo::shard::Members;
use serde::{Deserialize, Serialize};

use super::gather::{Gathered, Part, Reading};
use super::groups::{self, folders};
use super::task::{Task, TaskOptions};
use super::{LEVEL, Phase, Progress, grouped, shards, source};
use crate::rewrite::check_sides;
use crate::shares::{Share, Shared};

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
    /// Make shards of each this many files, on each side.
    pub files_per_shard: Option<u64>,
    /// The share of these shards to make, beside the output until a commit. `None` makes all.
    pub share: Option<Share>,
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
    /// The share whose numbers these are. `None` if they are those of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Shared>,
}

/// What a side got.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    grouped::check_share(options.share, options.files_per_shard, "a side of demonstrations")?;
    if let Some(size) = options.files_per_shard {
        if pack {
            return Err(Error::config("files_per_shard", "a pack is one data set, without files that become shards"));
        }
        return grouped::split(options, &sides, files, size, progress);
    }
    for (name, _) in &options.sides {
        let side = options.output.join(name);
        if side.exists() {
            let e =
                std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; choose a new folder to split to");
            return Err(Error::path(side, &e));
        }
    }
    let near = options.output.ancestors().find(|folder| folder.is_dir()).filter(|_| !options.dry_run);
    let mut found = match pack {
        true => Gathered::of_pack(&options.input)?,
        false => options.read(&files, near, &mut |done| progress(Phase::Reading(done, files.len() as u64)))?,
    };
    shards::check_fields(&found)?;
    let (meta, dealt) = (SplitOptions::meta(&found)?, SplitOptions::dealt(&sides, &found));
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

impl SplitOptions {
    /// The trajectories in some shards. Lays those of several on the disk of `scratch`.
    ///
    /// Errors: as [`Gathered::read`].
    pub(super) fn read(
        &self,
        files: &[PathBuf],
        scratch: Option<&Path>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Gathered> {
        let options = &Task::new(&TaskOptions::default())?.reading(Semantics::Strict)?;
        Gathered::read(&Reading { files, options, forms: None, enough: None, scratch, stop: &self.stop }, progress)
    }

    /// The metadata of the new shards.
    ///
    /// Errors: `Config` where there is none.
    pub(super) fn meta(found: &Gathered) -> Result<Vec<u8>> {
        let none = "the data has no metadata of shards; `convert` writes it, with options that name benchmark and task";
        found.meta.as_ref().map(|meta| meta.pickle.clone()).ok_or_else(|| Error::config("path", none))
    }

    /// The side of each trajectory.
    pub(super) fn dealt(sides: &[Side], found: &Gathered) -> Vec<usize> {
        let side_of = |part: &Part| sides.iter().position(|side| side.holds(&part.key, part.index));
        found.parts.iter().filter_map(side_of).collect()
    }
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
    let names: Vec<String> = options.sides.iter().map(|(name, _)| name.clone()).collect();
    folders(&staging.path(""), &names)?;
    let paths: Vec<PathBuf> = names.iter().map(|name| staging.path(name).join(SHARD)).collect();
    let how = ShardOptions { level: LEVEL.cast_signed(), max_frames: None, members: options.members, overwrite: false };
    let files = groups::write(found, dealt, &paths, meta, &how, &mut |done| {
        progress(Phase::Writing(done, frames));
        if options.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    })?;
    staging.publish(&[])?;
    Ok(files.len() as u64)
}
