//! Rows -> rows in another order: a reservoir that emits a random one of those it holds for each that comes.
//! Holds references, never bytes; every change can be undone, so that the state of any earlier batch is at hand.

use serde::{Deserialize, Serialize};

use super::QueueConfig;
use crate::runtime::options::options;
use crate::runtime::seed::Key;

options! {
    /// A reservoir: emits a random frame of those it holds and keeps the new one in its place (§1.8).
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

/// A shuffling reservoir of `capacity` rows (spec lc0 §1.8, with a drain at the end).
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
    use super::*;

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
