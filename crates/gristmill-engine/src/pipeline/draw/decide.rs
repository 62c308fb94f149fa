//! Draws -> tickets, in the order of draws: facts are looked up, what must be weighed waits for it, rejects go.
//! Serial and without a byte; the weighing itself is a task that runs elsewhere.

use std::sync::Arc;

use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Weigher, total};
use gristmill_runtime::runtime::aggregate::Merge;
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::period::Statistics;
use gristmill_stages::stage::Draw;
use gristmill_stages::stage::load::Source;
use gristmill_stages::stage::pool::{Candidate, Contents, Decision};

use crate::pipeline::draw::branch::{Branch, Phase, Ticket};

impl Branch {
    /// Takes what the side index knows of a drawn chunk, where the decision on it needs that. Returns its source, if it
    /// was opened.
    pub(in crate::pipeline) fn look_up(
        &mut self,
        draw: Draw,
        id: u64,
        open: Option<Arc<Source>>,
    ) -> Option<Arc<Source>> {
        let (Some(accept), Some(plan)) = (&self.accept, &self.plan.accept) else { return open };
        if !accept.waits_for(draw.place) {
            return open;
        }
        let source = open.or_else(|| self.roster.open(id).ok())?;
        if let Some(contents) = recorded(&*plan.weigher, &source, draw.at.chunk as usize) {
            self.learn(draw.place, contents);
        }
        Some(source)
    }

    /// Remembers what was found in a chunk, and counts its weight the first time.
    pub(in crate::pipeline) fn learn(&mut self, place: u64, contents: Contents) {
        if self.accept.as_mut().is_some_and(|accept| accept.learn(place, contents)) {
            self.weights.absorb(Statistics::of(f64::from(contents.weight)));
        }
    }

    /// Decides on draws in their order, as far as the weights are known. Whether readers have something to do that they had not: there
    /// is room for more draws, or a chunk is to be fetched that waited for what was decided.
    pub(in crate::pipeline) fn decide(&mut self, spare: &mut Vec<Counted<Chunk>>) -> bool {
        let Some(accept) = &mut self.accept else { return false };
        let (mut rejected, before) = (false, self.decided);
        while let Some(ticket) = self.window.get_mut(self.decided) {
            let place = ticket.draw.place;
            if accept.waits_for(place) {
                // A bad chunk has no weight: it is an empty block each time it is drawn.
                if !matches!(ticket.phase, Phase::Done(_)) {
                    break;
                }
                ticket.after_good = std::mem::take(&mut self.rejected_last);
                ticket.taken = true;
                self.decided += 1;
                continue;
            }
            let candidate = Candidate { draw: ticket.number, place, floor: ticket.draw.floor };
            let decision = match accept.caches() {
                true => self.caching.during(|| accept.decide(candidate)),
                false => accept.decide(candidate),
            };
            match decision {
                Decision::Rejected => {
                    (rejected, self.rejected_last) = (true, true);
                    if let Some(Phase::Weighed(_, chunk)) = self.window.remove(self.decided).map(|t| t.phase) {
                        spare.push(chunk);
                    }
                    continue;
                }
                Decision::Hopeless => {
                    ticket.phase = Phase::Hopeless;
                    self.dry = true;
                }
                Decision::Taken { use_count, cached, keep, lost } => {
                    (ticket.draw.use_count, ticket.keep, ticket.lost) = (use_count, keep, lost);
                    if cached {
                        ticket.phase = Phase::Cached;
                    }
                }
            }
            ticket.after_good = std::mem::take(&mut self.rejected_last);
            ticket.taken = true;
            self.decided += 1;
        }
        rejected || self.decided > before && self.next_to_fetch().is_some()
    }

    /// The oldest ticket whose stored bytes to fetch: one that is taken, or that needs its weight first. Of
    /// several draws of one chunk only the first is weighed. What could not be read a moment ago rests.
    pub(in crate::pipeline) fn next_to_fetch(&mut self) -> Option<(u64, &mut Ticket)> {
        let wanted = |i: usize, ticket: &Ticket| {
            matches!(ticket.phase, Phase::Planned)
                && (ticket.taken || self.waits_for(ticket) && !self.weighs_before(i, ticket.draw.place))
                && !self.outages.rests(ticket.source)
        };
        let found = self.window.iter().enumerate().position(|(i, ticket)| wanted(i, ticket))?;
        self.window.get_mut(found).map(|ticket| (ticket.number, ticket))
    }

    /// The oldest ticket, among the first `within`, that a worker can do something for.
    pub(in crate::pipeline) fn next_to_decode(&mut self, within: usize) -> Option<(u64, &mut Ticket)> {
        let ready = |ticket: &Ticket| match ticket.phase {
            Phase::Read(..) => ticket.taken || self.waits_for(ticket),
            Phase::Weighed(..) => ticket.taken,
            _ => false,
        };
        let found = self.window.iter().take(within).position(ready)?;
        self.window.get_mut(found).map(|ticket| (ticket.number, ticket))
    }

    fn waits_for(&self, ticket: &Ticket) -> bool {
        self.accept.as_ref().is_some_and(|accept| accept.waits_for(ticket.draw.place))
    }

    fn weighs_before(&self, i: usize, place: u64) -> bool {
        self.window.iter().take(i).any(|ticket| !ticket.taken && ticket.draw.place == place)
    }
}

/// What the side index knows of a chunk.
fn recorded(weigher: &dyn Weigher, source: &Source, chunk: usize) -> Option<Contents> {
    let frames = source.frames(chunk);
    let weight = match weigher.uniform() {
        Some(weight) => total(std::iter::repeat_n(weight, frames? as usize)),
        None => source.weight(weigher.id(), chunk)?,
    };
    Some(Contents { frames: frames.unwrap_or(0), weight })
}
