//! Draws -> decoded chunks in the order of their draws: a window of tickets, each answered by exactly one block.
//! Plans, and keeps what is in flight; reads and decodes nothing itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::metrics::Load;
use gristmill_runtime::runtime::period::Statistics;
use gristmill_stages::stage::load::Source;
use gristmill_stages::stage::pool::{Accept, Anchor, Lost};
use gristmill_stages::stage::{Draw, Row};

use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::deal::of_side;
use crate::pipeline::draw::drawer::first::unable;
use crate::pipeline::draw::drawer::{Admission, Census, Drawer};
use crate::pipeline::draw::event::{Event, SharedJournal};
use crate::pipeline::draw::left::has_left;
use crate::pipeline::draw::outage::{Outages, of_reading};
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::plan::BranchPlan;
use crate::pipeline::plan::acceptance::AcceptPlan;
use crate::pipeline::plan::ranks::key;
use crate::pipeline::resume::vanished::Missing;

/// A decoded chunk and the rows selected from it; empty, with the reason, where the chunk is bad.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Block {
    pub(in crate::pipeline) chunk: Counted<Chunk>,
    pub(in crate::pipeline) rows: Vec<u32>,
    /// What stands for the position of each row, where a step reads positions.
    pub(in crate::pipeline) keys: Vec<u64>,
    /// Whether the chunk holds just these rows, in their order.
    pub(in crate::pipeline) alone: bool,
    /// How many of the rows are handed out; those after them are for the cache.
    pub(in crate::pipeline) given: usize,
    /// Lasting id of the source, and the chunk's index in it.
    pub(in crate::pipeline) source: u64,
    pub(in crate::pipeline) index: u32,
    /// How its records become the chain's.
    pub(in crate::pipeline) conform: Option<Arc<Conform>>,
    pub(in crate::pipeline) fault: Option<gristmill_format::Error>,
}

/// How far a ticket is.
#[derive(Debug)]
pub(in crate::pipeline) enum Phase {
    Planned,
    /// A reader has it.
    Reading,
    /// A worker has it.
    Busy,
    Read(Arc<Source>, Counted<Vec<u8>>),
    /// Decoded for its weight; its rows are selected once it is taken.
    Weighed(Arc<Source>, Counted<Chunk>),
    /// The cache holds its row.
    Cached,
    Done(Arc<Block>),
    /// Too many draws were rejected before it: none will be taken.
    Hopeless,
}

/// One draw on its way.
#[derive(Debug)]
pub(in crate::pipeline) struct Ticket {
    /// Number of the draw; those that were rejected leave gaps.
    pub(in crate::pipeline) number: u64,
    pub(in crate::pipeline) draw: Draw,
    pub(in crate::pipeline) source: u64,
    pub(in crate::pipeline) open: Option<Arc<Source>>,
    /// Whether its chunk is handed out: decided in the order of draws.
    pub(in crate::pipeline) taken: bool,
    /// Whether a sound chunk was drawn and rejected just before.
    pub(in crate::pipeline) after_good: bool,
    /// How many of the next uses the cache keeps, and what it gives up.
    pub(in crate::pipeline) keep: u32,
    pub(in crate::pipeline) lost: Vec<Lost>,
    pub(in crate::pipeline) phase: Phase,
}

/// Draws between two copies of the drawer: the larger the window, the rarer.
const SNAPSHOT_DRAWS: u64 = 1024;

/// Copies of the drawer at any time, itself not counted.
const SNAPSHOTS: usize = 2;

/// How many draws ahead a journal notes: a pass of the window, within these bounds.
const LEAST_REACH: u64 = 64;
const MOST_REACH: u64 = 1024;

/// Draws that are planned in one go while the chain is locked.
const PLAN_STEPS: usize = 256;

/// One input of a chain while it runs.
#[derive(Debug)]
pub(in crate::pipeline) struct Branch {
    pub(in crate::pipeline) plan: Arc<BranchPlan>,
    pub(in crate::pipeline) roster: Arc<Roster>,
    /// Absent until the first scan is in.
    pub(in crate::pipeline) drawer: Option<Drawer>,
    pub(in crate::pipeline) starting: bool,
    /// Decides on draws, where not every one is taken.
    pub(in crate::pipeline) accept: Option<Accept>,
    /// Tickets of the window, from its front on, that are decided on.
    pub(in crate::pipeline) decided: usize,
    /// Whether the last draw that was decided on was rejected.
    pub(in crate::pipeline) rejected_last: bool,
    /// Slots of the cached positions, by place of the chunk and use.
    pub(in crate::pipeline) cached: HashMap<(u64, u16), Row>,
    anchors: Arc<Anchors>,
    pub(in crate::pipeline) outages: Arc<Outages>,
    /// What could not be read when the first scan was to be taken in.
    pub(in crate::pipeline) lacking: Option<u64>,
    /// Whether the run begins again without a state.
    pub(in crate::pipeline) begins_again: bool,
    /// Copies of the drawer as it was before some draws; the first is at or before the oldest mark.
    pub(in crate::pipeline) snapshots: VecDeque<Drawer>,
    pub(in crate::pipeline) admissions: VecDeque<Admission>,
    /// Admissions of an earlier run that are still to be made, at their own draws.
    pub(in crate::pipeline) replay: VecDeque<Admission>,
    /// How many of those, from the first on, a saved state has counted from the anchor.
    pub(in crate::pipeline) counted: usize,
    /// What is done where a file of an admission of an earlier run is gone.
    pub(in crate::pipeline) missing: Missing,
    /// Arrivals that were not taken in: those that the run before knew of, and those that cannot be read now.
    pub(in crate::pipeline) waiting: Vec<(u64, Option<u64>)>,
    /// Files that had left when they were to be taken in, each with the one that it replaces: they are taken in once they are back.
    pub(in crate::pipeline) gone: Vec<(u64, Option<u64>)>,
    /// Returns of files that were counted when it was last looked whether one of them is back.
    returns: Option<u64>,
    /// Nothing new is taken in before this draw: the run before may have made those below it.
    pub(in crate::pipeline) not_before: u64,
    /// The journal says that draws below this one may have been made.
    pub(in crate::pipeline) reached: u64,
    pub(in crate::pipeline) cursor: usize,
    /// Draw at the front of the window, and how many of its rows were taken.
    pub(in crate::pipeline) head: u64,
    pub(in crate::pipeline) taken: usize,
    pub(in crate::pipeline) window: VecDeque<Ticket>,
    /// Tickets planned since the start.
    pub(in crate::pipeline) drawn: u64,
    /// Nothing more to draw.
    pub(in crate::pipeline) dry: bool,
    /// Bad chunks in a row.
    pub(in crate::pipeline) bad_run: u64,
    pub(in crate::pipeline) decoding: usize,
    /// What the chunks weigh whose weight became known since the last look.
    pub(in crate::pipeline) weights: Statistics,
    /// Time spent on taking sources in, and on deciding what the cache keeps.
    pub(in crate::pipeline) ingesting: Arc<Load>,
    pub(in crate::pipeline) caching: Load,
    pub(in crate::pipeline) census: Census,
}

impl Branch {
    pub(in crate::pipeline) fn new(
        plan: Arc<BranchPlan>,
        roster: Arc<Roster>,
        (anchors, outages): (Arc<Anchors>, Arc<Outages>),
        root: u64,
    ) -> Self {
        let accept = |accept: &AcceptPlan| Accept::new(key(root, &plan.stage, plan.lane), accept.chance, accept.cache);
        Branch {
            accept: plan.accept.as_ref().map(accept),
            decided: 0,
            rejected_last: false,
            cached: HashMap::new(),
            anchors,
            outages,
            lacking: None,
            begins_again: false,
            counted: 0,
            plan,
            roster,
            drawer: None,
            starting: false,
            snapshots: VecDeque::new(),
            admissions: VecDeque::new(),
            replay: VecDeque::new(),
            missing: Missing::Refuse,
            waiting: Vec::new(),
            gone: Vec::new(),
            returns: None,
            not_before: 0,
            reached: 0,
            cursor: 0,
            head: 0,
            taken: 0,
            window: VecDeque::new(),
            drawn: 0,
            dry: false,
            bad_run: 0,
            decoding: 0,
            weights: Statistics::default(),
            ingesting: Arc::default(),
            caching: Load::default(),
            census: Census::default(),
        }
    }

    /// Takes in what arrived since the last call, at the next draw, and writes it to the journal first. `false` where a source
    /// that came before the next draw in an earlier run cannot be read now: nothing can be drawn before it can.
    ///
    /// Errors: the journal cannot be written, or a recorded source cannot be opened.
    pub(in crate::pipeline) fn admit(&mut self, journal: Option<&SharedJournal>) -> Result<bool> {
        let Some(drawer) = &mut self.drawer else { return Ok(true) };
        while let Some(next) = self.replay.front().filter(|next| next.at <= drawer.at()).cloned() {
            if self.outages.rests(next.id) {
                return Ok(false);
            }
            let opened = self.roster.open(next.id);
            if self.roster.missed(next.id, &opened) {
                self.outages.rest(next.id);
                return Ok(false);
            }
            if let Some(refused) = opened.as_ref().err().and_then(of_reading) {
                self.outages.failed(next.id, refused)?;
                return Ok(false);
            }
            self.outages.over(next.id, opened.is_ok());
            self.replay.pop_front();
            let counts = self.counted == 0;
            self.counted = self.counted.saturating_sub(1);
            let source = match opened {
                Ok(source) => source,
                Err(_) if self.missing == Missing::Skip => {
                    drawer.admit_lost(&next);
                    self.admissions.push_back(next);
                    continue;
                }
                Err(error) => {
                    let lost = match error {
                        // It was not there as it was when this run began.
                        Error::State(text) => text,
                        error if has_left(&error) => self.roster.lost(next.id, &error),
                        error => return Err(error),
                    };
                    if self.begins_again {
                        return Err(unable(&lost));
                    }
                    let advice = "the earlier run took it in: put it back, or resume with missing = \"skip\"";
                    return Err(Error::State(format!("{lost}; {advice}")));
                }
            };
            let chunks = drawer.admit(next.id, &source, next.old);
            self.dry = false;
            match (self.anchors.of(&self.plan.stage), arrived(&self.plan, &source, chunks)) {
                (Some(mut anchor), Some(chunks)) if counts && self.plan.counts_anchor => {
                    count(&mut anchor, &self.plan, &self.roster, &source, chunks, next.old);
                }
                (Some(mut anchor), _) => anchor.newest = Some(source.key.clone()),
                (None, _) => {}
            }
            self.admissions.push_back(next);
        }
        if !self.replay.is_empty() || drawer.at() < self.not_before && drawer.live() > 0 {
            return Ok(true);
        }
        let mut events = Vec::new();
        let arrivals = self.roster.arrivals(self.cursor);
        self.cursor += arrivals.len();
        let back = self.roster.back(&mut self.gone, &mut self.returns);
        for (id, mut old) in std::mem::take(&mut self.waiting).into_iter().chain(back).chain(arrivals) {
            // What was never taken in cannot be replaced, only what it was to replace.
            if let Some(at) = old.and_then(|old| self.gone.iter().position(|(gone, _)| *gone == old)) {
                old = self.gone.remove(at).1;
            }
            if let Some(at) = self.waiting.iter().position(|(waits, _)| Some(*waits) == old) {
                let (waits, before) = self.waiting.remove(at);
                self.outages.over(waits, false);
                old = before;
            }
            if self.outages.rests(id) || drawer.holds_arrivals() {
                self.waiting.push((id, old));
                continue;
            }
            let opened = self.ingesting.during(|| self.roster.open(id));
            if self.roster.missed(id, &opened) {
                self.waiting.push((id, old));
                self.outages.rest(id);
                continue;
            }
            if let Some(refused) = opened.as_ref().err().and_then(of_reading) {
                // It comes when it can be read; what is there already flows on.
                self.waiting.push((id, old));
                self.outages.failed(id, refused)?;
                continue;
            }
            self.outages.over(id, opened.is_ok());
            let source = match opened {
                Ok(source) => source,
                // What cannot be used was counted by the log; a later change brings it again.
                Err(error) => {
                    if has_left(&error) || matches!(error, Error::State(_)) && !self.roster.is_there(id) {
                        self.roster.leaves(id);
                        self.gone.push((id, old));
                    }
                    continue;
                }
            };
            let taken = self.ingesting.during(|| drawer.admit(id, &source, old));
            let Some(chunks) = arrived(&self.plan, &source, taken) else { continue };
            if let Some(mut anchor) = self.anchors.of(&self.plan.stage).filter(|_| self.plan.counts_anchor) {
                count(&mut anchor, &self.plan, &self.roster, &source, chunks, old);
            }
            self.dry &= taken.is_none();
            let count = u32::try_from(taken.unwrap_or(0)).unwrap_or(u32::MAX);
            let admission = Admission { at: drawer.at(), id, old, chunks: count };
            self.admissions.push_back(admission.clone());
            if let Some(file) = self.roster.arrived(id) {
                let (pool, loader) = (self.plan.stage.clone(), self.roster.loader.clone());
                let lane = self.plan.lane.map(|lane| lane.index);
                events.push(Event::Admit { pool, lane, loader, file, admission });
            }
        }
        match journal {
            Some(journal) if !events.is_empty() => {
                let mut journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let path = journal.path().to_owned();
                journal.append(&events).map_err(|e| Error::path(path, &e))?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Files that an earlier run found after its first scan, or found gone, and that are to be taken in: no part of a first admission.
    pub(in crate::pipeline) fn later(&self) -> HashSet<u64> {
        let again = self.replay.iter().map(|admission| admission.id);
        self.waiting.iter().chain(&self.gone).map(|(id, _)| *id).chain(again).collect()
    }

    /// Arrivals that are not taken in yet: what a restored run takes first.
    pub(in crate::pipeline) fn not_taken(&self) -> Vec<(u64, Option<u64>)> {
        self.waiting.iter().copied().chain(self.roster.arrivals(self.cursor)).collect()
    }

    /// Plans tickets until `ahead` are on their way; whether it left off before that, because it was long at it.
    ///
    /// Errors: as [`Branch::admit`].
    pub(in crate::pipeline) fn plan(
        &mut self,
        ahead: usize,
        journal: Option<&SharedJournal>,
        spare: &mut Vec<Counted<Chunk>>,
    ) -> Result<bool> {
        for _ in 0..PLAN_STEPS {
            if self.window.len() >= ahead || self.dry {
                return Ok(false);
            }
            if !self.admit(journal)? {
                return Ok(false);
            }
            let Some(drawer) = &mut self.drawer else { return Ok(false) };
            let every = SNAPSHOT_DRAWS.max(drawer.live() / 64);
            let due = self.snapshots.back().is_none_or(|last| last.at() + every <= drawer.at());
            if due && self.snapshots.len() < SNAPSHOTS {
                self.snapshots.push_back(drawer.clone());
            }
            let number = drawer.at();
            if let Some(journal) = journal.filter(|_| number >= self.reached) {
                let at = number + drawer.live().clamp(LEAST_REACH, MOST_REACH);
                let lane = self.plan.lane.map(|lane| lane.index);
                let mut journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let noted = journal.note(&[Event::Reached { pool: self.plan.stage.clone(), lane, at }]);
                noted.map_err(|e| Error::path(journal.path(), &e))?;
                self.reached = at;
            }
            let Some(draw) = drawer.draw() else {
                self.dry = true;
                return Ok(false);
            };
            let (source, open) = drawer.source(draw.at);
            self.drawn += 1;
            let open = self.look_up(draw, source, open);
            let taken = self.accept.is_none();
            let (after_good, keep, lost, phase) = (false, 0, Vec::new(), Phase::Planned);
            self.window.push_back(Ticket { number, draw, source, open, taken, after_good, keep, lost, phase });
            self.decide(spare);
        }
        Ok(true)
    }

    /// Chunks handed out, which are not those that a position of the cache stands for, and how many of them wait.
    pub(in crate::pipeline) fn handed(&self) -> (u64, u64) {
        let Some(accept) = &self.accept else { return (self.drawn, self.window.len() as u64) };
        let counts = accept.counts();
        let handed = if accept.caches() { counts.cache_misses } else { counts.taken };
        let decided = self.window.iter().take(self.decided);
        (handed, decided.filter(|ticket| !matches!(ticket.phase, Phase::Cached)).count() as u64)
    }

    /// The front of the window is done with.
    pub(in crate::pipeline) fn pop(&mut self) {
        if let Some(ticket) = self.window.pop_front() {
            self.head = ticket.number + 1;
            self.taken = 0;
            self.decided = self.decided.saturating_sub(1);
        }
    }

    /// Forgets copies and admissions that lie before draw `head`.
    pub(in crate::pipeline) fn forget_before(&mut self, head: u64) {
        while self.snapshots.get(1).is_some_and(|second| second.at() <= head) {
            self.snapshots.pop_front();
        }
        let oldest = self.snapshots.front().map_or(0, Drawer::at);
        while self.admissions.front().is_some_and(|admission| admission.at < oldest) {
            self.admissions.pop_front();
        }
        if let Some(accept) = &mut self.accept {
            accept.forget_before(head);
        }
    }

    /// Whether more may come although nothing can be drawn now.
    pub(in crate::pipeline) fn may_grow(&self) -> bool {
        let ends = self.drawer.as_ref().is_some_and(Drawer::ends);
        !self.replay.is_empty() || (!ends && !self.roster.log().ended())
    }

    /// The ticket of draw `number`, while it is in the window.
    pub(in crate::pipeline) fn ticket(&mut self, number: u64) -> Option<&mut Ticket> {
        let i = self.window.binary_search_by_key(&number, |ticket| ticket.number).ok()?;
        self.window.get_mut(i)
    }
}

/// Counts a source that arrived from the anchor on; of one that was written over, what it has more than before.
fn count(anchor: &mut Anchor, plan: &BranchPlan, roster: &Roster, source: &Source, chunks: u64, old: Option<u64>) {
    match old.and_then(|old| roster.len(old)) {
        Some(before) => anchor.replaced(chunks, of_side(plan, source, before)),
        None => anchor.arrived(&source.key, chunks),
    }
}

/// How many chunks came with a source: those that the pool took or, for the lane that counts for all, those of every
/// lane. `None` where it means nothing to this branch.
fn arrived(plan: &BranchPlan, source: &Source, taken: Option<u64>) -> Option<u64> {
    match plan.lane {
        Some(_) if plan.counts_anchor => Some(of_side(plan, source, source.len())).filter(|all| *all > 0).or(taken),
        _ => taken,
    }
}

#[cfg(test)]
mod tests;
