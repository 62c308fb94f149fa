//! The stored bytes of a file of demonstrations -> its records as plain bytes, and each trajectory as a chunk of them.
//! What has no fixed size stays behind: streams are of records. The records of a shard stay in its tar where that takes no more
//! than twice their bytes. Holds no more than its bound says.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;
use gristmill_bytes::plain::{Plain, Rooms, Whole};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, Span};

use super::placed::{Placed, Tar};
use super::{DemoFile, ReadOptions, is_npz, is_tar, or_games, read_npz, read_plain, refuse_nothing, refuse_packing};
use crate::shard::{Packing, Shard, Unpacked, room, unpack};
use crate::trajectory::{Tape, Trajectories};

/// What is in a file.
#[derive(Debug)]
pub enum Opened {
    /// An `.npz`, as it is.
    Npz(Vec<u8>),
    /// Anything else, unpacked, with what comes after the packed stream.
    Plain {
        /// The bytes.
        plain: Vec<u8>,
        /// What is wrong with what is around them.
        faults: Vec<Error>,
        /// Whether they were packed.
        packed: bool,
    },
}

/// Unpacks a file to at most `max` bytes, in memory from `rooms`.
///
/// Errors: what the decompressor says, `TooLarge` beyond the bound, `Unsupported` for a packing that is not read here, `Empty`
/// for nothing.
pub fn opened(stored: Vec<u8>, max: usize, rooms: &mut Rooms) -> Result<Opened> {
    if is_npz(&stored) {
        return Ok(Opened::Npz(stored));
    }
    refuse_packing(&stored)?;
    if Packing::of(&stored) == Packing::Tar {
        return Ok(Opened::Plain { plain: stored, faults: Vec::new(), packed: false });
    }
    let mut plain = rooms.take(room(&stored).unwrap_or(0).min(max));
    let Unpacked { behind, .. } = unpack(&stored, max, &mut plain)?;
    rooms.give(stored);
    Ok(Opened::Plain { plain, faults: behind.into_iter().collect(), packed: true })
}

/// The trajectories of a file called `key`, of at most `max` bytes.
///
/// Errors: as [`super::read`].
pub fn whole(key: &str, opened: Opened, max: usize, rooms: &mut Rooms) -> Result<Whole> {
    let options = ReadOptions { max_bytes: max, strict: false, ..ReadOptions::default() };
    let (file, mut faults) = match opened {
        Opened::Plain { plain, faults, packed } if is_tar(&plain) => {
            return shard(key, plain, faults, packed, &options);
        }
        // What such a file means takes more memory than the bytes of a shard.
        opened => {
            rooms.clear();
            match opened {
                Opened::Npz(stored) => (read_npz(key, &stored, &options)?, Vec::new()),
                Opened::Plain { plain, faults, packed } => (read_plain(key, &plain, packed, &options)?, faults),
            }
        }
    };
    faults.extend(file.faults().iter().cloned());
    let (description, all) = file.into_trajectories();
    let chunks = Arc::new(Steps::of(description, &all));
    let mut plain = all.into_records();
    plain.shrink_to_fit();
    Ok(Whole { chunks, plain: Box::new(plain), faults })
}

/// The trajectories of a tar.
fn shard(key: &str, tar: Vec<u8>, mut faults: Vec<Error>, packed: bool, options: &ReadOptions) -> Result<Whole> {
    refuse_nothing(&tar)?;
    let tar = Tar(Arc::new(tar));
    let found = Shard::over(&Tape::new(tar.clone()), options.max_bytes);
    let found = found.map_err(|e| if packed { or_games(e) } else { e })?;
    faults.extend(options.judged(found.behind.clone())?);
    let (description, all) = DemoFile::of_shard(key, found).into_trajectories();
    let chunks = Arc::new(Steps::of(description, &all));
    let placed = Box::new(Placed::new(tar, all, !packed));
    if placed.len() > options.max_bytes {
        let detail = format!("more than {} bytes of frames; raise the bound if they are real", options.max_bytes);
        return Err(Error::new(Kind::TooLarge, detail));
    }
    let plain: Box<dyn Plain> = if placed.takes() / 2 <= placed.len() { placed } else { Box::new(placed.into_bytes()) };
    Ok(Whole { chunks, plain, faults })
}

/// Trajectories whose records lie back to back.
#[derive(Debug)]
struct Steps {
    description: Description,
    layout: Option<Arc<Layout>>,
    /// The frame after the last of each.
    ends: Vec<usize>,
}

impl Steps {
    fn of(description: Description, all: &Trajectories) -> Self {
        Steps { description, layout: all.layout().cloned(), ends: all.ends().iter().map(|(end, _)| *end).collect() }
    }

    /// The first frame of a trajectory, and how many it has.
    fn place(&self, i: usize) -> Option<(usize, usize)> {
        let first = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(i).map(|end| (first, end - first))
    }

    /// Layout and frames of a trajectory whose bytes these are, of which `wanted` frames (else all) are wanted.
    fn checked(&self, i: usize, bytes: &[u8], wanted: Option<usize>, limits: &Limits) -> Result<(&Arc<Layout>, usize)> {
        let missing = || Error::new(Kind::Missing, format!("there are {} trajectories", self.ends.len()));
        let (layout, (_, frames)) = self.layout.as_ref().zip(self.place(i)).ok_or_else(missing)?;
        let (size, most) = (layout.size(), limits.max_chunk_bytes);
        if bytes.len() != frames * size {
            let detail = format!("{} bytes of a trajectory of {frames} records of {size}", bytes.len());
            return Err(Error::new(Kind::Truncated, detail));
        }
        if wanted.unwrap_or(frames).saturating_mul(size) > most {
            let detail = format!(
                "a trajectory of {frames} frames of {size} bytes; the bound is {most} bytes: raise max_chunk_bytes"
            );
            return Err(Error::new(Kind::TooLarge, detail));
        }
        Ok((layout, frames))
    }
}

impl ChunkSource for Steps {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        let ((first, frames), size) = self.place(i).zip(self.layout.as_ref().map(|layout| layout.size()))?;
        Some((Span { offset: (first * size) as u64, len: (frames * size) as u64 }, None))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        self.place(i).map(|(_, frames)| frames)
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let (layout, frames) = self.checked(i, bytes, None, limits).map_err(|e| e.in_chunk(i))?;
        out.bytes.reserve_exact(bytes.len());
        out.bytes.extend_from_slice(bytes);
        (out.layout, out.frames) = (Some(Arc::clone(layout)), frames);
        Ok(())
    }

    fn decode_taking(&self, i: usize, bytes: &mut Vec<u8>, limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        let (layout, frames) = self.checked(i, bytes, None, limits).map_err(|e| e.in_chunk(i))?;
        std::mem::swap(&mut out.bytes, bytes);
        (out.layout, out.frames) = (Some(Arc::clone(layout)), frames);
        Ok(())
    }

    fn decode_rows(&self, i: usize, rows: &[u32], bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<bool> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let (layout, frames) = self.checked(i, bytes, Some(rows.len()), limits).map_err(|e| e.in_chunk(i))?;
        let size = layout.size();
        out.bytes.reserve_exact(rows.len() * size);
        for row in rows {
            let missing = || Error::new(Kind::Missing, format!("frame {row} of {frames}")).in_chunk(i);
            let record = bytes.chunks_exact(size).nth(*row as usize).ok_or_else(missing)?;
            out.bytes.extend_from_slice(record);
        }
        (out.layout, out.frames) = (Some(Arc::clone(layout)), rows.len());
        Ok(true)
    }
}
