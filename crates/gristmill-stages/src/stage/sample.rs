//! Rows -> rows in another order: a reservoir that emits a random one of those it holds for each that comes.
//! Holds references, never bytes; every change can be undone, so that the state of any earlier batch is at hand.

use std::collections::VecDeque;

use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use super::{GaugeOf, Later, QueueConfig, Row, RowStage, RowStep, Shared, Standing};
use crate::options::options;

options! {
    /// A reservoir: emits a random frame of those it holds and keeps the new one in its place.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ShufflingFrameSamplerConfig {
        /// Factor of the reservoir's size; existing configs mean one reservoir per thread.
        batches threads: usize,
        /// Frames held per thread; the whole reservoir is the product.
        batches reservoir_size_per_thread: usize,
        /// Whether what it still holds at the end of the stream is emitted, shuffled.
        batches drain: bool,
        /// Where the frames go.
        table output: QueueConfig,
    }
}

impl Default for ShufflingFrameSamplerConfig {
    fn default() -> Self {
        ShufflingFrameSamplerConfig {
            threads: 1,
            reservoir_size_per_thread: 1_000_000,
            drain: true,
            output: QueueConfig::default(),
        }
    }
}

impl RowStage for ShufflingFrameSamplerConfig {
    fn shared(&self) -> Result<Shared, (&'static str, String)> {
        let field = "reservoir_size_per_thread";
        let frames = self.threads.checked_mul(self.reservoir_size_per_thread).and_then(|n| u32::try_from(n).ok());
        let expected = || (field, "expected 1 to 4 294 967 295 frames in all".to_owned());
        let size = frames.filter(|n| *n > 0).ok_or_else(expected)?.into();
        Ok(Shared { field, size, of: "frames" })
    }

    fn slots(&self, share: u64) -> usize {
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    fn step(&self, key: Key, share: u64) -> Box<dyn RowStep> {
        Box::new(Sampler::new(Reservoir::new(key, self.slots(share)), self.drain))
    }
}

/// A reservoir of rows, and what becomes of them in one lane.
#[derive(Debug)]
pub struct Sampler {
    reservoir: Reservoir<Row>,
    drains: bool,
    /// Rows that it gave since the start.
    given: u64,
    /// Draws made at the consumer's mark.
    delivered: u64,
    /// Draws made at each later mark, with the changes that led to it; then those since.
    marks: VecDeque<(u64, Vec<Change<Row>>)>,
    changes: Vec<Change<Row>>,
}

impl Sampler {
    /// A sampler that gives what it holds at the end, or does not.
    pub fn new(reservoir: Reservoir<Row>, drains: bool) -> Self {
        Sampler { reservoir, drains, given: 0, delivered: 0, marks: VecDeque::new(), changes: Vec::new() }
    }

    /// The changes since the consumer's mark, newest last.
    fn changes(&self) -> impl Iterator<Item = &Change<Row>> {
        self.marks.iter().flat_map(|(_, changes)| changes).chain(&self.changes)
    }
}

impl RowStep for Sampler {
    fn room(&self) -> usize {
        self.reservoir.capacity() - self.reservoir.held().len()
    }

    fn offer(&mut self, rows: &mut Vec<Row>, _: &mut Vec<Row>, _: &[u64]) {
        rows.retain_mut(|row| match self.reservoir.offer(*row, &mut self.changes) {
            Some(out) => {
                *row = out;
                true
            }
            None => false,
        });
        self.given += rows.len() as u64;
    }

    fn drain(&mut self) -> Option<Row> {
        let row = if self.drains { self.reservoir.drain(&mut self.changes) } else { None };
        self.given += u64::from(row.is_some());
        row
    }

    fn mark(&mut self) -> usize {
        self.marks.push_back((self.reservoir.ordinal(), std::mem::take(&mut self.changes)));
        self.marks.back().map_or(0, |(_, changes)| changes.len())
    }

    fn advance(&mut self) {
        if let Some((draws, _)) = self.marks.pop_front() {
            self.delivered = draws;
        }
    }

    fn later(&self) -> Later {
        let (mut rows, draws) = (self.reservoir.held().to_vec(), self.delivered);
        let changes: Vec<Change<Row>> = self.changes().copied().collect();
        Box::new(move || {
            undo(&mut rows, &changes);
            Standing { own: draws.into(), rows }
        })
    }

    fn restore(&mut self, standing: Standing) -> Result<(), String> {
        let draws = standing.own.as_u64().ok_or("its draws are no number")?;
        self.reservoir.restore(standing.rows, draws);
        self.delivered = draws;
        Ok(())
    }

    fn rows(&self) -> Box<dyn Iterator<Item = &Row> + '_> {
        let left = self.changes().filter_map(|change| match change {
            Change::Pushed => None,
            Change::Replaced { old, .. } | Change::Removed { old, .. } => Some(old),
        });
        Box::new(self.reservoir.held().iter().chain(left))
    }

    fn held(&self) -> usize {
        self.reservoir.held().len()
    }

    fn gauges(&self) -> Vec<GaugeOf> {
        vec![("reservoir", self.held() as u64, Some(self.reservoir.capacity() as u64))]
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("frames", self.given)]
    }
}

/// One change of the reservoir, enough to take it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<T> {
    /// A row was added at the end.
    Pushed,
    /// A row took the place of `old`.
    Replaced {
        /// Where.
        at: usize,
        /// What was there.
        old: T,
    },
    /// `old` was removed and the last row took its place.
    Removed {
        /// Where.
        at: usize,
        /// What was there.
        old: T,
    },
}

/// A shuffling reservoir of `capacity` rows (with a drain at the end).
#[derive(Debug, Clone)]
pub struct Reservoir<T> {
    key: Key,
    capacity: usize,
    held: Vec<T>,
    ordinal: u64,
}

impl<T: Copy> Reservoir<T> {
    /// An empty reservoir; a capacity of 0 passes rows straight through.
    pub fn new(key: Key, capacity: usize) -> Self {
        Reservoir { key, capacity, held: Vec::new(), ordinal: 0 }
    }

    /// Takes a row in; once full, emits a random one of those held before, and remembers the change.
    pub fn offer(&mut self, row: T, changes: &mut Vec<Change<T>>) -> Option<T> {
        if self.capacity == 0 {
            return Some(row);
        }
        if self.held.len() < self.capacity {
            self.held.push(row);
            changes.push(Change::Pushed);
            return None;
        }
        let at = self.pick();
        let old = std::mem::replace(&mut self.held[at], row);
        changes.push(Change::Replaced { at, old });
        Some(old)
    }

    /// Emits a random one of those left, at the end of the stream.
    pub fn drain(&mut self, changes: &mut Vec<Change<T>>) -> Option<T> {
        if self.held.is_empty() {
            return None;
        }
        let at = self.pick();
        let old = self.held.swap_remove(at);
        changes.push(Change::Removed { at, old });
        Some(old)
    }

    fn pick(&mut self) -> usize {
        let at = self.key.at(self.ordinal).below(self.held.len() as u64);
        self.ordinal += 1;
        at as usize
    }

    /// The rows held.
    pub fn held(&self) -> &[T] {
        &self.held
    }

    /// Maximum number of rows it holds.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Draws made so far.
    pub fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Takes over rows and the number of draws made.
    pub fn restore(&mut self, held: Vec<T>, ordinal: u64) {
        self.held = held;
        self.ordinal = ordinal;
    }
}

/// Takes changes back, newest first, from a copy of the rows held; returns how many draws they were.
pub fn undo<T: Copy>(held: &mut Vec<T>, changes: &[Change<T>]) -> u64 {
    let mut draws = 0;
    for change in changes.iter().rev() {
        match *change {
            Change::Pushed => {
                held.pop();
                continue;
            }
            Change::Replaced { at, old } => held[at] = old,
            Change::Removed { at, old } if at == held.len() => held.push(old),
            Change::Removed { at, old } => {
                let moved = std::mem::replace(&mut held[at], old);
                held.push(moved);
            }
        }
        draws += 1;
    }
    draws
}

#[cfg(test)]
mod tests {
    use gristmill_format::encode::Provenance;

    use super::*;

    fn sampler(capacity: usize, drains: bool) -> Sampler {
        Sampler::new(Reservoir::new(Key::new(7, "sample"), capacity), drains)
    }

    /// Offers rows of these slots at once; the slots that come out.
    fn through(step: &mut Sampler, slots: std::ops::Range<u32>) -> Vec<u32> {
        let mut rows: Vec<Row> = slots.map(|slot| Row { slot, branch: 0, from: Provenance::default() }).collect();
        step.offer(&mut rows, &mut Vec::new(), &[]);
        rows.iter().map(|row| row.slot).collect()
    }

    #[test]
    fn the_lanes_share_the_product_of_its_options_which_is_one_to_four_billion_frames() {
        let config = |threads, reservoir_size_per_thread| ShufflingFrameSamplerConfig {
            threads,
            reservoir_size_per_thread,
            ..Default::default()
        };
        let shared = |threads, size| config(threads, size).shared().map(|shared| shared.size).map_err(|e| e.0);
        assert_eq!(shared(2, 3), Ok(6));
        assert_eq!(shared(1, u32::MAX as usize), Ok(u64::from(u32::MAX)));
        for (threads, size) in [(0, 5), (5, 0), (2, 1 << 31), (usize::MAX, 2)] {
            assert_eq!(shared(threads, size), Err("reservoir_size_per_thread"), "{threads}, {size}");
        }
        assert_eq!(config(1, 10).slots(4), 4);
        assert_eq!(config(1, 10).step(Key::new(7, "sample"), 4).room(), 4);
    }

    #[test]
    fn a_row_comes_out_for_each_that_comes_once_it_is_full_and_the_rest_at_the_end() {
        let (mut step, mut kept) = (sampler(5, true), sampler(5, false));
        assert_eq!(through(&mut step, 0..3), [0; 0]);
        assert_eq!((step.room(), step.held()), (2, 3));
        assert_eq!(step.gauges(), [("reservoir", 3, Some(5))]);
        let mut all = through(&mut step, 3..12);
        assert_eq!((all.len(), step.room(), step.held(), step.counts()), (7, 0, 5, vec![("frames", 7)]));
        assert!(all.iter().enumerate().any(|(i, slot)| i as u32 != *slot), "not in the order of arrival: {all:?}");
        all.extend(std::iter::from_fn(|| step.drain()).map(|row| row.slot));
        all.sort_unstable();
        assert_eq!((all, step.counts()), ((0..12).collect(), vec![("frames", 12)]));
        through(&mut kept, 0..12);
        assert_eq!((kept.drain(), kept.held(), kept.counts()), (None, 5, vec![("frames", 7)]));
    }

    #[test]
    fn it_says_where_it_stood_at_each_mark_and_goes_on_from_there() {
        let mut step = sampler(6, true);
        let parts: Vec<std::ops::Range<u32>> = (0..8).map(|part| part * 5..part * 5 + 5).collect();
        let mut expected = Vec::new();
        for part in &parts {
            expected.push(through(&mut step, part.clone()));
            assert_eq!(step.mark(), 5, "a change for each row");
        }
        for at in 0..parts.len() {
            let standing = step.later()();
            assert!(standing.rows.iter().all(|row| step.rows().any(|held| held == row)), "rows of a standing are held");
            let mut restored = sampler(6, true);
            restored.restore(standing).unwrap();
            let rest: Vec<Vec<u32>> = parts[at..].iter().map(|part| through(&mut restored, part.clone())).collect();
            assert_eq!(rest, expected[at..], "after {at} marks");
            step.advance();
        }
        assert_eq!(step.rows().count(), step.held(), "what was given before the consumer's mark is let go");
        assert!(sampler(6, true).restore(Standing::default()).is_err());
    }

    fn run(capacity: usize, n: u32) -> (Vec<u32>, Vec<u32>) {
        let mut reservoir = Reservoir::new(Key::new(5, "sample"), capacity);
        let mut log = Vec::new();
        let emitted: Vec<u32> = (0..n).filter_map(|row| reservoir.offer(row, &mut log)).collect();
        let drained: Vec<u32> = std::iter::from_fn(|| reservoir.drain(&mut log)).collect();
        let mut back = reservoir.held().to_vec();
        undo(&mut back, &log);
        assert!(back.is_empty(), "all changes undone leave an empty reservoir");
        (emitted, drained)
    }

    #[test]
    fn every_row_comes_out_exactly_once() {
        for (capacity, n) in [(0, 10), (1, 10), (10, 5), (10, 10), (10, 30)] {
            let (emitted, drained) = run(capacity, n);
            assert_eq!(emitted.len(), (n as usize).saturating_sub(capacity));
            let mut all = [emitted, drained].concat();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>(), "capacity {capacity}, {n} rows");
        }
    }

    #[test]
    fn any_tail_of_changes_can_be_taken_back() {
        let mut reservoir = Reservoir::new(Key::new(6, "sample"), 8);
        let (mut log, mut states) = (Vec::new(), vec![(Vec::new(), 0)]);
        for row in 0..40 {
            reservoir.offer(row, &mut log);
            states.push((reservoir.held().to_vec(), reservoir.ordinal()));
        }
        while reservoir.drain(&mut log).is_some() {
            states.push((reservoir.held().to_vec(), reservoir.ordinal()));
        }
        for (kept, (held, ordinal)) in states.iter().enumerate() {
            let mut back = reservoir.held().to_vec();
            let draws = undo(&mut back, &log[kept..]);
            assert_eq!((&back, reservoir.ordinal() - draws), (held, *ordinal), "after {kept} changes");
        }
    }
}
