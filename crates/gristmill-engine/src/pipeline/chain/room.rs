//! How much of the memory that was promised for chunks is taken -> whether another may be read or decoded now.
//! Decides when, never what: the chunk that the next row comes from is always let through.

use std::sync::Arc;

use gristmill_format::container::gzip;
use gristmill_format::source::{Chunk, Limits};
use gristmill_runtime::runtime::counted::{Count, Counted};
use gristmill_runtime::runtime::pages::LARGE;

use super::Inner;
use crate::pipeline::plan::ChainPlan;
use crate::pipeline::plan::budget;

/// The room for the chunks of one chain: places of `max_chunk_bytes` for decoded ones, and some bytes for stored ones. Stored
/// bytes beyond those take decoded ones' room.
#[derive(Debug)]
pub(super) struct Room {
    places: usize,
    max: usize,
    stored_bytes: usize,
    /// Kept free of all chunks but those that rows come from next, one of each branch and its stored bytes.
    reserve: usize,
    /// Whether a place more is kept free.
    refills: bool,
    decoded: Arc<Count>,
    stored: Arc<Count>,
    /// Whether a reader was turned away since the last look.
    pub(super) refused: bool,
}

impl Room {
    pub(super) fn new(plan: &ChainPlan, workers: usize, limits: &Limits) -> Self {
        let (places, stored) = budget::chunks(plan, workers);
        let branches = plan.branches.len();
        let (places, stored) = (places * branches, stored.saturating_mul(branches as u64));
        // Many lanes have no more than one place each: there half of all is reserved.
        let reserved = (branches + 1).min((places / 2).max(2));
        let max = limits.max_chunk_bytes;
        Room {
            places,
            max,
            stored_bytes: usize::try_from(stored).unwrap_or(usize::MAX),
            reserve: reserved.saturating_mul(max),
            refills: false,
            decoded: Arc::default(),
            stored: Arc::default(),
            refused: false,
        }
    }

    /// Stored bytes, `more` ones included, that take the room of decoded ones.
    fn excess(&self, more: usize) -> usize {
        self.stored.bytes().saturating_add(more).saturating_sub(self.stored_bytes)
    }

    /// Whether `bytes` more leave the reserve free.
    fn has(&self, bytes: usize) -> bool {
        self.has_for_refill(bytes.saturating_add(if self.refills { self.max } else { 0 }))
    }

    /// The same for one chunk of a refill at a time, whose place is kept free, too.
    fn has_for_refill(&self, bytes: usize) -> bool {
        self.holds(bytes.saturating_add(self.reserve))
    }

    /// Whether there are `bytes` more at all, the reserve included.
    fn holds(&self, bytes: usize) -> bool {
        self.decoded.bytes().saturating_add(bytes) <= self.places.saturating_mul(self.max)
    }

    fn may_read(&self, size: usize) -> bool {
        let excess = self.excess(size);
        // What is read must be decoded too: half of the room is left for that.
        excess == 0 || excess <= self.places.saturating_mul(self.max) / 2 && self.has(excess)
    }

    /// While a reservoir is refilled, a place is kept free for a chunk of the refill, where there is one to spare.
    pub(super) fn refills(&mut self, refills: bool) {
        self.refills = refills && self.reserve.saturating_add(self.max) < self.places.saturating_mul(self.max);
    }
}

impl Inner {
    /// The branch whose row comes next and the draw that it comes from.
    pub(super) fn urgent(&self) -> Option<(usize, u64)> {
        let (lane, inputs) = (self.fold.turn(), self.branches.len() / self.fold.lanes.len());
        let branch = lane * inputs + self.fold.lanes[lane].join.choose()?;
        Some((branch, self.branches.get(branch)?.window.front()?.number))
    }

    /// Whether a chunk may be decoded that will probably take `size` bytes; unused buffers are freed first where they are in its way.
    pub(super) fn has_room_to_decode(&mut self, size: usize, urgent: bool) -> bool {
        self.room.refills(!self.fold.refills.is_done());
        let full = |inner: &Inner| inner.spare_chunks.is_empty() && inner.room.decoded.buffers() >= inner.room.places;
        let more = |inner: &Inner| inner.room.excess(0).saturating_add(size.min(inner.room.max));
        let fits = |inner: &Inner| inner.room.has(more(inner)) || urgent && inner.room.holds(more(inner));
        if !fits(self) {
            self.let_go();
        }
        !full(self) && (urgent || fits(self))
    }

    /// Whether a chunk of a refill is read where there is no room for its `size` bytes beside all else: the one that the next batch waits
    /// for, and one at a time.
    pub(super) fn lets_fetch(&self, id: u32, size: usize) -> bool {
        let refills = &self.fold.refills;
        let has_place = || refills.is_still() || self.room.has_for_refill(self.room.excess(size));
        self.fold.urgent_refill() == Some(id) || refills.under_way()[0] <= 1 && has_place()
    }

    /// The same of decoding it, which will probably take `size` bytes.
    pub(super) fn lets_decode(&self, id: u32, size: usize) -> bool {
        let refills = &self.fold.refills;
        let bytes = self.room.excess(0).saturating_add(size.min(self.room.max));
        let has_place = || refills.is_still() || self.room.has_for_refill(bytes);
        self.fold.urgent_refill() == Some(id) || refills.under_way()[1] == 0 && has_place()
    }

    /// A buffer for `size` stored bytes, already counted; `None` while there is no room for them, unless they are `urgent`.
    pub(super) fn stored(&mut self, size: usize, urgent: impl Fn(&Inner) -> bool) -> Option<Counted<Vec<u8>>> {
        self.room.refills(!self.fold.refills.is_done());
        let mut spare = self.spare(size);
        // What an unused buffer has is counted already.
        let fits = |inner: &Inner, spare: &Option<Counted<Vec<u8>>>| {
            let more = size.saturating_sub(spare.as_ref().map_or(0, |bytes| bytes.capacity()));
            inner.room.may_read(more) || inner.room.holds(inner.room.excess(more)) && urgent(inner)
        };
        if !fits(self, &spare) {
            self.let_go();
        }
        if !fits(self, &spare) {
            spare.iter_mut().for_each(|bytes| bytes.takes(0));
            if !self.room.may_read(size) && !urgent(self) {
                // A mapping is kept until it is the turn of these bytes.
                let keeps = |bytes: &Counted<Vec<u8>>| size >= LARGE && is_near(size, bytes.capacity());
                if let Some(mut bytes) = spare.filter(keeps) {
                    bytes.takes(bytes.capacity());
                    self.spare_bytes.push(bytes);
                }
                return None;
            }
            spare = None;
        }
        let mut bytes = spare.unwrap_or_else(|| Counted::new(&self.room.stored));
        let capacity = bytes.capacity();
        bytes.takes(size.min(self.room.max).max(capacity));
        Some(bytes)
    }

    /// An unused buffer for `size` stored bytes: one that had stored bytes before, or, where new memory would be a mapping, that of an
    /// unused chunk. Chunks that took the memory of their stored bytes give it back so.
    fn spare(&mut self, size: usize) -> Option<Counted<Vec<u8>>> {
        let own = self.spare_bytes.pop();
        if size < LARGE || own.as_ref().is_some_and(|bytes| bytes.capacity() >= size) {
            return own;
        }
        let Some(chunk) = self.spare_chunks.iter_mut().rfind(|chunk| is_near(size, chunk.bytes.capacity())) else {
            return own;
        };
        let mut bytes = own.unwrap_or_else(|| Counted::new(&self.room.stored));
        std::mem::swap(&mut *bytes, &mut chunk.bytes);
        bytes.takes(bytes.capacity());
        chunk.takes(chunk.bytes.capacity());
        Some(bytes)
    }

    /// A buffer for a decoded chunk.
    pub(super) fn chunk(&mut self) -> Counted<Chunk> {
        self.spare_chunks.pop().unwrap_or_else(|| Counted::new(&self.room.decoded))
    }

    fn let_go(&mut self) {
        self.spare_chunks.clear();
        self.spare_bytes.clear();
    }
}

/// Whether a buffer has room for `size` bytes, and not for more than twice as many.
fn is_near(size: usize, capacity: usize) -> bool {
    (size..=size.saturating_mul(2)).contains(&capacity)
}

/// How many bytes stored ones probably become.
pub(super) fn size_hint(stored: &[u8]) -> usize {
    let told = stored.starts_with(&gzip::MAGIC).then(|| gzip::told(stored)).flatten();
    told.unwrap_or(0).max(stored.len())
}
