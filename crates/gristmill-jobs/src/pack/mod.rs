//! A folder of raw games -> a pack, whole or not at all, in bounded memory; resumes after a kill, and adds to an
//! existing pack. The door of the job: what it takes, what it gives back, and what kinds of data it knows.

mod assemble;
mod begin;
mod chunks;
mod discover;
mod flow;
mod game;
mod join;
mod lineage;
mod listed;
mod part;
mod rows;
mod start;
mod strangers;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::{PositionSamplingConfig, parse};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::kinds::{self, Way};
use gristmill_engine::pack::manifest::{Remarked, Skipped};
use gristmill_engine::pack::{RowForm, STAGING, read_layout};
use gristmill_engine::recording;
use gristmill_engine::store::files::{is_file, names};
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish::Staging;
use gristmill_engine::store::{newest, settled};
use gristmill_format::{Error as FormatError, Kind as Cause};
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use self::join::commit;
pub(crate) use self::lineage::known_of;
pub(crate) use self::part::{JOB, is_there};
use super::meter::{Meter, peak_rss};
use crate::delivery::{Delivery, Earlier};
pub use crate::files::is_unreadable;
use crate::files::{self, Found};
use crate::shares::{Share, Shared, place};
pub use crate::work::Storing;

/// What to do about a game that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// Leave it out; the manifest says so.
    #[default]
    Skip,
    /// Leave it out, and list it in `quarantine.jsonl` of the pack too.
    Quarantine,
    /// End with its error; what was packed before can be resumed.
    Raise,
}

/// What to do about what is in the output folder already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// Refuse to touch it.
    #[default]
    Refuse,
    /// Replace the pack, when the new one is complete.
    Overwrite,
    /// Resume an interrupted job; does nothing where the pack is complete.
    Resume,
    /// Add the games that are not in the pack yet.
    Append,
}

impl Existing {
    /// The way of the pack to `place`.
    ///
    /// Errors: as [`Delivery::to`], [`Delivery::onto`] and [`Delivery::again`].
    pub fn delivery(self, place: &Path, dry_run: bool) -> Result<Delivery> {
        match self {
            Existing::Append => Delivery::onto(place, dry_run),
            Existing::Resume => Delivery::again(place, dry_run),
            Existing::Refuse | Existing::Overwrite => Delivery::to(place, Earlier::Removed, dry_run),
        }
    }

    /// What the job is called in its staging.
    fn job(self) -> &'static str {
        match self {
            Existing::Refuse | Existing::Resume => "pack",
            Existing::Overwrite => "overwrite",
            Existing::Append => "append",
        }
    }

    /// Whether a staging is that of a job of packing, as far as it says.
    fn packs(staging: &Staging) -> bool {
        ["", "pack", "overwrite", "append"].contains(&staging.job())
    }
}

/// What to pack, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PackOptions {
    /// Folder with raw games, at any depth.
    pub input: PathBuf,
    /// Folder of the pack; made when it does not exist.
    pub output: PathBuf,
    /// The pack that is added to, where it lies elsewhere: the output gets what is new, and nothing else.
    #[serde(skip)]
    pub grows: Option<PathBuf>,
    /// Form of the rows; none for that of the pack that is added to, else 48 bytes.
    #[serde(deserialize_with = "some_layout")]
    pub layout: Option<RowForm>,
    /// Rows of every file but the last; none or 0 for one file, or that of the pack that is added to.
    pub shard_rows: Option<u64>,
    /// Worker threads, from 1 on. Changes no byte of the pack.
    pub workers: usize,
    /// The share of the games that is packed, beside the output, for a [commit](crate::commit::commit); none for all of them.
    pub share: Option<Share>,
    /// What is there already.
    pub existing: Existing,
    /// Games that cannot be taken.
    pub on_error: OnError,
    /// Rows between two points to which a killed job can return.
    pub checkpoint_rows: u64,
    /// Rules by which chess games are weighed, beside that of the column `weight`: streams and loaders that sample by these very
    /// numbers need not weigh them again.
    pub weigh: Vec<PositionSamplingConfig>,
    /// How the job stores steps of demonstrations. With none it compresses them, and keeps packed ones as they are; where it adds to a
    /// pack or resumes, it stores them as the job before it.
    pub codec: Option<Storing>,
    /// Bytes of one data set of demonstrations that are held in memory; a larger one goes through columns beside the pack.
    pub held_bytes: usize,
    /// Look at the games only, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl Default for PackOptions {
    /// What JSON starts from: no folders.
    fn default() -> Self {
        PackOptions::new("", "")
    }
}

fn some_layout<'de, D: Deserializer<'de>>(text: D) -> Result<Option<RowForm>, D::Error> {
    read_layout(text).map(Some)
}

impl PackOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }

    /// The folder of the pack that is added to.
    fn before(&self) -> &Path {
        self.grows.as_deref().unwrap_or(&self.output)
    }

    /// The folder of the file `name` of the pack that this job makes: the output, if it has one, else the pack that is added to.
    fn folder_of(&self, name: &str) -> &Path {
        if self.output.join(name).exists() { &self.output } else { self.before() }
    }

    /// How to resume an interrupted job that had not begun: by its own options, or, where these are unknown, in the way
    /// that changes no data.
    ///
    /// Errors: `Config` for a job of another kind.
    fn again(&self, staging: &Staging, there: bool) -> Result<Existing> {
        match staging.job() {
            "overwrite" => Ok(Existing::Overwrite),
            "append" => Ok(Existing::Append),
            "pack" => Ok(Existing::Refuse),
            "" if there => Ok(Existing::Append),
            "" => Ok(Existing::Refuse),
            other => {
                let text = format!(
                    "`{}` did not end here; start that again, or give it up with --abandon",
                    other.escape_debug()
                );
                Err(Error::config("output", format!("{}: {text}", self.output.display())))
            }
        }
    }

    /// Packs `input` into `output` as the defaults have it: new, one file of 48-byte rows, one worker per core.
    pub fn new(input: impl Into<PathBuf>, output: impl Into<PathBuf>) -> Self {
        PackOptions {
            input: input.into(),
            output: output.into(),
            grows: None,
            layout: None,
            shard_rows: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            share: None,
            existing: Existing::default(),
            on_error: OnError::default(),
            checkpoint_rows: 4_000_000,
            weigh: Vec::new(),
            codec: None,
            held_bytes: 512 << 20,
            dry_run: false,
            stop: Arc::default(),
        }
    }
}

/// How far packing is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Games read, of `games`.
    pub done: u64,
    /// All games found.
    pub games: u64,
    /// Rows written so far.
    pub rows: u64,
    /// Games left out.
    pub skipped: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Packed {
    /// The folder of the pack; of a share its own, which the commit removes.
    pub pack: String,
    /// The share that it is, unless it is the whole pack.
    pub share: Option<Shared>,
    /// `aligned48` or `packed46`.
    pub layout: &'static str,
    /// How the job stores steps of demonstrations, where the user named a codec for it or for the job before it.
    pub codec: Option<Storing>,
    /// Games found in the input.
    pub games: u64,
    /// Games that were in the pack already.
    pub known: u64,
    /// Games in the pack now. In a dry run: those that would be read.
    pub runs: u64,
    /// Rows in the pack now. In a dry run: as many as the sidecars of 2048 promise; 0 of others, which are not decoded.
    pub rows: u64,
    /// Files of rows.
    pub files: u64,
    /// What was found and is not in the pack, this time.
    pub skipped: Vec<Skipped>,
    /// What is odd about games that went in, this time.
    pub remarks: Vec<Remarked>,
    /// Games that were taken over from an interrupted job.
    pub resumed: u64,
    /// Files of values and vectors that no longer fit the rows, since games were added.
    pub stale: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// How long all threads worked.
    pub cpu_seconds: f64,
    /// Peak resident memory of the process, in bytes; `None` where the system does not say.
    pub peak_rss: Option<u64>,
}

/// Packs a folder. It calls `progress` now and then.
///
/// Errors: `Config` naming the option; `Path`, of the input where it is no folder or file that can be read; `Format` for a file or folder
/// in it that [cannot be read](is_unreadable), for a game that cannot be taken under [`OnError::Raise`], or where there is none
/// to take; `Stopped`. After an error the output holds what it held before, and perhaps a staging that [`Existing::Resume`]
/// resumes.
pub fn pack(options: &PackOptions, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    // As the reference has it: 0 is no bound.
    let options = &PackOptions { shard_rows: options.shard_rows.filter(|rows| *rows > 0), ..options.clone() };
    crate::in_order::check(options.workers)?;
    if options.checkpoint_rows == 0 {
        return Err(Error::config("checkpoint_rows", "expected at least one row"));
    }
    let options = &PackOptions {
        input: newest(&options.input)?.into_owned(),
        output: match options.share {
            Some(_) => place(&options.output)?,
            None => settled(&writable(&options.output, "output")?, options.dry_run)?.into_owned(),
        },
        ..options.clone()
    };
    if !is_data_file(&options.input)? {
        if is_file(&options.input)? {
            return Err(no_games(&options.input).into());
        }
        names(&options.input)?;
    }
    if !options.dry_run {
        recording::adopt(&options.input)?;
    }
    let meter = Meter::default();
    let before = meter.now();
    let packed = match options.share {
        Some(share) => part::pack(options, share, progress)?,
        None => one_kind(options, progress)?,
    };
    let now = meter.now();
    Ok(Packed { seconds: now.wall - before.wall, cpu_seconds: now.cpu - before.cpu, peak_rss: peak_rss(), ..packed })
}

/// Publishes what an interrupted job had completed in `output`, and what was not published.
///
/// Errors: those of the files.
pub(crate) fn finish_left(output: &Path) -> Result<()> {
    let (staging, _) = Staging::open(output, STAGING, Existing::Resume.job())?;
    staging.owned()?;
    if staging.names()?.iter().any(|name| gristmill_engine::chunks::is_chunks(name))
        || gristmill_engine::chunks::is_pack(output)?
    {
        return begin::publish_left::<chunks::Chunks>(output, staging);
    }
    begin::publish_left::<start::Rows>(output, staging)
}

/// Whether the input is a single file: one of demonstrations, or of chess games.
fn is_data_file(path: &Path) -> Result<bool> {
    let known = |listing: files::Listing| listing.files.iter().any(|file| file.format().is_some());
    Ok(is_file(path)? && files::list(path).is_ok_and(known))
}

/// The refusal of a file that is none of data: it names the forms that are read, or the folder that is expected.
fn no_games(file: &Path) -> FormatError {
    match files::file(file) {
        Found::Fault(e) => e,
        _ => FormatError::new(Cause::Unsupported, "one file of a game; give the folder that it lies in")
            .in_source(file.display().to_string()),
    }
}

/// Packs the games of the first kind that the input holds, as the table of kinds has them in order.
fn one_kind(options: &PackOptions, progress: &mut dyn FnMut(Progress)) -> Result<Packed> {
    for (kind, way) in kinds::packable() {
        match way {
            Way::Rows => {
                let mut logs = discover::discover(&options.input);
                if !logs.sidecars.is_empty() {
                    logs.faults.extend(strangers::beside_logs(&options.input, kind.games()));
                    return begin::pack(options, logs, progress);
                }
            }
            Way::Sets => {
                if let Ok(Some(demos)) = chunks::Demos::list(options) {
                    return begin::pack(options, Box::new(demos) as Box<dyn chunks::Input>, progress);
                }
            }
            Way::Chunks(codec, packing) => match chunks::Games::list(&options.input, (kind, codec, packing)) {
                Ok(games) if !games.games.is_empty() => {
                    return begin::pack(options, Box::new(games) as Box<dyn chunks::Input>, progress);
                }
                // What these files are, only a reading tells.
                Ok(chunks::Games { fault: Some(e), .. }) if is_unreadable(&e) => return Err(e.into()),
                Ok(chunks::Games { unopened: Some(e), .. })
                    if e.kind() == Cause::Unsupported || is_file(&options.input)? =>
                {
                    return Err(e.into());
                }
                _ => {}
            },
        }
    }
    begin::pack(options, discover::discover(&options.input), progress)
}

#[cfg(test)]
mod tests;
