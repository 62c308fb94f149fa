//! Batches that were handed out -> those that count as delivered: at once, or when a step uses them.

use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::scheduler::Lane;

use super::super::fetch::Fetched;
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
        let mut inner = self.lock();
        inner.delivered = number + 1;
        let delivered = inner.delivered;
        let is_due = |fetched: &Fetched| self.keeps_part || fetched.is_due(delivered, self.plan.batches());
        if inner.fetched.as_ref().is_some_and(is_due) {
            self.shared.signal.notify_one(Lane::Read);
        }
        drop(inner);
        self.shared.signal.notify_one(Lane::Work);
    }
}
