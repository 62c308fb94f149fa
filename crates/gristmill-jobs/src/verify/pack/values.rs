//! The values beside the rows of a pack, where there are some -> what is wrong with them.
//! They are made again from the rows and compared to the bit; values of unknown parameters by what does not depend on them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::rows::{RowBlock, RowsOf};
use gristmill_engine::pack::shards::Shard;
use gristmill_engine::pack::values::{self, Made};
use gristmill_engine::store::open_file;
use gristmill_engine::table::Part;
use gristmill_format::g2048::value::{VALUE_BYTES, ValueRow};
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error as FormatError, Kind};

use super::{Fault, Progress, Verification, VerifyOptions};
use crate::values::Backwards;

/// Values lie beside every row, and are those of the row.
const VALUES: &str = "values";

/// Verifies the values of the rows in `shards`.
pub(super) fn verify(
    folder: &Path,
    shards: &[Shard],
    options: &VerifyOptions,
    report: &mut Verification,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let keep = options.max_faults;
    let (parts, made) = match values::list(folder, shards).and_then(|parts| Ok((parts, Made::read(folder)?))) {
        Ok((None, _)) => return Ok(()),
        Ok((Some(parts), made)) => (parts, made),
        Err(e) => return told(report, keep, e),
    };
    report.will_check([VALUES]);
    report.files += parts.len() as u64;
    let judged = compare(folder, &parts, shards, made.as_ref(), options, report, progress);
    let (newest, count) = match judged {
        Ok(judged) => judged,
        Err(Error::Stopped) => return Err(Error::Stopped),
        Err(e) => return told(report, keep, e),
    };
    let kept = newest.len() as u64;
    newest.into_iter().for_each(|fault| report.add(keep, fault));
    report.fault_count += count - kept;
    *report.checks.entry(VALUES).or_default() += count - kept;
    Ok(())
}

/// Compares value by value; the first faults in order of rows, and how many there are.
fn compare(
    folder: &Path,
    parts: &[Part],
    shards: &[Shard],
    made: Option<&Made>,
    options: &VerifyOptions,
    report: &Verification,
    progress: &mut Progress<'_>,
) -> Result<(VecDeque<Fault>, u64)> {
    let files = shards.iter().cloned().map(RowsOf::open).collect::<gristmill_format::Result<Vec<_>>>()?;
    let open = |part: &Part| open_file(&part.path).map_err(|e| e.in_source(part.path.display().to_string()));
    let stored = parts.iter().map(open).collect::<gristmill_format::Result<Vec<Arc<dyn ReadAt>>>>()?;
    let by = made.map(Made::options);
    let (workers, stop) = (options.workers, options.stop.clone());
    let mut rows = Backwards::start(folder, files, by.unwrap_or_default(), workers, stop)?;
    let (mut expected, mut found, mut done) = (Vec::new(), Vec::new(), 0);
    let (mut faults, mut count) = (VecDeque::new(), 0);
    while let Some(block) = rows.next(&mut expected)? {
        let part = &parts[block.file];
        let span = Span { offset: at(part, block.first), len: block.rows * VALUE_BYTES as u64 };
        let read = read_span(&*stored[block.file], span, u64::MAX, &mut found);
        read.map_err(|e| e.in_source(part.path.display().to_string()))?;
        for (i, (expected, found)) in expected.as_chunks().0.iter().zip(found.as_chunks().0).enumerate().rev() {
            let (expected, found) = (ValueRow::from_bytes(expected), ValueRow::from_bytes(found));
            let Some(detail) = differs(&found, &expected, by.is_some()) else { continue };
            count += 1;
            faults.push_front(fault(part, &block, i as u64, &expected, detail));
            faults.truncate(options.max_faults);
        }
        done += block.rows;
        progress(report, Some((done, rows.rows())));
    }
    Ok((faults, count))
}

fn at(part: &Part, row: u64) -> u64 {
    part.offset + row * VALUE_BYTES as u64
}

fn fault(part: &Part, block: &RowBlock, i: u64, expected: &ValueRow, detail: String) -> Fault {
    let row = block.first + i;
    let e =
        FormatError::new(Kind::OutOfRange, detail).in_source(part.path.display().to_string()).at_byte(at(part, row));
    Fault { rule: Some(VALUES), run: Some(expected.run_id.into()), frame: Some(row), ..Fault::new(&e) }
}

/// What a value has that it should not have. Where the parameters are not known, returns and scaled rewards are only held
/// to be finite.
fn differs(found: &ValueRow, expected: &ValueRow, known: bool) -> Option<String> {
    if (found.run_id, found.step_index) != (expected.run_id, expected.step_index) {
        let (run, step) = (found.run_id, found.step_index);
        let (of_run, of_step) = (expected.run_id, expected.step_index);
        return Some(format!("of step {step} of run {run}, beside the row of step {of_step} of run {of_run}"));
    }
    let fields = |row: &ValueRow| {
        [
            ("reward", row.reward),
            ("reward_scaled", row.reward_scaled),
            ("return_raw", row.return_raw),
            ("return_scaled", row.return_scaled),
        ]
    };
    fields(found).into_iter().zip(fields(expected)).find_map(|((name, found), (_, expected))| {
        let wrong = if known || name == "reward" { found.to_bits() != expected.to_bits() } else { !found.is_finite() };
        let meant = if known || name == "reward" { format!("{expected}") } else { "a finite number".to_owned() };
        wrong.then(|| format!("{name} {found}, expected {meant}"))
    })
}

/// Counts an error of the data as a fault of the values.
///
/// Errors: those that are none of the data.
fn told(report: &mut Verification, keep: usize, e: Error) -> Result<()> {
    let e = match e {
        Error::Format(e) => e,
        Error::Path { path, kind, message } => {
            FormatError::new(Kind::Io(kind), message).in_source(path.display().to_string())
        }
        e => return Err(e),
    };
    report.add(keep, Fault { rule: Some(VALUES), ..Fault::new(&e) });
    Ok(())
}
