//! Games, in order -> their rows, in order, made by many threads ahead of the reader, which is one of them, in bounded
//! memory.
//! The output does not depend on which thread did what, or when.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_engine::error::{Error as EngineError, Result};
use gristmill_engine::runtime::scheduler::{Lane, Scheduler, Signal, Tasks, guarded};
use gristmill_format::Error;
use gristmill_format::container::gzip::Inflater;
use gristmill_format::g2048::log::{Piece, Sidecar};

use super::game::{Identity, Long, PIECE};

/// Bytes of stored logs and of rows that may wait, beyond the oldest game.
pub(super) const HELD: usize = 64 << 20;

/// Threads that read files.
const READERS: usize = 2;

/// How long the reader of the rows sleeps before it looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// What comes out, game by game.
pub(super) enum Event {
    /// Rows of a game, aligned, as its next piece has them.
    Rows { piece: Piece, rows: Vec<u8> },
    /// A game is over.
    End(Box<End>),
    /// A game cannot be taken; its rows that came out are void.
    Refused(Error),
    /// The pack has this game already; its rows that came out are void.
    Known,
}

/// What is known of a game when it is over.
pub(super) struct End {
    pub(super) sidecar: Arc<Sidecar>,
    pub(super) sidecar_text: String,
    pub(super) identity: Identity,
}

/// What the threads are to work on.
pub(super) struct Work {
    /// The folder.
    pub(super) root: PathBuf,
    /// Sidecars below it, in order.
    pub(super) sidecars: Arc<[String]>,
    /// The first of them that is wanted.
    pub(super) first: usize,
    /// Keys of games that are in the pack already.
    pub(super) known: HashSet<u128>,
}

/// The threads' common board.
pub(super) struct Board {
    pub(super) work: Work,
    pub(super) workers: usize,
    state: Mutex<State>,
    /// Moves when something came out.
    ready: Condvar,
    signal: Arc<Signal>,
}

/// Tools that a worker borrows for one task.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) inflater: Inflater,
    pub(super) text: Vec<u8>,
}

#[derive(Default)]
pub(super) struct State {
    /// The games under way; the first has number `base`.
    pub(super) window: VecDeque<Ticket>,
    pub(super) base: usize,
    /// Bytes that wait.
    pub(super) held: usize,
    /// Why no more will come.
    pub(super) broken: Option<String>,
    pub(super) tools: Vec<Tools>,
    /// Spare buffers for rows and for text.
    pub(super) spare_rows: Vec<Vec<u8>>,
    pub(super) spare_text: Vec<Vec<u8>>,
}

/// One game under way.
#[derive(Default)]
pub(super) struct Ticket {
    pub(super) stage: Stage,
    pub(super) sidecar: Option<Arc<Sidecar>>,
    pub(super) sidecar_text: String,
    /// Pieces that did not come out yet, in order; the first has number `out`.
    pub(super) parts: VecDeque<Part>,
    pub(super) out: usize,
}

/// How far a game is.
#[derive(Default)]
pub(super) enum Stage {
    /// A thread has it.
    #[default]
    Busy,
    /// Its log was read and waits for a worker.
    Stored(Vec<u8>, Identity),
    /// Its log can be inflated further.
    Long(Box<Long>),
    /// All its parts are there.
    Over(Identity),
}

/// A piece of a game.
pub(super) enum Part {
    /// Text that waits for a worker.
    Text(Vec<u8>),
    /// A worker has it.
    Busy,
    Rows(Piece, Vec<u8>),
    Refused(Error),
    Known,
}

impl Part {
    /// What it counts for among the bytes held; text does until a worker has parsed it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Part::Text(_) => PIECE,
            Part::Rows(_, rows) => rows.len(),
            Part::Busy | Part::Refused(_) | Part::Known => 0,
        }
    }
}

impl Board {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that something changed: for the reader of the rows, and for workers.
    pub(super) fn tell(&self) {
        self.ready.notify_all();
        self.signal.notify_all();
    }
}

impl Tasks for Board {
    fn run(&self, lane: Lane) -> bool {
        match lane {
            Lane::Read => self.read_next(),
            Lane::Work => self.work_next(),
        }
    }

    fn panicked(&self, what: &str) {
        self.lock().broken = Some(what.to_owned());
        self.ready.notify_all();
    }
}

/// The reader's end.
pub(super) struct Flow {
    board: Arc<Board>,
    scheduler: Scheduler,
    stop: Arc<AtomicBool>,
}

impl Flow {
    /// Lets `workers` threads, that which reads the rows among them, work; more threads only read files. They end with
    /// the flow.
    ///
    /// Errors: `Path` when the system has no more threads.
    pub(super) fn start(work: Work, workers: usize, stop: Arc<AtomicBool>) -> Result<Self> {
        let scheduler = Scheduler::new();
        let state = Mutex::new(State { base: work.first, ..State::default() });
        let root = work.root.clone();
        let board = Board { work, workers, state, ready: Condvar::new(), signal: scheduler.signal() };
        let board = Arc::new(board);
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([board.clone() as Arc<dyn Tasks>]);
        scheduler
            .staff(Lane::Read, READERS, &tasks)
            .and_then(|()| scheduler.staff(Lane::Work, workers - 1, &tasks))
            .map_err(|e| EngineError::path(root, &e))?;
        Ok(Flow { board, scheduler, stop })
    }

    /// What comes next; `None` after the last game.
    ///
    /// Errors: `Stopped`; `Stage` when a thread failed.
    pub(super) fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(EngineError::Stopped);
            }
            let mut state = self.board.lock();
            if let Some(what) = &state.broken {
                return Err(EngineError::Stage { stage: "pack".into(), message: what.clone() });
            }
            if state.base == self.board.work.sidecars.len() {
                return Ok(None);
            }
            if let Some(event) = state.take() {
                drop(state);
                self.board.signal.notify_all();
                return Ok(Some(event));
            }
            drop(state);
            if !guarded(&*self.board, Lane::Work) {
                let state = self.board.lock();
                let waits = |state: &mut State| state.broken.is_none() && !state.is_ready();
                let _woken = self.board.ready.wait_timeout_while(state, LOOK, waits);
            }
        }
    }

    /// Drops what is still to come of the game that is coming out.
    pub(super) fn abandon(&self) {
        let mut state = self.board.lock();
        let _ = state.end(Event::Known);
        drop(state);
        self.board.tell();
    }

    /// Gives a buffer of rows back.
    pub(super) fn recycle(&self, mut rows: Vec<u8>) {
        rows.clear();
        let mut state = self.board.lock();
        if state.spare_rows.len() <= self.board.workers {
            state.spare_rows.push(rows);
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let _hung = self.scheduler.stop();
    }
}

impl State {
    /// The ticket of game `number`, unless it came out already.
    pub(super) fn ticket(&mut self, number: usize) -> Option<&mut Ticket> {
        self.window.get_mut(number.checked_sub(self.base)?)
    }

    /// Whether the oldest game has something ready.
    fn is_ready(&self) -> bool {
        let Some(ticket) = self.window.front() else { return false };
        match ticket.parts.front() {
            Some(part) => !matches!(part, Part::Text(_) | Part::Busy),
            None => matches!(ticket.stage, Stage::Over(_)),
        }
    }

    /// What the oldest game has ready.
    fn take(&mut self) -> Option<Event> {
        let ticket = self.window.front_mut()?;
        match ticket.parts.front() {
            Some(Part::Text(_) | Part::Busy) => None,
            Some(_) => {
                ticket.out += 1;
                match ticket.parts.pop_front()? {
                    Part::Rows(piece, rows) => {
                        self.held -= rows.len();
                        Some(Event::Rows { piece, rows })
                    }
                    Part::Refused(e) => self.end(Event::Refused(e)),
                    _ => self.end(Event::Known),
                }
            }
            None => {
                let &Stage::Over(identity) = &ticket.stage else { return None };
                let sidecar = ticket.sidecar.take()?;
                let sidecar_text = std::mem::take(&mut ticket.sidecar_text);
                self.end(Event::End(Box::new(End { sidecar, sidecar_text, identity })))
            }
        }
    }

    /// The oldest game is over, whatever is still under way for it.
    fn end(&mut self, event: Event) -> Option<Event> {
        let ticket = self.window.pop_front()?;
        self.base += 1;
        self.held -= ticket.parts.iter().map(Part::bytes).sum::<usize>();
        Some(event)
    }
}
