//! Chunks in numbered order -> the fate of each, computed by many threads at once.
//! Holds a bounded number of chunks; who takes the results takes them by number, so order is kept.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::runtime::scheduler::{Lane, Signal, Tasks};
use gristmill_engine::store::publish::Staged;
use gristmill_format::chess::pack::PACKED;
use gristmill_format::chess::pgn::source::FORMAT as PGN;
use gristmill_format::container::gzip;
use gristmill_format::source::Chunk;

use super::{Fate, Rewrite, RewriteOptions};
use crate::files::is_unreadable;
use crate::work::Opened;

/// Level of compression: the default of zlib, which self-play uses.
const LEVEL: u8 = 6;

/// Formats whose chunks are no files of records: these are made of what is stored.
const MADE: [&str; 2] = [PACKED, PGN];

/// One chunk to work on.
pub(super) struct Order {
    pub(super) file: Arc<Opened>,
    pub(super) chunk: usize,
    /// Name below a side's folder, where the chunk becomes a file of its own.
    pub(super) name: Option<String>,
}

/// What became of a chunk.
pub(super) enum Outcome {
    /// It goes out: its bytes, or the file that holds them already.
    Out { fate: Fate, bytes: Vec<u8>, staged: Option<Staged> },
    /// Dropped, for this reason.
    Dropped(gristmill_format::Error),
    /// It cannot be decoded.
    Damaged(gristmill_format::Error),
    /// Nothing can be written any more.
    Failed(Error),
}

/// An order that was carried out.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) side: usize,
    pub(super) stored: u64,
    pub(super) frames_in: u64,
    pub(super) frames_out: u64,
    pub(super) counts: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Desk {
    orders: VecDeque<(u64, Order)>,
    answers: BTreeMap<u64, Answer>,
    spare: Vec<(Vec<u8>, Chunk)>,
    panic: Option<String>,
}

/// The work in progress.
pub(super) struct Line {
    rewrite: Arc<dyn Rewrite>,
    outs: Vec<PathBuf>,
    dry_run: bool,
    desk: Mutex<Desk>,
    answered: Condvar,
    signal: OnceLock<Arc<Signal>>,
}

impl Line {
    pub(super) fn new(rewrite: Arc<dyn Rewrite>, options: &RewriteOptions) -> Self {
        Line {
            rewrite,
            outs: options.outs(),
            dry_run: options.dry_run,
            desk: Mutex::default(),
            answered: Condvar::new(),
            signal: OnceLock::new(),
        }
    }

    /// Sets what wakes the workers; once.
    pub(super) fn wake_with(&self, signal: Arc<Signal>) {
        let _ = self.signal.set(signal);
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands in an order.
    pub(super) fn put(&self, number: u64, order: Order) {
        self.desk().orders.push_back((number, order));
        if let Some(signal) = self.signal.get() {
            signal.notify(Lane::Work);
        }
    }

    /// Takes the answer to an order, waiting for it if need be.
    ///
    /// Errors: `Stage` when a worker broke off.
    pub(super) fn take(&self, number: u64) -> Result<Answer> {
        let mut desk = self.desk();
        loop {
            if let Some(answer) = desk.answers.remove(&number) {
                return Ok(answer);
            }
            if let Some(panic) = &desk.panic {
                let message = format!("a task broke off, which is a fault of gristmill: {panic}");
                return Err(Error::Stage { stage: "rewrite".into(), message });
            }
            desk = self.answered.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Throws away everything that waits, from an order on.
    pub(super) fn forget(&self, from: u64) {
        let mut desk = self.desk();
        desk.orders.retain(|(number, _)| *number < from);
        desk.answers.split_off(&from);
    }

    fn work(&self, order: &Order, stored: &mut Vec<u8>, chunk: &mut Chunk) -> Answer {
        let Order { file, chunk: i, name } = order;
        let last = self.outs.len().saturating_sub(1);
        let side = self.rewrite.side(&file.source.describe().key, file.member(*i), *i).min(last);
        let mut answer = Answer {
            outcome: Outcome::Out { fate: Fate::Keep, bytes: Vec::new(), staged: None },
            side,
            stored: 0,
            frames_in: 0,
            frames_out: 0,
            counts: BTreeMap::new(),
        };
        if let Err(e) = file.fetch(*i, stored) {
            if is_unreadable(&e) {
                // Its content is unknown: the ledger must not list it as done.
                return Answer { outcome: Outcome::Failed(e.into()), ..answer };
            }
            return Answer { outcome: Outcome::Damaged(e), ..answer };
        }
        answer.stored = stored.len() as u64;
        let mut fate = Fate::Keep;
        let made = MADE.contains(&file.source.describe().format);
        if (made || self.rewrite.reads())
            && let Err(e) = file.decode(*i, stored, chunk)
        {
            return Answer { outcome: Outcome::Damaged(e), ..answer };
        }
        if made {
            // A packed game is no file by itself, and text no record: from here on it is a file of its records.
            match gzip::compress(LEVEL, chunk.records()) {
                Ok(game) => *stored = game,
                Err(e) => return Answer { outcome: Outcome::Failed(e.into()), ..answer },
            }
        }
        if self.rewrite.reads() {
            answer.frames_in = chunk.frames as u64;
            let counts = &mut answer.counts;
            let mut count = |name: &str, n: u64| *counts.entry(name.to_owned()).or_default() += n;
            let judged = self.rewrite.chunk(stored, chunk, &mut count);
            fate = match judged.and_then(|fate| Ok((fate, self.rewrite.side_of(chunk)?))) {
                Ok((fate, side)) => {
                    answer.side = side.map_or(answer.side, |side| side.min(last));
                    fate
                }
                Err(e) => {
                    let ends = self.rewrite.ends_on(&e);
                    let e = e.in_chunk(*i).in_source(&file.path);
                    let e = file.member(*i).map(|name| e.clone().in_member(name)).unwrap_or(e);
                    let outcome = if ends { Outcome::Failed(e.into()) } else { Outcome::Dropped(e) };
                    return Answer { outcome, ..answer };
                }
            };
            answer.frames_out = chunk.frames as u64;
        }
        answer.outcome = self.out(fate, name.as_deref(), answer.side, stored, chunk).unwrap_or_else(Outcome::Failed);
        answer
    }

    fn out(&self, fate: Fate, name: Option<&str>, side: usize, stored: &mut Vec<u8>, chunk: &Chunk) -> Result<Outcome> {
        let bytes = match fate {
            Fate::Keep => std::mem::take(stored),
            Fate::Write if stored.starts_with(&gzip::MAGIC) => gzip::compress(LEVEL, chunk.records())?,
            // Plain records stay plain: their names say so.
            Fate::Write => chunk.records().to_vec(),
        };
        let (Some(name), false) = (name, self.dry_run) else { return Ok(Outcome::Out { fate, bytes, staged: None }) };
        let path = self.outs[side].join(name);
        let mut staged = Staged::within(path)?;
        staged.append(&bytes)?;
        staged.seal()?;
        Ok(Outcome::Out { fate, bytes: Vec::new(), staged: Some(staged) })
    }
}

impl Tasks for Line {
    fn run(&self, lane: Lane) -> bool {
        let mut desk = self.desk();
        let Some((number, order)) = (if lane == Lane::Work { desk.orders.pop_front() } else { None }) else {
            return false;
        };
        let (mut stored, mut chunk) = desk.spare.pop().unwrap_or_default();
        drop(desk);
        let answer = self.work(&order, &mut stored, &mut chunk);
        let mut desk = self.desk();
        desk.answers.insert(number, answer);
        desk.spare.push((stored, chunk));
        drop(desk);
        self.answered.notify_all();
        true
    }

    fn panicked(&self, what: &str) {
        self.desk().panic = Some(what.to_owned());
        self.answered.notify_all();
    }
}
