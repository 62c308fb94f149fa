//! What the batch lacks that a consumer waits for: read off where its rows are, from the hand-off back to the files.
//! Looks at the next batch alone, and only while somebody waits for it.

use std::time::Duration;

use gristmill_runtime::runtime::handoff::Taken;
use gristmill_runtime::runtime::scheduler::Lane;

use super::line::LaneFold;
use super::{Chain, Inner};
use crate::pipeline::chain::pieces::Outgoing;
use crate::pipeline::draw::branch::{Branch, Phase};
use crate::pipeline::loader::output::Delivery;
use crate::pipeline::watch::stall::{Cause, Lack, Totals, Work};

impl Chain {
    /// Takes from the hand-off, and notes what was waited for.
    pub(super) fn take(&self, wait: Option<Duration>) -> Taken<Delivery> {
        let taken = self.handoff.take(Some(Duration::ZERO));
        if !matches!(taken, Taken::Nothing) || wait == Some(Duration::ZERO) {
            return taken;
        }
        let inner = self.lock();
        let begun = self.stall.begin(self.lacks(&inner));
        drop(inner);
        let taken = self.handoff.take(wait);
        self.stall.end(&begun, self.work_done());
        taken
    }

    /// No more batches are given.
    pub(in crate::pipeline) fn close(&self) {
        self.handoff.close();
        self.stall.over();
    }

    /// What was waited for so far.
    pub(in crate::pipeline) fn waited(&self) -> Totals {
        self.stall.totals(self.work_done())
    }

    /// Nanoseconds of gathering, decoding, copying and encoding.
    fn work_done(&self) -> Work {
        let decoding = self
            .branch_totals
            .iter()
            .map(|totals| totals.decoding.nanos() + totals.passes.iter().map(|pass| pass.busy.nanos()).sum::<u64>());
        [0, decoding.sum(), self.totals.filling.nanos(), self.totals.encoding.nanos()]
    }

    /// Something went a step further: notes what the batch lacks now, if a consumer waits for it.
    pub(super) fn further(&self, inner: &Inner) {
        if self.stall.is_hungry() {
            self.stall.turn(self.lacks(inner));
        }
    }

    /// A task may be run, and nobody runs it: all workers do others, or none of them has a core.
    fn unmanned(&self, lane: Lane) -> Lack {
        match lane {
            _ if self.stall.is_idle(lane) => Lack::Of(Cause::Core),
            Lane::Work => Lack::Worker,
            Lane::Read => Lack::Of(Cause::Storage),
        }
    }

    fn lacks(&self, inner: &Inner) -> Lack {
        let fold = &inner.fold;
        if inner.outbox.is_some() || self.handoff.is_closed() || self.handoff.counts().waiting > 0 {
            return Lack::Of(Cause::Handoff);
        }
        if fold.refills.is_still() || !inner.has_begun() {
            return Lack::Of(Cause::Pool);
        }
        if let Some(Outgoing::Batch(batch)) = fold.outgoing.front()
            && batch.closed.is_some()
        {
            return match fold.pieces.front().filter(|piece| piece.batch == batch.number) {
                Some(_) if fold.urgent_refill().is_some() => Lack::Of(Cause::Pool),
                Some(_) if inner.encoding >= self.plan.ceiling => Lack::Of(Cause::Encode),
                Some(_) if fold.fills.is_empty() && !fold.has_ready_piece() => Lack::Of(Cause::Copy),
                Some(_) => self.unmanned(Lane::Work),
                None => Lack::Of(Cause::Encode),
            };
        }
        // No row leaves before the reservoirs of all lanes are full.
        if !fold.lanes.iter().all(LaneFold::gives) {
            return Lack::Of(Cause::Pool);
        }
        let lane = &fold.lanes[fold.turn()];
        let Some(input) = lane.join.choose() else { return self.unmanned(Lane::Work) };
        let branch = inner.branches.get(fold.turn() * self.plan.inputs() + input);
        branch.map_or(Lack::Worker, |branch| self.lacks_rows(inner, branch))
    }

    /// What the front of an input lacks.
    fn lacks_rows(&self, inner: &Inner, branch: &Branch) -> Lack {
        let Some(front) = branch.window.front() else {
            // Readers draw, too.
            let draws = branch.drawer.is_some() && !branch.dry;
            let is_limited = branch.drawer.as_ref().is_some_and(|drawer| drawer.awaits_arrivals().is_some());
            return match draws {
                true => self.unmanned(Lane::Read),
                false if is_limited => Lack::Of(Cause::Arrivals),
                false => Lack::Of(Cause::Pool),
            };
        };
        match &front.phase {
            Phase::Reading => Lack::Of(Cause::Storage),
            Phase::Planned if self.shared.outages.rests(front.source) => Lack::Of(Cause::Storage),
            Phase::Planned => self.unmanned(Lane::Read),
            Phase::Busy => Lack::Of(Cause::Decode),
            // Slots are free again once rows are encoded.
            Phase::Done(_) if inner.fold.free.is_empty() && inner.fold.pieces.is_empty() => Lack::Of(Cause::Encode),
            _ => self.unmanned(Lane::Work),
        }
    }
}
