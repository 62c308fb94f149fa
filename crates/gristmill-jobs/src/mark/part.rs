//! A share of the frames of a pack -> those that a rule accepts, kept beside the pack; all parts -> the mark in the pack, with the bytes
//! of one process. Replaces a mark only where the options say so.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::marks;
use gristmill_engine::pack::METADATA;
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_format::container::marks::{Mark, Origin};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{MarkOptions, Marked, asked, finish, identity};
use crate::shares::{Attempt, Job, Outcome, Said, Share, Shared, Unit, Whole, make, place};

/// The name of the job in plans.
pub(crate) const JOB: &str = "mark";

/// The mark in the folder of a share: of the frames of the share alone.
const PART: &str = "part";

/// Most pieces that frames are cut into.
const PIECES: u64 = 1 << 16;

/// A share of a mark.
#[derive(Debug, Clone, Serialize)]
pub struct PartMarked {
    /// Its folder, which the commit removes.
    pub folder: String,
    /// Which it is. Its inputs are pieces of the frames.
    pub share: Shared,
    /// Frames that the rule was applied to, and how many of them it accepts; none in a dry run.
    pub asked: u64,
    /// See `asked`.
    pub marked: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Applies a rule to a share of the frames of a pack, unless that is done. `progress` gets the number of frames that are done, and of
/// all frames of the share.
///
/// Errors: as [`super::mark`]; `Config` in `output` for a mark that is there, in `share` for one to be replaced, which the commit
/// does; as [`make`].
pub fn share(
    pack: &Arc<dyn PackTable>,
    rule: &str,
    options: &MarkOptions,
    share: Share,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PartMarked> {
    marks::check_name(&options.name)?;
    if options.replace {
        return Err(Error::config("share", "a share replaces no mark; a commit with overwrite does"));
    }
    let (output, frames) = (place(pack.folder())?, pack.total());
    let size = Arc::clone(pack).table().layout().size() as u64;
    let pieces = frames.min(PIECES);
    let bounds = |piece: u64| (u128::from(frames) * u128::from(piece) / u128::from(pieces.max(1))) as u64;
    let unit = |piece| Unit { name: String::new(), bytes: (bounds(piece + 1) - bounds(piece)) * size, inputs: 1 };
    let units = (0..pieces).map(unit).collect();
    let job = Marking { pack, rule, options, output, database: pack.folder().join(METADATA), units, bounds, progress };
    let Outcome { shared, folder, said } = make(job, share, options.dry_run)?;
    let (asked, marked) = said.map_or((0, 0), |said| (said.frames, said.marked));
    Ok(PartMarked { folder: folder.display().to_string(), share: shared, asked, marked, dry_run: options.dry_run })
}

/// The record of a share.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    inputs: u64,
    bytes: u64,
    frames: u64,
    marked: u64,
}

impl Said for Record {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// A share of a mark that is being made.
struct Marking<'a, B> {
    pack: &'a Arc<dyn PackTable>,
    rule: &'a str,
    options: &'a MarkOptions,
    output: PathBuf,
    /// Shares lie beside the pack: they are within no input.
    database: PathBuf,
    units: Vec<Unit>,
    /// The first frame of a piece.
    bounds: B,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl<B: Fn(u64) -> u64> Job for Marking<'_, B> {
    type Said = Record;

    fn name(&self) -> &'static str {
        JOB
    }

    fn input(&self) -> &Path {
        &self.database
    }

    fn output(&self) -> &Path {
        &self.output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let frames = self.pack.total();
        let pack = format!("{frames} frames {:016x}", identity(self.pack)?);
        let options = [("name", json!(self.options.name)), ("rule", json!(self.rule)), ("pack", json!(pack))];
        Ok(options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        check_absent(self.pack, &self.options.name)
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record> {
        let range = (self.bounds)(units.start as u64)..(self.bounds)(units.end as u64);
        let (frames, progress) = (range.end - range.start, self.progress);
        let rows = asked(self.pack, self.rule, range, self.options, &mut |done, all| {
            attempt.renew();
            progress(done, all);
        })?;
        let mark = Mark {
            origin: Origin::Rule,
            rule: self.rule.to_owned(),
            frames: self.pack.total(),
            identity: identity(self.pack)?,
            rows: marks::bitmap(&rows),
        };
        marks::write(&attempt.folder(), PART, &mark)?;
        Ok(Record { inputs: of.inputs, bytes: of.bytes, frames, marked: rows.len() })
    }
}

/// Puts the marks of all shares together, in the pack beside which they are.
///
/// Errors: as [`Whole::parts`]; `Config` in `output` for a mark that is there and another; those of the pack; `Path`.
pub(crate) fn commit(whole: &Whole) -> Result<Marked> {
    let parts = whole.parts::<Record>()?;
    let option = |name: &str| whole.plan.options.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let pack = selection::open(whole.output(), Residence::Mapped)?;
    let (name, rule) = (option("name"), option("rule"));
    let mut rows = Intervals::default();
    for (folder, record) in parts {
        let path = folder.join(marks::file_name(PART));
        let damaged = |e: FormatError| Error::Format(e.in_source(path.display().to_string()));
        let bytes = std::fs::read(&path).map_err(|e| Error::path(&path, &e))?;
        let part = Mark::from_bytes(&bytes).map_err(damaged)?;
        if part.identity != identity(&pack)? || part.frames != pack.total() || part.rows.len() != record.marked {
            let detail = "a mark of other frames than the pack has: it changed since; remove the shares";
            return Err(damaged(FormatError::new(Kind::Corrupt, detail)));
        }
        marks::intervals(&part.rows).iter().for_each(|(start, end)| rows.push(start, end));
    }
    settle(&pack, &committing(whole, &name), Origin::Rule, rule, &rows)
}

/// How the mark of a commit is made.
pub(crate) fn committing(whole: &Whole, name: &str) -> MarkOptions {
    MarkOptions {
        replace: whole.options.overwrite,
        dry_run: whole.options.dry_run,
        stop: whole.options.stop.clone(),
        ..MarkOptions::new(name)
    }
}

/// Writes the mark that all shares give, again where a killed commit wrote it.
///
/// Errors: `Config` in `output` for another mark that is there and is not replaced; `Format`, `Path`.
pub(crate) fn settle(
    pack: &Arc<dyn PackTable>,
    options: &MarkOptions,
    origin: Origin,
    rule: String,
    rows: &Intervals,
) -> Result<Marked> {
    if marks::exists(pack.folder(), &options.name)? && !options.replace {
        let known = marks::read(&**pack, &options.name)?;
        let same = (known.origin, &known.rule, known.identity) == (origin, &rule, identity(pack)?);
        if !same || marks::intervals(&known.rows) != *rows {
            return Err(there(&options.name, "overwrite replaces it"));
        }
    }
    let asked = if origin == Origin::Rule { pack.total() } else { 0 };
    finish(pack, options, origin, rule, rows, asked)
}

/// Refuses a mark that is there where a share of it is to be made.
///
/// Errors: `Config` in `output`; `Path`.
pub(crate) fn check_absent(pack: &Arc<dyn PackTable>, name: &str) -> Result<()> {
    match marks::exists(pack.folder(), name)? {
        true => Err(there(name, "its shares were committed, or it is another; remove it first")),
        false => Ok(()),
    }
}

/// The refusal of a mark that is there.
fn there(name: &str, advice: &str) -> Error {
    Error::config("output", format!("there is a mark `{name}` already: {advice}"))
}
