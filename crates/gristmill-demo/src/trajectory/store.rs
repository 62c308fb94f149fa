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

    /// Where some bytes lie among them; `None` where they are no part of them.
    pub(super) fn place(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let own = self.bytes();
        let start = bytes.as_ptr().addr().checked_sub(own.as_ptr().addr())?;
        let end = start.checked_add(bytes.len()).filter(|end| *end <= own.len())?;
        Some(start..end)
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

/// Where fields lie in the bytes of a shard, which it does not hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// For each field of each frame, frame by frame.
    at: Vec<u64>,
    /// What lies nowhere in those bytes as it is to be.
    beside: Vec<u8>,
}

/// Where one field lies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// In the bytes of the shard, from this byte on.
    Tape(u64),
    /// Here, and nowhere else.
    Beside(&'a [u8]),
}

impl Places {
    /// Where the field of this number lies, one of `fields` of a frame: `None` for none that was noted.
    pub(crate) fn of(&self, row: usize, fields: usize, slot: usize, len: usize) -> Option<Place<'_>> {
        let place = *self.at.get(row * fields + slot)?;
        if place & BESIDE == 0 {
            return Some(Place::Tape(place));
        }
        let start = usize::try_from(place & !BESIDE).ok()?;
        Some(Place::Beside(self.beside.get(start..start + len)?))
    }

    /// Bytes of memory that they take.
    pub(crate) fn takes(&self) -> usize {
        self.at.capacity() * size_of::<u64>() + self.beside.capacity()
    }
}

/// The frames of one shard, over its bytes.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Frames of the parts before.
    pub(super) first: usize,
    pub(super) tape: Tape,
    pub(super) places: Places,
    /// What lay beside the tape before the frame that is being added.
    settled: usize,
}

impl Part {
    pub(super) fn new(first: usize, tape: Tape) -> Part {
        Part { first, tape, places: Places::default(), settled: 0 }
    }

    /// The same after `frames` more.
    pub(super) fn after(self, frames: usize) -> Part {
        Part { first: self.first + frames, ..self }
    }

    /// Notes where a field of the frame after the last one is, and says how many bytes that took.
    pub(super) fn note(&mut self, row: usize, fields: usize, slot: usize, bytes: &[u8]) -> usize {
        let Places { at, beside } = &mut self.places;
        at.resize((row + 1) * fields, 0);
        let (place, copied) = match self.tape.place(bytes).filter(|_| bytes.len() >= SMALL) {
            Some(range) => (range.start as u64, 0),
            None => {
                let start = beside.len() as u64;
                beside.extend_from_slice(bytes);
                (BESIDE | start, bytes.len())
            }
        };
        at[row * fields + slot] = place;
        copied + 8
    }

    /// The frame that was being added stays (`rows` are there now), or goes.
    pub(super) fn settle(&mut self, rows: usize, fields: usize, stays: bool) {
        if stays {
            self.settled = self.places.beside.len();
        } else {
            self.places.beside.truncate(self.settled);
            self.places.at.truncate(rows * fields);
        }
    }

    pub(super) fn field(&self, row: usize, fields: usize, slot: usize, len: usize) -> Option<&[u8]> {
        match self.places.of(row, fields, slot, len)? {
            Place::Tape(at) => {
                let start = usize::try_from(at).ok()?;
                self.tape.bytes().get(start..start + len)
            }
            Place::Beside(bytes) => Some(bytes),
        }
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
