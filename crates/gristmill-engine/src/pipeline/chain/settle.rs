//! Under the lock: blocks in ticket order become rows of batches, complete batches go to the consumer.
//! Never waits and never copies a frame; when something is missing it stops and is called again.

use std::sync::Arc;

use gristmill_format::Kind;
use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::events::{Event, Level};
use gristmill_runtime::runtime::handoff::WhenFull;
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_stages::config::BadChunks;
use gristmill_stages::stage::batch::WhenPartial;
use gristmill_stages::stage::lane::HashLane;

use super::line::LaneFold;
use super::{Chain, Inner, keep};
use crate::pipeline::chain::pieces::Outgoing;
use crate::pipeline::draw::barren;
use crate::pipeline::draw::branch::{Block, Branch, Phase};
use crate::pipeline::draw::drawer::Drawer;
use crate::pipeline::loader::output::Batch;
use crate::pipeline::watch::notices;

/// The error where no draw was taken for a very long time.
const HOPELESS: &str = "a million draws in a row were rejected: by hanse_sampling_threshold and hanse_sampling_gamma \
                        no chunk of this pool has a chance; lower one of them";

/// How to wait where there is no game.
const WAIT: &str = "To wait for games that are yet to come, set watch=True, or --wait";

impl Chain {
    /// Folds whatever is ready and hands over what is complete.
    pub(super) fn settle(&self, inner: &mut Inner) {
        let Inner { branches, spare_chunks, .. } = inner;
        if branches.iter_mut().fold(false, |rejected, branch| rejected | branch.decide(spare_chunks)) {
            self.shared.signal.notify(Lane::Read);
        }
        while let Some(slot) = inner.fold.discarded() {
            self.slots.discard(slot);
            inner.fold.free.push(slot);
        }
        let passed = inner.fold.delivered.batch;
        if !inner.fold.refills.is_still() && inner.has_begun() {
            if self.fill(inner) {
                while !inner.fold.ended && self.fold_one(inner) {}
            }
            inner.fold.flush();
        }
        if inner.fold.delivered.batch != passed {
            inner.forget();
        }
        self.break_off(inner);
        if inner.fold.refills.called() {
            self.shared.signal.notify(Lane::Read);
        }
        if std::mem::take(&mut inner.room.refused) {
            self.shared.signal.notify(Lane::Read);
        }
        self.hand_over(inner);
        self.further(inner);
    }

    /// Fills the reservoirs of several lanes together, whosever turn it is. Returns whether rows may leave: a lane whose filling fails ends
    /// the stream in place of its first batch, whichever lane is quicker.
    fn fill(&self, inner: &mut Inner) -> bool {
        let lanes = inner.fold.lanes.len();
        for lane in (0..lanes).filter(|_| lanes > 1) {
            while !inner.fold.ended && !inner.fold.lanes[lane].gives() && self.step(inner, lane) {}
        }
        lanes == 1 || inner.fold.lanes.iter().all(LaneFold::gives)
    }

    /// One step of the lane whose turn it is; `false` when it must wait for something.
    fn fold_one(&self, inner: &mut Inner) -> bool {
        let fold = &mut inner.fold;
        if fold.outgoing.len() > self.plan.capacity.max(2) {
            return false;
        }
        if !fold.is_open() {
            let waiting = if self.plan.when_full == WhenFull::Block { self.handoff.counts().waiting } else { 0 };
            if fold.undelivered() + waiting >= self.plan.capacity.max(2) {
                return false;
            }
            match self.sheets.take() {
                Ok(sheet) => fold.open(sheet),
                Err(e) => {
                    let text = format!("no memory for a batch: {e}");
                    self.fail(inner, Error::Stage { stage: self.plan.stage.clone(), message: text });
                    return true;
                }
            }
        }
        let turn = inner.fold.turn();
        self.step(inner, turn)
    }

    /// One step of a lane whose turn it is, or whose reservoir is not full; `false` when it must wait for something.
    fn step(&self, inner: &mut Inner, lane: usize) -> bool {
        let Inner { branches, fold, spare_chunks, .. } = inner;
        let inputs = self.plan.inputs();
        if let Some((at, message)) = fold.lanes[lane].stuck() {
            self.fail(inner, Error::Stage { stage: self.plan.steps[at].stage.clone(), message });
            return true;
        }
        let Some(chosen) = fold.lanes[lane].join.choose().map(|input| lane * inputs + input) else {
            if !fold.drain(lane, || positions(branches)) {
                let partial = self.plan.partial;
                if partial == WhenPartial::Pad {
                    fold.pad();
                }
                fold.end(partial != WhenPartial::Drop, positions(branches));
            }
            return true;
        };
        let branch = &mut branches[chosen];
        let Some(front) = branch.window.front_mut() else {
            return branch.dry && self.exhausted(inner, chosen);
        };
        if !front.taken {
            return false;
        }
        if std::mem::take(&mut front.after_good) {
            branch.bad_run = 0;
        }
        for row in front.lost.drain(..).flat_map(|lost| lost.rows()).filter_map(|row| branch.cached.remove(&row)) {
            fold.discard(row);
        }
        let (number, place, use_count) = (front.number, front.draw.place, front.draw.use_count);
        let block = match &front.phase {
            Phase::Done(block) => Arc::clone(block),
            Phase::Cached => return self.fold_cached(inner, chosen),
            Phase::Hopeless => {
                let (stage, message) = (branch.plan.stage.clone(), HOPELESS.to_owned());
                self.fail(inner, Error::Stage { stage, message });
                return true;
            }
            _ => return false,
        };
        let (live, left) =
            (branch.drawer.as_ref().map_or(0, Drawer::live), block.rows.len().saturating_sub(branch.taken));
        // Where rows may be dropped, it is not known before the last one how many come out.
        if left == 0 || !self.plan.drops() {
            fold.drawn(number, live, left);
        }
        // More were taken than there are where a chunk went bad meanwhile that a state had half taken.
        if branch.taken >= block.rows.len() {
            self.pop(branch);
            let verdict = judge(branch, &block, self.shared.verdicts.policy);
            keep(spare_chunks, block);
            match verdict {
                Verdict::Fine => {}
                Verdict::Raise(error) => fold.fault(error),
                Verdict::NoneGood(error) => {
                    notices::failed(&self.shared.events, &error);
                    fold.fault(error);
                }
                Verdict::AllBad(error) => self.fail(inner, error),
            }
            return true;
        }
        let input = u32::try_from(chosen).unwrap_or(0);
        if branch.taken >= block.given {
            let Some(row) = fold.hold(input, &block, branch.taken) else { return false };
            let ahead = branch.taken - block.given + 1;
            branch.cached.insert((place, use_count.wrapping_add(ahead as u16)), row);
            branch.taken += 1;
            return true;
        }
        // With one input, the rows of a block follow each other until something is missing.
        while !fold.free.is_empty() && branches[chosen].taken < block.given {
            let gives = fold.lanes[lane].is_full();
            if gives && (!fold.is_open() || fold.turn() != lane) {
                break;
            }
            let alone = inputs > 1 || gives && fold.lanes.len() > 1;
            let at = branches[chosen].taken;
            let rows = if alone { 1 } else { fold.most(lane, block.given - at) };
            branches[chosen].taken += rows;
            fold.rows((lane, input), &block, at..at + rows, || positions(branches));
            if alone {
                break;
            }
        }
        if branches[chosen].taken == block.rows.len() {
            fold.drawn(number, live, 0);
            // The chunk is used up: the next one of this lane can be decoded before its next turn.
            self.pop(&mut branches[chosen]);
            branches[chosen].bad_run = 0;
            keep(spare_chunks, block);
        }
        !fold.free.is_empty()
    }

    /// The front of an input is a use whose row the cache holds: it is given out without a copy.
    fn fold_cached(&self, inner: &mut Inner, chosen: usize) -> bool {
        let Inner { branches, fold, .. } = inner;
        let branch = &mut branches[chosen];
        let Some(front) = branch.window.front_mut() else { return false };
        let held = branch.cached.remove(&(front.draw.place, front.draw.use_count));
        match held {
            Some(row) if branch.taken == 0 => {
                branch.taken = 1;
                branch.bad_run = 0;
                fold.give(chosen / self.plan.inputs(), row, || positions(branches));
                return true;
            }
            // The row was given out before the state that this run resumes from.
            Some(row) => fold.discard(row),
            None if branch.taken > 0 => {}
            // The chunk was bad when its rows were to be kept: so it is now.
            None => {
                front.phase = Phase::Planned;
                self.shared.signal.notify(Lane::Read);
                return false;
            }
        }
        self.pop(branch);
        true
    }

    /// The front of an input is done with; readers are woken when there is room for several more.
    fn pop(&self, branch: &mut Branch) {
        branch.pop();
        if branch.window.len() + self.read_span() == self.ahead() {
            self.shared.signal.notify(Lane::Read);
        }
    }

    /// An input has nothing left: what now? `false` while more may come.
    fn exhausted(&self, inner: &mut Inner, chosen: usize) -> bool {
        let branch = &mut inner.branches[chosen];
        let Some(drawer) = &mut branch.drawer else { return false };
        if !drawer.ends() || drawer.live() == 0 {
            let limited = drawer.awaits_arrivals();
            let (log, grows) = (branch.roster.log(), branch.may_grow());
            // A log that replays an earlier run brings what it brought then.
            let is_barren = branch.replay.is_empty() && (log.is_barren() || !grows && log.holds_none());
            if grows && (!is_barren || log.waits()) {
                if is_barren {
                    branch.roster.starve();
                }
                return false;
            }
            let (stage, root) = (branch.plan.stage.clone(), branch.roster.loader.clone());
            let message = match branch.plan.lane {
                _ if let Some([draws, came]) = limited => format!(
                    "`rate_limit` allows no more draws: {draws} were made of {came} chunks, and none will come. Raise \
                     `samples_per_insert`, lower `min_diff` or `min_size_to_sample`, or leave `rate_limit` out for files that do not arrive"
                ),
                _ if is_barren && grows && !barren::is_file(log) => format!("{}. {WAIT}", barren::instead(log)),
                _ if is_barren => barren::instead(log),
                Some(lane) => empty_lane(lane),
                None => {
                    let faults = branch.roster.log().faults().faults;
                    let latest = faults.messages().last().map(|fault| format!("; the latest fault: {fault}"));
                    let none =
                        format!("there is no chunk to draw: the files of `{root}` hold none, and none will come");
                    none + &latest.unwrap_or_default()
                }
            };
            self.fail(inner, Error::Stage { stage, message });
            return true;
        }
        let (lane, input) = (chosen / self.plan.inputs(), chosen % self.plan.inputs());
        if inner.fold.lanes[lane].join.exhausted(input) {
            drawer.restart();
            branch.dry = false;
            self.shared.signal.notify(Lane::Read);
            return false;
        }
        true
    }

    /// Ends the chain with an error, after what is complete.
    pub(in crate::pipeline) fn fail(&self, inner: &mut Inner, error: Error) {
        notices::failed(&self.shared.events, &error);
        inner.fold.fault(error);
        inner.fold.end(false, Vec::new());
        self.hand_over(inner);
    }

    fn hand_over(&self, inner: &mut Inner) {
        loop {
            let delivery = match inner.outbox.take() {
                Some(held) => held,
                None => match inner.fold.ready() {
                    Some(Outgoing::Batch(batch)) => {
                        let (number, rows) = (batch.number, batch.closed.unwrap_or(0));
                        // Every piece let go of the sheet before it was counted as encoded: this is the last hold.
                        let Some(sheet) = Arc::into_inner(batch.sheet) else { continue };
                        self.totals.batches.add(1);
                        self.totals.rows.add(rows as u64);
                        let padded = self.plan.partial == WhenPartial::Pad;
                        let shown = if padded { self.plan.batch_size } else { rows };
                        Ok(Batch::new(number, rows, shown, self.sheets.share(sheet), self.tensors()))
                    }
                    Some(Outgoing::Fault(error)) => Err(error),
                    Some(Outgoing::End) => {
                        self.handoff.close();
                        let message = format!("the stream has ended after {} batches", self.totals.batches.get());
                        self.shared.events.add(Event::new(Level::Info, "ended", message).of(&self.plan.stage));
                        return;
                    }
                    None => return,
                },
            };
            if let Err(full) = self.handoff.offer(delivery) {
                inner.outbox = Some(full);
                return;
            }
        }
    }
}

/// Where the inputs stand: the draw whose rows come next, and how many of them were taken.
fn positions(branches: &[Branch]) -> Vec<(u64, usize)> {
    branches.iter().map(|branch| (branch.head, branch.taken)).collect()
}

/// The error where a lane has nothing to draw.
pub(super) fn empty_lane(lane: HashLane) -> String {
    let HashLane { index, of } = lane;
    format!("lane {index} of {of} has no chunk to draw: use fewer lanes, or more games")
}

enum Verdict {
    Fine,
    Raise(Error),
    /// All are bad, and others may come.
    NoneGood(Error),
    /// All are bad, and that is the end.
    AllBad(Error),
}

/// What a finished ticket means: a whole pass of bad chunks in a row is an error, and the end where nothing will come.
fn judge(branch: &mut Branch, block: &Block, policy: BadChunks) -> Verdict {
    let Some(fault) = &block.fault else {
        branch.bad_run = 0;
        return Verdict::Fine;
    };
    branch.bad_run += 1;
    let live = branch.drawer.as_ref().map_or(0, Drawer::live);
    if policy == BadChunks::Raise {
        let unfit = fault.kind() == Kind::Unfit;
        return Verdict::Raise(if unfit { Error::Unfit(fault.to_string()) } else { fault.clone().into() });
    }
    // From the first draw on, each of `live` draws is another chunk; a later run may begin in the middle of a pass.
    let pass = if branch.bad_run == branch.head { live } else { (2 * live).saturating_sub(1) };
    if branch.bad_run >= pass.max(1) {
        // Once: what lies there does not change from pass to pass.
        let first = branch.bad_run == branch.head;
        let instead = first.then(|| barren::else_here(branch.roster.log())).flatten();
        let instead = instead.map(|told| format!("; {told}")).unwrap_or_default();
        let message = format!("all {live} chunks are bad; the last one: {fault}{instead}");
        let error = match fault.kind() {
            Kind::Unfit => Error::Unfit(message),
            _ => Error::Stage { stage: branch.plan.stage.clone(), message },
        };
        // While files may still come or be mended, an event reports it and the stream continues.
        branch.bad_run = 0;
        return if branch.may_grow() { Verdict::NoneGood(error) } else { Verdict::AllBad(error) };
    }
    Verdict::Fine
}

#[cfg(test)]
mod tests;
