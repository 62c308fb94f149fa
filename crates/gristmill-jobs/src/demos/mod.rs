//! Demonstrations in any form, packed ones too -> shards or a dictionary of arrays; shards dealt to several folders by trajectory.
//! Nothing is under its name before all of it is whole; no trajectory is cut, and none runs into another.
//!
//! | file | does |
//! |---|---|
//! | `source` | finds the files at a path |
//! | `task` | says what they are of: `env_cfg` and `env_data` |
//! | `gather` | reads them, and keeps trajectories within reach |
//! | `spool` | lays them on the disk meanwhile |
//! | `order` | chooses which, in which order |
//! | `spaces` | says what observations and actions can be |
//! | `shards`, `dict` | write |
//! | `split` | deals trajectories to folders |
//! | `groups`, `grouped` | make a shard of each some files, for a conversion and a split |
//! | `part` | makes shares of these |

mod dict;
mod gather;
mod grouped;
mod groups;
mod order;
mod part;
mod shards;
mod source;
mod spaces;
mod split;
mod spool;
mod task;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::chunks::is_chunks;
use gristmill_engine::demos::{ShardFiles, ShardOptions, shard_ending};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::demo::is_trajectories;
use gristmill_engine::runtime::seed::fresh_root;
use gristmill_engine::store::files::is_folder;
use gristmill_format::demo::native::Semantics;
use gristmill_format::demo::shard::Members;
use gristmill_format::demo::trajectory::End;
use serde::Serialize;

use self::gather::{Gathered, Reading, Steps};
use self::task::Task;
use super::meter::{Meter, Moment, peak_rss};
use crate::shares::{Share, Shared};

pub use order::Choice;
pub(crate) use part::{CONVERT, SPLIT, commit_converted, commit_split, is_there};
pub use source::is_demonstrations;
pub use spaces::SpaceOptions;
pub use split::{SplitOptions, SplitUp, split};
pub use task::{BENCHMARKS, TaskOptions};

/// What to convert, and how.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// A file, a folder of shards or of native files, a pack of trajectories, or with a configuration the folder that its paths are below.
    pub input: PathBuf,
    /// A shard or an `.npz` to write; another name is a folder of data sets, in which the shard gets the place where loaders
    /// look for it.
    pub output: PathBuf,
    /// What native files are of.
    pub task: TaskOptions,
    /// What is known of their spaces.
    pub spaces: SpaceOptions,
    /// How the ends of native episodes are understood.
    pub semantics: Semantics,
    /// Which trajectories, in which order.
    pub choice: Choice,
    /// The seed of random choices; absent: a fresh one.
    pub seed: Option<u64>,
    /// Level of compression: of Zstandard 1 to 22, of gzip and `.npz` up to 9, of `.npz` 0 for none.
    pub level: Option<u32>,
    /// Frames after which the next trajectory begins a new shard.
    pub max_frames: Option<u64>,
    /// Make a shard of each this many files, in the folder `output`.
    pub files_per_shard: Option<u64>,
    /// The share of these shards to make, beside the output until a commit. `None` makes all.
    pub share: Option<Share>,
    /// How shards hold their values; pickles by default.
    pub members: Option<Members>,
    /// Whether what is there is replaced.
    pub overwrite: bool,
    /// Read and judge everything, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Files read, of how many.
    Reading(u64, u64),
    /// Frames written, of how many; of an `.npz` once for each array.
    Writing(u64, u64),
}

/// Receives how far a job is.
pub type Progress<'a> = dyn FnMut(Phase) + 'a;

/// What came of a conversion.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Converted {
    /// The files written; of a share those that the commit will write.
    pub output: Vec<PathBuf>,
    /// Form that was read, such as `demo.magical`.
    pub from: String,
    /// `shards` or `npz`.
    pub to: &'static str,
    /// Trajectories that were read.
    pub read: u64,
    /// Trajectories written.
    pub trajectories: u64,
    /// Frames written.
    pub frames: u64,
    /// Trajectories among them that were cut, and not over.
    pub truncated: u64,
    /// Trajectories among them whose end no `dones` marks.
    pub unended: u64,
    /// The seed, where something was drawn.
    pub seed: Option<u64>,
    /// What was inferred from the data because no option said it.
    pub remarks: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took.
    pub seconds: f64,
    /// Processor time of the process, meanwhile.
    pub cpu_seconds: f64,
    /// Peak memory of the process, in bytes.
    pub peak_rss: Option<u64>,
    /// The share whose numbers these are. `None` if they are those of all files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Shared>,
}

/// The default level of Zstandard: small files in bearable time.
const LEVEL: u32 = 12;

/// The default level of Deflate.
const NPZ_LEVEL: u32 = 6;

/// Converts demonstrations.
///
/// Errors: `Config` for options that cannot be met; `Format` for damaged files and for files that do not belong
/// together; `Path`; `Stopped`. Nothing is written then.
pub fn convert(options: &ConvertOptions, progress: &mut Progress<'_>) -> Result<Converted> {
    let (meter, task) = (Meter::default(), Task::new(&options.task)?);
    let started = meter.now();
    if options.choice.sample && options.choice.n_traj.is_none() {
        return Err(Error::config("n_traj", "a sample has a size: say how many trajectories are to be drawn"));
    }
    let name = options.output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let npz = name.ends_with(".npz");
    check_level(options.level, &name)?;
    let pack = is_trajectories(&options.input)?;
    if options.input.file_name().is_some_and(|name| is_chunks(&name.to_string_lossy())) {
        return Err(Error::config(
            "path",
            "this is one file of a pack; name the folder, and all of the pack is converted",
        ));
    }
    let files = if pack { Vec::new() } else { find(options, &task)? };
    let shards = files.first().is_some_and(|first| shard_ending(&first.to_string_lossy()).is_some());
    check_options(options, shards || pack, npz)?;
    grouped::check_share(options.share, options.files_per_shard, "a data set of demonstrations")?;
    if let Some(size) = options.files_per_shard {
        if pack {
            return Err(Error::config("files_per_shard", "a pack is one data set, without files that become shards"));
        }
        let converted = grouped::convert(options, &task, (files, shards), size, progress)?;
        return Ok(converted.in_time(&meter, started));
    }
    let near = options.output.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let mut found = match pack {
        true => Gathered::of_pack(&options.input)?,
        false => read(options, &task, (&files, shards), (!options.dry_run).then_some(near), progress)?,
    };
    let drawn = options.choice.sample || options.choice.shuffle;
    let seed = drawn.then(|| options.seed.unwrap_or_else(fresh_root));
    let done: Vec<bool> = found.parts.iter().map(|part| part.done).collect();
    let chosen = order::choose(&options.choice, seed.unwrap_or_default(), &done)?;
    if pack {
        check_ends(options, &found, &chosen)?;
    }
    let frames: u64 = chosen.iter().map(|i| found.parts[*i].frames as u64).sum();
    let mut converted = Converted {
        from: found.form.to_owned(),
        to: if npz { "npz" } else { "shards" },
        read: found.parts.len() as u64,
        trajectories: chosen.len() as u64,
        frames,
        truncated: chosen.iter().filter(|i| found.parts[**i].end == End::Truncated).count() as u64,
        unended: chosen.iter().filter(|i| !found.parts[**i].done).count() as u64,
        seed,
        dry_run: options.dry_run,
        ..Converted::default()
    };
    let mut written = 0;
    let mut told = |frames: u64, all: u64| {
        written += frames;
        progress(Phase::Writing(written, all));
        if options.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    };
    if npz {
        refuse_existing(options)?;
        converted.output = vec![options.output.clone()];
        if !options.dry_run {
            let level = options.level.unwrap_or(NPZ_LEVEL);
            dict::write(&mut found, &chosen, &options.output, level, &mut told)?;
        }
    } else {
        shards::check_fields(&found)?;
        let (meta, remarks) = shards::meta(&found, &options.task, &task, &options.spaces)?;
        converted.remarks = remarks;
        let path = shard_path(options, &found, &task, &name)?;
        converted.output = vec![path.clone()];
        let to = ShardOptions {
            level: options.level.unwrap_or(LEVEL).cast_signed(),
            max_frames: options.max_frames,
            members: options.members.unwrap_or_default(),
            overwrite: options.overwrite,
        };
        if !options.dry_run {
            let mut file = ShardFiles::create(&path, meta, to)?;
            let mut steps = Steps::default();
            let all =
                chosen.iter().try_for_each(|i| told(shards::write(&mut found, *i, &mut steps, &mut file)?, frames));
            converted.output = shards::end(vec![file], all)?;
        }
    }
    Ok(converted.in_time(&meter, started))
}

impl Converted {
    /// The same, with what it took.
    fn in_time(self, meter: &Meter, started: Moment) -> Self {
        let ended = meter.now();
        let (seconds, cpu_seconds) = (ended.wall - started.wall, ended.cpu - started.cpu);
        Converted { seconds, cpu_seconds, peak_rss: peak_rss(), ..self }
    }
}

fn check_level(level: Option<u32>, name: &str) -> Result<()> {
    let (least, most) = match shard_ending(name) {
        _ if name.ends_with(".npz") => (0, 9),
        Some(".tar") if level.is_some() => {
            return Err(Error::config("level", "a plain .tar has no compression; name a .tar.zst or a .tgz"));
        }
        Some(".tgz" | ".tar.gz") => (1, 9),
        _ => (1, 22),
    };
    match level {
        Some(level) if !(least..=most).contains(&level) => {
            Err(Error::config("level", format!("{level}; `{name}` can have {least} to {most}")))
        }
        _ => Ok(()),
    }
}

/// Refuses options that would have no effect.
fn check_options(options: &ConvertOptions, shards: bool, npz: bool) -> Result<()> {
    if shards && options.semantics == Semantics::Compat {
        return Err(Error::config("compat", "shards and packs hold what was made of native files already"));
    }
    if npz && options.max_frames.is_some() {
        return Err(Error::config("max_frames", "an .npz is one file; only shards are cut"));
    }
    if npz && options.members.is_some() {
        return Err(Error::config("members", "an .npz has no members of frames; only shards do"));
    }
    if npz && !options.spaces.is_empty() {
        return Err(Error::config("spaces", "an .npz says nothing of spaces; only shards do"));
    }
    if npz && shards && !options.task.is_empty() {
        return Err(Error::config(
            "task",
            "an .npz says nothing of its task, and shards and packs need none to be read",
        ));
    }
    if options.seed.is_some() && !options.choice.sample && !options.choice.shuffle {
        return Err(Error::config("seed", "nothing is drawn; ask for a sample or for another order"));
    }
    Ok(())
}

/// That of the trajectories of a pack only the last has no end that `dones` marks: what is written tells them apart by nothing else.
fn check_ends(options: &ConvertOptions, found: &Gathered, chosen: &[usize]) -> Result<()> {
    let before = chosen.split_last().map_or(&[][..], |(_, before)| before);
    match before.iter().find(|i| !found.parts[**i].done) {
        None => Ok(()),
        Some(i) => {
            let ended = found.parts.iter().filter(|part| part.done).count();
            let detail = format!(
                "trajectory {i} of {} has no end that `dones` marks, and would run into the next; --n-traj {ended} takes those \
                 that have one",
                options.input.display()
            );
            Err(Error::config("path", detail))
        }
    }
}

/// The files that are meant: at the path, or below it where the configuration says.
fn find(options: &ConvertOptions, task: &Task) -> Result<Vec<PathBuf>> {
    let path = &options.input;
    if options.task.config.is_none() || !is_folder(path)? {
        return Ok(source::files(path)?);
    }
    // What the configuration names goes before what lies in the folder itself.
    let named = task.pattern(path).and_then(|pattern| Ok(source::matching(&pattern)?));
    named.or_else(|e| if is_demonstrations(path)? { Ok(source::files(path)?) } else { Err(e) })
}

fn read(
    options: &ConvertOptions,
    task: &Task,
    (files, shards): (&[PathBuf], bool),
    scratch: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Gathered> {
    if !shards && !task.benchmark_said {
        let detail = format!(
            "native files are read in the way of their benchmark: name it ({}), and its task for a shard",
            BENCHMARKS.join(", ")
        );
        return Err(Error::config("benchmark_name", detail));
    }
    let Choice { n_traj, sample, .. } = options.choice;
    let reading = Reading {
        files,
        options: &task.reading(options.semantics)?,
        forms: (!shards).then(|| task.forms()),
        enough: n_traj.filter(|_| !sample).map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        scratch,
        stop: &options.stop,
    };
    let count = files.len() as u64;
    Gathered::read(&reading, &mut |done| progress(Phase::Reading(done, count)))
}

/// Where the shard goes: the output, or its place in a folder of data sets.
fn shard_path(options: &ConvertOptions, found: &Gathered, task: &Task, name: &str) -> Result<PathBuf> {
    let path = match shard_ending(name) {
        Some(_) => options.output.clone(),
        None => {
            let (benchmark, task) = shards::benchmark_and_task(found, task)?;
            let folder = options.output.join("data").join("processed").join("demos");
            folder.join(benchmark).join(task).join("demos.tar.zst")
        }
    };
    if options.dry_run && path.exists() && !options.overwrite {
        return Err(exists(&path));
    }
    Ok(path)
}

fn refuse_existing(options: &ConvertOptions) -> Result<()> {
    match options.output.exists() && !options.overwrite {
        true => Err(exists(&options.output)),
        false => Ok(()),
    }
}

fn exists(path: &Path) -> Error {
    let e = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; overwrite it, or choose another name");
    Error::path(path, &e)
}
