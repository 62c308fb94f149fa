//! Rows that a restored chain held -> which of their chunks is read next: those of waiting batches, then the others.
//! Keeps who has which chunk, and which rows are not wanted any more; reads, decodes and copies nothing itself.

mod chunks;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::counted::Counted;
use gristmill_stages::stage::load::Source;

pub(in crate::pipeline) use self::chunks::{Chunks, Unread};

/// Stands for no chunk: the slot has its row, or was never to get one.
const FILLED: u32 = u32::MAX;

/// Stands for no chunk: a worker copies the row, and nobody wants it any more.
const UNWANTED: u32 = u32::MAX - 1;

/// Chunks for waiting batches, and others, that may be fetched before a worker decodes them.
const AHEAD: [usize; 2] = [32, 8];

/// Tickets that are fetched, or decoded, before one of the chunks that no batch waits for has a turn.
const TURN: [u32; 2] = [8, 8];

/// Containers outside the window that stay open, so that each chunk does not read their index again.
const OPEN: usize = 64;

/// Rows of one chunk that a restored reservoir or cache held and that are wanted still.
#[derive(Debug)]
pub(super) struct Refill {
    pub(super) branch: usize,
    pub(super) source: u64,
    pub(super) chunk: u32,
    /// Frame of the chunk, slot.
    pub(super) rows: Vec<(u32, u32)>,
    /// Place of the chunk and use whose row the cache holds, slot.
    pub(super) cached: Vec<((u64, u16), u32)>,
}

/// How far a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    Waiting,
    /// A reader has it.
    Reading,
    Read,
    /// A worker has it.
    Busy,
    Done,
    /// Its rows cannot be had: the first batch that needs one gives way to the error.
    Failed,
}

/// What becomes of a chunk.
#[derive(Debug)]
struct Entry {
    /// Rows that are still wanted.
    left: u32,
    /// Whether a batch waits for one of them.
    wanted: bool,
    stand: Stand,
}

/// Which chunks are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// Those that a batch waits for.
    Batches,
    /// The others.
    Later,
}

/// A kind of step that tickets and chunks of a refill have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Fetch,
    Decode,
}

/// What the first rows of a batch that is to be encoded have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Has {
    All,
    /// Not the row of this chunk, so far.
    Waits(u32),
    /// Not the row of this chunk, which cannot be had.
    Fails(u32),
}

/// What a restored chain reads again.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Refills {
    chunks: Chunks,
    /// Per chunk.
    entries: Vec<Entry>,
    /// Per slot, the chunk whose row it is to get.
    of_slot: Vec<u32>,
    /// Whether the chain is still until all rows are there.
    eager: bool,
    /// Nothing more is wanted.
    over: bool,
    /// Chunks that wait for a reader; some of those that were read meanwhile are among them.
    wanted: VecDeque<u32>,
    others: VecDeque<u32>,
    /// Chunks that wait for a worker.
    read: Vec<(u32, Arc<Source>, Counted<Vec<u8>>)>,
    reading: usize,
    busy: usize,
    /// Chunks that are neither done nor lost, and those that are lost.
    left: usize,
    failures: usize,
    errors: BTreeMap<u32, Error>,
    /// Tickets since one of the others had its turn, by step.
    tickets: [u32; 2],
    /// Whether a batch wants a chunk that readers do not know of.
    called: bool,
    open: VecDeque<(u64, Arc<Source>)>,
}

impl Refills {
    /// Takes over what is to be read again; `eager` says that the chain is still until then.
    pub(in crate::pipeline) fn new(chunks: Chunks, eager: bool) -> Self {
        let mut this = Refills { eager, left: chunks.len(), ..Refills::default() };
        let ids = 0..chunks.len() as u32;
        let entry = |id: u32| {
            let left = (chunks.rows(id).len() + chunks.cached(id).len()) as u32;
            Entry { left, wanted: eager, stand: Stand::Waiting }
        };
        this.entries = ids.clone().map(entry).collect();
        if !eager {
            let slots = chunks.all_rows().iter().map(|(_, slot)| *slot as usize + 1).max().unwrap_or(0);
            this.of_slot = vec![FILLED; slots];
            for id in ids.clone() {
                chunks.rows(id).iter().for_each(|(_, slot)| this.of_slot[*slot as usize] = id);
            }
        }
        *if eager { &mut this.wanted } else { &mut this.others } = ids.collect();
        Refills { chunks, ..this }
    }

    /// Whether nothing may be folded before all rows are there.
    pub(super) fn is_still(&self) -> bool {
        self.eager && self.left > 0
    }

    /// Chunks that are still to be read.
    pub(in crate::pipeline) fn unread(&self) -> u64 {
        self.left as u64
    }

    /// Whether there is nothing to read.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Chunks that readers have or have fetched, and those that workers have.
    pub(super) fn under_way(&self) -> [usize; 2] {
        [self.reading + self.read.len(), self.busy]
    }

    /// Nothing more is wanted: the stream has ended with an error.
    pub(super) fn end(&mut self) {
        self.over = true;
        self.wanted.clear();
        self.others.clear();
        self.read.clear();
    }

    fn pending(&self, slot: u32) -> Option<u32> {
        self.of_slot.get(slot as usize).copied().filter(|id| *id < UNWANTED)
    }

    /// A batch waits for the row of a slot.
    pub(super) fn want(&mut self, slot: u32) {
        let Some(id) = self.pending(slot) else { return };
        let entry = &mut self.entries[id as usize];
        if !std::mem::replace(&mut entry.wanted, true) && entry.stand == Stand::Waiting {
            self.wanted.push_back(id);
            self.called = true;
        }
    }

    /// Nobody wants the row of a slot. `None` where it has its row, or gets it from a block; else whether the slot is free at once: it is later
    /// where a worker copies the row now.
    pub(super) fn unwant(&mut self, slot: u32) -> Option<bool> {
        let id = self.pending(slot)?;
        let entry = &mut self.entries[id as usize];
        let busy = entry.stand == Stand::Busy;
        self.of_slot[slot as usize] = if busy { UNWANTED } else { FILLED };
        if !busy {
            entry.left -= 1;
            if entry.left == 0 && entry.stand == Stand::Waiting {
                self.finish(id);
            }
        }
        Some(!busy)
    }

    /// What the rows of these slots lack, in their order.
    pub(super) fn has(&self, slots: impl Iterator<Item = u32>) -> Has {
        if self.of_slot.is_empty() {
            return Has::All;
        }
        let first = slots.filter_map(|slot| self.pending(slot)).next();
        first.map_or(Has::All, |id| match self.entries[id as usize].stand {
            Stand::Failed => Has::Fails(id),
            _ => Has::Waits(id),
        })
    }

    /// The error of a chunk whose rows cannot be had.
    pub(super) fn error(&mut self, id: u32) -> Option<Error> {
        self.errors.remove(&id)
    }

    /// Whether readers are to be woken for a chunk that a batch waits for.
    pub(super) fn called(&mut self) -> bool {
        std::mem::take(&mut self.called)
    }

    /// Notes that a ticket went a step further.
    pub(super) fn ticket(&mut self, step: Step) {
        let tickets = &mut self.tickets[step as usize];
        *tickets = tickets.saturating_add(1);
    }

    /// Whether one of the chunks that no batch waits for has its turn before another ticket.
    pub(super) fn has_turn(&self, step: Step) -> bool {
        self.tickets[step as usize] >= TURN[step as usize]
    }

    /// A chunk to fetch, which a reader has from now on; `urgent` is the one that the next batch waits for.
    pub(super) fn next_to_fetch(&mut self, of: For, urgent: Option<u32>, rests: impl Fn(u64) -> bool) -> Option<u32> {
        let (entries, chunks) = (&self.entries, &self.chunks);
        let rests = |id: u32| rests(chunks.at(id).1);
        let may = |id: u32| {
            let entry = &entries[id as usize];
            entry.stand == Stand::Waiting && (of == For::Batches || !entry.wanted)
        };
        let fetched = self.reading + self.read.len();
        let urgent = urgent.filter(|id| of == For::Batches && may(*id) && !rests(*id));
        let queue = if of == For::Batches { &mut self.wanted } else { &mut self.others };
        let mut next = urgent;
        let most = if fetched < AHEAD[of as usize] { queue.len() } else { 0 };
        for _ in 0..most {
            if next.is_some() {
                break;
            }
            let id = queue.pop_front().filter(|id| may(*id));
            let rests = id.is_some_and(rests);
            queue.extend(id.filter(|_| rests));
            next = id.filter(|_| !rests);
        }
        self.entries[next? as usize].stand = Stand::Reading;
        self.reading += 1;
        if of == For::Later {
            self.tickets[Step::Fetch as usize] = 0;
        }
        next
    }

    /// Branch, source and index of a chunk, and its file where that is open.
    pub(super) fn chunk(&self, id: u32) -> (usize, u64, u32, Option<Arc<Source>>) {
        let (branch, source, chunk) = self.chunks.at(id);
        let open = self.open.iter().find(|(of, _)| *of == source).map(|(_, open)| Arc::clone(open));
        (branch, source, chunk, open)
    }

    /// Keeps the file of a chunk open for the next ones, while there are few.
    pub(super) fn keep_open(&mut self, id: u32, open: &Arc<Source>) {
        let (_, source, _) = self.chunks.at(id);
        if open.len() > 1 && self.open.iter().all(|(of, _)| *of != source) {
            self.open.truncate(OPEN - 1);
            self.open.push_front((source, Arc::clone(open)));
        }
    }

    /// Branch and source of each file.
    pub(super) fn files(&self) -> Vec<(usize, u64)> {
        self.chunks.files().collect()
    }

    /// Whether a batch waits for a chunk.
    pub(super) fn is_wanted(&self, id: u32) -> bool {
        self.entries[id as usize].wanted
    }

    /// The bytes of a chunk were fetched.
    pub(super) fn fetched(&mut self, id: u32, source: Arc<Source>, bytes: Counted<Vec<u8>>) {
        self.reading -= 1;
        self.entries[id as usize].stand = Stand::Read;
        if !self.over {
            self.read.push((id, source, bytes));
        }
    }

    /// A chunk could not be fetched so far: `soon` says that it is the next one again.
    pub(super) fn unfetched(&mut self, id: u32, soon: bool) {
        self.reading -= 1;
        let entry = &mut self.entries[id as usize];
        entry.stand = Stand::Waiting;
        if entry.left == 0 {
            return self.finish(id);
        }
        let queue = if entry.wanted { &mut self.wanted } else { &mut self.others };
        match (self.over, soon) {
            (true, _) => {}
            (false, true) => queue.push_front(id),
            (false, false) => queue.push_back(id),
        }
    }

    /// The chunk to decode, if there is one, and how its stored bytes begin.
    pub(super) fn next_to_decode(&self, of: For, urgent: Option<u32>) -> Option<(u32, &[u8])> {
        let may = |read: &&(u32, _, _)| self.is_wanted(read.0) == (of == For::Batches);
        let first = self.read.iter().filter(may).min_by_key(|read| urgent != Some(read.0));
        first.map(|(id, _, bytes)| (*id, &bytes[..]))
    }

    /// Hands a chunk that was fetched to a worker, with the rows of it that are wanted.
    pub(super) fn begin(&mut self, id: u32) -> Option<(Refill, Arc<Source>, Counted<Vec<u8>>)> {
        let place = self.read.iter().position(|read| read.0 == id)?;
        let (_, open, bytes) = self.read.remove(place);
        self.entries[id as usize].stand = Stand::Busy;
        let wanted = |(_, slot): &&(u32, u32)| self.eager || self.of_slot[*slot as usize] == id;
        let rows = self.chunks.rows(id).iter().filter(wanted).copied().collect();
        let (branch, source, chunk) = self.chunks.at(id);
        let refill = Refill { branch, source, chunk, rows, cached: self.chunks.cached(id).to_vec() };
        self.busy += 1;
        if !self.is_wanted(id) {
            self.tickets[Step::Decode as usize] = 0;
        }
        Some((refill, open, bytes))
    }

    /// Gives a chunk up that could not be fetched and has no row of a reservoir that is wanted: the slots of its rows of the cache.
    pub(super) fn give_up(&mut self, id: u32) -> Option<Vec<u32>> {
        if !self.chunks.rows(id).is_empty() && self.entries[id as usize].left > 0 {
            return None;
        }
        let slots = self.chunks.cached(id).iter().map(|(_, slot)| *slot).collect();
        self.reading -= 1;
        self.finish(id);
        Some(slots)
    }

    /// The rows that a worker had are in their slots. Returns the slots of those that nobody wants any more.
    pub(super) fn filled(&mut self, id: u32, rows: &[(u32, u32)]) -> Vec<u32> {
        self.busy -= 1;
        let unwanted = self.settled(rows, FILLED);
        self.finish(id);
        unwanted
    }

    /// The rows of a chunk cannot be had. Returns the slots of those that nobody wants any more.
    pub(super) fn failed(&mut self, id: u32, error: Error, rows: &[(u32, u32)]) -> Vec<u32> {
        let entry = &mut self.entries[id as usize];
        let busy = entry.stand == Stand::Busy;
        *(if busy { &mut self.busy } else { &mut self.reading }) -= 1;
        entry.stand = Stand::Failed;
        self.errors.insert(id, error);
        (self.left, self.failures) = (self.left - 1, self.failures + 1);
        self.settled(rows, id)
    }

    fn settled(&mut self, rows: &[(u32, u32)], to: u32) -> Vec<u32> {
        let mut unwanted = Vec::new();
        for (_, slot) in rows.iter().filter(|_| !self.eager) {
            let of = std::mem::replace(&mut self.of_slot[*slot as usize], to);
            if of == UNWANTED {
                self.of_slot[*slot as usize] = FILLED;
                unwanted.push(*slot);
            }
        }
        unwanted
    }

    fn finish(&mut self, id: u32) {
        self.entries[id as usize].stand = Stand::Done;
        self.left -= 1;
        if self.left == 0 && self.failures == 0 {
            *self = Refills::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunks 0, 1, 2 of two rows each, in slots 0 to 5.
    fn refills(eager: bool) -> Refills {
        let mut unread = Unread::default();
        for (chunk, frame, slot) in [(0, 7, 0), (0, 9, 1), (1, 7, 2), (1, 9, 3), (2, 7, 4), (2, 9, 5)] {
            unread.row((0, u64::from(chunk), chunk, frame), slot);
        }
        Refills::new(unread.by_chunk(), eager)
    }

    fn none(_: u64) -> bool {
        false
    }

    fn lost(refills: &mut Refills, id: u32) -> Vec<u32> {
        refills.failed(id, Error::State(format!("chunk {id}")), &[])
    }

    #[test]
    fn what_a_batch_waits_for_is_first_in_the_order_of_its_rows() {
        let mut refills = refills(false);
        [5, 3, 2, 9].into_iter().for_each(|slot| refills.want(slot));
        assert!(refills.called() && !refills.called());
        assert_eq!(refills.next_to_fetch(For::Batches, Some(1), none), Some(1), "the most urgent one");
        assert_eq!(refills.next_to_fetch(For::Batches, Some(1), none), Some(2));
        assert_eq!(refills.next_to_fetch(For::Batches, Some(1), none), None);
        assert_eq!(refills.next_to_fetch(For::Later, None, none), Some(0));
        assert_eq!(refills.next_to_fetch(For::Later, None, none), None);
        // One that is wanted while a reader has it, and cannot be had now, is among the wanted ones.
        refills.want(0);
        refills.unfetched(0, false);
        assert_eq!(refills.next_to_fetch(For::Batches, None, |source| source == 0), None, "it rests");
        assert_eq!(refills.next_to_fetch(For::Batches, None, none), Some(0));
        assert_eq!((refills.unread(), refills.under_way()), (3, [3, 0]));
    }

    #[test]
    fn rows_that_nobody_wants_are_not_read_and_their_slots_are_free() {
        let mut refills = refills(false);
        assert_eq!([0, 1, 1, 77].map(|slot| refills.unwant(slot)), [Some(true), Some(true), None, None]);
        assert_eq!(refills.unread(), 2, "no row of the first chunk is wanted");
        refills.want(0);
        assert!(!refills.called());
        assert_eq!(refills.next_to_fetch(For::Later, None, none), Some(1));
        // All rows of one go while a reader has it.
        assert_eq!([2, 3].map(|slot| refills.unwant(slot)), [Some(true), Some(true)]);
        refills.unfetched(1, true);
        assert_eq!(refills.next_to_fetch(For::Later, None, none), Some(2));
        assert_eq!(refills.give_up(2), None, "its rows are wanted");
        assert_eq!([4, 5].map(|slot| refills.unwant(slot)), [Some(true), Some(true)]);
        assert_eq!(refills.give_up(2), Some(Vec::new()));
        assert!(refills.is_done() && refills.of_slot.is_empty());
    }

    #[test]
    fn the_first_row_that_is_missing_decides_whether_a_batch_waits_or_fails() {
        let mut refills = refills(false);
        assert_eq!(refills.has([8, 9].into_iter()), Has::All);
        assert_eq!(refills.has([8, 3, 0].into_iter()), Has::Waits(1));
        [4, 2, 0].into_iter().for_each(|slot| refills.want(slot));
        while refills.next_to_fetch(For::Batches, None, none).is_some() {}
        assert!(lost(&mut refills, 0).is_empty() && lost(&mut refills, 2).is_empty());
        assert_eq!(refills.has([3, 0].into_iter()), Has::Waits(1), "a row before it may fail, too");
        assert_eq!(refills.has([9, 4, 0].into_iter()), Has::Fails(2));
        assert_eq!(refills.unwant(0), Some(true));
        assert_eq!(refills.error(2).map(|error| error.to_string()), Some(Error::State("chunk 2".into()).to_string()));
        assert!(refills.error(1).is_none());
        refills.end();
        refills.unfetched(1, false);
        assert_eq!(refills.next_to_fetch(For::Batches, None, none), None, "nothing is wanted after the end");
    }

    #[test]
    fn a_chain_that_is_still_wants_all() {
        let mut refills = refills(true);
        assert!(refills.is_still() && refills.has([0].into_iter()) == Has::All);
        let all: Vec<u32> = std::iter::from_fn(|| refills.next_to_fetch(For::Batches, None, none)).collect();
        assert_eq!(all, [0, 1, 2]);
        all.into_iter().for_each(|id| drop(lost(&mut refills, id)));
        assert!(!refills.is_still());
    }

    #[test]
    fn others_have_their_turn_between_tickets() {
        let mut refills = refills(false);
        (0..TURN[0]).for_each(|_| refills.ticket(Step::Fetch));
        assert!(refills.has_turn(Step::Fetch) && !refills.has_turn(Step::Decode));
        refills.next_to_fetch(For::Later, None, none);
        assert!(!refills.has_turn(Step::Fetch));
    }
}
