//! Draws -> decoded chunks in the order of their draws: a window of tickets, each answered by exactly one block.
//! Plans, and keeps what is in flight; reads and decodes nothing itself.

use std::collections::VecDeque;
use std::sync::Arc;

use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;

use super::drawer::{Admission, Drawer};
use super::plan::BranchPlan;
use super::roster::{Event, Roster, SharedJournal};
use crate::error::{Error, Result};
use crate::runtime::seed::Key;
use crate::stage::Draw;
use crate::stage::load::Source;

/// A decoded chunk and the rows selected from it; empty, with the reason, where the chunk is bad.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) chunk: Chunk,
    pub(super) rows: Vec<u32>,
    /// Lasting id of the source, and the chunk's index in it.
    pub(super) source: u64,
    pub(super) index: u32,
    /// How its records become the chain's.
    pub(super) conform: Option<Arc<Conform>>,
    pub(super) fault: Option<gristmill_format::Error>,
}

/// How far a ticket is.
#[derive(Debug)]
pub(super) enum Phase {
    Planned,
    Busy,
    Read(Arc<Source>, Vec<u8>),
    Done(Arc<Block>),
}

/// One draw on its way.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) draw: Draw,
    pub(super) source: u64,
    pub(super) open: Option<Arc<Source>>,
    pub(super) phase: Phase,
}

/// Draws between two copies of the drawer: the larger the window, the rarer.
const SNAPSHOT_DRAWS: u64 = 1024;

/// One input of a chain while it runs.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) plan: Arc<BranchPlan>,
    pub(super) roster: Arc<Roster>,
    pub(super) unpack_key: Key,
    /// Absent until the first scan is in.
    pub(super) drawer: Option<Drawer>,
    pub(super) starting: bool,
    /// Copies of the drawer as it was before some draws; the first is at or before the oldest mark.
    pub(super) snapshots: VecDeque<Drawer>,
    pub(super) admissions: VecDeque<Admission>,
    /// Admissions of an earlier run that are still to be made, at their own draws.
    pub(super) replay: VecDeque<Admission>,
    cursor: usize,
    /// Draw at the front of the window, and how many of its rows were taken.
    pub(super) head: u64,
    pub(super) taken: usize,
    pub(super) window: VecDeque<Ticket>,
    /// Nothing more to draw.
    pub(super) dry: bool,
    /// Bad chunks in a row.
    pub(super) bad_run: u64,
    pub(super) decoding: usize,
}

impl Branch {
    pub(super) fn new(plan: Arc<BranchPlan>, roster: Arc<Roster>, root: u64) -> Self {
        Branch {
            unpack_key: Key::new(root, &plan.unpacker),
            plan,
            roster,
            drawer: None,
            starting: false,
            snapshots: VecDeque::new(),
            admissions: VecDeque::new(),
            replay: VecDeque::new(),
            cursor: 0,
            head: 0,
            taken: 0,
            window: VecDeque::new(),
            dry: false,
            bad_run: 0,
            decoding: 0,
        }
    }

    /// Takes in what arrived since the last call, at the next draw, and writes it to the journal first.
    ///
    /// Errors: the journal cannot be written, or a recorded source cannot be opened.
    pub(super) fn admit(&mut self, journal: Option<&SharedJournal>) -> Result<()> {
        let Some(drawer) = &mut self.drawer else { return Ok(()) };
        while let Some(next) = self.replay.front().filter(|next| next.at <= drawer.at()).cloned() {
            self.replay.pop_front();
            let source = self.roster.open(next.id)?;
            drawer.admit(next.id, &source, next.old);
            self.admissions.push_back(next);
        }
        if !self.replay.is_empty() {
            return Ok(());
        }
        let mut events = Vec::new();
        for (id, old) in self.roster.arrivals(self.cursor) {
            self.cursor += 1;
            // What cannot be opened now was counted by the log; a later change brings it again.
            let Ok(source) = self.roster.open(id) else { continue };
            if !drawer.admit(id, &source, old) {
                continue;
            }
            self.dry = false;
            let admission = Admission { at: drawer.at(), id, old };
            self.admissions.push_back(admission.clone());
            if let Some(file) = self.roster.arrived(id) {
                let (pool, loader) = (self.plan.stage.clone(), self.roster.loader.clone());
                events.push(Event::Admit { pool, loader, file, admission });
            }
        }
        match journal {
            Some(journal) if !events.is_empty() => {
                let mut journal = journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let path = journal.path().to_owned();
                journal.append(&events).map_err(|e| Error::path(path, &e))
            }
            _ => Ok(()),
        }
    }

    /// Plans tickets until `ahead` are on their way.
    ///
    /// Errors: as [`Branch::admit`].
    pub(super) fn plan(&mut self, ahead: usize, journal: Option<&SharedJournal>) -> Result<bool> {
        let mut planned = false;
        while self.window.len() < ahead && !self.dry {
            self.admit(journal)?;
            let Some(drawer) = &mut self.drawer else { break };
            let every = SNAPSHOT_DRAWS.max(drawer.live() / 64);
            if self.snapshots.back().is_none_or(|last| last.at() + every <= drawer.at()) {
                self.snapshots.push_back(drawer.clone());
            }
            let Some(draw) = drawer.draw() else {
                self.dry = true;
                break;
            };
            let (source, open) = drawer.source(draw.at);
            self.window.push_back(Ticket { draw, source, open, phase: Phase::Planned });
            planned = true;
        }
        Ok(planned)
    }

    /// Forgets copies and admissions that lie before draw `head`.
    pub(super) fn forget_before(&mut self, head: u64) {
        while self.snapshots.get(1).is_some_and(|second| second.at() <= head) {
            self.snapshots.pop_front();
        }
        let oldest = self.snapshots.front().map_or(0, Drawer::at);
        while self.admissions.front().is_some_and(|admission| admission.at < oldest) {
            self.admissions.pop_front();
        }
    }

    /// Whether more may come although nothing can be drawn now.
    pub(super) fn may_grow(&self) -> bool {
        let ends = self.drawer.as_ref().is_some_and(Drawer::ends);
        !self.replay.is_empty() || (!ends && !self.roster.log().ended())
    }

    /// The first ticket in `phase`, among the first `within`.
    pub(super) fn first(&mut self, within: usize, phase: fn(&Phase) -> bool) -> Option<(u64, &mut Ticket)> {
        let head = self.head;
        let found = self.window.iter_mut().take(within).enumerate().find(|(_, ticket)| phase(&ticket.phase));
        found.map(|(i, ticket)| (head + i as u64, ticket))
    }

    /// The ticket of draw `number`, while it is in the window.
    pub(super) fn ticket(&mut self, number: u64) -> Option<&mut Ticket> {
        self.window.get_mut(usize::try_from(number.checked_sub(self.head)?).ok()?)
    }
}
