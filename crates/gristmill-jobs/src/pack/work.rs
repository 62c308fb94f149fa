//! The tasks of packing: read a game's files, inflate, parse. The oldest game goes first; none of them waits.

use std::collections::HashSet;
use std::sync::Arc;

use gristmill_format::g2048::log::{Sidecar, parse_piece, steps_name};
use gristmill_format::{Error, Kind};

use super::flow::{Board, HELD, Part, Stage, State, Ticket};
use super::game::{self, Identity, Log, Long, PIECE, WHOLE_TEXT};

/// What a worker does next.
enum Task {
    /// Inflate and parse a short log.
    Whole { number: usize, stored: Vec<u8>, identity: Identity, sidecar: Arc<Sidecar> },
    /// Inflate the next piece of a long one.
    Inflate { number: usize, long: Box<Long> },
    /// Parse a piece.
    Parse { number: usize, part: usize, text: Vec<u8>, sidecar: Arc<Sidecar> },
}

impl Board {
    /// Reads the next unread game; `false` when there is none, or no room.
    pub(super) fn read_next(&self) -> bool {
        let mut state = self.lock();
        let number = state.base + state.window.len();
        let ahead = state.window.iter().filter(|ticket| !matches!(ticket.stage, Stage::Over(_))).count();
        let full = !state.window.is_empty() && (state.held >= HELD || ahead > 2 * self.workers + 2);
        let Some(name) = self.work.sidecars.get(number).filter(|_| !full) else { return false };
        state.window.push_back(Ticket::default());
        drop(state);
        let opened = game::open(&self.work.root, name).map(|opened| {
            let stage = match opened.log {
                Log::Long(long) => Stage::Long(long),
                Log::Whole(stored) => {
                    let identity = Identity::of(&stored);
                    Stage::Stored(stored, identity)
                }
            };
            (opened.sidecar, opened.sidecar_text, stage)
        });
        let mut state = self.lock();
        match opened {
            Ok((sidecar, text, stage)) => state.read(number, sidecar, text, stage, self),
            Err(e) => state.settle(number, Part::Refused(e)),
        }
        drop(state);
        self.tell();
        true
    }

    /// Does the most urgent thing there is to do; `false` when there is nothing, or no room.
    pub(super) fn work_next(&self) -> bool {
        let Some(task) = self.lock().next_task(self.workers) else { return false };
        match task {
            Task::Whole { number, stored, identity, sidecar } => self.whole(number, stored, identity, &sidecar),
            Task::Inflate { number, long } => self.inflate(number, long),
            Task::Parse { number, part, text, sidecar } => {
                let parsed = self.parse(&text, &sidecar, number);
                let mut state = self.lock();
                state.spare_text.push(text);
                state.parsed(number, part, parsed);
            }
        }
        self.tell();
        true
    }

    fn whole(&self, number: usize, stored: Vec<u8>, identity: Identity, sidecar: &Sidecar) {
        let mut tools = self.lock().tools.pop().unwrap_or_default();
        let inflated = tools.inflater.inflate(&stored, WHOLE_TEXT, &mut tools.text);
        let bytes = stored.len();
        let (stage, part) = match inflated {
            Err(e) if e.kind() == Kind::TooLarge => (Stage::Long(Box::new(Long::of(stored))), None),
            Err(e) => (Stage::Over(identity), Some(self.refused(e, number))),
            Ok(_) => (Stage::Over(identity), Some(self.parse(&tools.text, sidecar, number))),
        };
        let mut state = self.lock();
        state.tools.push(tools);
        state.held -= bytes;
        state.put(number, stage, part);
    }

    fn inflate(&self, number: usize, mut long: Box<Long>) {
        let mut text = self.lock().spare_text.pop().unwrap_or_else(|| Vec::with_capacity(PIECE));
        let next = long.next(&mut text);
        let (stage, part) = match next {
            Ok(true) => (Stage::Long(long), Some(Part::Text(text))),
            Ok(false) => match long.identity() {
                Ok(identity) => (Stage::Over(identity), self.lock().is_known(number, identity, &self.work.known)),
                Err(e) => (Stage::Busy, Some(self.refused(e, number))),
            },
            Err(e) => (Stage::Busy, Some(self.refused(e, number))),
        };
        self.lock().put(number, stage, part);
    }

    /// The rows of some lines of a game.
    fn parse(&self, text: &[u8], sidecar: &Sidecar, number: usize) -> Part {
        let mut rows = self.lock().spare_rows.pop().unwrap_or_default();
        match parse_piece(text, &sidecar.defaults(), usize::MAX, &mut rows) {
            Ok(piece) => Part::Rows(piece, rows),
            Err(e) => self.refused(e, number),
        }
    }

    /// An error in the log of a game.
    fn refused(&self, e: Error, number: usize) -> Part {
        let steps = self.work.sidecars.get(number).and_then(|sidecar| steps_name(sidecar));
        Part::Refused(e.moved_to(steps.unwrap_or_default()))
    }
}

impl State {
    /// A game's files were read.
    fn read(&mut self, number: usize, sidecar: Arc<Sidecar>, text: String, stage: Stage, board: &Board) {
        if let Stage::Stored(stored, identity) = &stage {
            if board.work.known.contains(&identity.key(&text)) {
                return self.settle(number, Part::Known);
            }
            self.held += stored.len();
        }
        if let Some(ticket) = self.ticket(number) {
            (ticket.sidecar, ticket.sidecar_text, ticket.stage) = (Some(sidecar), text, stage);
        }
    }

    /// The part that says so, if the pack has a game already.
    fn is_known(&mut self, number: usize, identity: Identity, known: &HashSet<u128>) -> Option<Part> {
        let ticket = self.ticket(number)?;
        known.contains(&identity.key(&ticket.sidecar_text)).then_some(Part::Known)
    }

    /// Moves a game to `stage`, with one more part or none.
    fn put(&mut self, number: usize, stage: Stage, part: Option<Part>) {
        if let Some(ticket) = self.ticket(number) {
            ticket.stage = stage;
            if let Some(part) = part {
                self.settle(number, part);
            }
        }
    }

    /// Adds the next part of a game.
    fn settle(&mut self, number: usize, part: Part) {
        let bytes = part.bytes();
        if let Some(ticket) = self.ticket(number) {
            ticket.parts.push_back(part);
            self.held += bytes;
        }
    }

    /// Puts what was parsed in the place of its text.
    fn parsed(&mut self, number: usize, part: usize, parsed: Part) {
        self.held -= PIECE;
        let bytes = parsed.bytes();
        let Some(ticket) = self.ticket(number) else { return };
        if let Some(place) = part.checked_sub(ticket.out).and_then(|i| ticket.parts.get_mut(i)) {
            *place = parsed;
            self.held += bytes;
        }
    }

    /// The most urgent task: that of the oldest game that has one. Where no more bytes may be held, only the
    /// part that the reader of the rows waits for is worked on.
    fn next_task(&mut self, workers: usize) -> Option<Task> {
        let (base, full) = (self.base, self.held >= HELD);
        self.window.iter_mut().enumerate().find_map(|(i, ticket)| {
            let awaited = i == 0 && matches!(ticket.parts.front(), None | Some(Part::Text(_)));
            if full && !awaited { None } else { ticket.next_task(base + i, workers) }
        })
    }
}

impl Ticket {
    /// What can be done for this game. A long log is inflated as long as the other workers have pieces to parse.
    fn next_task(&mut self, number: usize, workers: usize) -> Option<Task> {
        let sidecar = self.sidecar.clone()?;
        if matches!(self.stage, Stage::Stored(..)) {
            let Stage::Stored(stored, identity) = std::mem::take(&mut self.stage) else { return None };
            return Some(Task::Whole { number, stored, identity, sidecar });
        }
        let unparsed = self.parts.iter().filter(|part| matches!(part, Part::Text(_) | Part::Busy)).count();
        if matches!(self.stage, Stage::Long(_)) && unparsed <= workers {
            let Stage::Long(long) = std::mem::take(&mut self.stage) else { return None };
            return Some(Task::Inflate { number, long });
        }
        let at = self.parts.iter().position(|part| matches!(part, Part::Text(_)))?;
        let Part::Text(text) = std::mem::replace(&mut self.parts[at], Part::Busy) else { return None };
        Some(Task::Parse { number, part: self.out + at, text, sidecar })
    }
}
