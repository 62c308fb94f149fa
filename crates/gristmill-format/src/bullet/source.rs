//! A file of boards -> chunks of 256 boards: such files have no games, and often lie shuffled.
//! Reads the length and both ends when it is opened.

use std::sync::Arc;

use gristmill_bytes::container::packed::check_room;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};
use xxhash_rust::xxh3::Xxh3Default;

use super::KIND;
use super::board::{BYTES, check_all, layout};

/// Boards of a chunk; the last one of a file may have fewer.
pub const TOGETHER: usize = 256;

/// A file of boards.
#[derive(Debug)]
pub struct BoardFile {
    description: Description,
    boards: u64,
    sample: u64,
}

impl BoardFile {
    /// The boards in the file called `key` (without directory).
    ///
    /// Errors: `Io`; `WrongSize` with record and byte, where the last board is cut.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let (len, size) = (from.len()?, BYTES as u64);
        let (boards, rest) = (len / size, len % size);
        if rest > 0 {
            let detail =
                format!("{len} bytes, expected boards of {BYTES}: {rest} bytes are left behind board {boards}");
            return Err(Error::new(Kind::WrongSize, detail).in_frame(boards as usize).at_byte(boards * size));
        }
        let description = Description { key: key.into(), format: "bullet.bf", kind: KIND };
        Ok(BoardFile { description, boards, sample: sample(from, len)? })
    }
}

/// A hash of the first and the last bytes of a file, as many as a chunk has; of all bytes where there are no more than both.
fn sample(from: &(impl ReadAt + ?Sized), len: u64) -> Result<u64> {
    let most = (TOGETHER * BYTES) as u64;
    let first = Span { offset: 0, len: len.min(most) };
    let last = Span { offset: len.saturating_sub(most).max(first.len), len: (len - first.len).min(most) };
    let (mut hash, mut bytes) = (Xxh3Default::new(), Vec::new());
    for span in [first, last].into_iter().filter(|span| span.len > 0) {
        read_span(from, span, most, &mut bytes)?;
        hash.update(&bytes);
    }
    Ok(hash.digest())
}

impl ChunkSource for BoardFile {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        usize::try_from(self.boards.div_ceil(TOGETHER as u64)).unwrap_or(usize::MAX)
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        let frames = self.frames(i)?;
        Some((Span { offset: (i * TOGETHER * BYTES) as u64, len: (frames * BYTES) as u64 }, None))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        let before = (i as u64).checked_mul(TOGETHER as u64)?;
        let left = self.boards.checked_sub(before).filter(|left| *left > 0)?;
        Some(left.min(TOGETHER as u64) as usize)
    }

    fn sample(&self) -> Option<u64> {
        Some(self.sample)
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let Some(frames) = self.frames(i) else {
            let detail = format!("chunk {i} of a source of {}", self.len());
            return Err(Error::new(Kind::Missing, detail).in_chunk(i));
        };
        let start = (i * TOGETHER * BYTES) as u64;
        let named = |e: Error| e.in_chunk(i).at_byte(start);
        if bytes.len() != frames * BYTES {
            let detail = format!("{} bytes, expected {frames} boards of {BYTES}", bytes.len());
            return Err(named(Error::new(Kind::WrongSize, detail)));
        }
        let room = check_room(frames, BYTES, limits.max_chunk_bytes).map_err(named)?;
        check_all(bytes, start).map_err(named)?;
        out.bytes.reserve_exact(room);
        out.bytes.extend_from_slice(bytes);
        (out.layout, out.frames) = (Some(Arc::clone(layout())), frames);
        Ok(())
    }
}
