//! Where the fields of frames are: copied into records, or left where they lie in the bytes of a shard that is held.
//! A place is checked when it is noted, so that looking one up cannot fail.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::layout::{Field, Layout};

/// Bytes that are held for as long as anything lies in them.
#[derive(Clone)]
pub struct Tape(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Tape {
    /// Holds bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Tape {
        Tape(Arc::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tape({} bytes)", self.bytes().len())
    }
}

/// Arrays of fewer bytes are copied: a place costs as much.
const SMALL: usize = 16;

/// Says that a place is one in `beside`.
const BESIDE: u64 = 1 << 63;

/// The frames of one shard, over its bytes.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Frames of the parts before.
    pub(super) first: usize,
    tape: Tape,
    /// Where each field of each frame lies, frame by frame.
    places: Vec<u64>,
    /// What lies nowhere in the tape as it is to be.
    beside: Vec<u8>,
    /// What `beside` held before the frame that is being added.
    settled: usize,
}

impl Part {
    pub(super) fn new(first: usize, tape: Tape) -> Part {
        Part { first, tape, places: Vec::new(), beside: Vec::new(), settled: 0 }
    }

    /// The same after `frames` more.
    pub(super) fn after(self, frames: usize) -> Part {
        Part { first: self.first + frames, ..self }
    }

    /// Notes where a field of the frame after the last one is, and says how many bytes that took.
    pub(super) fn note(&mut self, row: usize, fields: usize, slot: usize, bytes: &[u8]) -> usize {
        self.places.resize((row + 1) * fields, 0);
        let tape = self.tape.bytes();
        let at = bytes.as_ptr().addr().wrapping_sub(tape.as_ptr().addr());
        let within = bytes.len() >= SMALL && at.checked_add(bytes.len()).is_some_and(|end| end <= tape.len());
        let (place, copied) = if within { (at as u64, 0) } else { (BESIDE | self.beside.len() as u64, bytes.len()) };
        if !within {
            self.beside.extend_from_slice(bytes);
        }
        self.places[row * fields + slot] = place;
        copied + 8
    }

    /// Bytes of memory beside the tape.
    pub(super) fn beside(&self) -> usize {
        self.places.capacity() * size_of::<u64>() + self.beside.capacity()
    }

    /// The frame that was being added stays (`rows` are there now), or goes.
    pub(super) fn settle(&mut self, rows: usize, fields: usize, stays: bool) {
        if stays {
            self.settled = self.beside.len();
        } else {
            self.beside.truncate(self.settled);
            self.places.truncate(rows * fields);
        }
    }

    pub(super) fn field(&self, row: usize, fields: usize, slot: usize, len: usize) -> Option<&[u8]> {
        let place = *self.places.get(row * fields + slot)?;
        let from = if place & BESIDE == 0 { self.tape.bytes() } else { &self.beside };
        let start = usize::try_from(place & !BESIDE).ok()?;
        from.get(start..start + len)
    }
}

/// Frames, wherever their fields are.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    /// Records, back to back: where frames are copied.
    pub(super) records: Vec<u8>,
    /// Shards: where they are not.
    pub(super) parts: Vec<Part>,
}

impl Store {
    /// The bytes of field number `slot` of a frame.
    pub(super) fn field(&self, layout: &Layout, frame: usize, slot: usize) -> Option<&[u8]> {
        let field = layout.fields().get(slot)?;
        if self.parts.is_empty() {
            let start = frame.checked_mul(layout.size())? + field.offset;
            return self.records.get(start..start + field.bytes());
        }
        let part = &self.parts[self.parts.partition_point(|part| part.first <= frame).checked_sub(1)?];
        part.field(frame - part.first, layout.fields().len(), slot, field.bytes())
    }

    /// Writes the records of some frames, all of which are there, to the start of `out`; padding is left as it is.
    pub(super) fn copy(&self, layout: &Layout, frames: Range<usize>, out: &mut [u8]) {
        let size = layout.size();
        if self.parts.is_empty() {
            let from = &self.records[frames.start * size..frames.end * size];
            out[..from.len()].copy_from_slice(from);
            return;
        }
        for (frame, record) in frames.zip(out.chunks_exact_mut(size)) {
            for (slot, Field { offset, .. }) in layout.fields().iter().enumerate() {
                let bytes = self.field(layout, frame, slot).unwrap_or_default();
                record[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}
