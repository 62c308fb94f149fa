//! Batches that were handed out -> those that count as delivered: at once, or when a step uses them.

use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::scheduler::Lane;

use super::Feed;
use crate::pipeline::ledger::Digests;

impl Feed {
    /// Batches that do not count as delivered yet.
    pub(in crate::pipeline::index) fn uncounted(&self) -> MutexGuard<'_, VecDeque<(u64, Digests)>> {
        self.uncounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the oldest batch as delivered that was handed out and does not count yet; nothing where there is none.
    ///
    /// Errors: it cannot be noted in the ledger, and still does not count.
    pub(in crate::pipeline::index) fn count(&self) -> Result<()> {
        let mut uncounted = self.uncounted();
        let Some((number, digests)) = uncounted.front() else { return Ok(()) };
        self.shared.book.as_ref().map_or(Ok(()), |book| book.delivered("", *number, digests))?;
        self.took(*number);
        uncounted.pop_front();
        Ok(())
    }

    /// Batch `number` is delivered.
    pub(super) fn took(&self, number: u64) {
        self.lock().delivered = number + 1;
        self.taken();
    }

    /// A batch was taken, or counts. Wakes a worker if there is much to make.
    pub(super) fn taken(&self) {
        if self.handoff.is_half_empty() {
            self.shared.signal.notify_one(Lane::Work);
        }
    }
}
