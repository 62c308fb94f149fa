//! Which rows of a pack belong to which run: from the database where rows lie in its order, else from the rows themselves.
//! Memory follows the number of runs (or of stretches of one run); the database is believed only where rows agree.

use std::collections::HashMap;
use std::sync::OnceLock;

use gristmill_format::g2048::Form;
use gristmill_format::layout::{DType, Field, Layout, Scalar};
use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::FrameTable;

use super::metadata::{Metadata, Run};

/// Runs whose first and last rows are checked when a pack is opened.
const LOOKED_AT: usize = 1024;

/// Rows that a scan copies at a time.
pub(crate) const SCANNED: u64 = 8192;

/// Maximum number of stretches of rows of one run that a scan keeps: 1 GiB of them.
const MOST_STRETCHES: usize = 1 << 26;

/// The runs of a pack, by ascending id, and where their rows are.
#[derive(Debug)]
pub struct RunIndex {
    runs: Vec<Run>,
    /// First row and position of the run of each stretch of rows; a stretch ends where the next one starts.
    stretches: Vec<(u64, u32)>,
    /// Numbers of the stretches in the order of their runs; made at the first use.
    by_run: OnceLock<Vec<u32>>,
    rows: u64,
}

impl RunIndex {
    /// Reads the runs from the database and finds their rows in `table`: by counting where the rows lie run by run in
    /// order of id, as packers write them; else, and for self-play, by reading the run of every row.
    ///
    /// An engine that records self-play may lose a run of the database, or end before it has written it; such runs are
    /// taken from the rows, with no score and no tile.
    ///
    /// Errors: `Format` with the database or file: as the database's, `Missing` for rows whose run it does not know,
    /// `Corrupt` for a run that has more rows than it says, `Unsupported` for rows of runs so interleaved that an index
    /// does not fit.
    pub fn read(metadata: &Metadata, table: &dyn FrameTable, form: Form) -> Result<Self> {
        let mut runs = Vec::new();
        metadata.runs(&mut |run| {
            runs.push(run);
            Ok(())
        })?;
        if u32::try_from(runs.len()).is_err() {
            return Err(Error::new(Kind::TooLarge, format!("{} runs", runs.len())).into());
        }
        let mut index = RunIndex { runs, stretches: Vec::new(), by_run: OnceLock::new(), rows: table.len() };
        // Games that are played side by side alternate: to a check of a few rows those of one length would seem to
        // follow each other.
        if form == Form::SelfPlay || !index.count(table)? {
            index.scan(table, form)?;
            index.check(table, form)?;
            index.sort();
        }
        Ok(index)
    }

    /// Runs that are known to lie one after the other, in order of id, in this number of rows; none where they cannot.
    pub(super) fn laid(runs: Vec<Run>, rows: u64) -> Option<Self> {
        let ordered = runs.is_sorted_by(|one, next| one.id < next.id) && u32::try_from(runs.len()).is_ok();
        let mut index = RunIndex { runs, stretches: Vec::new(), by_run: OnceLock::new(), rows };
        (ordered && index.lay()).then_some(index)
    }

    /// Whether the rows of each run lie in one piece, in order of id.
    pub(super) fn lies_in_order(&self) -> bool {
        self.stretches.is_sorted_by(|(_, one), (_, next)| one < next)
            && self.runs.iter().map(|run| run.steps).try_fold(0, u64::checked_add) == Some(self.rows)
    }

    /// Lays the runs out, and says whether that agrees with the rows that it checks.
    fn count(&mut self, table: &dyn FrameTable) -> Result<bool> {
        if !self.lay() {
            return Ok(false);
        }
        let step = self.stretches.len().div_ceil(LOOKED_AT).max(1);
        let last = self.stretches.len().saturating_sub(1);
        for i in (0..self.stretches.len()).step_by(step).chain([last]).take_while(|_| self.rows > 0) {
            if !self.agrees(table, i)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lays the runs out one after the other; whether they have as many rows as there are.
    fn lay(&mut self) -> bool {
        let mut at = 0u64;
        for (run, i) in self.runs.iter().zip(0u32..) {
            if run.steps > 0 {
                self.stretches.push((at, i));
            }
            let Some(end) = at.checked_add(run.steps) else { return false };
            at = end;
        }
        at == self.rows
    }

    /// Whether the first two and the last two rows of a stretch say that they are of its run.
    fn agrees(&self, table: &dyn FrameTable, stretch: usize) -> gristmill_format::Result<bool> {
        let ((start, run), last) = (self.stretches[stretch], self.end(stretch) - 1);
        let id = self.runs[run as usize].id;
        let rows = [start, last.min(start + 1), start.max(last.saturating_sub(1)), last];
        Ok(RunIds::new(table)?.read(table, &rows)?.all(|found| found == id))
    }

    /// Reads the run of every row. Runs that the database lacks are put after those that it has.
    fn scan(&mut self, table: &dyn FrameTable, form: Form) -> Result<()> {
        self.stretches.clear();
        let listed = self.runs.len();
        let mut unlisted: HashMap<u64, usize> = HashMap::new();
        let mut ids = RunIds::new(table)?;
        let mut current = None;
        for first in (0..self.rows).step_by(SCANNED as usize) {
            let rows: Vec<u64> = (first..(first + SCANNED).min(self.rows)).collect();
            let read = ids.read(table, &rows)?;
            for (row, id) in (first..).zip(read) {
                if current.replace(id) == Some(id) {
                    continue;
                }
                let place = |e: Error| {
                    let (file, row) = table.locate(row);
                    e.in_source(file).in_frame(usize::try_from(row).unwrap_or(usize::MAX))
                };
                let mut known = self.runs[..listed].binary_search_by_key(&id, |run| run.id).ok();
                if known.is_none() && is_recorded(form) {
                    let run = *unlisted.entry(id).or_insert(self.runs.len());
                    if run == self.runs.len() {
                        self.runs.push(Run { id, seed: None, steps: 0, max_score: 0, highest_tile: 0 });
                    }
                    known = Some(run);
                }
                let Some(run) = known else {
                    let detail = format!("run {id}, which `metadata.db` does not list; it lists {}", self.runs.len());
                    return Err(place(Error::new(Kind::Missing, detail)).into());
                };
                if self.stretches.len() == MOST_STRETCHES {
                    let detail = "rows of different runs alternate too often for an index; convert the pack first";
                    return Err(place(Error::new(Kind::Unsupported, detail)).into());
                }
                self.stretches.push((row, run as u32));
            }
        }
        Ok(())
    }

    /// Compares how many rows each run has with what the database says; fewer may have been lost, more cannot be.
    fn check(&mut self, table: &dyn FrameTable, form: Form) -> Result<()> {
        let mut rows = vec![0; self.runs.len()];
        for (i, (start, run)) in self.stretches.iter().enumerate() {
            rows[*run as usize] += self.end(i) - start;
            let Run { id, steps, .. } = self.runs[*run as usize];
            // A game that was under way when its recorder ended has no steps in the database yet.
            let unsaid = is_recorded(form) && steps == 0;
            if !unsaid && rows[*run as usize] > steps {
                let why = match form {
                    Form::Legacy => {
                        "`append` of the time numbered the runs it added from 0 again; `gristmill convert` mends that"
                    }
                    _ => "files of another session or pack are among these, or runs are there twice",
                };
                let detail = format!("run {id} has more rows than the {steps} steps of `metadata.db`: {why}");
                return Err(Error::new(Kind::Corrupt, detail).in_source(table.locate(*start).0).into());
            }
        }
        let all = self.runs.iter_mut().zip(rows);
        all.filter(|(run, _)| is_recorded(form) && run.steps == 0).for_each(|(run, rows)| run.steps = rows);
        Ok(())
    }

    /// Brings the runs into the order of their ids.
    fn sort(&mut self) {
        if self.runs.is_sorted_by_key(|run| run.id) {
            return;
        }
        let mut order: Vec<u32> = (0..self.runs.len() as u32).collect();
        order.sort_unstable_by_key(|run| self.runs[*run as usize].id);
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0u32..).for_each(|(was, is)| place[*was as usize] = is);
        self.stretches.iter_mut().for_each(|(_, run)| *run = place[*run as usize]);
        self.runs.sort_unstable_by_key(|run| run.id);
    }

    /// The runs, by ascending id.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    fn end(&self, stretch: usize) -> u64 {
        self.stretches.get(stretch + 1).map_or(self.rows, |(start, _)| *start)
    }

    /// The rows of some runs, given by position. Where they border on rows of other runs, the rows are read.
    ///
    /// Errors: `Format`: `Corrupt`, with the file, where the rows do not lie as the database says.
    pub fn rows_of(&self, runs: &[u32], table: &dyn FrameTable) -> Result<Intervals> {
        let mut wanted = vec![false; self.runs.len()];
        runs.iter().for_each(|run| wanted[*run as usize] = true);
        let mut rows = Intervals::default();
        let is_wanted = |i: usize| self.stretches.get(i).is_some_and(|(_, run)| wanted[*run as usize]);
        for (i, (start, run)) in self.stretches.iter().enumerate() {
            if !is_wanted(i) {
                continue;
            }
            rows.push(*start, self.end(i));
            let borders = i > 0 && !is_wanted(i - 1) || i + 1 < self.stretches.len() && !is_wanted(i + 1);
            if borders && !self.agrees(table, i)? {
                let (file, row) = table.locate(*start);
                let id = self.runs[*run as usize].id;
                let detail = format!(
                    "the {} rows from {row} on are those of run {id} by `metadata.db`, but not by their own run_id; \
                     `gristmill verify` lists what is wrong",
                    self.end(i) - start
                );
                return Err(Error::new(Kind::Corrupt, detail).in_source(file).into());
            }
        }
        Ok(rows)
    }

    /// The id of the run that a row belongs to. `None` beyond the last row.
    pub fn run_of(&self, row: u64) -> Option<u64> {
        self.stretch_of(row).map(|(_, _, id)| id)
    }

    /// The rows of one run that a row lies among, first and the one after the last, and the id of the run. `None` beyond the
    /// last row.
    pub fn stretch_of(&self, row: u64) -> Option<(u64, u64, u64)> {
        let stretch = self.stretches.partition_point(|(start, _)| *start <= row).checked_sub(1)?;
        let (start, run) = self.stretches[stretch];
        (row < self.rows).then(|| (start, self.end(stretch), self.runs[run as usize].id))
    }

    /// The stretches of rows of a run, in order: the first row and the one after the last.
    pub fn stretches_of(&self, id: u64) -> Vec<(u64, u64)> {
        let Ok(run) = self.runs.binary_search_by_key(&id, |run| run.id) else { return Vec::new() };
        let run_of = |stretch: &u32| self.stretches[*stretch as usize].1;
        let by_run = self.by_run.get_or_init(|| {
            let mut by_run: Vec<u32> = (0..self.stretches.len() as u32).collect();
            by_run.sort_by_key(run_of);
            by_run
        });
        let own = &by_run[by_run.partition_point(|stretch| (run_of(stretch) as usize) < run)..];
        let own = own.iter().take_while(|stretch| run_of(stretch) as usize == run);
        own.map(|stretch| (self.stretches[*stretch as usize].0, self.end(*stretch as usize))).collect()
    }

    /// First row and run of each stretch of rows of one run, in order of rows.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, &Run)> {
        self.stretches.iter().map(|(start, run)| (*start, &self.runs[*run as usize]))
    }

    /// Checks that the rows of each run lie together, as their own `run_id` at both ends of it says.
    ///
    /// Errors, with the file: `Unsupported` for runs that alternate, `Corrupt` where the rows do not lie as the database
    /// says; what reading gives.
    pub fn in_one_piece(&self, table: &dyn FrameTable) -> gristmill_format::Result<()> {
        let mut seen = vec![false; self.runs.len()];
        for (i, (start, run)) in self.stretches.iter().enumerate() {
            let place = |kind, detail: String| {
                let (file, row) = table.locate(*start);
                Err(Error::new(kind, format!("row {row}: {detail}")).in_source(file))
            };
            let id = self.runs[*run as usize].id;
            if std::mem::replace(&mut seen[*run as usize], true) {
                let detail =
                    format!("run {id} continues after rows of other runs; `gristmill convert` puts each game together");
                return place(Kind::Unsupported, detail);
            }
            if !self.agrees(table, i)? {
                let end = self.end(i);
                let detail =
                    format!("`metadata.db` says run {id} up to row {end}, the rows do not; see `gristmill verify`");
                return place(Kind::Corrupt, detail);
            }
        }
        Ok(())
    }
}

/// Whether rows were written while games were under way, so that the database may know less than they do.
fn is_recorded(form: Form) -> bool {
    matches!(form, Form::SelfPlay | Form::Exponents)
}

/// Reads the field `run_id` of rows.
struct RunIds {
    number: Number,
    records: Vec<u8>,
}

impl RunIds {
    fn new(table: &dyn FrameTable) -> gristmill_format::Result<Self> {
        Ok(RunIds { number: Number::new(table.layout(), "run_id")?, records: Vec::new() })
    }

    fn read(&mut self, table: &dyn FrameTable, rows: &[u64]) -> gristmill_format::Result<impl Iterator<Item = u64>> {
        self.records.resize(rows.len() * table.layout().size(), 0);
        table.gather(rows, &mut self.records)?;
        Ok(self.records.chunks_exact(table.layout().size()).map(|record| self.number.of(record)))
    }
}

/// An unsigned number in a record, whatever its width.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    offset: usize,
    bytes: usize,
}

impl Number {
    /// The field called `name`.
    ///
    /// Errors: `Missing` where there is none; `Unsupported` where it is no single little-endian unsigned number.
    pub fn new(layout: &Layout, name: &str) -> gristmill_format::Result<Self> {
        let Some(Field { dtype, shape, offset, .. }) = layout.field(name) else {
            let found: Vec<&str> = layout.fields().iter().map(|field| &*field.name).collect();
            return Err(Error::new(
                Kind::Missing,
                format!("rows have no field `{name}`; they have {}", found.join(", ")),
            ));
        };
        let unsigned = matches!(dtype, DType::Scalar(Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64, order)
            if *order == gristmill_format::layout::Order::Little);
        if !unsigned || !shape.is_empty() {
            let detail = format!("field `{name}` is {dtype:?} {shape:?}, expected a little-endian unsigned number");
            return Err(Error::new(Kind::Unsupported, detail));
        }
        Ok(Number { offset: *offset, bytes: dtype.size() })
    }

    /// Its value in a record.
    pub fn of(self, record: &[u8]) -> u64 {
        let mut value = [0; 8];
        value[..self.bytes].copy_from_slice(&record[self.offset..self.offset + self.bytes]);
        u64::from_le_bytes(value)
    }
}
