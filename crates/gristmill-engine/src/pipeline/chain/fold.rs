//! Blocks in ticket order -> which row goes to which slot and which batch row: the serial heart of a chain.
//! Moves numbers only; the copies it decides on are tasks that run elsewhere, numbered in sequence.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gristmill_format::encode::Provenance;
use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::sheet::Sheet;
use gristmill_stages::stage::batch::Batcher;
use gristmill_stages::stage::{Later, Row, Standing};

use crate::pipeline::chain::line::{LaneFold, Run};
use crate::pipeline::chain::pieces::{Building, Fill, Outgoing, PIECE_ROWS, Piece};
use crate::pipeline::chain::refill::{Has, Refills};
use crate::pipeline::draw::branch::Block;
use crate::pipeline::draw::passes::Passes;
use crate::pipeline::plan::skip::Skips;

/// Changes of reservoirs that are noted at most, so that a long run of batches that are left out takes bounded memory.
const MOST_CHANGES: usize = 1 << 20;

/// Where everything stood when a batch was complete; the steps of each lane know it of themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::pipeline) struct Mark {
    /// Number of the next batch.
    pub(in crate::pipeline) batch: u64,
    /// Per branch: the draw whose rows come next, and how many of them were taken.
    pub(in crate::pipeline) branches: Vec<(u64, usize)>,
    /// Passes whose ends were known.
    pub(in crate::pipeline) passes: u64,
}

/// The serial state of a chain.
#[derive(Debug)]
pub(in crate::pipeline) struct Fold {
    /// They give a row in turn.
    pub(in crate::pipeline) lanes: Vec<LaneFold>,
    batcher: Batcher,
    /// Batches whose rows are drawn and go nowhere.
    skips: Skips,
    pub(in crate::pipeline) free: Vec<u32>,
    /// Rows of a restored chain that are to be read again.
    pub(in crate::pipeline) refills: Refills,
    pub(in crate::pipeline) outgoing: VecDeque<Outgoing>,
    pub(in crate::pipeline) ended: bool,
    /// The fill under construction, then those to run.
    filling: Option<Fill>,
    pub(in crate::pipeline) fills: VecDeque<Fill>,
    issued: u64,
    /// All fills below this are done; those done beyond it.
    filled: u64,
    filled_beyond: BTreeSet<u64>,
    /// Slots of rows that are not wanted, with the fills that must be done first.
    discarded: VecDeque<(u64, u32)>,
    pub(in crate::pipeline) pieces: VecDeque<Piece>,
    /// The mark of the last batch in the consumer's hands, then of each later one with how many changes led to it.
    pub(in crate::pipeline) delivered: Mark,
    /// Where there are several.
    pub(in crate::pipeline) passes: Option<Passes>,
    pub(in crate::pipeline) marks: VecDeque<(Mark, usize)>,
    /// Changes in all of these.
    noted: usize,
    /// Rows on their way through a lane.
    run: Run,
}

impl Fold {
    /// `keyed` says whether a stage reads positions.
    pub(in crate::pipeline) fn new(
        lanes: Vec<LaneFold>,
        keyed: bool,
        batch_size: usize,
        slots: u32,
        skips: Skips,
    ) -> Self {
        Fold {
            lanes,
            batcher: Batcher::new(batch_size, 0),
            skips,
            free: (0..slots).rev().collect(),
            refills: Refills::default(),
            outgoing: VecDeque::new(),
            ended: false,
            filling: None,
            fills: VecDeque::new(),
            issued: 0,
            filled: 0,
            filled_beyond: BTreeSet::new(),
            discarded: VecDeque::new(),
            pieces: VecDeque::new(),
            delivered: Mark::default(),
            passes: None,
            marks: VecDeque::new(),
            noted: 0,
            run: Run { keys: vec![0; if keyed { slots as usize } else { 0 }], ..Run::default() },
        }
    }

    /// Resumes from a mark, and from where the parts of each lane stood then; the slots of their rows are taken already.
    ///
    /// Errors: what does not fit.
    pub(in crate::pipeline) fn restore(
        &mut self,
        mark: Mark,
        standings: Vec<Vec<Standing>>,
        batch_size: usize,
    ) -> Result<(), String> {
        self.batcher = Batcher::new(batch_size, mark.batch);
        self.lanes.iter_mut().zip(standings).try_for_each(|(lane, standings)| lane.restore(standings))?;
        self.delivered = mark;
        Ok(())
    }

    /// Notes what stands for the positions of rows that were read again.
    pub(in crate::pipeline) fn keyed(&mut self, keys: impl Iterator<Item = (u32, u64)>) {
        for (slot, key) in keys {
            self.run.keys[slot as usize] = key;
        }
    }

    /// The lane that gives the next row.
    pub(in crate::pipeline) fn turn(&self) -> usize {
        let rows = self.batcher.number() as u128 * self.batcher.size() as u128 + self.batcher.partial() as u128;
        (rows % self.lanes.len() as u128) as usize
    }

    /// Batches that are not yet in the hand-off, the open one included.
    pub(in crate::pipeline) fn undelivered(&self) -> usize {
        self.outgoing.iter().filter(|out| matches!(out, Outgoing::Batch(_))).count()
    }

    /// Whether rows can be placed: a batch is open, or left out.
    pub(in crate::pipeline) fn is_open(&self) -> bool {
        self.is_building() || self.skips.has(self.batcher.number())
    }

    /// Whether the last outgoing batch is not full yet.
    fn is_building(&self) -> bool {
        matches!(self.outgoing.back(), Some(Outgoing::Batch(batch)) if batch.closed.is_none())
    }

    /// Opens the next batch on a sheet.
    pub(in crate::pipeline) fn open(&mut self, sheet: Sheet) {
        self.outgoing.push_back(Outgoing::Batch(Building::new(self.batcher.number(), sheet)));
    }

    /// How many of `left` rows a lane may take as one run: as many as there are slots for, and as come out at most before
    /// the open batch is full. The caller has made sure of an open batch and the lane's turn where one may come out.
    pub(in crate::pipeline) fn most(&self, lane: usize, left: usize) -> usize {
        let room = self.lanes[lane].room();
        let most = if room > 0 { room } else { self.batcher.size() - self.batcher.partial() };
        left.min(most).min(self.free.len())
    }

    /// Takes rows of a block into a lane: a slot for each, and whatever comes out into the open batch. `mark` is called when
    /// a batch is complete, which is after the last of them.
    pub(in crate::pipeline) fn rows(
        &mut self,
        (lane, branch): (usize, u32),
        block: &Arc<Block>,
        rows: Range<usize>,
        mark: impl Fn() -> Vec<(u64, usize)>,
    ) {
        for at in rows {
            let held = self.hold(branch, block, at);
            self.run.rows.extend(held);
        }
        self.flow(lane, mark);
    }

    /// A slot for one row of a block, and the copy into it; `None` where no slot is free.
    pub(in crate::pipeline) fn hold(&mut self, branch: u32, block: &Arc<Block>, at: usize) -> Option<Row> {
        let slot = self.free.pop()?;
        let frame = block.rows[at];
        if let (Some(key), Some(of)) = (block.keys.get(at), self.run.keys.get_mut(slot as usize)) {
            *of = *key;
        }
        let fill = match &mut self.filling {
            Some(fill) if Arc::ptr_eq(&fill.block, block) => fill,
            _ => {
                self.flush();
                let number = self.issued;
                self.filling.insert(Fill { number, block: Arc::clone(block), rows: Vec::new() })
            }
        };
        fill.rows.push((if block.alone { at as u32 } else { frame }, slot));
        let from = Provenance { source: block.source, chunk: block.index, frame };
        Some(Row { slot, branch, from })
    }

    /// Gives a row that has its slot to a lane, and what comes out into the open batch.
    pub(in crate::pipeline) fn give(&mut self, lane: usize, row: Row, mark: impl Fn() -> Vec<(u64, usize)>) {
        self.run.rows.push(row);
        self.flow(lane, mark);
    }

    /// Sends the run through a lane; what comes out is placed.
    fn flow(&mut self, lane: usize, mark: impl Fn() -> Vec<(u64, usize)>) {
        self.lanes[lane].offer(&mut self.run);
        self.settle(mark);
    }

    /// Places what came out of a lane, and lets go what it dropped.
    fn settle(&mut self, mark: impl Fn() -> Vec<(u64, usize)>) {
        let mut run = std::mem::take(&mut self.run);
        run.dropped.drain(..).for_each(|row| self.discard(row));
        run.rows.drain(..).for_each(|row| self.place(row, &mark));
        self.run = run;
    }

    /// Lets a row go that will not be given out; its slot is free once it was filled, or at once if it was not read again so far.
    pub(in crate::pipeline) fn discard(&mut self, row: Row) {
        match self.refills.unwant(row.slot) {
            None => self.discarded.push_back((self.issued + u64::from(self.filling.is_some()), row.slot)),
            Some(true) => self.free.push(row.slot),
            Some(false) => {}
        }
    }

    /// A slot whose row was discarded and is filled by now.
    pub(in crate::pipeline) fn discarded(&mut self) -> Option<u32> {
        self.discarded.pop_front_if(|(after, _)| *after <= self.filled).map(|(_, slot)| slot)
    }

    /// Emits one of the rows left in a lane; `false` when there is none, or none is to be emitted.
    pub(in crate::pipeline) fn drain(&mut self, lane: usize, mark: impl Fn() -> Vec<(u64, usize)>) -> bool {
        self.lanes[lane].drain(&mut self.run);
        let emitted = !self.run.rows.is_empty();
        self.settle(mark);
        emitted
    }

    fn place(&mut self, row: Row, mark: impl Fn() -> Vec<(u64, usize)>) {
        let after = self.issued + u64::from(self.filling.is_some());
        let place = self.batcher.place();
        if self.skips.has(place.batch) {
            self.discard(row);
            if place.last {
                self.mark(mark());
                self.pass_over();
            }
            return;
        }
        let Some(Outgoing::Batch(batch)) = self.outgoing.back_mut() else { return };
        self.refills.want(row.slot);
        batch.add(row.slot, row.from);
        if place.last {
            batch.closed = Some(batch.assigned);
        }
        if place.last || batch.open() == PIECE_ROWS {
            self.pieces.extend(batch.piece(after));
        }
        if place.last {
            self.mark(mark());
        }
    }

    fn mark(&mut self, branches: Vec<(u64, usize)>) {
        let batch = self.batcher.number() + u64::from(self.batcher.partial() > 0);
        let passes = self.passes.as_ref().map_or(0, Passes::known);
        let changes: usize = self.lanes.iter_mut().map(LaneFold::mark).sum();
        self.noted += changes;
        self.marks.push_back((Mark { batch, branches, passes }, changes));
    }

    /// Takes the oldest mark as that of the consumer.
    fn advance(&mut self) {
        if let Some((mark, changes)) = self.marks.pop_front() {
            self.lanes.iter_mut().for_each(LaneFold::advance);
            self.noted -= changes;
            self.delivered = mark;
            let rows = self.delivered.batch.saturating_mul(self.batcher.size() as u64);
            self.passes.iter_mut().for_each(|passes| passes.given(rows));
        }
    }

    /// Draw `number` of the only input, of `live` in a pass, has `left` rows that were not taken in so far.
    pub(in crate::pipeline) fn drawn(&mut self, number: u64, live: u64, left: usize) {
        let Some(passes) = &mut self.passes else { return };
        let held: usize = self.lanes.iter().map(LaneFold::held).sum();
        let size = self.batcher.size() as u64;
        let whole = self.batcher.number().saturating_mul(size);
        let rows = whole.saturating_add((self.batcher.partial() + held + left) as u64);
        passes.drawn(number, live, rows);
        // A batch that was just completed may be the one that ends the pass.
        if let Some((mark, _)) = self.marks.back_mut().filter(|(mark, _)| mark.batch.saturating_mul(size) >= rows) {
            mark.passes = passes.known();
        }
    }

    /// Where the undo log grows too long while batches are skipped, moves the mark of the consumer past skipped batches.
    fn pass_over(&mut self) {
        while self.noted > MOST_CHANGES
            && self.marks.front().is_some_and(|(mark, _)| self.skips.has(mark.batch.saturating_sub(1)))
        {
            self.advance();
        }
    }

    /// Writes zeros into the rows that the open batch lacks.
    pub(in crate::pipeline) fn pad(&mut self) {
        if self.is_building()
            && self.batcher.partial() > 0
            && let Some(Outgoing::Batch(batch)) = self.outgoing.back()
        {
            let missing = self.batcher.size() - batch.assigned;
            batch.sheet.write(batch.assigned, missing, |columns| columns.iter_mut().for_each(|rows| rows.fill(0)));
        }
    }

    /// Ends the stream: the open batch is closed with the rows it has, or left out (`keep` false).
    pub(in crate::pipeline) fn end(&mut self, keep: bool, branches: Vec<(u64, usize)>) {
        self.flush();
        self.ended = true;
        let after = self.issued;
        let building = self.is_building();
        if keep
            && building
            && self.batcher.partial() > 0
            && let Some(Outgoing::Batch(batch)) = self.outgoing.back_mut()
        {
            batch.closed = Some(batch.assigned);
            self.pieces.extend(batch.piece(after));
            self.mark(branches);
        }
        if self.is_building() {
            self.outgoing.pop_back();
        }
        self.outgoing.push_back(Outgoing::End);
    }

    /// An error takes its place in the stream: after all complete batches, before the open one.
    pub(in crate::pipeline) fn fault(&mut self, error: Error) {
        let open = if self.is_building() { self.outgoing.pop_back() } else { None };
        self.outgoing.push_back(Outgoing::Fault(error));
        self.outgoing.extend(open);
    }

    /// Makes the fill under construction a task.
    pub(in crate::pipeline) fn flush(&mut self) {
        if let Some(fill) = self.filling.take() {
            self.issued += 1;
            self.fills.push_back(fill);
        }
    }

    /// A fill is done.
    pub(in crate::pipeline) fn filled(&mut self, number: u64) {
        self.filled_beyond.insert(number);
        while self.filled_beyond.remove(&self.filled) {
            self.filled += 1;
        }
    }

    /// The next piece whose slots are all filled.
    pub(in crate::pipeline) fn ready_piece(&mut self) -> Option<Piece> {
        if self.has_ready_piece() { self.pieces.pop_front() } else { None }
    }

    /// Whether there is such a piece.
    pub(in crate::pipeline) fn has_ready_piece(&self) -> bool {
        self.pieces
            .front()
            .is_some_and(|piece| piece.after <= self.filled && self.refills.has(piece.slots()) == Has::All)
    }

    /// The chunk of a restored reservoir that the next piece waits for.
    pub(in crate::pipeline) fn urgent_refill(&self) -> Option<u32> {
        match self.refills.has(self.pieces.front()?.slots()) {
            Has::Waits(chunk) => Some(chunk),
            Has::All | Has::Fails(_) => None,
        }
    }

    /// Where a batch needs a row of a restored reservoir that cannot be had, it gives way to the error, and the stream ends. A function of the
    /// rows alone: all pieces before the first one have theirs, and so have the rows before it.
    pub(in crate::pipeline) fn break_off(&mut self) -> Option<&Error> {
        while let Has::Fails(chunk) = self.refills.has(self.pieces.front()?.slots()) {
            let number = self.pieces.front()?.batch;
            let of = |out: &Outgoing| matches!(out, Outgoing::Batch(batch) if batch.number == number);
            let Some(at) = self.outgoing.iter().position(of) else {
                // Rows of a batch that was left out at the end go nowhere.
                self.pieces.pop_front();
                continue;
            };
            self.outgoing.truncate(at);
            self.pieces.clear();
            self.flush();
            self.ended = true;
            self.outgoing.extend(self.refills.error(chunk).map(Outgoing::Fault));
            self.outgoing.push_back(Outgoing::End);
            self.refills.end();
            return match self.outgoing.get(at) {
                Some(Outgoing::Fault(error)) => Some(error),
                _ => None,
            };
        }
        None
    }

    /// Rows of a batch are encoded; their slots are free again.
    pub(in crate::pipeline) fn encoded(&mut self, batch: u64, slots: impl Iterator<Item = u32>) {
        let before = self.free.len();
        self.free.extend(slots);
        let rows = self.free.len() - before;
        let found = self.outgoing.iter_mut().find_map(|out| match out {
            Outgoing::Batch(building) if building.number == batch => Some(building),
            _ => None,
        });
        if let Some(building) = found {
            building.encoded += rows;
        }
    }

    /// The front of the outgoing batches, once it is complete.
    pub(in crate::pipeline) fn ready(&mut self) -> Option<Outgoing> {
        let ready = match self.outgoing.front()? {
            Outgoing::Batch(batch) => batch.closed == Some(batch.encoded),
            Outgoing::Fault(_) | Outgoing::End => true,
        };
        if ready { self.outgoing.pop_front() } else { None }
    }

    /// Batch `number` is in the consumer's hands.
    pub(in crate::pipeline) fn took(&mut self, number: u64) {
        while self.marks.front().is_some_and(|(mark, _)| mark.batch <= number + 1) {
            self.advance();
        }
        self.passes.iter_mut().for_each(Passes::took);
    }

    /// Sources of the rows that the lanes hold, or held at the delivered mark or later; most of them many times.
    pub(in crate::pipeline) fn sources(&self) -> impl Iterator<Item = u64> + '_ {
        self.lanes.iter().flat_map(LaneFold::rows).map(|row| row.from.source)
    }

    /// Where the parts of each lane stood at the delivered mark.
    pub(in crate::pipeline) fn later(&self) -> Vec<Vec<Later>> {
        self.lanes.iter().map(LaneFold::later).collect()
    }
}

#[cfg(test)]
mod tests;
