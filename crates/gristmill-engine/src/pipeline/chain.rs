//! One loader output while it runs: draws become reads, reads become blocks, blocks become batches.
//! Threads come in through [`Tasks::run`], take one task each and never wait; order comes from the tickets alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_format::chess::{ChessEncoder, layout_v6, layout_v7};
use gristmill_format::encode::{Encoder, Row, TensorSpec};
use gristmill_format::layout::Conform;
use gristmill_format::source::{Chunk, Limits};

use super::branch::{Block, Branch, Phase};
use super::fold::{Fill, Fold, Held, Outgoing, Piece};
use super::output::{Batch, Delivery};
use super::plan::ChainPlan;
use super::roster::{Roster, SharedJournal};
use super::verdict::Verdicts;
use crate::config::BadChunks;
use crate::error::{Error, Result};
use crate::runtime::arena::Arena;
use crate::runtime::handoff::{Handoff, Taken, WhenFull};
use crate::runtime::metrics::{Counter, Load};
use crate::runtime::scheduler::{Lane, Signal, Tasks};
use crate::runtime::seed::Key;
use crate::runtime::sheet::SheetPool;
use crate::stage::batch::WhenPartial;
use crate::stage::join::Join;
use crate::stage::sample::Reservoir;

/// Tickets that are planned ahead of those being decoded, per branch.
pub(super) const READ_AHEAD: usize = 32;

/// A buffer larger than this is not kept for the next chunk.
const KEEP_BYTES: usize = 4 << 20;

/// What a chain shares with the rest of its loader.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub(super) root: u64,
    pub(super) workers: usize,
    pub(super) limits: Limits,
    pub(super) signal: Arc<Signal>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) verdicts: Arc<Verdicts>,
    pub(super) journal: Option<SharedJournal>,
}

/// Totals of a chain since it started.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) reading: Load,
    pub(super) decoding: Load,
    pub(super) filling: Load,
    pub(super) encoding: Load,
    pub(super) chunks: Counter,
    pub(super) empty_chunks: Counter,
    pub(super) stored_bytes: Counter,
    pub(super) frames_decoded: Counter,
    pub(super) rows: Counter,
    pub(super) batches: Counter,
}

pub(super) struct Inner {
    pub(super) branches: Vec<Branch>,
    pub(super) fold: Fold,
    pub(super) spare_chunks: Vec<Chunk>,
    spare_bytes: Vec<Vec<u8>>,
    encoding: usize,
    /// Rows of a restored reservoir that are still to be read: the chain is still until there are none.
    pub(super) refills: Vec<Refill>,
    pub(super) refilling: usize,
    outbox: Option<Delivery>,
}

/// Rows of one chunk that a restored reservoir holds.
#[derive(Debug)]
pub(super) struct Refill {
    pub(super) branch: usize,
    pub(super) source: u64,
    pub(super) chunk: u32,
    /// Frame of the chunk, slot.
    pub(super) rows: Vec<(u32, u32)>,
}

/// One loader output.
pub(super) struct Chain {
    pub(super) plan: ChainPlan,
    pub(super) shared: Shared,
    encoder: ChessEncoder,
    widen: [Conform; 2],
    arena: Arena,
    sheets: Arc<SheetPool>,
    pub(super) handoff: Handoff<Delivery>,
    pub(super) totals: Totals,
    pub(super) inner: Mutex<Inner>,
}

impl Chain {
    /// A chain that has not started. Errors: no memory for the reservoir.
    pub(super) fn new(plan: ChainPlan, shared: Shared, rosters: &[Arc<Roster>]) -> Result<Self> {
        let encoder = ChessEncoder::new(&plan.outputs)?;
        let slots = super::budget::slots(&plan);
        let memory = |e: std::io::Error| Error::field(&plan.stage, "batch_size", format!("no memory: {e}"));
        let arena = Arena::new(slots, encoder.input().size()).map_err(memory)?;
        let row_bytes = encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        let sheets = SheetPool::new(plan.batch_size, row_bytes, plan.capacity + 1);
        let branches = plan.branches.iter().map(|branch| {
            Branch::new(Arc::new(branch.clone()), Arc::clone(&rosters[branch.log]), shared.root)
        });
        let (name, weights, exhausted) = plan.join.clone();
        let join = Join::new(Key::new(shared.root, &name), weights, exhausted);
        let (name, frames, drain) = &plan.reservoir;
        let reservoir = Reservoir::new(Key::new(shared.root, name), *frames);
        let fold = Fold::new(join, reservoir, *drain, plan.batch_size, u32::try_from(slots).unwrap_or(u32::MAX));
        let inner = Inner {
            branches: branches.collect(),
            fold,
            spare_chunks: Vec::new(),
            spare_bytes: Vec::new(),
            encoding: 0,
            refills: Vec::new(),
            refilling: 0,
            outbox: None,
        };
        Ok(Chain {
            widen: [Conform::new(layout_v6(), encoder.input())?, Conform::new(layout_v7(), encoder.input())?],
            arena,
            sheets,
            handoff: Handoff::new(plan.capacity + 1, plan.when_full),
            totals: Totals::default(),
            inner: Mutex::new(inner),
            plan,
            shared,
            encoder,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensors of a batch.
    pub(super) fn tensors(&self) -> &[TensorSpec] {
        self.encoder.outputs()
    }

    /// The next batch, error or end, waiting up to `wait`.
    pub(super) fn next(&self, wait: Option<Duration>) -> Taken<Delivery> {
        let taken = self.handoff.take(wait);
        if let Taken::Item(Ok(batch)) = &taken {
            let mut inner = self.lock();
            inner.fold.took(batch.number);
            let heads: Vec<u64> = inner.fold.delivered.branches.iter().map(|(head, _)| *head).collect();
            for (branch, head) in inner.branches.iter_mut().zip(heads) {
                branch.forget_before(head);
            }
            drop(inner);
            self.shared.signal.notify();
        }
        taken
    }

    /// Chunks that may be decoded and not yet folded, per branch.
    fn work_window(&self) -> usize {
        self.shared.workers + 2
    }

    // ---- reading ----

    fn read_one(&self) -> bool {
        let mut inner = self.lock();
        for b in 0..inner.branches.len() {
            let branch = &mut inner.branches[b];
            if branch.drawer.is_none() {
                if branch.starting || !branch.roster.ready() {
                    continue;
                }
                branch.starting = true;
                let (plan, roster) = (Arc::clone(&branch.plan), Arc::clone(&branch.roster));
                drop(inner);
                let drawer = super::drawer::Drawer::first(&plan, self.shared.root, &roster, &roster.files());
                self.lock().branches[b].drawer = Some(drawer);
                self.shared.signal.notify();
                return true;
            }
        }
        let ahead = self.work_window() + READ_AHEAD;
        let mut fault = None;
        for branch in &mut inner.branches {
            let planned = branch.admit(self.shared.journal.as_ref());
            fault = planned.and_then(|()| branch.plan(ahead, self.shared.journal.as_ref())).err().or(fault);
        }
        if let Some(error) = fault {
            if !inner.fold.ended {
                self.fail(&mut inner, error);
            }
            return false;
        }
        let oldest = inner.branches.iter_mut().enumerate().filter_map(|(b, branch)| {
            let head = branch.head;
            branch.first(usize::MAX, |phase| matches!(phase, Phase::Planned)).map(|(number, _)| (number - head, b))
        });
        let Some((_, b)) = oldest.min() else {
            self.settle(&mut inner);
            return false;
        };
        let mut bytes = inner.spare_bytes.pop().unwrap_or_default();
        let branch = &mut inner.branches[b];
        let roster = Arc::clone(&branch.roster);
        let Some((number, ticket)) = branch.first(usize::MAX, |phase| matches!(phase, Phase::Planned)) else {
            return false;
        };
        ticket.phase = Phase::Busy;
        let (id, chunk, open) = (ticket.source, ticket.draw.at.chunk, ticket.open.take());
        drop(inner);
        let known = self.shared.verdicts.of(id, chunk);
        let read = self.totals.reading.during(|| match known {
            Some(error) => Err(error),
            None => {
                let source = match open {
                    Some(source) => source,
                    None => roster.open(id).map_err(as_format)?,
                };
                source.fetch(chunk as usize, &self.shared.limits, &mut bytes)?;
                Ok(source)
            }
        });
        self.totals.stored_bytes.add(bytes.len() as u64);
        let phase = match read {
            Ok(source) => Phase::Read(source, bytes),
            Err(error) => Phase::Done(self.bad(id, chunk, error, Chunk::default())),
        };
        let mut inner = self.lock();
        if let Some(ticket) = inner.branches[b].ticket(number) {
            ticket.phase = phase;
        }
        drop(inner);
        self.shared.signal.notify();
        true
    }

    fn bad(&self, source: u64, index: u32, error: gristmill_format::Error, chunk: Chunk) -> Arc<Block> {
        self.shared.verdicts.add(source, index, &error);
        self.totals.empty_chunks.add(1);
        Arc::new(Block { chunk, rows: Vec::new(), source, index, fault: Some(error) })
    }

    // ---- decoding ----

    fn decode_one(&self, mut inner: MutexGuard<'_, Inner>) -> bool {
        let within = self.work_window();
        let ready = |phase: &Phase| matches!(phase, Phase::Read(..));
        let open = inner.branches.iter_mut().enumerate().filter_map(|(b, branch)| {
            let (head, free) = (branch.head, branch.decoding < branch.plan.ceiling);
            branch.first(within, ready).filter(|_| free).map(|(number, _)| (number - head, b))
        });
        let Some((_, b)) = open.min() else { return false };
        let mut chunk = inner.spare_chunks.pop().unwrap_or_default();
        let branch = &mut inner.branches[b];
        let (plan, key) = (Arc::clone(&branch.plan), branch.unpack_key);
        let Some((number, ticket)) = branch.first(within, ready) else { return false };
        let (id, draw) = (ticket.source, ticket.draw);
        let Phase::Read(source, bytes) = std::mem::replace(&mut ticket.phase, Phase::Busy) else { return false };
        branch.decoding += 1;
        drop(inner);
        let index = draw.at.chunk;
        let block = self.totals.decoding.during(|| {
            match source.decode(index as usize, &bytes, &self.shared.limits, &mut chunk) {
                Ok(()) => {
                    let mut rows = Vec::new();
                    let own = key.of(source.key.as_bytes(), u64::from(index));
                    plan.unpack.select(own, chunk.frames, draw.use_count, &mut rows);
                    self.totals.chunks.add(1);
                    self.totals.frames_decoded.add(chunk.frames as u64);
                    Arc::new(Block { chunk, rows, source: id, index, fault: None })
                }
                Err(error) => self.bad(id, index, error, chunk),
            }
        });
        let mut inner = self.lock();
        inner.spare_bytes.push(bytes);
        let branch = &mut inner.branches[b];
        branch.decoding -= 1;
        if let Some(ticket) = branch.ticket(number) {
            ticket.phase = Phase::Done(block);
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify();
        true
    }

    // ---- folding: serial, under the lock ----

    /// Folds whatever is ready and hands over what is complete.
    fn settle(&self, inner: &mut Inner) {
        if inner.refills.is_empty() && inner.refilling == 0 {
            while !inner.fold.ended && self.fold_one(inner) {}
            inner.fold.flush();
        }
        self.hand_over(inner);
    }

    /// One step of the fold; `false` when it must wait for something.
    fn fold_one(&self, inner: &mut Inner) -> bool {
        let Inner { branches, fold, spare_chunks, .. } = inner;
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
        let positions = |branches: &[Branch]| branches.iter().map(|b| (b.head, b.taken)).collect::<Vec<_>>();
        let Some(chosen) = fold.join.choose() else {
            if !fold.drain(|| positions(branches)) {
                let partial = self.plan.partial;
                if partial == WhenPartial::Pad {
                    fold.pad();
                }
                fold.end(partial != WhenPartial::Drop, positions(branches));
            }
            return true;
        };
        let branch = &mut branches[chosen];
        let Some(front) = branch.window.front() else {
            return branch.dry && self.exhausted(inner, chosen);
        };
        let Phase::Done(block) = &front.phase else { return false };
        let block = Arc::clone(block);
        if branch.taken == block.rows.len() {
            branch.window.pop_front();
            branch.head += 1;
            branch.taken = 0;
            let verdict = judge(branch, &block, self.shared.verdicts.policy);
            keep(spare_chunks, block);
            match verdict {
                Verdict::Fine => {}
                Verdict::Raise(error) => fold.fault(error),
                Verdict::AllBad(error) => self.fail(inner, error),
            }
            return true;
        }
        if fold.free.is_empty() {
            return false;
        }
        let at = branch.taken;
        branch.taken += 1;
        fold.join.took();
        fold.row(u32::try_from(chosen).unwrap_or(0), &block, at, || positions(branches));
        true
    }

    /// An input has nothing left: what now? `false` while more may come.
    fn exhausted(&self, inner: &mut Inner, chosen: usize) -> bool {
        let branch = &mut inner.branches[chosen];
        let Some(drawer) = &mut branch.drawer else { return false };
        if !drawer.ends() || drawer.live() == 0 {
            if branch.may_grow() {
                return false;
            }
            let (stage, root) = (branch.plan.stage.clone(), branch.roster.loader.clone());
            let message = format!("there is no chunk to draw: the files of `{root}` hold none, and none will come");
            self.fail(inner, Error::Stage { stage, message });
            return true;
        }
        if inner.fold.join.exhausted(chosen) {
            drawer.restart();
            branch.dry = false;
            self.shared.signal.notify();
            return false;
        }
        true
    }

    /// Ends the chain with an error, after what is complete.
    pub(super) fn fail(&self, inner: &mut Inner, error: Error) {
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

    // ---- copying ----

    fn fill_one(&self, fill: Fill) {
        self.totals.filling.during(|| self.copy(&fill.block.chunk, &fill.rows));
        let mut inner = self.lock();
        inner.fold.filled(fill.number);
        keep(&mut inner.spare_chunks, fill.block);
        drop(inner);
        self.shared.signal.notify();
    }

    fn copy(&self, chunk: &Chunk, rows: &[(u32, u32)]) {
        let size = self.encoder.input().size();
        let narrow = chunk.layout.as_ref().is_some_and(|layout| layout.size() < size);
        let conform = &self.widen[usize::from(!narrow)];
        for &(frame, slot) in rows {
            self.arena.fill(slot, |bytes| conform.record(chunk.record(frame as usize), &mut bytes[..size]));
        }
    }

    fn encode_one(&self, piece: Piece) {
        let Piece { batch, first, rows, sheet, .. } = piece;
        let slots: Vec<u32> = rows.iter().map(|(slot, _)| *slot).collect();
        let size = self.encoder.input().size();
        let encoded = self.totals.encoding.during(|| {
            self.arena.drain(&slots, |views| {
                let views = views.iter().zip(&rows);
                let input: Vec<Row<'_>> =
                    views.map(|(record, (_, from))| Row { record: &record[..size], provenance: *from }).collect();
                sheet.write(first, input.len(), |columns| self.encoder.encode(&input, columns))
            })
        });
        drop(sheet);
        let mut inner = self.lock();
        inner.encoding -= 1;
        inner.fold.encoded(batch, slots.into_iter());
        if let Err(error) = encoded {
            self.fail(&mut inner, error.into());
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify();
    }

    /// Reads the rows of one chunk that a restored reservoir held.
    fn refill_one(&self, refill: Refill, roster: &Roster, mut chunk: Chunk) {
        let mut bytes = Vec::new();
        let read = roster.open(refill.source).and_then(|source| {
            source.fetch(refill.chunk as usize, &self.shared.limits, &mut bytes)?;
            source.decode(refill.chunk as usize, &bytes, &self.shared.limits, &mut chunk)?;
            match refill.rows.iter().find(|(frame, _)| *frame as usize >= chunk.frames) {
                Some((frame, _)) => Err(Error::State(format!("{} has no frame {frame} any more", source.path()))),
                None => Ok(()),
            }
        });
        if read.is_ok() {
            self.copy(&chunk, &refill.rows);
        }
        let mut inner = self.lock();
        inner.refilling -= 1;
        inner.spare_chunks.push(chunk);
        if let Err(error) = read {
            self.fail(&mut inner, error);
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify();
    }

    fn work_one(&self) -> bool {
        let mut inner = self.lock();
        if let Some(refill) = inner.refills.pop() {
            inner.refilling += 1;
            let roster = Arc::clone(&inner.branches[refill.branch].roster);
            if !roster.ready() {
                inner.refilling -= 1;
                inner.refills.push(refill);
                return false;
            }
            let chunk = inner.spare_chunks.pop().unwrap_or_default();
            drop(inner);
            self.refill_one(refill, &roster, chunk);
            return true;
        }
        self.settle(&mut inner);
        if let Some(fill) = inner.fold.fills.pop_front() {
            drop(inner);
            self.fill_one(fill);
            return true;
        }
        if inner.encoding < self.plan.ceiling {
            if let Some(piece) = inner.fold.ready_piece() {
                inner.encoding += 1;
                drop(inner);
                self.encode_one(piece);
                return true;
            }
        }
        self.decode_one(inner)
    }
}

impl Tasks for Chain {
    fn run(&self, lane: Lane) -> bool {
        if self.shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        match lane {
            Lane::Read => self.read_one(),
            Lane::Work => self.work_one(),
        }
    }
}

enum Verdict {
    Fine,
    Raise(Error),
    AllBad(Error),
}

/// What a finished ticket means: a whole pass of bad chunks in a row ends the stream.
fn judge(branch: &mut Branch, block: &Block, policy: BadChunks) -> Verdict {
    let Some(fault) = &block.fault else {
        branch.bad_run = 0;
        return Verdict::Fine;
    };
    branch.bad_run += 1;
    let live = branch.drawer.as_ref().map_or(0, super::drawer::Drawer::live);
    if policy == BadChunks::Raise {
        return Verdict::Raise(fault.clone().into());
    }
    if branch.bad_run >= live.max(1) {
        let message = format!("all {live} chunks are bad; the last one: {fault}");
        return Verdict::AllBad(Error::Stage { stage: branch.plan.stage.clone(), message });
    }
    Verdict::Fine
}

/// Keeps the buffer of a block that nobody else holds, unless it is a giant's.
fn keep(spare: &mut Vec<Chunk>, block: Arc<Block>) {
    if let Some(block) = Arc::into_inner(block) {
        if block.chunk.bytes.capacity() + block.chunk.scratch.capacity() <= KEEP_BYTES {
            spare.push(block.chunk);
        }
    }
}

fn as_format(error: Error) -> gristmill_format::Error {
    match error {
        Error::Format(error) => error,
        other => gristmill_format::Error::new(gristmill_format::Kind::Missing, other.to_string()),
    }
}

/// Rows of a reservoir and where they come from, as a state lists them.
pub(super) fn held(slot: u32, branch: u32, from: gristmill_format::encode::Provenance) -> Held {
    Held { slot, branch, from }
}
