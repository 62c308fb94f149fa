//! The read lane: plans tickets and fetches the stored bytes of the oldest one that has none yet.
//! Decodes nothing; a chunk known to be bad is answered without touching its file.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_format::source::Chunk;
use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::scheduler::Lane;

use super::decode::Use;
use super::refill::{For, Step};
use super::settle::empty_lane;
use super::{Chain, Fault, Inner, Shared};
use crate::pipeline::draw::branch::{Block, Phase};
use crate::pipeline::draw::drawer::Drawer;
use crate::pipeline::draw::drawer::first::{Begun, Opening};
use crate::pipeline::draw::event::Event;
use crate::pipeline::draw::verdict::Scope;
use crate::pipeline::resume::vanished::Missing;

impl Chain {
    pub(super) fn read_one(&self) -> bool {
        let mut inner = self.lock();
        let inputs = self.plan.inputs();
        for input in 0..inputs {
            // Parts of a state may be of before and after the first scan: any of the lanes may have yet to begin.
            let mut lanes = inner.branches.iter().skip(input).step_by(inputs);
            let rests = |id| self.shared.outages.rests(id);
            let begins =
                lanes.any(|branch| branch.drawer.is_none() && !branch.starting && !branch.lacking.is_some_and(rests));
            if !begins {
                continue;
            }
            if inner.branches[input].roster.ready() {
                inner.branches.iter_mut().skip(input).step_by(inputs).for_each(|branch| branch.starting = true);
                drop(inner);
                self.begin(input);
                return true;
            }
            let stopped = || self.shared.stop.load(Ordering::Relaxed);
            if let Some(error) = inner.branches[input].roster.unscanned().filter(|_| !stopped())
                && !inner.fold.ended
            {
                self.fail(&mut inner, error);
                return false;
            }
        }
        // What waiting batches lack of a restored reservoir comes before new draws.
        let Some(inner) = self.fetch_again(inner, For::Batches) else { return true };
        let due = !inner.fold.ended && inner.fold.refills.has_turn(Step::Fetch);
        let Some(mut inner) = (if due { self.fetch_again(inner, For::Later) } else { Some(inner) }) else {
            return true;
        };
        let ahead = self.ahead();
        let (mut fault, mut more) = (None, false);
        let Inner { branches, spare_chunks, fold, .. } = &mut *inner;
        for branch in branches.iter_mut().filter(|_| !fold.ended) {
            let planned = branch.admit(self.shared.journal.as_ref());
            match planned.and_then(|_| branch.plan(ahead, self.shared.journal.as_ref(), spare_chunks)) {
                Ok(left_off) => more |= left_off,
                Err(error) => fault = Some(error),
            }
        }
        if let Some(error) = fault {
            self.fail(&mut inner, error);
            return false;
        }
        let (urgent, ended) = (inner.urgent(), inner.fold.ended);
        let oldest = inner.branches.iter_mut().enumerate().filter(|_| !ended).filter_map(|(b, branch)| {
            let head = branch.head;
            let (number, _) = branch.next_to_fetch()?;
            Some((urgent != Some((b, number)), number - head, b))
        });
        let Some((_, _, b)) = oldest.min() else {
            self.settle(&mut inner);
            let later = !inner.fold.ended && self.fetch_again(inner, For::Later).is_none();
            return more || later;
        };
        let unread = inner.branches[b].window.iter().rev().take_while(|ticket| matches!(ticket.phase, Phase::Planned));
        let wakes = more || unread.count() > self.read_span();
        let branch = &mut inner.branches[b];
        let roster = Arc::clone(&branch.roster);
        let Some((number, ticket)) = branch.next_to_fetch() else {
            return false;
        };
        ticket.phase = Phase::Reading;
        let (id, chunk, open) = (ticket.source, ticket.draw.at.chunk, ticket.open.clone());
        let (of, taken) = (Use { branch: b, id, draw: ticket.draw, keep: ticket.keep, frames: None }, ticket.taken);
        let own = branch.plan.number;
        inner.fold.refills.ticket(Step::Fetch);
        self.further(&inner);
        drop(inner);
        let known = self.shared.verdicts.of(own, id, chunk);
        let unknown = known.is_none();
        let mut refused = false;
        let read = self.branch_totals[b].reading.during(|| match known {
            Some(error) => Err(match &open {
                Some(source) => source.place(error, chunk as usize),
                None => error.in_source(roster.path(id)),
            }),
            None => {
                let source = match open {
                    Some(source) => source,
                    None => roster.open(id).map_err(as_format)?,
                };
                match self.look(of, taken, &source, &roster) {
                    Ok(None) => {}
                    Ok(Some(phase)) => return Ok(phase),
                    Err(error) => {
                        self.fail(&mut self.lock(), error);
                        return Ok(Phase::Busy);
                    }
                }
                let mut inner = self.lock();
                let Some(mut bytes) =
                    inner.stored(source.stored_bytes(chunk as usize), |inner| inner.urgent() == Some((b, number)))
                else {
                    if let Some(ticket) = inner.branches[b].ticket(number) {
                        (ticket.phase, ticket.open) = (Phase::Planned, Some(source));
                    }
                    (refused, inner.room.refused) = (true, true);
                    return Ok(Phase::Planned);
                };
                drop(inner);
                if wakes {
                    // More than one thread can read before the decoders have to wait.
                    self.shared.signal.notify(Lane::Read);
                }
                source.fetch(chunk as usize, &self.shared.limits, &mut bytes)?;
                bytes.takes(bytes.capacity());
                Ok(Phase::Read(source, bytes))
            }
        });
        if refused {
            return more;
        }
        if let Ok(Phase::Read(_, bytes)) = &read {
            self.branch_totals[b].stored_bytes.add(bytes.len() as u64);
        }
        // What was moved just now is under its new name in a moment: the ticket waits for that, too.
        if let Err(error) = &read
            && unknown
            && roster.may_have_moved(id, error)
        {
            self.shared.outages.rest(id);
            if let Some(ticket) = self.lock().branches[b].ticket(number) {
                ticket.phase = Phase::Planned;
            }
            return true;
        }
        // What was not read gives no verdict: the ticket waits in its place until it can be.
        if let Err(error) = &read
            && error.kind().is_of_reading()
        {
            let waits = self.shared.outages.failed(id, error);
            let mut inner = self.lock();
            if let Some(ticket) = inner.branches[b].ticket(number) {
                ticket.phase = Phase::Planned;
            }
            if let Err(error) = waits
                && !inner.fold.ended
            {
                self.fail(&mut inner, error);
            }
            return true;
        }
        self.shared.outages.over(id, read.is_ok());
        let phase = match read {
            Ok(phase) => phase,
            Err(error) => Phase::Done(self.bad(b, id, chunk, (Scope::Bytes, error), Counted::default())),
        };
        let mut inner = self.lock();
        if let Some(ticket) = inner.branches[b].ticket(number) {
            (ticket.phase, ticket.open) = (phase, None);
        }
        self.further(&inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        true
    }

    /// Takes what the first scan found into the windows of one input, in every lane that has yet to begin.
    fn begin(&self, input: usize) {
        let inputs = self.plan.inputs();
        let inner = self.lock();
        let begin = inner.branches.iter().skip(input).step_by(inputs).filter(|branch| branch.drawer.is_none());
        let (plans, later): (Vec<_>, Vec<_>) = begin.map(|branch| (Arc::clone(&branch.plan), branch.later())).unzip();
        let (roster, ingesting) =
            (Arc::clone(&inner.branches[input].roster), Arc::clone(&inner.branches[input].ingesting));
        let skip = inner.branches[input].missing == Missing::Skip;
        let drawn = inner.branches.iter().skip(input).step_by(inputs).any(|branch| branch.not_before > 0);
        drop(inner);
        let files = roster.first_files();
        let Shared { root, anchors, stop, outages, .. } = &self.shared;
        let opening = Opening { stop, outages, skip, drawn, later: &later };
        let first = ingesting.during(|| Drawer::first(&plans, *root, &roster, &files, anchors, opening));
        let (drawers, found) = match first {
            Ok(Begun::Whole(drawers, found)) => (drawers, found),
            Ok(Begun::Lacks(id)) => {
                for branch in self.lock().branches.iter_mut().skip(input).step_by(inputs) {
                    (branch.starting, branch.lacking) = (false, Some(id));
                }
                return;
            }
            Err(error) => return self.fail(&mut self.lock(), error),
        };
        // Lanes that are not full miss the same files.
        let lacking: Vec<_> = drawers.iter().zip(&plans).filter(|((_, gone), _)| !gone.is_empty()).collect();
        let alike = lacking.chunk_by(|((_, gone), _), ((_, other), _)| gone == other);
        let gone = alike.map(|alike| Event::Gone {
            pool: Some(alike[0].1.stage.clone()),
            lanes: alike.iter().filter_map(|(_, plan)| Some(plan.lane?.index)).collect(),
            loader: roster.loader.clone(),
            files: alike[0].0.1.clone(),
        });
        let gone: Vec<Event> = gone.collect();
        drawers.iter().flat_map(|(_, gone)| gone).for_each(|id| roster.leaves(*id));
        if let Some(journal) = self.shared.journal.as_ref().filter(|_| !gone.is_empty()) {
            let mut journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let written = journal.append(&gone);
            if let Err(e) = written.map_err(|e| Error::path(journal.path(), &e)) {
                return self.fail(&mut self.lock(), e);
            }
        }
        let empty = drawers.iter().zip(&plans).find(|((drawer, _), _)| found && drawer.live() == 0);
        let empty = empty.and_then(|(_, plan)| Some((plan.stage.clone(), plan.lane?)));
        let mut inner = self.lock();
        let begin = inner.branches.iter_mut().skip(input).step_by(inputs).filter(|branch| branch.drawer.is_none());
        for (branch, (drawer, gone)) in begin.zip(drawers) {
            branch.gone.extend(gone.into_iter().map(|id| (id, None)));
            branch.drawer = Some(drawer);
        }
        if let Some((stage, lane)) = empty.filter(|_| !self.shared.stop.load(Ordering::Relaxed)) {
            self.fail(&mut inner, Error::Stage { stage, message: empty_lane(lane) });
        }
        // Rows of other inputs may have waited for this scan.
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Read);
    }

    pub(super) fn bad(
        &self,
        branch: usize,
        source: u64,
        index: u32,
        (scope, error): Fault,
        chunk: Counted<Chunk>,
    ) -> Arc<Block> {
        self.shared.verdicts.add(scope, source, index, &error);
        self.branch_totals[branch].dropped().insert((source, index));
        Arc::new(Block { chunk, source, index, fault: Some(error), ..Block::default() })
    }
}

fn as_format(error: Error) -> gristmill_format::Error {
    match error {
        Error::Format(error) => error,
        other => gristmill_format::Error::new(gristmill_format::Kind::Missing, other.to_string()),
    }
}

#[cfg(test)]
mod tests;
