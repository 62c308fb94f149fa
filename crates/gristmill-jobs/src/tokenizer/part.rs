//! A share counts rows of packs, and how often each difference comes. A commit makes a tokenizer of the counts of all shares, byte for
//! byte the one that a single process makes. It reads no rows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::METADATA;
use gristmill_engine::selection::Selection;
use gristmill_format::container::tally::{self, Tally};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::{Fit, FitOptions, Fitted, Found, Rows, Valuation, bytes, finish, metadata};
use crate::reports;
use crate::shares::{Attempt, Job, Joining, Outcome, Said, Share, Shared, Unit, Whole, make, place};

/// The name of the job in plans.
pub(crate) const JOB: &str = "tokenizer fit";

/// The file with the differences, in the folder of a share.
const DIFFERENCES: &str = "differences.tally";

/// Most pieces that rows are cut into.
const PIECES: u64 = 1 << 16;

/// A share of a fit.
#[derive(Debug, Clone, Serialize)]
pub struct PartFitted {
    /// Its folder, which the commit removes.
    pub folder: String,
    /// Which it is. Its inputs are pieces of the rows.
    pub share: Shared,
    /// Rows that were read, and differences found; none in a dry run.
    pub rows: u64,
    /// See `rows`.
    pub differences: u64,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Counts a share of the rows of all `selections`, unless that is done; the tokenizer, with `indent` spaces, will be `output`.
/// `progress` gets the rows read, and the rows of the share.
///
/// Errors: as [`super::fit`], but for too few rows, which the commit refuses; as [`make`].
pub fn share(
    selections: &[Selection],
    options: &FitOptions,
    (output, indent): (&Path, usize),
    (share, dry_run): (Share, bool),
    progress: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<PartFitted> {
    options.check()?;
    let rows = Rows::new(selections)?;
    let pieces = rows.total.min(PIECES);
    let bounds = |piece: u64| (u128::from(rows.total) * u128::from(piece) / u128::from(pieces.max(1))) as u64;
    let size = selections.iter().map(|one| one.layout().size()).max().unwrap_or(1) as u64;
    let unit = |piece| Unit { name: String::new(), bytes: (bounds(piece + 1) - bounds(piece)) * size, inputs: 1 };
    // Shares may lie in the folder of a pack: a fit reads nothing there but rows.
    let input = selections.first().map(|one| one.pack().folder().join(METADATA)).unwrap_or_default();
    let (output, units) = (place(output)?, (0..pieces).map(unit).collect());
    let job = Fitting { selections, rows: &rows, options, indent, output, input, units, bounds, progress };
    let Outcome { shared, folder, said } = make(job, share, dry_run)?;
    let (rows, differences) = said.map_or((0, 0), |said| (said.rows, used(&said.found).iter().sum()));
    Ok(PartFitted { folder: folder.display().to_string(), share: shared, rows, differences, dry_run })
}

/// The record of a share.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    inputs: u64,
    bytes: u64,
    rows: u64,
    found: Found,
    /// What the tokenizer says of all rows.
    metadata: Map<String, Value>,
}

impl Said for Record {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// Differences of each kind of valuation.
fn used(found: &Found) -> [u64; 3] {
    Valuation::ALL.map(|kind| found.counts(kind).used)
}

/// A share of a fit that is being made.
struct Fitting<'a, B> {
    selections: &'a [Selection],
    rows: &'a Rows<'a>,
    options: &'a FitOptions,
    indent: usize,
    output: PathBuf,
    input: PathBuf,
    units: Vec<Unit>,
    /// The first row of a piece.
    bounds: B,
    progress: &'a mut dyn FnMut(u64, u64) -> Result<()>,
}

impl<B: Fn(u64) -> u64> Job for Fitting<'_, B> {
    type Said = Record;

    fn name(&self) -> &'static str {
        JOB
    }

    fn input(&self) -> &Path {
        &self.input
    }

    fn output(&self) -> &Path {
        &self.output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let pack = |one: &Selection| {
            let (folder, rows) = (one.pack().folder().display(), one.rows().len());
            let recipe = serde_json::to_vec(one.recipe()).map_err(|e| Error::State(e.to_string()))?;
            Ok(format!("{folder}: {rows} rows {:016x}", xxh3_64(&recipe)))
        };
        let packs = self.selections.iter().map(pack).collect::<Result<Vec<_>>>()?;
        let FitOptions { num_bins, failure_cutoff, zero_tolerance, ref kinds } = *self.options;
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let options = [
            ("packs", json!(packs)),
            (NUM_BINS, json!(num_bins)),
            (CUTOFF, json!(failure_cutoff)),
            (TOLERANCE, json!(zero_tolerance)),
            (VALUATIONS, json!(kinds)),
            (INDENT, json!(self.indent)),
        ];
        Ok(options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        reports::check_absent(&self.output)
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record> {
        let range = (self.bounds)(units.start as u64)..(self.bounds)(units.end as u64);
        let (rows, progress) = (range.end - range.start, self.progress);
        let path = attempt.folder().join(DIFFERENCES);
        let refused = |e: std::io::Error| Error::path(&path, &e);
        let mut file = File::create_new(&path).map_err(refused)?;
        let (mut found, mut tallies, mut out) = (Found::default(), [(); 3].map(|()| Tally::default()), Vec::new());
        let mut renewed = |done| {
            attempt.renew();
            progress(done, rows)
        };
        self.rows.each(range, &mut renewed, &mut |kind, row| {
            found.add(self.options, kind, row, &mut |kind, difference| {
                if tallies[kind as usize].add((-difference).to_bits()) {
                    tallies[kind as usize].write(kind as u32, &mut out);
                }
            });
            if out.is_empty() {
                return Ok(());
            }
            file.write_all(&out).map_err(refused)?;
            out.clear();
            Ok(())
        })?;
        (0..).zip(&mut tallies).for_each(|(kind, tally)| tally.write(kind, &mut out));
        file.write_all(&out).and_then(|()| file.sync_all()).map_err(refused)?;
        let metadata = metadata(self.selections, self.options);
        Ok(Record { inputs: of.inputs, bytes: of.bytes, rows, found, metadata })
    }
}

/// The options of a plan.
const NUM_BINS: &str = "num_bins";
const CUTOFF: &str = "search_failure_cutoff";
const TOLERANCE: &str = "zero_tolerance";
const VALUATIONS: &str = "valuations";
const INDENT: &str = "indent";

/// The options of the fit whose shares they are, and the spaces of indent.
fn options(whole: &Whole) -> Result<(FitOptions, usize)> {
    let option = |name: &str| whole.plan.options.get(name).cloned().unwrap_or_default();
    let names = option(VALUATIONS);
    let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |name: &str| option(name).as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
    let options = FitOptions {
        num_bins: number(NUM_BINS),
        failure_cutoff: option(CUTOFF).as_i64().unwrap_or_default(),
        zero_tolerance: option(TOLERANCE).as_f64().unwrap_or(f64::NAN),
        kinds: FitOptions::kinds_named(&names)?,
    };
    Ok((options, number(INDENT)))
}

/// Makes the tokenizer of all parts. It calls `progress` after each part; the parts are read as often as one process reads the rows.
///
/// Errors: as [`Whole::parts`]; `Format` with file and byte for differences that are damaged, and `Missing` for a kind of valuation with too few
/// rows; `Config` in `output`; `Path`; `Stopped`.
pub(crate) fn commit(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Fitted> {
    let (fitted, indent) = joined(whole, progress)?;
    reports::publish(whole, &bytes(&fitted.tokenizer, indent), || Ok(()))?;
    Ok(fitted)
}

/// The tokenizer of all parts, and its spaces of indent.
fn joined(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<(Fitted, usize)> {
    let (options, indent) = options(whole)?;
    let mut fit = Fit::new(options.clone())?;
    let mut parts = whole.parts::<Record>()?;
    let mut passes = 0;
    loop {
        let (mut done, all) = (0, whole.plan.inputs);
        for (folder, record) in &parts {
            if whole.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            fit.join(&record.found);
            part(&folder.join(DIFFERENCES), &record.found, &options, &mut fit)?;
            done += record.inputs;
            progress(Joining { done, all });
        }
        passes += 1;
        if !fit.end_pass() {
            break;
        }
    }
    let metadata = parts.pop().map(|(_, record)| record.metadata).unwrap_or_default();
    Ok((finish(fit, &options, passes, metadata)?, indent))
}

/// Adds the differences of a part, of which `found` has the number.
///
/// Errors: `Format` with file and byte; `Path`.
fn part(path: &Path, found: &Found, options: &FitOptions, fit: &mut Fit) -> Result<()> {
    let file = File::open(path).map_err(|e| Error::path(path, &e))?;
    let mut left = used(found);
    let damaged =
        |detail: &str| FormatError::new(Kind::Corrupt, format!("{detail}; remove the share, and make it again"));
    let read = tally::read(&mut BufReader::new(file), &mut |kind, number, times| {
        let (kind, difference) = (kind as usize, -f64::from_bits(number));
        let known = Valuation::ALL.get(kind).filter(|kind| options.kinds.contains(kind));
        let known = known.filter(|_| difference < 0.0 && difference.is_finite());
        let (Some(known), Some(rest)) = (known, left.get(kind).and_then(|left| left.checked_sub(times))) else {
            return Err(damaged("a difference that is none of this fit, or more of them than were found"));
        };
        left[kind] = rest;
        fit.add_difference(*known, difference, times);
        Ok(())
    });
    let whole = read.and_then(|()| match left {
        [0, 0, 0] => Ok(()),
        left => Err(damaged(&format!("{} differences are missing", left.iter().sum::<u64>()))),
    });
    whole.map_err(|e| e.in_source(path.display().to_string()).into())
}
