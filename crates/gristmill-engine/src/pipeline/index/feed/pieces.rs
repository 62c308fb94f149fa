//! A batch -> the pieces that tasks make of it: how many rows each has, and which rows. Never changes what is in a batch.

use gristmill_format::encode::RandomBits;
use gristmill_runtime::table::Pick;

use super::super::assembly::Assembly;
use super::super::plan::Plan;
use super::Feed;

/// Steps of one task: enough to hide the memory's latency, few enough to stay in the first caches.
const STEPS: usize = 256;

/// The most rows of one task that only copies them. What a task does once then counts little beside the copies.
const COPIES: usize = 1024;

/// The most bytes that one task copies, unless it has only [`STEPS`] rows.
const COPIED: usize = 1 << 18;

/// Bytes of pairs of one task: rows are large, and are copied where they stand.
const BYTES: usize = 1 << 22;

/// Returns how many rows one task has. A row has `row` bytes. `copies` says that tasks only copy.
pub(super) fn rows(plan: &Plan, assembly: &Assembly, copies: bool, row: usize) -> usize {
    if copies {
        return (COPIED / row.max(1)).clamp(STEPS, COPIES);
    }
    let fit = if plan.is_mixed() { BYTES / row.max(1) } else { STEPS };
    (fit.min(STEPS) / assembly.steps().max(1)).max(1)
}

impl Feed {
    /// Puts the rows of a piece into `rows`, and into `picks`, too, if a ledger counts them.
    pub(super) fn numbers(&self, number: u64, from: usize, to: usize, picks: &mut Vec<Pick>, rows: &mut Vec<u64>) {
        self.plan.numbers(number, from, to, rows);
        picks.clear();
        if self.shared.book.is_some() {
            picks.extend(rows.iter().map(|row| Pick { row: *row, bits: RandomBits::default() }));
        }
    }
}
