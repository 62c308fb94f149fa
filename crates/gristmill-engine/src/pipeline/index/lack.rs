//! What the next batch of rows lacks that a consumer waits for: what was not fetched, or what the workers do.
//! Looks at the next batch alone, and only while somebody waits for it.

use std::time::Duration;

use gristmill_runtime::runtime::handoff::Taken;
use gristmill_runtime::runtime::scheduler::Lane;

use super::feed::{Feed, Inner, Made};
use crate::pipeline::watch::stall::{Cause, Lack, Totals, Work};

impl Feed {
    /// Takes from the hand-off, and notes what was waited for.
    pub(super) fn take(&self, wait: Option<Duration>) -> Taken<Made> {
        self.stall.wanted(|| Duration::ZERO);
        let taken = self.handoff.take(Some(Duration::ZERO));
        let taken = if matches!(taken, Taken::Nothing) && wait != Some(Duration::ZERO) {
            let inner = self.lock();
            let begun = self.stall.begin(self.lacks(&inner));
            drop(inner);
            let taken = self.handoff.take(wait);
            self.stall.end(&begun, self.work_done());
            taken
        } else {
            taken
        };
        if matches!(taken, Taken::Closed) {
            self.stall.over();
        }
        taken
    }

    /// What was waited for so far.
    pub(super) fn waited(&self) -> Totals {
        self.stall.totals(self.work_done())
    }

    /// Nanoseconds of gathering, decoding, copying and encoding.
    fn work_done(&self) -> Work {
        [self.totals.gathering.nanos(), 0, 0, self.totals.encoding.nanos()]
    }

    /// Something went a step further: notes what the batch lacks now, if a consumer waits for it.
    pub(super) fn further(&self, inner: &Inner) {
        if self.stall.is_hungry() {
            self.stall.turn(self.lacks(inner));
        }
    }

    fn lacks(&self, inner: &Inner) -> Lack {
        let counts = self.handoff.counts();
        if counts.waiting > 0 || self.handoff.is_closed() {
            return Lack::Of(Cause::Handoff);
        }
        let fetches = inner.open.is_empty() && inner.fetched.as_ref().is_some_and(|fetched| !fetched.has(inner.next));
        match if fetches { Lane::Read } else { Lane::Work } {
            lane if self.stall.is_idle(lane) => Lack::Of(Cause::Core),
            Lane::Read => Lack::Of(Cause::Storage),
            Lane::Work => Lack::Worker,
        }
    }
}
