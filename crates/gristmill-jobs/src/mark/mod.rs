//! A rule over the frames of a pack, or frames that were given -> a mark beside the data; one that a pack outgrew is extended.
//! Several threads ask; the pack itself is never changed, and a mark is there whole or not at all.

mod part;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::marks::rule::Asker;
use gristmill_engine::marks::{self, Fit};
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_format::container::marks::{MOST_RULE, Mark, Origin};
use gristmill_format::{Error as FormatError, Kind};
use serde::Serialize;

pub(crate) use self::part::{JOB, check_absent, commit, committing, settle};
pub use self::part::{PartMarked, share};
use super::in_order::InOrder;

/// Frames that are checked at a time: a twentieth of a second of chess positions.
const PIECE: u64 = 16_384;

/// Which frames to mark.
#[derive(Debug, Clone)]
pub enum Which {
    /// Those that an SQL condition accepts, of all.
    Rule(String),
    /// These.
    Given(Intervals),
    /// Those of games that came again.
    Duplicates(Intervals),
}

/// What to mark, and how.
#[derive(Debug, Clone)]
pub struct MarkOptions {
    /// Name of the mark.
    pub name: String,
    /// Replace a mark of this name.
    pub replace: bool,
    /// Count the frames, and write nothing.
    pub dry_run: bool,
    /// Threads, from 1 on. Changes nothing of the mark.
    pub workers: usize,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

impl MarkOptions {
    /// A new mark called `name`, by one thread per core.
    pub fn new(name: impl Into<String>) -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        MarkOptions { name: name.into(), replace: false, dry_run: false, workers, stop: Arc::default() }
    }
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Marked {
    /// The pack.
    pub pack: String,
    /// Name of the mark.
    pub name: String,
    /// Its rule.
    pub rule: String,
    /// How many frames it marks.
    pub marked: u64,
    /// Of how many.
    pub frames: u64,
    /// Frames that this call checked.
    pub asked: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Marks frames of a pack. `progress` gets the number of frames that are checked, and of all frames.
///
/// Errors: `Config` in `name`, `rule` or `workers`; `Format` for a frame that cannot be read; `Path`; `Stopped`. After an error
/// the marks are those that there were.
pub fn mark(
    pack: &Arc<dyn PackTable>,
    which: &Which,
    options: &MarkOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Marked> {
    check(pack, options)?;
    let frames = pack.total();
    let (origin, rule, rows) = match which {
        Which::Rule(rule) => (Origin::Rule, rule.clone(), asked(pack, rule, 0..frames, options, progress)?),
        Which::Given(rows) => (Origin::Given, String::new(), rows.clone()),
        Which::Duplicates(rows) => (Origin::Duplicates, String::new(), rows.clone()),
    };
    let looked_at = if origin == Origin::Rule { frames } else { 0 };
    finish(pack, options, origin, rule, &rows, looked_at)
}

/// Refuses a name that no mark may have, and one that is there and is not replaced.
///
/// Errors: `Config` in `name`; `Path`.
pub(crate) fn check(pack: &Arc<dyn PackTable>, options: &MarkOptions) -> Result<()> {
    marks::check_name(&options.name)?;
    if !options.replace && marks::exists(pack.folder(), &options.name)? {
        let text = format!("there is a mark `{}` already; say --replace (replace=True) to make it again", options.name);
        return Err(Error::config("name", text));
    }
    Ok(())
}

/// Extends the mark of a pack that has grown since by the frames that came; one whose rule asks other games too (that has a
/// `SELECT`) is made again. Nothing is done to a mark that fits.
///
/// Errors: as [`mark`] and [`marks::rows`]; `Config` in `name` for frames that were given, of which no rule is known.
pub fn update(pack: &Arc<dyn PackTable>, options: &MarkOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Marked> {
    let known = marks::read(&**pack, &options.name)?;
    match marks::fit(&**pack, &known) {
        Fit::Grown if known.origin == Origin::Rule => {}
        Fit::Grown => {
            let text = format!(
                "the frames of `{}` were found otherwise than by a rule, so that nothing says which of the new ones belong to \
                 them; mark them again, with --replace (replace=True)",
                options.name
            );
            return Err(Error::config("name", text));
        }
        _ => {
            let rows = marks::rows(&**pack, &options.name)?;
            let options = MarkOptions { dry_run: true, ..options.clone() };
            return finish(pack, &options, known.origin, known.rule, &rows, 0);
        }
    }
    let whole = known.rule.to_ascii_lowercase().contains("select");
    let from = if whole { 0 } else { known.frames };
    let new = asked(pack, &known.rule, from..pack.total(), options, progress)?;
    let mut rows = if whole { Intervals::default() } else { marks::intervals(&known.rows) };
    new.iter().for_each(|(start, end)| rows.push(start, end));
    finish(pack, options, known.origin, known.rule, &rows, pack.total() - from)
}

fn finish(
    pack: &Arc<dyn PackTable>,
    options: &MarkOptions,
    origin: Origin,
    rule: String,
    rows: &Intervals,
    asked: u64,
) -> Result<Marked> {
    let frames = pack.total();
    if !options.dry_run {
        let mark = Mark { origin, rule: rule.clone(), frames, identity: identity(pack)?, rows: marks::bitmap(rows) };
        marks::write(pack.folder(), &options.name, &mark)?;
    }
    Ok(told(pack, options, rule, rows, asked))
}

/// What is said of a mark of these frames.
pub(crate) fn told(
    pack: &Arc<dyn PackTable>,
    options: &MarkOptions,
    rule: String,
    rows: &Intervals,
    asked: u64,
) -> Marked {
    Marked {
        pack: pack.folder().display().to_string(),
        name: options.name.clone(),
        rule,
        marked: rows.len(),
        frames: pack.total(),
        asked,
        dry_run: options.dry_run,
    }
}

/// The hash of all frames of a pack.
fn identity(pack: &Arc<dyn PackTable>) -> Result<u64> {
    let missing = || FormatError::new(Kind::Missing, "a pack without frames cannot be marked");
    Ok(pack.identity_of(pack.total()).ok_or_else(missing)?)
}

/// The frames of a range that a rule accepts.
fn asked(
    pack: &Arc<dyn PackTable>,
    rule: &str,
    range: Range<u64>,
    options: &MarkOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Intervals> {
    if rule.len() > MOST_RULE {
        return Err(Error::config("rule", format!("{} bytes, at most {MOST_RULE}", rule.len())));
    }
    crate::in_order::check(options.workers)?;
    let (Range { start: from, end }, text) = (range, rule.to_owned());
    let first = Asker::new(Arc::clone(pack), rule, &options.stop)?;
    let pieces = usize::try_from((end - from).div_ceil(PIECE)).unwrap_or(usize::MAX);
    let (askers, shared, stop) = (Mutex::new(vec![first]), Arc::clone(pack), Arc::clone(&options.stop));
    let ask = move |piece: usize| -> Result<Vec<u64>> {
        let idle = || askers.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let asker = match taken {
            Some(asker) => asker,
            None => Asker::new(Arc::clone(&shared), &text, &stop)?,
        };
        let start = from + piece as u64 * PIECE;
        let found = asker.ask(start, end.min(start + PIECE));
        idle().push(asker);
        found
    };
    let started = InOrder::start(options.workers, pieces, Arc::clone(&options.stop), ask);
    let mut flow = started.map_err(|e| Error::path(pack.folder(), &e))?;
    let mut rows = Intervals::default();
    let mut done = from;
    let mut ends = |ended: Error| {
        // Other threads may be at SQL that has no end.
        options.stop.store(true, Ordering::Relaxed);
        ended
    };
    while let Some(found) = flow.next().map_err(&mut ends)? {
        found.map_err(&mut ends)?.into_iter().for_each(|row| rows.push(row, row + 1));
        done = end.min(done + PIECE);
        progress(done - from, end - from);
    }
    Ok(rows)
}
