//! Packs -> one pack, in one way for every layout: opened, planned, staged, published.
//! Deletes inputs only where an option says so, once the new pack is durable and was read back.

mod beside;
mod block;
mod chunks;
pub(super) mod danger;
mod input;
mod marks;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::metadata::progress_of;
use gristmill_engine::pack::{self, RowForm};
use gristmill_engine::selection::open;
use gristmill_engine::store::Residence;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish::{self, Found, Staging};
use gristmill_engine::store::{newest, settled};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};

use super::meter::{Meter, peak_rss};

/// What the job is called in its staging.
const JOB: &str = "merge";

/// What to merge, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MergeOptions {
    /// The packs, in the order in which their rows follow each other.
    pub inputs: Vec<PathBuf>,
    /// Folder of the new pack; made when it does not exist.
    pub output: PathBuf,
    /// Form of the rows.
    #[serde(deserialize_with = "pack::read_layout")]
    pub layout: RowForm,
    /// Rows of every file but the last; none for one file.
    pub shard_rows: Option<u64>,
    /// Worker threads, from 1 on. Changes no byte of the pack.
    pub workers: usize,
    /// Whether a pack in the output is replaced.
    pub overwrite: bool,
    /// Whether the inputs are deleted in the end.
    pub delete_inputs: bool,
    /// Look at the packs only, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Default for MergeOptions {
    /// What JSON starts from: no folders.
    fn default() -> Self {
        MergeOptions::new(Vec::new(), "")
    }
}

impl MergeOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }

    /// Merges `inputs` into `output` as the defaults have it: one file of 48-byte rows, one worker per core.
    pub fn new(inputs: Vec<PathBuf>, output: impl Into<PathBuf>) -> Self {
        MergeOptions {
            inputs,
            output: output.into(),
            layout: RowForm::default(),
            shard_rows: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            overwrite: false,
            delete_inputs: false,
            dry_run: false,
            stop: Arc::default(),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Merged {
    /// The folder of the new pack.
    pub pack: String,
    /// `aligned48` or `packed46`; of packs of whole games what their chunks hold.
    pub layout: &'static str,
    /// Packs that went in.
    pub packs: u64,
    /// Runs in the new pack.
    pub runs: u64,
    /// Its rows.
    pub rows: u64,
    /// Its files of rows or games.
    pub files: u64,
    /// Games that a pack before had already, and that were passed over; of packs of whole games.
    pub known: u64,
    /// What lies beside its rows, as beside those of all packs: `values`, `embeddings`.
    pub carried: Vec<&'static str>,
    /// Names of the marks that it has, since all packs have them by the same rule.
    pub marks: Vec<String>,
    /// What lies beside the rows of some pack and is not carried, marks included, and why.
    pub lost: Vec<String>,
    /// Folders of packs that were deleted.
    pub deleted: Vec<String>,
    /// What was left in these folders, since it was no part of a pack.
    pub left: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// How long all threads worked.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process, in bytes; `None` where the system does not say.
    pub peak_rss: Option<u64>,
}

/// Merges packs. `progress` gets the number of rows written, and of all rows, now and then.
///
/// Errors: `Config` for options that are dangerous or make no sense, before anything is written; `Format` with file
/// and row for packs that are damaged, contradict their database, or hold other rows; `Path`; `Stopped`. After an
/// error the inputs and what was in the output are as they were.
pub fn merge(options: &MergeOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Merged> {
    // As the reference has it: 0 is no bound.
    let options = &MergeOptions { shard_rows: options.shard_rows.filter(|rows| *rows > 0), ..options.clone() };
    crate::in_order::check(options.workers)?;
    if options.inputs.len() < 2 {
        return Err(Error::config("packs", "expected two packs or more"));
    }
    let folder = |input| if options.delete_inputs { settled(input, options.dry_run) } else { newest(input) };
    let inputs = options.inputs.iter().map(|input| Ok(folder(input)?.into_owned()));
    if options.delete_inputs {
        options.inputs.iter().try_for_each(|input| writable(input, "delete_inputs").map(drop))?;
    }
    let (inputs, output) = (inputs.collect::<Result<_>>()?, writable(&options.output, "output")?.into_owned());
    let options = &MergeOptions { inputs, output, ..options.clone() };
    danger::check(&options.inputs, &options.output)?;
    let meter = Meter::default();
    let before = meter.now();
    let merged = match chunks::are_chunks(&options.inputs)? {
        true => joined(options, &mut chunks::Merging::new(options)?, progress)?,
        false => joined(options, &mut rows::Merging::new(options)?, progress)?,
    };
    let now = meter.now();
    Ok(Merged { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..merged })
}

/// Packs of one layout, opened and found to go together.
trait Merging {
    /// What will come of it, as far as that is known before anything is written.
    fn planned(&self) -> Merged;

    /// What becomes of their marks.
    fn marks(&self) -> &marks::Plan;

    /// Whether a pack in a folder has their layout.
    fn is_alike(&self, folder: &Path) -> Result<bool>;

    /// The files of a pack of this layout, marks excepted, by their names in its folder.
    ///
    /// Errors: `Path`.
    fn files(&self, folder: &Path) -> Result<Vec<String>>;

    /// Whether the new pack has what the inputs have in a file of this name.
    fn holds(&self, _name: &str) -> bool {
        true
    }

    /// Stages the new pack; gives the number of its files.
    ///
    /// Errors: those of the packs, `Path`, `Stopped`.
    fn write(&mut self, staging: &Staging, progress: &mut dyn FnMut(u64, u64)) -> Result<u64>;

    /// Reads the published pack back: whether it is what was written.
    ///
    /// Errors: with the file that is not.
    fn read_back(&self) -> Result<()>;
}

/// Merges, with options that were checked.
fn joined(options: &MergeOptions, merging: &mut dyn Merging, progress: &mut dyn FnMut(u64, u64)) -> Result<Merged> {
    let mut merged = Merged {
        pack: options.output.display().to_string(),
        packs: options.inputs.len() as u64,
        dry_run: options.dry_run,
        ..merging.planned()
    };
    if options.dry_run {
        return Ok(merged);
    }
    let staging = stage(options, merging)?;
    let written = merging.write(&staging, progress).and_then(|files| {
        merged.files = files;
        match merging.marks().names().is_empty() {
            true => Ok(()),
            false => merging.marks().write(&*open(&staging.path(""), Residence::Mapped)?),
        }
    });
    if let Err(e) = written {
        // The inputs are all there; that the staging could not be removed as well says nothing new.
        let _ = staging.discard();
        return Err(e);
    }
    let mut outdated = merging.files(&options.output)?;
    outdated.extend(gristmill_engine::marks::files(&options.output)?);
    staging.publish(&outdated)?;
    if options.delete_inputs {
        merging.read_back()?;
        for folder in &options.inputs {
            let names = merging.files(folder)?.into_iter().filter(|name| merging.holds(name));
            merged.left.extend(clear(folder, names, merging.marks())?);
            merged.deleted.push(folder.display().to_string());
        }
    }
    Ok(merged)
}

/// What was read back is not what was written.
fn unlike(path: &Path) -> Error {
    let detail = "what was read back is not what was written; the inputs were kept";
    FormatError::new(Kind::Corrupt, detail).in_source(path.display().to_string()).into()
}

/// The staging in the output, empty.
fn stage(options: &MergeOptions, merging: &dyn Merging) -> Result<Staging> {
    let refuse = |message: &str| Err(Error::config("output", format!("{}: {message}", options.output.display())));
    // Half of a pack is finished first.
    let there = !publish::is_interrupted(&options.output, pack::STAGING) && !merging.files(&options.output)?.is_empty();
    if there && !merging.is_alike(&options.output)? {
        return refuse("there is a pack of something else; take another folder, or remove it first");
    }
    if there && !options.overwrite {
        return refuse("there is a pack already; --overwrite replaces it");
    }
    let (mut staging, found) = Staging::open(&options.output, pack::STAGING, JOB)?;
    if found == Found::Published && !options.overwrite {
        return refuse("an interrupted job was completed there now; --overwrite replaces the pack");
    }
    // A merge that was killed left nothing that is worth more than its inputs; a job of packing did.
    if !options.overwrite && progress_of(&staging.path(pack::METADATA))?.is_some() {
        return refuse("an interrupted job of `pack` is there; --overwrite gives it up");
    }
    staging.clear(JOB)?;
    Ok(staging)
}

/// Deletes the files of these names in a folder and the marks that were carried, and the folder where nothing else is in it;
/// what is.
fn clear(folder: &Path, names: impl IntoIterator<Item = String>, marks: &marks::Plan) -> Result<Vec<String>> {
    for name in names {
        let path = folder.join(name);
        fs::remove_file(&path).map_err(|e| Error::path(path, &e))?;
    }
    gristmill_engine::marks::own_folder(folder)?;
    marks.files().try_for_each(|name| publish::withdraw(&folder.join(name)))?;
    // It stays where other marks are in it.
    let _left = fs::remove_dir(folder.join(gristmill_engine::marks::FOLDER));
    let others = fs::read_dir(folder).map_err(|e| Error::path(folder, &e))?;
    let others: Vec<String> = others.flatten().map(|entry| entry.path().display().to_string()).collect();
    if others.is_empty() {
        fs::remove_dir(folder).map_err(|e| Error::path(folder, &e))?;
    }
    Ok(others)
}

#[cfg(test)]
mod tests;
