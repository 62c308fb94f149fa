//! A batch -> the pieces that tasks make of it: how many rows each has, and which. No batch depends on it.

use gristmill_format::encode::RandomBits;
use gristmill_runtime::table::Pick;

use super::super::assembly::Assembly;
use super::super::plan::Plan;
use super::Feed;

/// Steps of one task: enough to hide the memory's latency, few enough to stay in the first caches.
const STEPS: usize = 256;

/// The most rows of one task that copies them and does nothing else: what is done for a task alone takes as long as some hundred copies.
const COPIES: usize = 1024;

/// Bytes of the copies of one task that has more than [`STEPS`] of them.
const COPIED: usize = 1 << 18;

/// Bytes of pairs of one task: rows are large, and are copied where they stand.
const BYTES: usize = 1 << 22;

/// Rows of one task. A row has `row` bytes.
pub(super) fn rows(plan: &Plan, assembly: &Assembly, is_copied: bool, row: usize) -> usize {
    if is_copied {
        return (COPIED / row.max(1)).clamp(STEPS, COPIES);
    }
    let fit = if plan.is_mixed() { BYTES / row.max(1) } else { STEPS };
    (fit.min(STEPS) / assembly.steps().max(1)).max(1)
}

impl Feed {
    /// The rows of a piece that is copied; as picks, too, if a ledger needs them.
    pub(super) fn numbers(&self, number: u64, from: usize, to: usize, picks: &mut Vec<Pick>, rows: &mut Vec<u64>) {
        self.plan.numbers(number, from, to, rows);
        picks.clear();
        if self.shared.book.is_some() {
            picks.extend(rows.iter().map(|row| Pick { row: *row, bits: RandomBits::default() }));
        }
    }
}
