//! A chunk file of packed chunks -> a source of chunks: index, checksums, places and bounds, whatever was packed and how.
//! Names no kind of packing; each says what its chunks unpack to.

use std::fmt::Debug;
use std::marker::PhantomData;

use super::chunks::{ChunkFile, Codec};
use crate::error::{Error, Kind, Result};
use crate::source::{Chunk, ChunkSource, Description, Limits, Span};

/// A way of packing chunks.
pub trait Packing: Debug + Send + Sync + 'static {
    /// What its files say that they hold.
    const CODEC: Codec;
    /// What its frames are of.
    const KIND: &'static str;
    /// How sources call its files.
    const FORMAT: &'static str;
    /// What its chunks are, in words.
    const CHUNKS: &'static str;

    /// Bounds for looking at one chunk by itself.
    fn limits() -> Limits {
        Limits::default()
    }

    /// Replaces records, layout and number of frames of `out` by what is wanted of the chunk in `bytes`, which have their
    /// checksum. The index says that it has `frames` frames; [`agree`] compares.
    ///
    /// Errors: `TooLarge` beyond `max` bytes of records, `Missing` for a frame that does not exist; `Corrupt` with the
    /// byte.
    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()>;
}

/// What is wanted of a chunk.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'a> {
    /// All that it has.
    All,
    /// These frames, in this order.
    Rows(&'a [u32]),
    /// What weighers read of all its frames.
    Judged,
}

/// That a chunk has as many frames as the index says.
///
/// Errors: `Corrupt`.
pub fn agree(found: usize, said: usize) -> Result<()> {
    if found == said {
        return Ok(());
    }
    Err(Error::new(Kind::Corrupt, format!("{found} frames, the index says {said}")).at_byte(4))
}

/// Bytes of `frames` records of `size` bytes.
///
/// Errors: `TooLarge` for more than `max`.
pub fn check_room(frames: usize, size: usize, max: usize) -> Result<usize> {
    frames.checked_mul(size).filter(|bytes| *bytes <= max).ok_or_else(|| {
        let detail =
            format!("{frames} frames of {size} bytes, the bound is {max}; raise max_chunk_bytes if it is real");
        Error::new(Kind::TooLarge, detail).at_byte(0)
    })
}

/// Copies the wanted `records`, each of `size` bytes, into the empty `out`. Copies at most `max` bytes.
///
/// Errors: `TooLarge`; `Missing` for a frame that does not exist.
pub fn copy(records: &[u8], size: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
    let all = records.len() / size.max(1);
    let frames = if let Wanted::Rows(rows) = wanted { rows.len() } else { all };
    out.bytes.reserve_exact(check_room(frames, size, max)?);
    match wanted {
        Wanted::All | Wanted::Judged => out.bytes.extend_from_slice(records),
        Wanted::Rows(rows) => {
            for row in rows {
                let record = records.chunks_exact(size.max(1)).nth(*row as usize);
                let missing = || Error::new(Kind::Missing, format!("frame {row} of {all}"));
                out.bytes.extend_from_slice(record.ok_or_else(missing)?);
            }
        }
    }
    out.frames = frames;
    Ok(())
}

/// A chunk file of one kind of packing. Kept in memory: its index.
#[derive(Debug)]
pub struct PackedFile<P> {
    description: Description,
    index: ChunkFile,
    packing: PhantomData<P>,
}

impl<P: Packing> PackedFile<P> {
    /// The chunks of the file called `key`, whose index was read.
    ///
    /// Errors: `Unsupported` for chunks of another kind.
    pub fn new(key: impl Into<String>, index: ChunkFile) -> Result<Self> {
        if index.codec() != P::CODEC {
            let codec = index.codec().escape_ascii().to_string();
            let detail = format!("chunks of `{codec}`, expected {}; a newer gristmill wrote it", P::CHUNKS);
            return Err(Error::new(Kind::Unsupported, detail).at_byte(0));
        }
        let description = Description { key: key.into(), format: P::FORMAT, kind: P::KIND };
        Ok(PackedFile { description, index, packing: PhantomData })
    }

    fn unpack(&self, i: usize, wanted: Wanted<'_>, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let checked = self.index.check(i, bytes);
        let unpacked = checked.and_then(|()| {
            let frames = self.index.frames(i) as usize;
            P::unpack(bytes, frames, wanted, limits.max_chunk_bytes, out)
        });
        unpacked.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }
}

impl<P: Packing> ChunkSource for PackedFile<P> {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.index.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.index.span(i).map(|span| (span, Some(self.index.name(i))))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        self.index.span(i).map(|_| self.index.frames(i) as usize)
    }

    fn limits(&self) -> Limits {
        P::limits()
    }

    fn identity(&self) -> Option<u64> {
        Some(self.index.identity())
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.unpack(i, Wanted::All, bytes, limits, out)
    }

    fn decode_rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
        self.unpack(i, Wanted::Rows(rows), bytes, limits, out).map(|()| true)
    }

    fn decode_judged(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        self.unpack(i, Wanted::Judged, bytes, limits, out)
    }
}
