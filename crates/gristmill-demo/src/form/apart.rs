//! Records whose fields lie apart in a tar -> their bytes, one after another, read from the file without the rest of it.
//! Holds places, small fields and sums. It never takes bytes whose sum is another one now.

use gristmill_bytes::error::Result;
use gristmill_bytes::plain::Scattered;
use gristmill_bytes::source::{ReadAt, Span, read_full, set_len};
use xxhash_rust::xxh3::Xxh3Default;

use super::placed::Piece;
use crate::trajectory::{Place, Places};

/// The records of a shard, where they lie in its file.
#[derive(Debug)]
pub(super) struct Apart {
    pub(super) places: Places,
    /// Fields of a record, and its bytes.
    pub(super) fields: usize,
    pub(super) size: usize,
    pub(super) pieces: Vec<Piece>,
    /// XXH3-64 of the bytes of each span, by where it begins.
    pub(super) sums: Vec<(Span, u64)>,
}

impl Apart {
    /// Reads a record. Returns `false` if the file has become too short for it.
    fn record(&self, from: &dyn ReadAt, frame: usize, mut record: &mut [u8]) -> Result<bool> {
        for piece in &self.pieces {
            let (Piece::Field(_, len) | Piece::Padding(len)) = *piece;
            let Some((to, rest)) = std::mem::take(&mut record).split_at_mut_checked(len) else { return Ok(false) };
            record = rest;
            match *piece {
                Piece::Padding(_) => to.fill(0),
                Piece::Field(slot, len) => match self.places.of(frame, self.fields, slot, len) {
                    Some(Place::Beside(bytes)) => to.copy_from_slice(bytes),
                    Some(Place::Tape(at)) if read_full(from, at, to)? == len => {}
                    _ => return Ok(false),
                },
            }
        }
        Ok(true)
    }
}

impl Scattered for Apart {
    fn takes(&self) -> usize {
        self.places.takes() + self.sums.capacity() * size_of::<(Span, u64)>()
    }

    fn read(&self, from: &dyn ReadAt, span: Span, buf: &mut Vec<u8>) -> Result<bool> {
        let at = self.sums.binary_search_by_key(&span.offset, |(span, _)| span.offset);
        let Some((_, sum)) = at.ok().map(|at| self.sums[at]).filter(|(own, _)| *own == span) else { return Ok(false) };
        set_len(buf, span.len as usize);
        let (mut hash, first) = (Xxh3Default::new(), span.offset as usize / self.size.max(1));
        for (i, record) in buf.chunks_exact_mut(self.size.max(1)).enumerate() {
            if !self.record(from, first + i, record)? {
                return Ok(false);
            }
            // Its bytes are in the cache of the processor still.
            hash.update(record);
        }
        Ok(hash.digest() == sum)
    }
}
