//! Rows of 2048 in one form -> the same rows in another, joined with what other files say of the same steps.
//! Loses and makes up values only where the options say so; the output appears whole or not at all; memory grows with
//! the runs, not with the rows.
//!
//! | file | does |
//! |---|---|
//! | `kind` | tells rows from games and demonstrations, which other jobs convert |
//! | `source` | opens a folder of any form, and files that are joined; looks at every row once |
//! | `stored` | blocks of records with their keys |
//! | `order` | brings them into order of game and step |
//! | `plan` | says what would be lost and what would be made up |
//! | `flow` | takes each row through |
//! | `target` | writes the rows |
//! | `database` | writes what is beside them |

mod database;
mod flow;
mod kind;
mod order;
mod plan;
mod source;
mod stored;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::{self, values};
use gristmill_engine::row_files;
use gristmill_engine::store::newest;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::publish::{Found, Staging};
use gristmill_format::g2048::{Form, RowForm};
use serde::{Deserialize, Serialize};

pub use self::kind::Kind;

use self::database::Ids;
use self::plan::Plan;
use self::source::{Join, Source};
use super::merge::danger;
use super::meter::{Meter, peak_rss};

/// What rows become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum To {
    /// A pack of 48-byte rows.
    #[default]
    #[serde(rename = "aligned48")]
    Aligned48,
    /// A pack of 46-byte rows.
    #[serde(rename = "packed46")]
    Packed46,
    /// Self-play, version 1.
    #[serde(rename = "self-play")]
    SelfPlay,
    /// A legacy expectimax pack.
    #[serde(rename = "legacy")]
    Legacy,
    /// Boards as exponents in order of game and step, with everything that is known of each step.
    #[serde(rename = "exponents")]
    Exponents,
}

impl To {
    /// All of them.
    pub const ALL: [To; 5] = [To::Aligned48, To::Packed46, To::SelfPlay, To::Legacy, To::Exponents];

    /// Its name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            To::Aligned48 => "aligned48",
            To::Packed46 => "packed46",
            To::SelfPlay => "self-play",
            To::Legacy => "legacy",
            To::Exponents => "exponents",
        }
    }

    fn form(self) -> Form {
        match self {
            To::Aligned48 | To::Packed46 => Form::Steps,
            To::SelfPlay => Form::SelfPlay,
            To::Legacy => Form::Legacy,
            To::Exponents => Form::Exponents,
        }
    }

    /// The form of step rows.
    fn rows(self) -> Option<RowForm> {
        match self {
            To::Aligned48 => Some(RowForm::Aligned),
            To::Packed46 => Some(RowForm::Packed),
            _ => None,
        }
    }
}

/// What to convert, and into what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConvertOptions {
    /// Folder of rows of any form.
    pub input: PathBuf,
    /// Folder of the result; made when it does not exist.
    pub output: PathBuf,
    /// The form of the result.
    pub to: To,
    /// Rows whose fields are joined by game and step: folders, or `FOLDER/NAME` for files `NAME.npy`, `NAME-<digits>.npy`.
    pub join: Vec<PathBuf>,
    /// Leave out steps that one of `join` does not have, rather than refuse.
    pub inner: bool,
    /// Drop what the form has no room for.
    pub lossy: bool,
    /// Fill fields that the form needs and the data lacks.
    pub defaults: bool,
    /// Number runs from 0; column `original_id` keeps the old ids.
    pub renumber: bool,
    /// Rows of every file but the last; none for one file (for self-play: a million).
    pub shard_rows: Option<u64>,
    /// Replace what is in the output.
    pub overwrite: bool,
    /// Look only, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl ConvertOptions {
    /// Reads the options from JSON; what is absent has its default, and what is unknown is refused with the nearest
    /// known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Converted {
    /// The folder of the result.
    pub output: String,
    /// Form of the rows that were read.
    pub from: &'static str,
    /// What they are now.
    pub to: &'static str,
    /// Rows that were read.
    pub read: u64,
    /// Rows of the result.
    pub rows: u64,
    /// Runs of the result.
    pub runs: u64,
    /// Files of rows.
    pub files: u64,
    /// Whether rows had to be brought into order.
    pub sorted: bool,
    /// What was dropped.
    pub lost: Vec<String>,
    /// What was made up.
    pub filled: Vec<String>,
    /// What is odd about runs that were taken.
    pub remarks: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How long it took by the clock.
    pub seconds: f64,
    /// Processor time of all threads.
    pub cpu_seconds: f64,
    /// Peak memory of the process, in bytes.
    pub peak_rss: Option<u64>,
}

/// Converts. `progress` gets the number of rows that are done, and of all rows.
///
/// Errors: `Config` for options that do not fit the rows: `lossy` and `defaults` name the fields; `Path`; `Format` with
/// file and row; `Stopped`. The output is as it was.
pub fn convert(options: &ConvertOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Converted> {
    // As in packs: 0 is no bound.
    let options = &ConvertOptions { shard_rows: options.shard_rows.filter(|rows| *rows > 0), ..options.clone() };
    if options.shard_rows.is_some() && options.to == To::Legacy {
        return Err(Error::config("shard_rows", "a legacy pack has one file of rows"));
    }
    let (input, output) = (newest(&options.input)?.into_owned(), writable(&options.output, "output")?.into_owned());
    let options = &ConvertOptions { input, output, ..options.clone() };
    danger::check(std::slice::from_ref(&options.input), &options.output)?;
    let meter = Meter::default();
    let before = meter.now();
    let converted = checked(options, progress)?;
    let now = meter.now();
    let (seconds, cpu_seconds) = (now.wall - before.wall, now.cpu - before.cpu);
    Ok(Converted { seconds, cpu_seconds, peak_rss: peak_rss(), ..converted })
}

/// How far it is, and whether it should end.
struct Way<'a> {
    done: u64,
    all: u64,
    options: &'a ConvertOptions,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Way<'_> {
    fn go(&mut self, rows: u64) -> Result<()> {
        self.done += rows;
        (self.progress)(self.done.min(self.all), self.all);
        if self.options.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

fn checked(options: &ConvertOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Converted> {
    let mut source = Source::open(&options.input)?;
    let joins = options.join.iter().map(|path| Join::open(path)).collect::<Result<Vec<_>>>()?;
    source.lineage.extend(joins.iter().map(|join| join.lineage.clone()));
    let read = source.stored.rows();
    let joined: u64 = joins.iter().map(|join| join.stored.rows()).sum();
    let mut way = Way { done: 0, all: 2 * read + joined, options, progress };
    let facts = source.examine(&mut |rows| way.go(rows))?;
    database::check(&source, &facts)?;
    let plan = Plan::new(&source, &joins, &facts, options)?;
    plan.allow(options)?;
    let ids = Ids::new(&source, &facts, plan.renumber);
    let mut converted = Converted {
        output: options.output.display().to_string(),
        from: source.columns.form().name(),
        to: options.to.name(),
        read,
        rows: read,
        runs: source.runs.len().max(facts.runs.len()) as u64,
        sorted: plan.sort,
        lost: plan.lost.clone(),
        filled: plan.filled.clone(),
        dry_run: options.dry_run,
        ..Converted::default()
    };
    if options.dry_run {
        return Ok(converted);
    }
    let staging = stage(options)?;
    match flow::write(&staging, &source, &joins, (&plan, &ids), &mut way) {
        Ok(written) => (converted.rows, converted.files, converted.remarks) = written,
        Err(e) => {
            // The input is all there; that the staging could not be removed as well says nothing new.
            let _ = staging.discard();
            return Err(e);
        }
    }
    let mut outdated = pack::files(&options.output)?;
    outdated.extend(row_files::listed(&options.output, row_files::is_vectors)?);
    staging.publish(&outdated)?;
    let joined = options.join.iter().any(|path| path.ends_with(row_files::VALUES));
    if !joined && !values::names(&options.input)?.is_empty() {
        let remark = "the values of rows are not carried: `gristmill values` makes them of a pack, --join brings them to exponents";
        converted.remarks.push(remark.to_owned());
    }
    Ok(converted)
}

/// The staging in the output, empty.
fn stage(options: &ConvertOptions) -> Result<Staging> {
    let refuse = |message: &str| Err(Error::config("output", format!("{}: {message}", options.output.display())));
    if !options.overwrite && !pack::files(&options.output)?.is_empty() {
        return refuse("there is something already; --overwrite replaces it");
    }
    let (mut staging, found) = Staging::open(&options.output, pack::STAGING, "convert")?;
    if found == Found::Published && !options.overwrite {
        return refuse("an interrupted job was completed there now; --overwrite replaces its result");
    }
    staging.clear("convert")?;
    Ok(staging)
}
