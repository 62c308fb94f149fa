//! Chunks of a restored reservoir or cache: fetched by readers, decoded by workers, their rows copied into the slots that
//! wait for them. A batch that needs a row that cannot be had gives way to the error, and the stream ends there.

use std::sync::{Arc, MutexGuard};

use gristmill_format::encode::Provenance;
use gristmill_format::source::Chunk;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_stages::stage::Row as Origin;
use gristmill_stages::stage::load::Source;

use super::refill::{For, Refill, Refills};
use super::room::size_hint;
use super::{Chain, Inner, is_spare};
use crate::pipeline::draw::outage::of_reading;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::watch::notices;

/// Place of a chunk and number of a use, and the row that the cache holds for it.
type Cached = ((u64, u16), Origin);

/// What was found where rows were read again.
#[derive(Debug, Default)]
struct Again {
    cached: Vec<Cached>,
    /// Slots, and what stands for the positions of their rows.
    keys: Vec<(u32, u64)>,
}

/// What became of a fetch.
enum Fetched {
    Bytes(Arc<Source>, Counted<Vec<u8>>),
    /// There is no room for its bytes now.
    Refused,
    Error(Error),
}

impl Chain {
    /// Takes over what is to be read again. While the chain runs, rows come as batches want them, here and there.
    pub(in crate::pipeline) fn reads_again(&self, inner: &mut Inner, refills: Refills) {
        self.slots.scatter(!refills.is_done() && !refills.is_still());
        inner.fold.refills = refills;
    }

    /// Holds the files of all rows that are to be read again, where files are held: their holders may release them before that.
    pub(in crate::pipeline) fn hold_refills(&self) {
        let inner = self.lock();
        let (mut files, branches) = (inner.fold.refills.files(), &inner.branches);
        files.dedup();
        files.into_iter().for_each(|(branch, source)| branches[branch].roster.hold(source));
    }

    /// Fetches one chunk of a refill; gives the lock back where there is none to fetch.
    pub(super) fn fetch_again<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        of: For,
    ) -> Option<MutexGuard<'a, Inner>> {
        let urgent = inner.fold.urgent_refill();
        let rests = |source| self.shared.outages.rests(source);
        let Some(id) = inner.fold.refills.next_to_fetch(of, urgent, rests) else { return Some(inner) };
        let (branch, source, index, open) = inner.fold.refills.chunk(id);
        let roster = Arc::clone(&inner.branches[branch].roster);
        drop(inner);
        let read = self.branch_totals[branch].reading.during(|| self.fetch_chunk(id, &roster, (source, index), open));
        let mut inner = self.lock();
        match read {
            Fetched::Bytes(open, bytes) => {
                self.branch_totals[branch].stored_bytes.add(bytes.len() as u64);
                self.shared.outages.over(source, true);
                inner.fold.refills.fetched(id, open, bytes);
            }
            Fetched::Refused => {
                inner.fold.refills.unfetched(id, true);
                return Some(inner);
            }
            // What was moved just now is under its new name in a moment.
            Fetched::Error(Error::Format(error)) if roster.may_have_moved(source, &error) => {
                self.shared.outages.rest(source);
                inner.fold.refills.unfetched(id, false);
            }
            Fetched::Error(error) => self.not_fetched(&mut inner, (id, source), error),
        }
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        None
    }

    fn fetch_chunk(&self, id: u32, roster: &Roster, (of, index): (u64, u32), open: Option<Arc<Source>>) -> Fetched {
        let source = match open.map_or_else(|| roster.open(of), Ok) {
            Ok(source) => source,
            Err(error) => return Fetched::Error(error),
        };
        let mut inner = self.lock();
        inner.fold.refills.keep_open(id, &source);
        let size = source.stored_bytes(index as usize);
        let Some(mut bytes) = inner.stored(size, |inner| inner.lets_fetch(id, size)) else { return Fetched::Refused };
        drop(inner);
        match source.fetch(index as usize, &self.shared.limits, &mut bytes) {
            Ok(()) => {
                bytes.takes(bytes.capacity());
                Fetched::Bytes(source, bytes)
            }
            Err(error) => Fetched::Error(error.into()),
        }
    }

    /// A chunk of a refill could not be fetched. What cannot be read now is tried again; where the stream is not to wait for that, a
    /// batch that needs it is.
    fn not_fetched(&self, inner: &mut Inner, (id, source): (u32, u64), error: Error) {
        let Some(refused) = of_reading(&error) else {
            self.shared.outages.over(source, false);
            // It was bad when the cache was to keep it, and gives nothing when it is looked for.
            return match inner.fold.refills.give_up(id) {
                Some(slots) => {
                    inner.fold.free.extend(slots);
                    self.settle(inner);
                }
                None => self.lose(inner, id, error, &[]),
            };
        };
        match self.shared.outages.failed(source, refused) {
            Err(error) if inner.fold.refills.is_wanted(id) => self.lose(inner, id, error, &[]),
            _ => inner.fold.refills.unfetched(id, false),
        }
    }

    /// The rows of a chunk cannot be had.
    fn lose(&self, inner: &mut Inner, id: u32, error: Error, rows: &[(u32, u32)]) {
        if inner.fold.refills.is_still() {
            inner.fold.refills.failed(id, error.clone(), rows);
            inner.fold.refills.end();
            return self.fail(inner, error);
        }
        let free = inner.fold.refills.failed(id, error, rows);
        inner.fold.free.extend(free);
        self.settle(inner);
    }

    /// Ends the stream where a batch needs a row that cannot be had.
    pub(super) fn break_off(&self, inner: &mut Inner) {
        if let Some(error) = inner.fold.break_off() {
            notices::failed(&self.shared.events, error);
        }
    }

    /// Decodes one chunk of a refill that was fetched and fills its slots; gives the lock back where there is none.
    pub(super) fn decode_again<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        of: For,
    ) -> Option<MutexGuard<'a, Inner>> {
        let urgent = inner.fold.urgent_refill();
        let next = inner.fold.refills.next_to_decode(of, urgent).map(|(id, bytes)| (id, size_hint(bytes)));
        let Some((id, size)) = next else { return Some(inner) };
        if !inner.lets_decode(id, size) && !inner.has_room_to_decode(size, false) {
            return Some(inner);
        }
        let Some((refill, source, mut bytes)) = inner.fold.refills.begin(id) else { return Some(inner) };
        let mut chunk = inner.chunk();
        chunk.takes(size.min(self.shared.limits.max_chunk_bytes).max(chunk.bytes.capacity()));
        self.further(&inner);
        drop(inner);
        self.shared.time.works();
        let read = self.refill_slots(&refill, &source, &mut bytes, &mut chunk);
        bytes.takes(bytes.capacity());
        let mut inner = self.lock();
        inner.spare_bytes.extend(Some(bytes).filter(|bytes| is_spare(bytes.capacity())));
        inner.spare_chunks.extend(Some(chunk).filter(|chunk| is_spare(chunk.bytes.capacity())));
        match read {
            Ok(Again { cached, keys }) => {
                for slot in inner.fold.refills.filled(id, &refill.rows) {
                    self.slots.discard(slot);
                    inner.fold.free.push(slot);
                }
                inner.branches[refill.branch].cached.extend(cached);
                inner.fold.keyed(keys.into_iter());
            }
            Err(_) if refill.rows.is_empty() => {
                inner.fold.refills.filled(id, &[]);
                inner.fold.free.extend(refill.cached.iter().map(|(_, slot)| *slot));
            }
            Err(error) => self.lose(&mut inner, id, error, &refill.rows),
        }
        self.settle(&mut inner);
        let more = !inner.fold.refills.is_done();
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        match more {
            true => self.shared.signal.notify(Lane::Read),
            false => self.slots.scatter(false),
        }
        None
    }

    /// Decodes the chunk of a refill and copies its rows into their slots, all or none; finds the rows of the uses that the cache held.
    fn refill_slots(
        &self,
        refill: &Refill,
        source: &Source,
        bytes: &mut Vec<u8>,
        chunk: &mut Counted<Chunk>,
    ) -> Result<Again> {
        let (b, index) = (refill.branch, refill.chunk);
        if refill.rows.is_empty() && refill.cached.is_empty() {
            return Ok(Again::default());
        }
        let prepared = self.prepare(b, source, index, bytes, chunk);
        chunk.takes(chunk.bytes.capacity());
        let conform = prepared.map_err(|(_, e)| e)?;
        if let Some((frame, _)) = refill.rows.iter().find(|(frame, _)| *frame as usize >= chunk.frames) {
            return Err(Error::State(format!("{} has no frame {frame} any more", source.path())));
        }
        let weights = self.frame_weights(b, source, index, chunk).map_err(|(_, e)| e)?;
        let row = |&((place, use_count), slot): &((u64, u16), u32)| {
            let mut rows = Vec::new();
            self.rows_of_use(b, source, index, (chunk.frames, weights.as_deref()), use_count, &mut rows);
            let from = Provenance { source: refill.source, chunk: index, frame: *rows.first()? };
            Some(((place, use_count), Origin { slot, branch: u32::try_from(b).ok()?, from }))
        };
        let cached: Vec<Cached> = refill.cached.iter().filter_map(row).collect();
        let kept = cached.iter().map(|(_, row)| (row.from.frame, row.slot));
        let rows: Vec<(u32, u32)> = refill.rows.iter().copied().chain(kept).collect();
        if let Err(error) = self.copy(chunk, &conform, &rows) {
            rows.iter().for_each(|(_, slot)| self.slots.discard(*slot));
            return Err(error);
        }
        let keys = self.keys(chunk, &conform, rows.iter().map(|(frame, _)| *frame as usize));
        Ok(Again { keys: rows.iter().map(|(_, slot)| *slot).zip(keys).collect(), cached })
    }
}
