//! One file's chunks: fetched by positioned reads, decoded by the file's format, errors with the file's name.
//! Knows where its file is now, even after it was renamed; a container stays open while it lives, if it can.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use gristmill_format::container::sums;
use gristmill_format::head::Head;
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::facts::Facts;
use gristmill_runtime::store::{Faults, FileStat, Held, Store, digest};
use xxhash_rust::xxh3::Xxh3Default;

use super::kept::Kept;
use super::solid::Solid;

/// What is said of a damaged chunk whose bytes were others when it was sound.
const CHANGED: &str = "; when it was last read whole, its bytes were others, and sound: it was damaged since, or a damaged \
                       file took its place; fetch it again";

/// Where files are now that were moved after they were found.
#[derive(Debug, Default)]
pub(super) struct Moves {
    any: AtomicBool,
    files: RwLock<HashMap<u64, FileStat>>,
}

impl Moves {
    pub(super) fn note(&self, id: u64, file: FileStat) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).insert(id, file);
        self.any.store(true, Ordering::Release);
    }

    pub(super) fn forget(&self, id: u64) {
        self.files.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// The file as it is now, if it was moved.
    pub(super) fn of(&self, id: u64) -> Option<FileStat> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.files.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// A source, by whether it is held and its id: in the log, or the lasting one of what is held.
pub(super) type Which = (bool, u64);

/// What files were when they were first read: a digest of the bytes of a single game, of the index of a container.
#[derive(Debug, Default)]
pub(super) struct Digests(Mutex<Read>);

#[derive(Debug, Default)]
struct Read {
    known: HashMap<Which, u64>,
    /// Those that are not reported yet.
    fresh: Vec<Which>,
}

impl Digests {
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn of(&self, which: Which) -> Option<u64> {
        self.lock().known.get(&which).copied()
    }

    /// Notes a first reading.
    pub(super) fn note(&self, which: Which, digest: u64) {
        let read = &mut *self.lock();
        if let Entry::Vacant(unknown) = read.known.entry(which) {
            unknown.insert(digest);
            read.fresh.push(which);
        }
    }

    pub(super) fn forget(&self, which: Which) {
        self.lock().known.remove(&which);
    }

    /// What was read since the last call.
    pub(super) fn fresh(&self) -> Vec<(Which, u64)> {
        let mut read = self.lock();
        let fresh = std::mem::take(&mut read.fresh);
        fresh.into_iter().filter_map(|which| Some((which, *read.known.get(&which)?))).collect()
    }
}

/// The digest of a container: names and places of its members, and checksums or some of its bytes where it has them.
pub(super) fn of_index(chunks: &dyn ChunkSource) -> u64 {
    of_places(chunks, chunks.identity().or_else(|| chunks.sample()))
}

fn of_places(chunks: &dyn ChunkSource, identity: Option<u64>) -> u64 {
    let mut hash = Xxh3Default::new();
    hash.update(&identity.unwrap_or_default().to_le_bytes());
    for (span, member) in (0..chunks.len()).filter_map(|chunk| chunks.locate(chunk)) {
        hash.update(&[span.offset.to_le_bytes(), span.len.to_le_bytes()].concat());
        hash.update(member.unwrap_or_default().as_bytes());
        hash.update(&[0]);
    }
    hash.digest()
}

/// A file that holds chunks. Cheap to keep: an index at most.
#[derive(Debug)]
pub struct Source {
    /// Number in the arrival log: provider index in the upper 24 bits, ordinal in the lower 40.
    pub id: u64,
    /// File name without directory, as it was first seen: what is sorted and hashed.
    pub key: String,
    /// What is in the file.
    pub chunks: Arc<dyn ChunkSource>,
    pub(super) file: FileStat,
    pub(super) store: Arc<dyn Store>,
    pub(super) moves: Arc<Moves>,
    pub(super) version: Option<u32>,
    pub(super) facts: Option<Arc<Facts>>,
    /// Where its bytes are, if not under its name.
    pub(super) held: Option<Held>,
    /// The open file, of a container.
    pub(super) kept: Option<Kept>,
    /// What reads it, of a solid file.
    pub(super) solid: Option<Solid>,
    pub(super) sums: Mutex<HashMap<u64, Sums>>,
    pub(super) digests: Arc<Digests>,
    /// Where errors of reading are counted that reading by name mended.
    pub(super) retried: Arc<Mutex<Faults>>,
}

/// What reading an open file says that was deleted, or lost, on another machine.
const STALE: Kind = Kind::Io(std::io::ErrorKind::StaleNetworkFileHandle);

/// What the chunks of a file weigh by one rule; none where that is not kept beside it.
type Sums = Option<Arc<[f32]>>;

impl Source {
    /// The digest that older versions wrote of these bytes, where it is another one.
    pub fn older_digest(&self) -> Option<u64> {
        let sampled = self.solid.is_none() && self.chunks.identity().is_none() && self.chunks.sample().is_some();
        sampled.then(|| of_places(&*self.chunks, None))
    }

    /// The file as it is now known: its name changes when it is renamed.
    pub fn file(&self) -> FileStat {
        self.moves.of(self.id).unwrap_or_else(|| self.file.clone())
    }

    /// Full path for people.
    pub fn path(&self) -> String {
        format!("{}/{}", self.store.root(), self.file().name)
    }

    /// How many chunks it holds.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many frames a chunk has, if its file says it or the side index knows.
    pub fn frames(&self, chunk: usize) -> Option<u32> {
        match self.chunks.frames(chunk) {
            Some(frames) => u32::try_from(frames).ok(),
            None => self.facts.as_ref()?.frames(&self.file(), chunk),
        }
    }

    /// Notes in the side index, if there is one, what was learnt of a chunk by decoding it whole from `bytes`, unless its file
    /// says it: how many frames it has, and what its head is held against.
    pub fn learn(&self, chunk: usize, bytes: &[u8], decoded: &Chunk) {
        let (Some(facts), None) = (&self.facts, self.chunks.frames(chunk)) else { return };
        let file = self.file();
        facts.record_frames(&file, chunk, decoded.frames);
        if facts.head(&file, chunk).is_none_or(|known| !known.is_of(bytes)) {
            let head = self.chunks.head(chunk, bytes, decoded);
            head.into_iter().for_each(|head| facts.record_head(&file, chunk, head));
        }
    }

    /// What the side index knows of a chunk that was sound.
    fn head(&self, chunk: usize) -> Option<Head> {
        self.facts.as_ref()?.head(&self.file(), chunk)
    }

    /// What a chunk weighs by the weigher of this id, if sums beside the file or the side index say it. Reads such sums once.
    pub fn weight(&self, weigher: u64, chunk: usize) -> Option<f32> {
        match self.sums(weigher) {
            Some(sums) => sums.get(chunk).copied(),
            None => self.facts.as_ref()?.weight(&self.file(), weigher, chunk),
        }
    }

    /// The sums beside the file by the weigher of this id, where they are of these very chunks.
    fn sums(&self, weigher: u64) -> Sums {
        // Whether records are of the version that is wanted is known of whole records only.
        let index = self.chunks.identity().filter(|_| self.version.is_none())?;
        let mut known = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(weigher).or_insert_with(|| self.read_sums(index, weigher)).clone()
    }

    fn read_sums(&self, index: u64, weigher: u64) -> Sums {
        let file = self.store.open(&sums::beside(&self.file().name, weigher)).ok()?;
        let size = sums::size(self.len());
        let mut bytes = Vec::new();
        if file.len().ok()? != size {
            return None;
        }
        read_span(&*file, Span { offset: 0, len: size }, size, &mut bytes).ok()?;
        Some(sums::read(&bytes, index, weigher, self.len())?.into())
    }

    /// Notes in the side index, if there is one, what a chunk weighs by the weigher of this id.
    pub fn record_weight(&self, weigher: u64, chunk: usize, weight: f32) {
        if let Some(facts) = &self.facts {
            facts.record_weight(&self.file(), weigher, chunk, weight);
        }
    }

    /// Reads the stored bytes of a chunk into `buf`, replacing what was there. Blocks; takes no lock while reading.
    ///
    /// Errors, with file, member and chunk: `Io` (vanished, permission, lost mount), `Truncated` where the file ends
    /// inside the chunk, `TooLarge` where its stored bytes are above `limits`, `Missing` for a chunk it does not have.
    pub fn fetch(&self, chunk: usize, limits: &Limits, buf: &mut Vec<u8>) -> Result<()> {
        let Some((span, _)) = self.chunks.locate(chunk) else {
            let error = Error::new(Kind::Missing, format!("a source of {} chunks", self.len()));
            return Err(error.in_chunk(chunk).in_source(self.path()));
        };
        let most = limits.max_chunk_bytes as u64;
        let read = match &self.kept {
            Some(kept) => match self.read(&**kept.bytes(), span, most, buf) {
                // What was open may be lost with its mount, and be there again under its name.
                Err(e) if e.kind().is_of_reading() => self.read_again(span, most, buf, e),
                read => read,
            },
            None => self.by_name().and_then(|bytes| self.read(&*bytes, span, most, buf)),
        };
        read.map_err(|e| self.place(e, chunk))?;
        let which = (self.held.is_some(), self.id);
        if span == Span::WHOLE && self.digests.of(which).is_none() {
            let digest = digest(buf);
            self.digests.note(which, digest);
            self.store.readings().note(&self.file(), digest);
        }
        Ok(())
    }

    /// How many stored bytes [`Source::fetch`] reads for a chunk: of a single game, as many as its file had when it was found.
    pub fn stored_bytes(&self, chunk: usize) -> usize {
        let len = self.chunks.locate(chunk).map_or(0, |(span, _)| span.len);
        // What a solid file holds is longer than its stored bytes.
        let len = if self.solid.is_some() { len } else { len.min(self.file.size) };
        usize::try_from(len).unwrap_or(usize::MAX)
    }

    /// Reads a span of the open file or, of a solid one, of what it unpacks to.
    fn read(&self, file: &dyn ReadAt, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()> {
        match &self.solid {
            Some(solid) => solid.read(file, span, most, buf),
            None => read_span(file, span, most, buf),
        }
    }

    /// Opens the file by the name that it has now.
    fn by_name(&self) -> Result<Arc<dyn ReadAt>> {
        if let Some(held) = &self.held {
            return held.store.open(&held.file.name);
        }
        match self.store.open(&self.file().name) {
            // Renamed between finding its name and opening it: the name is known by now, or will never be.
            Err(e) if e.kind() == Kind::Io(std::io::ErrorKind::NotFound) => self.store.open(&self.file().name),
            opened => opened,
        }
    }

    /// Reads by its name what the open file refused with `error`, where the file of that name is as it was.
    fn read_again(&self, span: Span, most: u64, buf: &mut Vec<u8>, error: Error) -> Result<()> {
        let file = self.file();
        // A mount that is back may have another device, and other numbers for its files.
        let is_back =
            |now: &FileStat| now.device != file.device && (now.size, now.mtime_ns) == (file.size, file.mtime_ns);
        let is_it = |now: FileStat| now.is_as(&file) || is_back(&now);
        let as_it_was = self.held.is_some() || self.store.stat(&file.name).is_ok_and(is_it);
        match self.by_name() {
            Ok(bytes) if as_it_was => {
                self.read(&*bytes, span, most, buf)?;
                let error = error.and("; it was read again by its name").in_source(self.path());
                self.retried.lock().unwrap_or_else(PoisonError::into_inner).error(&error);
                Ok(())
            }
            // Deleted where it lies: what was open is so, too.
            Err(gone) if gone.kind() == Kind::Io(std::io::ErrorKind::NotFound) && error.kind() == STALE => Err(gone),
            _ => Err(error),
        }
    }

    /// Decodes a chunk from the bytes that [`Source::fetch`] gave into `out`, replacing what was there.
    ///
    /// Errors: what the format's decoder says, with file, member and chunk; `UnknownVersion` for records of another
    /// version than the log insists on.
    pub fn decode(&self, chunk: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.chunks.decode(chunk, bytes, limits, out).map_err(|e| self.place(self.explain(e, chunk, bytes), chunk))?;
        self.is_wanted(chunk, out)
    }

    /// The same, and may take the memory of `bytes` instead of copying them, where the source itself says how many frames its chunks
    /// have.
    ///
    /// Errors: as [`Source::decode`].
    pub fn decode_taking(&self, chunk: usize, bytes: &mut Vec<u8>, limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.chunks.decode_taking(chunk, bytes, limits, out);
        decoded.map_err(|e| self.place(self.explain(e, chunk, bytes), chunk))?;
        self.is_wanted(chunk, out)
    }

    /// The error of a chunk that does not decode, with what the side index knows of it.
    fn explain(&self, e: Error, chunk: usize, bytes: &[u8]) -> Error {
        match self.head(chunk) {
            Some(known) if !known.is_of(bytes) => e.and(CHANGED),
            _ => e,
        }
    }

    /// Decodes the first frames of a chunk alone, where the side index knows its `frames` and its sums: it was decoded whole
    /// before. `false`, and nothing that counts done, where its bytes are others since, or only the whole can be had.
    ///
    /// Errors: as [`Source::decode`].
    pub fn decode_head(
        &self,
        chunk: usize,
        (first, frames): (usize, usize),
        bytes: &[u8],
        limits: &Limits,
        out: &mut Chunk,
    ) -> Result<bool> {
        let Some(head) = self.head(chunk).filter(|head| head.is_of(bytes)) else { return Ok(false) };
        let decoded = self.chunks.decode_head(chunk, (first, &head), bytes, limits, out);
        if !decoded.map_err(|e| self.place(e, chunk))? {
            return Ok(false);
        }
        // Facts of one file may have been noted by several processes: both must be of these bytes.
        let size = out.layout.as_ref().map_or(0, |layout| layout.size());
        if frames.checked_mul(size) != Some(head.len.get() as usize) {
            return Ok(false);
        }
        self.is_wanted(chunk, out)?;
        Ok(true)
    }

    /// Decodes frames of a chunk alone; `false`, and nothing done, where they cannot be read by themselves.
    ///
    /// Errors: as [`Source::decode`].
    pub fn decode_rows(
        &self,
        chunk: usize,
        rows: &[u32],
        bytes: &[u8],
        limits: &Limits,
        out: &mut Chunk,
    ) -> Result<bool> {
        let decoded = self.chunks.decode_rows(chunk, rows, bytes, limits, out).map_err(|e| self.place(e, chunk))?;
        self.is_wanted(chunk, out)?;
        Ok(decoded)
    }

    /// Whether what weighs a chunk is read without its records.
    pub fn is_judged_alone(&self, chunk: usize) -> bool {
        // Whether its records are of the version that is wanted is known of whole records only.
        self.version.is_none() && self.chunks.frames(chunk).is_some()
    }

    /// Decodes of a chunk what weighers read.
    ///
    /// Errors: what the format's decoder says, with file, member and chunk.
    pub fn decode_judged(&self, chunk: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.chunks.decode_judged(chunk, bytes, limits, out).map_err(|e| self.place(e, chunk))
    }

    fn is_wanted(&self, chunk: usize, out: &Chunk) -> Result<()> {
        let Some(wanted) = self.version else { return Ok(()) };
        match version(out) {
            Some(found) if found != wanted => {
                let detail = format!("records of version {found}, this loader takes version {wanted} only");
                Err(self.place(Error::new(Kind::UnknownVersion, detail), chunk))
            }
            _ => Ok(()),
        }
    }

    /// The error with this file, the chunk and its member.
    pub fn place(&self, e: Error, chunk: usize) -> Error {
        let e = e.in_chunk(chunk).in_source(self.path());
        match self.chunks.locate(chunk).and_then(|(_, member)| member) {
            Some(member) => e.in_member(member),
            None => e,
        }
    }
}

/// The `version` field of the first record, where the layout has one.
fn version(chunk: &Chunk) -> Option<u32> {
    let at = chunk.layout.as_ref()?.field("version")?.offset;
    let bytes = chunk.records().get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}
