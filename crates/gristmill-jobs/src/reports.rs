//! A share of a job that reports on files -> its part, kept beside the report; all parts -> the report: the line of JSON that one
//! process prints. Knows no job, and replaces another file only where the options say so.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::files::{is_file, read, write, write_new};
use gristmill_engine::store::publish::{put_absent_through, write_whole};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inputs::Inputs;
use crate::shares::{Attempt, Job, Outcome, Plan, Portion, Said, Share, Shared, Unit, Whole, is_below, make, place};

/// Largest report.
const MOST: u64 = 1 << 30;

/// Where a share of a report is made.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// The report, which [`crate::commit::commit`] makes of all shares.
    pub output: PathBuf,
    /// Which share.
    pub share: Share,
    /// See whether it would be made, and write nothing.
    pub dry_run: bool,
}

/// A share of a report.
#[derive(Debug, Clone, Serialize)]
pub struct Reported {
    /// Its folder, which the commit removes.
    pub folder: String,
    /// Which it is.
    pub share: Shared,
    /// Files, chunks and frames that it read; none in a dry run.
    pub files: u64,
    /// See `files`.
    pub chunks: u64,
    /// See `files`.
    pub frames: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// What a job reports of a part of its inputs.
pub(crate) trait Report: Serialize + DeserializeOwned {
    /// Files, chunks and frames of the part.
    fn counted(&self) -> (u64, u64, u64);
}

/// The record of a share.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<R> {
    inputs: u64,
    bytes: u64,
    pub(crate) part: R,
}

impl<R: Report> Said for Record<R> {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// A job that reports on paths.
pub(crate) struct Reporting<'a> {
    /// Its name.
    pub(crate) job: &'static str,
    /// Paths that the report is about. Plans name them.
    pub(crate) paths: &'a [PathBuf],
    /// Paths that shares divide: `paths`, or the sources that a job compares with a pack.
    pub(crate) cut: &'a [PathBuf],
    /// The options that change the report.
    pub(crate) options: BTreeMap<String, Value>,
}

impl Reporting<'_> {
    /// Makes a share, unless it is done: of the inputs that are listed, what is in a portion. `look` is called with `renew`,
    /// to be called now and then.
    ///
    /// Errors: as [`make`]; `Config` in `share` where something cannot be listed; those of `look`.
    pub(crate) fn share<R: Report>(
        self,
        sharing: &Sharing,
        look: impl FnOnce(&Inputs, Portion, &mut dyn FnMut()) -> Result<R>,
    ) -> Result<Reported> {
        let output = place(&sharing.output)?;
        let inputs = Inputs::list(self.cut);
        let units = inputs.units()?;
        let portion = Portion::of(&units, sharing.share);
        let input = self.cut.iter().find(|path| is_below(&output, path)).or(self.cut.first());
        let input = input.cloned().unwrap_or_default();
        let look = |renew: &mut dyn FnMut()| look(&inputs, portion, renew);
        let Reporting { job, options, paths, .. } = self;
        let job = Part { job, input, output: &output, options: named(options, paths), units, look };
        let Outcome { shared, folder, said } = make(job, sharing.share, sharing.dry_run)?;
        let (files, chunks, frames) = said.map_or((0, 0, 0), |said| said.part.counted());
        let folder = folder.display().to_string();
        Ok(Reported { folder, share: shared, files, chunks, frames, dry_run: sharing.dry_run })
    }
}

/// The option with the paths.
const PATHS: &str = "paths";

/// The options with the paths, which a report names.
pub(crate) fn named(mut options: BTreeMap<String, Value>, paths: &[PathBuf]) -> BTreeMap<String, Value> {
    let paths = paths.iter().map(|path| Value::from(path.display().to_string()));
    options.insert(PATHS.to_owned(), paths.collect());
    options
}

/// The paths that a report is of.
pub(crate) fn paths(plan: &Plan) -> Vec<PathBuf> {
    let paths = plan.options.get(PATHS).and_then(Value::as_array);
    paths.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect()
}

/// A share of a report that is being made.
struct Part<'a, L> {
    job: &'static str,
    input: PathBuf,
    output: &'a Path,
    options: BTreeMap<String, Value>,
    units: Vec<Unit>,
    look: L,
}

impl<R: Report, L: FnOnce(&mut dyn FnMut()) -> Result<R>> Job for Part<'_, L> {
    type Said = Record<R>;

    fn name(&self) -> &'static str {
        self.job
    }

    fn input(&self) -> &Path {
        &self.input
    }

    fn output(&self) -> &Path {
        self.output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        Ok(self.options.clone())
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        check_absent(self.output)
    }

    fn take(self, _: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record<R>> {
        let part = (self.look)(&mut || attempt.renew())?;
        Ok(Record { inputs: of.inputs, bytes: of.bytes, part })
    }
}

/// Whether there is a report.
///
/// Errors: `Path`.
pub(crate) fn is_there(output: &Path) -> Result<bool> {
    Ok(is_file(output)?)
}

/// Refuses a report that is there where a share of it is to be made.
///
/// Errors: `Config` in `output`; `Path`.
pub(crate) fn check_absent(output: &Path) -> Result<()> {
    match is_there(output)? {
        true => Err(there(output, "its shares were committed, or it is another; remove it, or take another output")),
        false => Ok(()),
    }
}

/// Joins the parts of all shares, in order; refuses a report that is there, unless it is replaced or is the one that comes of them.
///
/// Errors: as [`Whole::parts`]; `Config` in `output`; `Path`.
pub(crate) fn commit<R: Report, T: Serialize>(whole: &Whole, join: impl FnOnce(Vec<R>) -> Result<T>) -> Result<T> {
    let parts = whole.parts::<Record<R>>()?;
    let made = join(parts.into_iter().map(|(_, record)| record.part).collect())?;
    publish(whole, &line(&made)?, || Ok(()))?;
    Ok(made)
}

/// A report as it is written: a line of JSON.
///
/// Errors: `State` where JSON cannot say it.
pub(crate) fn line<T: Serialize>(made: &T) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(made).map_err(|e| Error::State(e.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Writes the file that is the output of all shares, and `beside` before it, which writes what else the job makes.
///
/// Errors: `Config` in `output` for another file that is there and is not replaced; those of `beside`; `Path`.
pub(crate) fn publish(whole: &Whole, bytes: &[u8], beside: impl FnOnce() -> Result<()>) -> Result<()> {
    if whole.options.dry_run {
        return beside();
    }
    let output = whole.output();
    let is_other = || Ok::<_, Error>(read(output, MOST)?.is_some_and(|known| known != bytes));
    if !whole.options.overwrite && is_other()? {
        return Err(there(output, "overwrite replaces it"));
    }
    beside()?;
    if whole.options.overwrite {
        return write_whole(output, &[bytes]);
    }
    match put_absent_through(whole.folder.path(), output, bytes) {
        Ok(false) if is_other()? => Err(there(output, "overwrite replaces it")),
        put => put.map(drop),
    }
}

/// Writes a report into a bucket; refuses another that is there, unless it is replaced.
///
/// Errors: `Config` in `output`; `Format` of writing.
pub(crate) fn send(output: &Path, line: Vec<u8>, overwrite: bool) -> Result<()> {
    if overwrite {
        return write(output, line, "output");
    }
    match write_new(output, line, "output")? {
        true => Ok(()),
        false => Err(there(output, "overwrite replaces it")),
    }
}

/// The error if a file lies at `output` already. `advice` says what to do.
pub(crate) fn there(output: &Path, advice: &str) -> Error {
    Error::config("output", format!("{}: there is a file already: {advice}", output.display()))
}
