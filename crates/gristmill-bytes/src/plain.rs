//! The plain bytes of a solid file, however they are held, and memory that goes from one file to the next.
//! Solid files are read again and again, and new memory for each would cost more than reading it. Knows no format.

use std::fmt::Debug;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::source::{ChunkSource, ReadAt, Span, read_span};

/// A solid file that was read: plain bytes, in which each chunk can be reached by itself.
#[derive(Debug)]
pub struct Whole {
    /// Where the chunks lie in `plain`, and what they are.
    pub chunks: Arc<dyn ChunkSource>,
    /// The bytes that stand for those of the file.
    pub plain: Box<dyn Plain>,
    /// What was wrong with the file and left its chunks whole.
    pub faults: Vec<Error>,
}

/// The plain bytes of a solid file.
pub trait Plain: Debug + Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes of memory hold them.
    fn takes(&self) -> usize;

    /// Replaces `buf` by the bytes of `span`.
    ///
    /// Errors: as [`read_span`].
    fn read(&self, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()>;

    /// XXH3-64 of all of them.
    fn digest(&self) -> u64;

    /// How these spans are read from the file alone, where what they consist of lies there as it is, and saying where takes far fewer
    /// bytes.
    fn scattered(&self, spans: &mut dyn Iterator<Item = Span>) -> Option<Box<dyn Scattered>> {
        let _ = spans;
        None
    }

    /// All of them, one after another.
    fn into_bytes(self: Box<Self>) -> Vec<u8>;

    /// The memory that held them, with any bytes in it.
    fn into_room(self: Box<Self>) -> Vec<u8>;
}

/// Spans of plain bytes whose parts lie apart in the file: they are read without the rest of it.
pub trait Scattered: Debug + Send + Sync {
    /// How many bytes of memory it takes.
    fn takes(&self) -> usize;

    /// Replaces `buf` by the bytes of one of the spans. Returns `false`, with any bytes in `buf`, if it is none of them or its bytes are
    /// others now.
    ///
    /// Errors: those of reading.
    fn read(&self, from: &dyn ReadAt, span: Span, buf: &mut Vec<u8>) -> Result<bool>;
}

impl Plain for Vec<u8> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn takes(&self) -> usize {
        self.capacity()
    }

    fn read(&self, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()> {
        read_span(self.as_slice(), span, most, buf)
    }

    fn digest(&self) -> u64 {
        xxh3_64(self)
    }

    fn into_bytes(self: Box<Self>) -> Vec<u8> {
        *self
    }

    fn into_room(self: Box<Self>) -> Vec<u8> {
        *self
    }
}

/// Most pieces of memory that wait: one for stored bytes, one for what they unpack to.
const MOST: usize = 2;

/// Memory of files that were read, for the files that follow.
#[derive(Debug, Default)]
pub struct Rooms(Vec<Vec<u8>>);

impl Rooms {
    /// Memory for some `len` bytes, with any bytes in it: the piece that comes nearest, and none of more than twice as many bytes.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let rooms = self.0.iter().enumerate().filter(|(_, room)| room.capacity() / 2 <= len);
        let best = rooms.min_by_key(|(_, room)| (room.capacity() < len, room.capacity().abs_diff(len)));
        best.map(|(i, _)| i).map_or_else(Vec::new, |i| self.0.remove(i))
    }

    /// Keeps memory that is no longer in use; the piece that waited longest goes where there are too many.
    pub fn give(&mut self, room: Vec<u8>) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(room);
    }

    /// Lets all memory go.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_to_what_it_fits_and_never_to_what_is_far_smaller() {
        let mut rooms = Rooms::default();
        for capacity in [7, 100, 1000] {
            rooms.give(Vec::with_capacity(capacity));
        }
        assert_eq!(rooms.take(9).capacity(), 0, "what waited longest went");
        assert_eq!(rooms.take(60).capacity(), 100);
        assert_eq!(rooms.take(60).capacity(), 0, "1000 bytes are too many");
        rooms.give(Vec::with_capacity(300));
        assert_eq!(rooms.take(2000).capacity(), 1000, "the larger of those that grow");
        rooms.clear();
        assert_eq!(rooms.take(300).capacity(), 0);
    }

    #[test]
    fn plain_bytes_are_read_by_span() {
        let (plain, mut buf): (Box<dyn Plain>, _) = (Box::new(vec![1, 2, 3, 4]), Vec::new());
        plain.read(Span { offset: 1, len: 2 }, 9, &mut buf).unwrap();
        assert_eq!((&buf[..], plain.len(), plain.digest()), (&[2, 3][..], 4, xxh3_64(&[1, 2, 3, 4])));
        assert!(plain.read(Span { offset: 3, len: 2 }, 9, &mut buf).is_err());
        assert_eq!(plain.into_bytes(), [1, 2, 3, 4]);
    }
}
