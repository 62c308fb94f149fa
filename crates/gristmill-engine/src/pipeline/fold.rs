//! Blocks in ticket order -> which row goes to which slot and which batch row: the serial heart of a chain.
//! Moves numbers only; the copies it decides on are tasks that run elsewhere, numbered in sequence.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use gristmill_format::encode::Provenance;

use super::branch::Block;
use super::passes::Passes;
use super::skip::Skips;
use crate::error::Error;
use crate::runtime::sheet::Sheet;
use crate::stage::batch::Batcher;
use crate::stage::join::Join;
use crate::stage::sample::{Change, Reservoir};

/// Rows of one encode task.
pub(super) const PIECE_ROWS: usize = 64;

/// Changes of reservoirs that are noted at most, so that a long run of batches that are left out takes bounded memory.
const MOST_CHANGES: usize = 1 << 20;

/// A row on its way from a block to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) slot: u32,
    pub(super) branch: u32,
    pub(super) from: Provenance,
}

/// Copies from a block into slots.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) number: u64,
    pub(super) block: Arc<Block>,
    /// Row of the block, slot.
    pub(super) rows: Vec<(u32, u32)>,
}

/// Rows of a batch to encode, once `after` fills are done.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) batch: u64,
    pub(super) first: usize,
    pub(super) rows: Vec<(u32, Provenance)>,
    pub(super) sheet: Arc<Sheet>,
    after: u64,
}

/// A batch being built.
#[derive(Debug)]
pub(super) struct Building {
    pub(super) number: u64,
    pub(super) sheet: Arc<Sheet>,
    /// Real rows, once closed.
    pub(super) closed: Option<usize>,
    pub(super) encoded: usize,
    open_rows: Vec<(u32, Provenance)>,
    assigned: usize,
}

/// What leaves a chain, in order.
#[derive(Debug)]
pub(super) enum Outgoing {
    Batch(Building),
    Fault(Error),
    End,
}

/// Where everything stood when a batch was complete: enough, with the changes since, to resume from there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Mark {
    /// Number of the next batch.
    pub(super) batch: u64,
    pub(super) lanes: Vec<LaneMark>,
    /// Per branch: the draw whose rows come next, and how many of them were taken.
    pub(super) branches: Vec<(u64, usize)>,
    /// Passes whose ends were known.
    pub(super) passes: u64,
}

/// What a [`Mark`] says of one lane.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LaneMark {
    /// Ordinal of the next joined row, and the weights left.
    pub(super) join: (u64, Vec<f64>),
    /// Draws that the reservoir made.
    pub(super) draws: u64,
}

/// The order of one lane's rows.
#[derive(Debug)]
pub(super) struct LaneFold {
    pub(super) join: Join,
    pub(super) reservoir: Reservoir<Held>,
    /// Since the last mark.
    changes: Vec<Change<Held>>,
}

impl LaneFold {
    pub(super) fn new(join: Join, reservoir: Reservoir<Held>) -> Self {
        LaneFold { join, reservoir, changes: Vec::new() }
    }

    /// Whether the next row that it takes makes it give one.
    pub(super) fn is_full(&self) -> bool {
        self.reservoir.held().len() == self.reservoir.capacity()
    }

    fn mark(&self) -> LaneMark {
        LaneMark { join: self.join.state(), draws: self.reservoir.ordinal() }
    }
}

/// Changes of each lane's reservoir.
type Changes = Vec<Vec<Change<Held>>>;

/// The serial state of a chain.
#[derive(Debug)]
pub(super) struct Fold {
    /// They give a row in turn.
    pub(super) lanes: Vec<LaneFold>,
    drain: bool,
    batcher: Batcher,
    /// Batches whose rows are drawn and go nowhere.
    skips: Skips,
    pub(super) free: Vec<u32>,
    pub(super) outgoing: VecDeque<Outgoing>,
    pub(super) ended: bool,
    /// The fill under construction, then those to run.
    filling: Option<Fill>,
    pub(super) fills: VecDeque<Fill>,
    issued: u64,
    /// Rows taken in, and rows given to batches, since the start.
    pub(super) joined: u64,
    pub(super) placed: u64,
    /// All fills below this are done; those done beyond it.
    filled: u64,
    filled_beyond: BTreeSet<u64>,
    /// Slots of rows that are not wanted, with the fills that must be done first.
    discarded: VecDeque<(u64, u32)>,
    pub(super) pieces: VecDeque<Piece>,
    /// The mark of the last batch in the consumer's hands, then of each later one with the changes that led to it.
    pub(super) delivered: Mark,
    /// Where there are several.
    pub(super) passes: Option<Passes>,
    pub(super) marks: VecDeque<(Mark, Changes)>,
    /// Changes in all of these.
    noted: usize,
}

impl Fold {
    pub(super) fn new(lanes: Vec<LaneFold>, drain: bool, batch_size: usize, slots: u32, skips: Skips) -> Self {
        let mark = Mark { lanes: lanes.iter().map(LaneFold::mark).collect(), ..Mark::default() };
        Fold {
            lanes,
            drain,
            batcher: Batcher::new(batch_size, 0),
            skips,
            free: (0..slots).rev().collect(),
            outgoing: VecDeque::new(),
            ended: false,
            filling: None,
            fills: VecDeque::new(),
            issued: 0,
            joined: 0,
            placed: 0,
            filled: 0,
            filled_beyond: BTreeSet::new(),
            discarded: VecDeque::new(),
            pieces: VecDeque::new(),
            delivered: mark,
            passes: None,
            marks: VecDeque::new(),
            noted: 0,
        }
    }

    /// Goes on from a mark with the rows that each reservoir held; their slots are taken from the free ones. `None` when
    /// a join has another number of inputs.
    pub(super) fn restore(&mut self, mark: Mark, held: Vec<Vec<Held>>, batch_size: usize) -> Option<()> {
        self.batcher = Batcher::new(batch_size, mark.batch);
        for ((lane, mark), held) in self.lanes.iter_mut().zip(&mark.lanes).zip(held) {
            lane.join.restore(mark.join.0, &mark.join.1)?;
            lane.reservoir.restore(held, mark.draws);
        }
        self.delivered = mark;
        Some(())
    }

    /// The lane that gives the next row.
    pub(super) fn turn(&self) -> usize {
        let rows = self.batcher.number() as u128 * self.batcher.size() as u128 + self.batcher.partial() as u128;
        (rows % self.lanes.len() as u128) as usize
    }

    /// Batches that are not yet in the hand-off, the open one included.
    pub(super) fn undelivered(&self) -> usize {
        self.outgoing.iter().filter(|out| matches!(out, Outgoing::Batch(_))).count()
    }

    /// Whether rows can be placed: a batch is open, or left out.
    pub(super) fn is_open(&self) -> bool {
        self.is_building() || self.skips.has(self.batcher.number())
    }

    /// Whether the last outgoing batch is not full yet.
    fn is_building(&self) -> bool {
        matches!(self.outgoing.back(), Some(Outgoing::Batch(batch)) if batch.closed.is_none())
    }

    /// Opens the next batch on a sheet.
    pub(super) fn open(&mut self, sheet: Sheet) {
        self.outgoing.push_back(Outgoing::Batch(Building {
            number: self.batcher.number(),
            sheet: Arc::new(sheet),
            closed: None,
            encoded: 0,
            open_rows: Vec::with_capacity(PIECE_ROWS),
            assigned: 0,
        }));
    }

    /// Takes one row of a block into a lane: a slot for it, and whatever the reservoir gives out into the open batch.
    /// The caller has made sure of a free slot and, where the reservoir is full, of an open batch and the lane's turn.
    /// `mark` is called when a batch is complete.
    pub(super) fn row(
        &mut self,
        (lane, branch): (usize, u32),
        block: &Arc<Block>,
        at: usize,
        mark: impl FnOnce() -> Vec<(u64, usize)>,
    ) {
        if let Some(row) = self.hold(branch, block, at) {
            self.give(lane, row, mark);
        }
    }

    /// A slot for one row of a block, and the copy into it; `None` where no slot is free.
    pub(super) fn hold(&mut self, branch: u32, block: &Arc<Block>, at: usize) -> Option<Held> {
        let slot = self.free.pop()?;
        let frame = block.rows[at];
        let fill = match &mut self.filling {
            Some(fill) if Arc::ptr_eq(&fill.block, block) => fill,
            _ => {
                self.flush();
                let number = self.issued;
                self.filling.insert(Fill { number, block: Arc::clone(block), rows: Vec::new() })
            }
        };
        fill.rows.push((if block.alone { at as u32 } else { frame }, slot));
        self.joined += 1;
        let from = Provenance { source: block.source, chunk: block.index, frame };
        Some(Held { slot, branch, from })
    }

    /// Gives a row that has its slot to a lane's reservoir, and what that gives out into the open batch.
    pub(super) fn give(&mut self, lane: usize, row: Held, mark: impl FnOnce() -> Vec<(u64, usize)>) {
        let LaneFold { join, reservoir, changes } = &mut self.lanes[lane];
        join.took();
        if let Some(out) = reservoir.offer(row, changes) {
            self.place(out, mark);
        }
    }

    /// Lets a row go that will not be given out; its slot is free once it was filled.
    pub(super) fn discard(&mut self, row: Held) {
        self.discarded.push_back((self.issued + u64::from(self.filling.is_some()), row.slot));
    }

    /// A slot whose row was discarded and is filled by now.
    pub(super) fn discarded(&mut self) -> Option<u32> {
        self.discarded.pop_front_if(|(after, _)| *after <= self.filled).map(|(_, slot)| slot)
    }

    /// Emits one of the rows left in a lane's reservoir; `false` when there is none, or none is to be emitted.
    pub(super) fn drain(&mut self, lane: usize, mark: impl FnOnce() -> Vec<(u64, usize)>) -> bool {
        let LaneFold { reservoir, changes, .. } = &mut self.lanes[lane];
        let left = if self.drain { reservoir.drain(changes) } else { None };
        left.map(|row| self.place(row, mark)).is_some()
    }

    fn place(&mut self, row: Held, mark: impl FnOnce() -> Vec<(u64, usize)>) {
        let after = self.issued + u64::from(self.filling.is_some());
        let place = self.batcher.place();
        self.placed += 1;
        if self.skips.has(place.batch) {
            self.discard(row);
            if place.last {
                self.mark(mark());
                self.pass_over();
            }
            return;
        }
        let Some(Outgoing::Batch(batch)) = self.outgoing.back_mut() else { return };
        batch.open_rows.push((row.slot, row.from));
        batch.assigned += 1;
        if place.last {
            batch.closed = Some(batch.assigned);
        }
        if place.last || batch.open_rows.len() == PIECE_ROWS {
            self.pieces.extend(batch.piece(after));
        }
        if place.last {
            self.mark(mark());
        }
    }

    fn mark(&mut self, branches: Vec<(u64, usize)>) {
        let lanes = self.lanes.iter().map(LaneFold::mark).collect();
        let batch = self.batcher.number() + u64::from(self.batcher.partial() > 0);
        let passes = self.passes.as_ref().map_or(0, Passes::known);
        let mark = Mark { batch, lanes, branches, passes };
        let changes: Changes = self.lanes.iter_mut().map(|lane| std::mem::take(&mut lane.changes)).collect();
        self.noted += changes.iter().map(Vec::len).sum::<usize>();
        self.marks.push_back((mark, changes));
    }

    /// Takes the oldest mark as that of the consumer.
    fn advance(&mut self) {
        if let Some((mark, changes)) = self.marks.pop_front() {
            self.noted -= changes.iter().map(Vec::len).sum::<usize>();
            self.delivered = mark;
            let rows = self.delivered.batch.saturating_mul(self.batcher.size() as u64);
            self.passes.iter_mut().for_each(|passes| passes.given(rows));
        }
    }

    /// Draw `number` of the only input, of `live` in a pass, has `left` rows that were not taken in so far.
    pub(super) fn drawn(&mut self, number: u64, live: u64, left: usize) {
        let held: usize = self.lanes.iter().map(|lane| lane.reservoir.held().len()).sum();
        let whole = self.batcher.number().saturating_mul(self.batcher.size() as u64);
        let rows = whole.saturating_add((self.batcher.partial() + held + left) as u64);
        self.passes.iter_mut().for_each(|passes| passes.drawn(number, live, rows));
    }

    /// Where more changes are noted than is good, and all batches before those left out are with the consumer, that is
    /// taken to be past some of those.
    fn pass_over(&mut self) {
        while self.noted > MOST_CHANGES
            && self.marks.front().is_some_and(|(mark, _)| self.skips.has(mark.batch.saturating_sub(1)))
        {
            self.advance();
        }
    }

    /// Writes zeros into the rows that the open batch lacks.
    pub(super) fn pad(&mut self) {
        if self.is_building()
            && self.batcher.partial() > 0
            && let Some(Outgoing::Batch(batch)) = self.outgoing.back()
        {
            let missing = self.batcher.size() - batch.assigned;
            batch.sheet.write(batch.assigned, missing, |columns| columns.iter_mut().for_each(|rows| rows.fill(0)));
        }
    }

    /// Ends the stream: the open batch is closed with the rows it has, or left out (`keep` false).
    pub(super) fn end(&mut self, keep: bool, branches: Vec<(u64, usize)>) {
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
    pub(super) fn fault(&mut self, error: Error) {
        let open = if self.is_building() { self.outgoing.pop_back() } else { None };
        self.outgoing.push_back(Outgoing::Fault(error));
        self.outgoing.extend(open);
    }

    /// Makes the fill under construction a task.
    pub(super) fn flush(&mut self) {
        if let Some(fill) = self.filling.take() {
            self.issued += 1;
            self.fills.push_back(fill);
        }
    }

    /// A fill is done.
    pub(super) fn filled(&mut self, number: u64) {
        self.filled_beyond.insert(number);
        while self.filled_beyond.remove(&self.filled) {
            self.filled += 1;
        }
    }

    /// The next piece whose slots are all filled.
    pub(super) fn ready_piece(&mut self) -> Option<Piece> {
        if self.pieces.front()?.after <= self.filled { self.pieces.pop_front() } else { None }
    }

    /// Rows of a batch are encoded; their slots are free again.
    pub(super) fn encoded(&mut self, batch: u64, slots: impl Iterator<Item = u32>) {
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
    pub(super) fn ready(&mut self) -> Option<Outgoing> {
        let ready = match self.outgoing.front()? {
            Outgoing::Batch(batch) => batch.closed == Some(batch.encoded),
            Outgoing::Fault(_) | Outgoing::End => true,
        };
        if ready { self.outgoing.pop_front() } else { None }
    }

    /// Batch `number` is in the consumer's hands.
    pub(super) fn took(&mut self, number: u64) {
        while self.marks.front().is_some_and(|(mark, _)| mark.batch <= number + 1) {
            self.advance();
        }
        self.passes.iter_mut().for_each(|passes| passes.took(number));
    }

    /// Sources of the rows that the reservoirs hold, or held at the delivered mark or later; most of them many times.
    pub(super) fn sources(&self) -> impl Iterator<Item = u64> + '_ {
        let changes =
            self.marks.iter().flat_map(|(_, changes)| changes).chain(self.lanes.iter().map(|lane| &lane.changes));
        let left = changes.flatten().filter_map(|change| match change {
            Change::Pushed => None,
            Change::Replaced { old, .. } | Change::Removed { old, .. } => Some(old),
        });
        self.lanes.iter().flat_map(|lane| lane.reservoir.held()).chain(left).map(|row| row.from.source)
    }

    /// What each reservoir holds, and the changes to take back from it, newest last: what it held at the delivered mark.
    pub(super) fn held(&self) -> Vec<(Vec<Held>, Vec<Change<Held>>)> {
        let since = |l: usize, lane: &LaneFold| {
            let marked = self.marks.iter().flat_map(|(_, changes)| &changes[l]);
            (lane.reservoir.held().to_vec(), marked.chain(&lane.changes).copied().collect())
        };
        self.lanes.iter().enumerate().map(|(l, lane)| since(l, lane)).collect()
    }
}

impl Building {
    fn piece(&mut self, after: u64) -> Option<Piece> {
        if self.open_rows.is_empty() {
            return None;
        }
        let rows = std::mem::replace(&mut self.open_rows, Vec::with_capacity(PIECE_ROWS));
        let first = self.assigned - rows.len();
        Some(Piece { batch: self.number, first, rows, sheet: Arc::clone(&self.sheet), after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Skip;
    use crate::runtime::seed::Key;
    use crate::stage::join::Exhausted;

    #[test]
    fn what_is_noted_of_a_long_gap_is_bounded() {
        let key = Key::new(1, "fold");
        let lane = LaneFold::new(Join::new(key, vec![1.0], Exhausted::Stop), Reservoir::new(key, 8));
        let gap: Skip = "1..3000".parse().unwrap();
        let skips = Skips::of(&[gap], &[String::new()]).unwrap().remove(0);
        let mut fold = Fold::new(vec![lane], false, 1024, 4096, skips);
        let block = Arc::new(Block { rows: vec![0; 1024], ..Block::default() });
        fold.batcher = Batcher::new(1024, 1);
        for _ in 0..2500 {
            (0..1024).for_each(|at| fold.row((0, 0), &block, at, Vec::new));
            fold.flush();
            fold.fills.drain(..).map(|fill| fill.number).collect::<Vec<_>>().into_iter().for_each(|n| fold.filled(n));
            while let Some(slot) = fold.discarded() {
                fold.free.push(slot);
            }
            assert!(fold.noted < MOST_CHANGES + 4096);
        }
        assert!(fold.outgoing.is_empty() && fold.delivered.batch > 1 && fold.skips.has(fold.delivered.batch));
    }
}
