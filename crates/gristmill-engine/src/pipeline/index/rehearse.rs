//! The plan of rows whose table is elsewhere -> what fetching it asks for, batch after batch: the requests and bytes of the first
//! pass and of the second. Fetches nothing; of a long pass it walks the beginning, and says by how much it may be wrong.

use std::ops::Range;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::store::keeping::Keeper;
use gristmill_runtime::store::{Asked, Rehearsal};
use gristmill_runtime::table::{FrameTable, Pick};

use super::bounded::next_step;
use super::fetch::{Fetched, at_once};
use super::plan::Plan;

/// Rows of a pass that are walked, at most: some seconds.
pub(super) const WALKED: u64 = 1 << 25;

/// Parts of a walk that are compared with each other.
const PARTS: u64 = 8;

/// Rows that one call takes where their order does not matter.
const STRETCH: u64 = 1 << 16;

/// What fetching asks for, with what is there now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fetches {
    /// Bytes of the files that rows are read from.
    pub data_bytes: u64,
    /// Bytes of them that are there.
    pub kept_bytes: u64,
    /// Bytes of the disk that they take after the first pass.
    pub disk_bytes: u64,
    /// For the first batch.
    pub first_batch: Asked,
    /// In the first pass.
    pub first_pass: Asked,
    /// In the second pass.
    pub later_pass: Asked,
    /// By which part of them the requests of the first pass may be wrong: 0 where the pass was walked whole.
    pub error: f64,
    /// Whether the pass was too long to be walked whole.
    pub is_sampled: bool,
    /// Bytes that the cache keeps of the files, if it keeps a part of them. `None` if it holds them all, or has no room for a part.
    pub part: Option<u64>,
}

/// From the picks of batches to the rows of the table that they are read from.
pub(super) type Read<'a> = dyn FnMut(&[Pick]) -> Result<Vec<Range<u64>>> + 'a;

/// A walk over a plan.
pub(super) struct Walk<'a> {
    pub(super) plan: &'a Plan,
    pub(super) table: &'a dyn FrameTable,
    /// Batches of a pass.
    pub(super) batches: u64,
    /// Rows that a batch reads.
    pub(super) reads: usize,
    /// Rows that are walked, at most.
    pub(super) most: u64,
    /// All rows that are selected.
    pub(super) selected: &'a Intervals,
    pub(super) read: &'a mut Read<'a>,
    pub(super) goes_on: &'a mut dyn FnMut() -> bool,
}

/// What a pass asked for, and the parts of it that were walked.
#[derive(Default)]
struct Passed {
    first: Asked,
    all: Asked,
    /// Rows that were walked, and what was asked for up to there, at the end of each part.
    parts: Vec<Asked>,
    /// Batches that were walked at the end of each part. Empty unless the cache keeps a part of the files.
    ends: Vec<u64>,
    rows: u64,
    is_whole: bool,
}

impl Walk<'_> {
    /// Walks the first pass, and the second one where it may ask for anything.
    ///
    /// Errors: those of the plan and of the table; `Stopped` where `goes_on` says no.
    pub(super) fn fetches(mut self) -> Result<Fetches> {
        if let Some(keeper) = Keeper::rehearsed(&self.table.files())? {
            return self.bounded(keeper);
        }
        let mut there = Rehearsal::of(&self.table.files())?;
        let (data_bytes, kept_bytes) = (there.total(), there.bytes());
        let passed = self.pass(&mut there, 0..self.batches)?;
        let (mut first_pass, mut error) = (passed.all, 0.0);
        let mut later_pass = Asked::default();
        if passed.is_whole {
            if !there.is_whole() && self.plan.passes() != Some(1) {
                later_pass = self.pass(&mut there, self.batches..2 * self.batches)?.all;
            }
        } else {
            let rest = self.rest(&mut there)?;
            let (requests, differ) = passed.beyond(rest);
            first_pass.bytes += rest.bytes;
            first_pass.requests += requests;
            let share = requests as f64 / first_pass.requests.max(1) as f64;
            error = (share * differ).min(1.0);
        }
        Ok(Fetches {
            data_bytes,
            kept_bytes,
            disk_bytes: there.disk_bytes(),
            first_batch: passed.first,
            first_pass,
            later_pass,
            error,
            is_sampled: !passed.is_whole,
            part: None,
        })
    }

    /// As [`Walk::fetches`], if the cache keeps a part of the files. It assumes that each batch of the rest of a long pass asks for as much
    /// as a batch of the last part that it walked.
    fn bounded(mut self, mut keeper: Keeper) -> Result<Fetches> {
        let (data_bytes, kept_bytes) = (keeper.total(), keeper.bytes());
        let mut fetched = Fetched::from(0);
        let passed = self.stepped(&mut keeper, &mut fetched, 0..self.batches)?;
        let (mut first_pass, mut later_pass, mut error) = (passed.all, Asked::default(), 0.0);
        if !passed.is_whole {
            (first_pass, error) = passed.scaled(self.batches);
            later_pass = first_pass;
        } else if self.plan.passes() != Some(1) {
            later_pass = self.stepped(&mut keeper, &mut fetched, self.batches..2 * self.batches)?.all;
        }
        Ok(Fetches {
            data_bytes,
            kept_bytes,
            disk_bytes: data_bytes.min(keeper.budget()),
            first_batch: passed.first,
            first_pass,
            later_pass,
            error,
            is_sampled: !passed.is_whole,
            part: Some(keeper.budget()),
        })
    }

    fn stepped(&mut self, keeper: &mut Keeper, fetched: &mut Fetched, batches: Range<u64>) -> Result<Passed> {
        let mut passed = Passed::default();
        let (plan, table, mut rows) = (self.plan, self.table, 0);
        while fetched.next() < batches.end {
            if rows >= self.most {
                return Ok(passed);
            }
            self.heeds()?;
            let mut read = |picks: &[Pick]| {
                let found = (self.read)(picks)?;
                rows += found.len() as u64;
                Ok(found)
            };
            let at_once = fetched.at_once().min(batches.end - fetched.next());
            let span = (fetched.next(), at_once, plan.batches());
            let Some(step) = next_step(keeper, (plan, table), &mut read, span)? else { break };
            fetched.take(&step.batches, u64::MAX);
            fetched.end(step.batches.clone(), None);
            let asked = keeper.asked(&step);
            passed.all += asked;
            if step.batches.start == batches.start {
                passed.first = asked;
            }
            passed.rows = step.batches.end - batches.start;
            if rows >= (passed.parts.len() as u64 + 1) * (self.most / PARTS) {
                passed.parts.push(passed.all);
                passed.ends.push(passed.rows);
            }
        }
        passed.is_whole = true;
        Ok(passed)
    }

    fn pass(&mut self, there: &mut Rehearsal<'_>, batches: Range<u64>) -> Result<Passed> {
        let mut passed = Passed::default();
        let fetched = |first| Fetched::from(first).by(at_once(self.table, self.reads));
        let (mut fetched, mut picks, mut all) = (fetched(batches.start), Vec::new(), Vec::new());
        while let Some(range) = fetched.begin(u64::MAX, Some(batches.end)) {
            if there.is_whole() {
                break;
            }
            if passed.rows >= self.most {
                return Ok(passed);
            }
            self.heeds()?;
            fetched.end(range.clone(), None);
            let is_first = range.start == batches.start;
            for number in range.filter(|number| self.plan.beyond(*number) == *number) {
                self.plan.picks(number, 0, self.plan.share(number).rows, &mut picks, false)?;
                all.append(&mut picks);
            }
            let rows = (self.read)(&all)?;
            passed.rows += rows.len() as u64;
            all.clear();
            let asked = asked(self.table, there, &rows)?;
            passed.all += asked;
            if is_first {
                passed.first = asked;
            }
            if passed.rows >= (passed.parts.len() as u64 + 1) * (self.most / PARTS) {
                passed.parts.push(passed.all);
            }
        }
        passed.is_whole = true;
        Ok(passed)
    }

    /// What the rows ask for that were not walked, in the order of the data.
    fn rest(&mut self, there: &mut Rehearsal<'_>) -> Result<Asked> {
        let mut all = Asked::default();
        for (mut start, end) in self.selected.iter() {
            while start < end {
                self.heeds()?;
                let behind = end.min(start.saturating_add(STRETCH));
                all += asked(self.table, there, std::slice::from_ref(&(start..behind)))?;
                start = behind;
            }
        }
        Ok(all)
    }

    fn heeds(&mut self) -> Result<()> {
        if (self.goes_on)() { Ok(()) } else { Err(Error::Stopped) }
    }
}

/// What rows of a table ask for.
fn asked(table: &dyn FrameTable, there: &mut Rehearsal<'_>, rows: &[Range<u64>]) -> Result<Asked> {
    let mut asked = Asked::default();
    table.needs(rows, &mut |file, ranges| {
        asked += there.have(file, ranges);
        Ok(())
    })?;
    Ok(asked)
}

impl Passed {
    /// Estimates what a pass of `batches` batches asks for: each batch that was not walked counts as a batch of the last part. Returns also
    /// how much the requests of a batch differ between the last two parts, as a share (0 to 1).
    fn scaled(&self, batches: u64) -> (Asked, f64) {
        let count = self.ends.len();
        let part = |i: usize| {
            let (before, from) = i.checked_sub(1).map_or((Asked::default(), 0), |i| (self.parts[i], self.ends[i]));
            let many = (self.ends[i] - from).max(1) as f64;
            let per = |all: u64, before: u64| (all - before) as f64 / many;
            (per(self.parts[i].requests, before.requests), per(self.parts[i].bytes, before.bytes))
        };
        let Some(last) = count.checked_sub(1) else { return (self.all, 1.0) };
        let ((requests, bytes), (before, _)) = (part(last), part(last.saturating_sub(1)));
        let rest = batches.saturating_sub(self.rows) as f64;
        let more = |rate: f64| (rate * rest).round() as u64;
        let all = Asked {
            requests: self.all.requests + more(requests),
            bytes: self.all.bytes + more(bytes),
            turns: self.all.turns,
        };
        (all, ((requests - before).abs() / requests.max(f64::MIN_POSITIVE)).min(1.0))
    }

    /// The requests for the rest of a pass, as its last parts asked for their bytes; and by which part of them the last two differ.
    fn beyond(&self, rest: Asked) -> (u64, f64) {
        let rate = |from: usize| -> Option<f64> {
            let [before, behind] = [self.parts.get(from.checked_sub(1)?)?, self.parts.get(from)?];
            let bytes = behind.bytes - before.bytes;
            (bytes > 0).then(|| (behind.requests - before.requests) as f64 / bytes as f64)
        };
        let last = self.parts.len().saturating_sub(1);
        match (rate(last), rate(last.saturating_sub(1))) {
            (Some(now), before) => {
                let differ = before.map_or(0.5, |before| (now - before).abs() / now.max(f64::MIN_POSITIVE));
                ((now * rest.bytes as f64).round() as u64, differ)
            }
            (None, _) => (rest.requests, 0.5),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gristmill_format::layout::{Layout, Scalar};
    use gristmill_runtime::store::{MemoryStore, Residence};
    use gristmill_runtime::table::{FileTable, Part};
    use gristmill_stages::config::{IndexConfig, Shuffle};

    use super::*;

    /// A table elsewhere of rows of 64 bytes.
    fn table(name: &str, rows: usize) -> FileTable {
        MemoryStore::named(name).write("rows", vec![7; rows * 64]);
        let part = Part { path: format!("memory://{name}/rows").into(), offset: 0, rows: rows as u64 };
        let layout = Layout::packed(&[("bytes", Scalar::U8, &[64])]).unwrap();
        FileTable::open(layout, vec![part], Residence::Mapped).unwrap()
    }

    #[test]
    fn readers_fetch_more_small_batches_than_large_ones_at_once() {
        let table = table("rehearse-small", 1 << 10);
        let found = [1, 1 << 7, 1 << 10, 1 << 13, 1 << 16].map(|rows| at_once(&table, rows));
        assert_eq!(found, [512, 512, 64, 8, 8], "4 MiB, but at least 8 batches and at most 512");
        let mut fetched = Fetched::from(0).by(64);
        fetched.begin(0, None).into_iter().for_each(|range| fetched.end(range, None));
        while fetched.begin(0, None).is_some() {}
        assert_eq!(fetched.next(), 512, "eight times as many are ahead");
    }

    #[test]
    fn a_part_of_a_pass_says_what_the_whole_asks_for() {
        let rows = 1 << 18;
        let table = table("rehearse", rows);
        let selected = Arc::new(Intervals::all(rows as u64));
        for shuffle in [Shuffle::Off, Shuffle::Blocks { rows: 1000, blocks: 8 }, Shuffle::Rows] {
            let config = IndexConfig { batch_size: 256, shuffle, apart: true, epochs: None, ..IndexConfig::default() };
            let plan = Plan::new(&config, 1, Arc::clone(&selected)).unwrap();
            let walked = |most| {
                let mut read = |picks: &[Pick]| Ok(picks.iter().map(|pick| pick.row..pick.row + 1).collect());
                let (batches, selected, read) = (rows as u64 / 256, &*selected, &mut read);
                let (plan, table, goes_on) = (&plan, &table, &mut || true);
                let walk = Walk { plan, table, batches, reads: 256, most, selected, read, goes_on };
                walk.fetches().unwrap()
            };
            let (whole, part) = (walked(u64::MAX), walked(rows as u64 / 4));
            assert_eq!((whole.is_sampled, whole.error, whole.first_pass.bytes), (false, 0.0, rows as u64 * 64));
            assert_eq!((part.is_sampled, part.first_pass.bytes), (shuffle != Shuffle::Rows, whole.first_pass.bytes));
            let (said, is) = (part.first_pass.requests as f64, whole.first_pass.requests as f64);
            assert!((said - is).abs() <= said * part.error + 2.0, "{shuffle:?}: {said} of {is}, within {}", part.error);
            assert_eq!((whole.later_pass, whole.disk_bytes), (Asked::default(), rows as u64 * 64 + 64 * 8));
        }
    }

    #[test]
    fn the_rest_of_a_pass_asks_as_its_last_part_did() {
        let asked = |requests, bytes| Asked { requests, bytes, turns: 0 };
        let parts = vec![asked(10, 1000), asked(20, 2000), asked(40, 3000)];
        let passed = Passed { parts, ..Passed::default() };
        assert_eq!(passed.beyond(asked(1, 500)), (10, 0.5));
        assert_eq!(Passed::default().beyond(asked(3, 500)), (3, 0.5));
    }
}
