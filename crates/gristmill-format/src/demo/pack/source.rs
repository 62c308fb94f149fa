//! A chunk file of packed trajectories -> chunks: each trajectory is a chunk, and comes back as the records that it was.

use super::decode::{PackedTrajectory, Scratch};
use crate::container::chunks::{ChunkFile, Codec};
use crate::demo::source::MAX_BYTES;
use crate::error::{Error, Kind, Result};
use crate::source::{Access, Chunk, ChunkSource, Description, Limits, Span};

/// What a chunk file of packed trajectories says that it holds.
pub const CODEC: Codec = *b"demo\0\0\0\x01";

/// How sources call chunk files of packed trajectories.
pub const PACKED: &str = "demo.chunks";

/// A chunk file of packed trajectories. Kept in memory: its index.
#[derive(Debug)]
pub struct PackedDemos {
    description: Description,
    index: ChunkFile,
}

impl PackedDemos {
    /// The trajectories of the file called `key`, whose index was read.
    ///
    /// Errors: `Unsupported` for chunks that are no trajectories.
    pub fn new(key: impl Into<String>, index: ChunkFile) -> Result<Self> {
        if index.codec() != CODEC {
            let codec = index.codec().escape_ascii().to_string();
            let detail = format!("chunks of `{codec}`, expected packed trajectories; a newer gristmill wrote it");
            return Err(Error::new(Kind::Unsupported, detail).at_byte(0));
        }
        let description = Description { key: key.into(), format: PACKED, access: Access::Random };
        Ok(PackedDemos { description, index })
    }

    /// The index.
    pub fn index(&self) -> &ChunkFile {
        &self.index
    }

    /// The packed trajectory `i`, held against its checksum and its number of frames.
    ///
    /// Errors: `Missing`, and as [`PackedTrajectory::new`].
    pub fn trajectory<'a>(&self, i: usize, bytes: &'a [u8]) -> Result<PackedTrajectory<'a>> {
        self.index.check(i, bytes)?;
        let packed = PackedTrajectory::new(bytes)?;
        if packed.frames() == self.index.frames(i) as usize {
            return Ok(packed);
        }
        let detail = format!("{} frames, the index says {}", packed.frames(), self.index.frames(i));
        Err(Error::new(Kind::Corrupt, detail).at_byte(4))
    }

    fn records(&self, i: usize, frames: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        out.frames = 0;
        out.trailing = 0;
        out.bytes.clear();
        let packed = self.trajectory(i, bytes)?;
        let (frames, size) = (frames.min(packed.frames()), packed.record_bytes());
        let bytes = frames.checked_mul(size).filter(|bytes| *bytes <= limits.max_chunk_bytes).ok_or_else(|| {
            let most = limits.max_chunk_bytes;
            let detail =
                format!("a trajectory of {frames} frames of {size} bytes; the bound is {most}: raise max_chunk_bytes");
            Error::new(Kind::TooLarge, detail)
        })?;
        let layout = packed.about()?.layout;
        out.bytes.resize(bytes, 0);
        let scratch = out.kept.tool::<Scratch>();
        scratch.forget();
        for (frame, record) in out.bytes.chunks_exact_mut(size).enumerate() {
            packed.record(frame, scratch, record).map_err(|e| e.in_frame(frame))?;
        }
        out.layout = Some(layout);
        out.frames = frames;
        Ok(())
    }
}

impl ChunkSource for PackedDemos {
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

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.records(i, usize::MAX, bytes, limits, out);
        decoded.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }

    fn limits(&self) -> Limits {
        Limits { max_chunk_bytes: MAX_BYTES }
    }

    fn decode_head(&self, i: usize, frames: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let decoded = self.records(i, frames, bytes, limits, out);
        decoded.map_err(|e| e.in_chunk(i).in_member(self.index.name(i)))
    }
}
