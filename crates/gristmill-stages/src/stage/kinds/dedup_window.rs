//! Rows -> the rows whose position was not among the last N that came; the others are dropped and counted.
//! Remembers what stands for positions, never a row or a byte of one.

use std::collections::{HashMap, VecDeque};

use gristmill_runtime::runtime::packed;
use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use crate::options::options;
use crate::stage::{GaugeOf, Later, QueueConfig, Row, RowStage, RowStep, Shared, Standing};

options! {
    /// Drops a position that was among the last `window` that came, dropped ones included.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct DedupWindowConfig {
        /// Positions that are remembered; all lanes share them.
        batches window: u64,
        /// Where the frames go.
        table output: QueueConfig,
    }
}

impl Default for DedupWindowConfig {
    fn default() -> Self {
        DedupWindowConfig { window: 100_000, output: QueueConfig::default() }
    }
}

/// Most positions: a state has some 14 bytes of each.
const MOST: u64 = 1 << 24;

/// Bytes of a remembered position: in the order of arrival and by key, both with room to grow.
const BYTES: u64 = 64;

/// Dropped rows in a row that are no reason to give up, however small the window.
const PATIENCE: u64 = 1 << 16;

impl RowStage for DedupWindowConfig {
    fn shared(&self) -> Result<Shared, (&'static str, String)> {
        let expected = || ("window", format!("{}; expected 1 to {MOST} positions", self.window));
        let size = Some(self.window).filter(|size| (1..=MOST).contains(size)).ok_or_else(expected)?;
        Ok(Shared { field: "window", size, of: "positions" })
    }

    fn bytes(&self, share: u64) -> u64 {
        share.saturating_mul(BYTES)
    }

    fn drops(&self) -> bool {
        true
    }

    fn reads_positions(&self) -> bool {
        true
    }

    fn step(&self, _: Key, share: u64) -> Box<dyn RowStep> {
        Box::new(DedupWindow::new(share))
    }
}

/// The last positions of one lane.
#[derive(Debug, Default)]
struct DedupWindow {
    window: u64,
    /// Keys of what came, oldest first: the window, and before it what was in it at the consumer's mark or later.
    keys: VecDeque<u64>,
    /// How many came before the first of these, and dropped rows in a row, up to here.
    first: u64,
    dropped_in_a_row: u64,
    /// How often each key is in the window.
    seen: HashMap<u64, u32>,
    /// How many came, and dropped rows in a row, at the consumer's mark, then at each later one.
    delivered: (u64, u64),
    marks: VecDeque<(u64, u64)>,
    /// Since the start.
    given: u64,
    duplicates: u64,
}

/// What a state says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    /// The keys of the window, oldest first.
    #[serde(with = "packed")]
    keys: Vec<u64>,
    dropped_in_a_row: u64,
}

impl DedupWindow {
    fn new(window: u64) -> Self {
        DedupWindow { window, ..DedupWindow::default() }
    }

    /// How many came so far.
    fn came(&self) -> u64 {
        self.first + self.keys.len() as u64
    }

    /// Takes note of a position; whether it is none of the last ones.
    fn is_new(&mut self, key: u64) -> bool {
        let came = self.came();
        let count = self.seen.entry(key).or_default();
        let is_new = *count == 0;
        *count += 1;
        self.keys.push_back(key);
        if came >= self.window {
            let leaving = self.keys[(came - self.window - self.first) as usize];
            if let Some(count) = self.seen.get_mut(&leaving) {
                *count -= 1;
                if *count == 0 {
                    self.seen.remove(&leaving);
                }
            }
        }
        self.dropped_in_a_row = if is_new { 0 } else { self.dropped_in_a_row + 1 };
        is_new
    }
}

impl RowStep for DedupWindow {
    fn offer(&mut self, rows: &mut Vec<Row>, dropped: &mut Vec<Row>, keys: &[u64]) {
        rows.retain(|row| {
            let is_new = self.is_new(keys[row.slot as usize]);
            if is_new {
                self.given += 1;
            } else {
                self.duplicates += 1;
                dropped.push(*row);
            }
            is_new
        });
    }

    fn stuck(&self) -> Option<String> {
        (self.dropped_in_a_row >= self.window.max(PATIENCE)).then(|| {
            format!(
                "the last {} positions were all among the {} before them: there are fewer different ones than `window`; \
                 lower it, or take more games",
                self.dropped_in_a_row, self.window
            )
        })
    }

    fn mark(&mut self) -> usize {
        let before = self.marks.back().unwrap_or(&self.delivered).0;
        self.marks.push_back((self.came(), self.dropped_in_a_row));
        (self.came() - before) as usize
    }

    fn advance(&mut self) {
        let Some(mark) = self.marks.pop_front() else { return };
        self.delivered = mark;
        while self.first + self.window < mark.0 {
            self.keys.pop_front();
            self.first += 1;
        }
    }

    fn later(&self) -> Later {
        let (came, dropped_in_a_row) = self.delivered;
        let from = came.saturating_sub(self.window).max(self.first) - self.first;
        let keys = self.keys.range(from as usize..(came - self.first) as usize).copied().collect();
        let own = Own { keys, dropped_in_a_row };
        Box::new(move || Standing { own: serde_json::to_value(own).unwrap_or_default(), rows: Vec::new() })
    }

    fn restore(&mut self, standing: Standing) -> Result<(), String> {
        let own: Own = serde_json::from_value(standing.own).map_err(|e| e.to_string())?;
        if own.keys.len() as u64 > self.window {
            return Err(format!("{} positions for a window of {}", own.keys.len(), self.window));
        }
        *self = DedupWindow::new(self.window);
        for key in own.keys {
            self.is_new(key);
        }
        self.dropped_in_a_row = own.dropped_in_a_row;
        self.delivered = (self.came(), self.dropped_in_a_row);
        Ok(())
    }

    fn gauges(&self) -> Vec<GaugeOf> {
        vec![("positions_seen", self.came().min(self.window), Some(self.window))]
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("frames", self.given), ("duplicates", self.duplicates)]
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::encode::Provenance;

    use super::*;

    /// Offers keys one by one, row n in slot n; the keys that came through.
    fn through(step: &mut DedupWindow, keys: &[u64]) -> Vec<u64> {
        let from = Provenance::default();
        let mut rows = (0..keys.len() as u32).map(|slot| Row { slot, branch: 0, from }).collect::<Vec<_>>();
        let mut dropped = Vec::new();
        step.offer(&mut rows, &mut dropped, keys);
        assert_eq!(rows.len() + dropped.len(), keys.len());
        rows.iter().map(|row| keys[row.slot as usize]).collect()
    }

    #[test]
    fn what_was_among_the_last_ones_is_dropped() {
        let mut step = DedupWindow::new(3);
        assert_eq!(through(&mut step, &[1, 2, 1, 3, 2, 4, 1, 1]), [1, 2, 3, 4, 1]);
        assert_eq!(step.counts(), [("frames", 5), ("duplicates", 3)]);
        assert_eq!(step.gauges(), [("positions_seen", 3, Some(3))]);
    }

    #[test]
    fn it_says_where_it_stood_at_each_mark() {
        let keys: Vec<u64> = (0..400).map(|i: u64| i * i % 37).collect();
        let mut step = DedupWindow::new(11);
        let mut expected = Vec::new();
        for part in keys.chunks(7) {
            expected.push(through(&mut step, part));
            step.mark();
        }
        for (at, _) in expected.iter().enumerate() {
            let mut restored = DedupWindow::new(11);
            restored.restore(step.later()()).unwrap();
            let rest: Vec<Vec<u64>> = keys.chunks(7).skip(at).map(|part| through(&mut restored, part)).collect();
            assert_eq!(rest, expected[at..], "after {at} marks");
            step.advance();
            assert!(step.keys.len() <= keys.len() - 7 * at + 11);
        }
        assert!(DedupWindow::new(3).restore(step.later()()).unwrap_err().contains("11 positions for a window of 3"));
    }
}
