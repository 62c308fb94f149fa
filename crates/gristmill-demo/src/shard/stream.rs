//! A packed shard -> its frames in blocks, in bounded memory: unpacked piece by piece, however long it is.
//! Holds the window of the decompressor, one member and one block of records.

use std::sync::Arc;

use gristmill_bytes::container::gzip_stream::GzipStream;
use gristmill_bytes::container::tar::{Block, Blocks, Members, TarLimits, cut, set_in};
use gristmill_bytes::container::zstd_stream::ZstdStream;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::ReadAt;

use super::meta::ShardMeta;
use super::open::{Packing, behind_gzip};
use super::reader::{Reader, order_of_time};
use crate::names::shown;
use crate::trajectory::Trajectories;

/// Bytes unpacked at a time.
const STEP: usize = 1 << 20;

/// What a shard said that was read in blocks.
#[derive(Debug, Clone)]
pub struct Streamed {
    /// What it says about itself.
    pub meta: Option<ShardMeta>,
    /// Whether the frames came in another order than that of time: then they are to be read another way.
    pub shuffled: bool,
    /// What comes after the end mark of the tar, or after the stream that it is packed in.
    pub behind: Option<Error>,
}

/// Reads a packed shard and gives its frames to `each` in blocks of about `block` bytes, each of which begins where the
/// one before ended; trajectories end by `dones` alone. No member may have more than `max` bytes.
///
/// Errors, with member, frame and byte: as [`super::Shard::read`], and what `each` gives.
pub fn stream(
    from: Arc<dyn ReadAt>,
    packing: Packing,
    block: usize,
    max: usize,
    each: &mut dyn FnMut(Trajectories) -> Result<()>,
) -> Result<Streamed> {
    let unpacking = match packing {
        Packing::Zstd => Unpacking::Zstd(ZstdStream::new(from)?),
        Packing::Gzip | Packing::Tar => Unpacking::Gzip(GzipStream::new(from)),
    };
    let mut members =
        Members::new(Pieces { unpacking, held: Vec::new(), start: 0, over: false, max }, TarLimits::default())
            .lenient(true);
    let mut reader = Reader::new(Trajectories::new(usize::MAX), max).in_blocks(block);
    while let Some(member) = members.following()? {
        let bytes =
            members.blocks().payload(member.offset, member.len).map_err(|e| e.in_member(shown(&member.name)))?;
        reader.member(&member, bytes)?;
        if let Some(ready) = reader.ready() {
            each(ready)?;
        }
    }
    reader.finish()?;
    if let Some(ready) = reader.ready() {
        each(ready)?;
    }
    if reader.to.frames() > 0 {
        each(reader.to)?;
    }
    // What follows the end mark is unpacked too: a checksum stands at the end.
    members.blocks().drain()?;
    let behind = match (members.behind(), &mut members.blocks().unpacking) {
        (None, Unpacking::Gzip(from)) => from.behind()?.map(behind_gzip),
        (behind, _) => behind,
    };
    let order = reader.numbers.map(|numbers| order_of_time(&numbers)).transpose()?.flatten();
    Ok(Streamed { meta: reader.meta, shuffled: order.is_some(), behind })
}

/// The first bytes that a packed file unpacks to: as many as a header of a tar has, or fewer where there are no more.
///
/// Errors: what the decompressor says.
pub fn shard_head(from: Arc<dyn ReadAt>, packing: Packing) -> Result<Vec<u8>> {
    let mut head = Vec::with_capacity(size_of::<Block>());
    match packing {
        Packing::Zstd => ZstdStream::new(from)?.fill(&mut head)?,
        Packing::Gzip | Packing::Tar => GzipStream::new(from).fill(&mut head)?,
    };
    Ok(head)
}

enum Unpacking {
    Gzip(GzipStream),
    Zstd(ZstdStream),
}

/// The part of a tar that is in memory.
struct Pieces {
    unpacking: Unpacking,
    held: Vec<u8>,
    /// Byte of the tar that `held` starts with.
    start: u64,
    /// Whether `held` is the end.
    over: bool,
    max: usize,
}

impl Pieces {
    /// Makes `held` start at `at` and have `len` bytes, or fewer where the tar ends.
    fn hold(&mut self, at: u64, len: usize) -> Result<()> {
        loop {
            let passed = at.saturating_sub(self.start).min(self.held.len() as u64);
            let there = self.held.len() as u64 - passed;
            if self.over || (there >= len as u64 && self.start + passed == at) {
                return Ok(());
            }
            self.held.drain(..passed as usize);
            self.start += passed;
            self.held.reserve(STEP.max(len.saturating_sub(self.held.len())));
            self.over = !match &mut self.unpacking {
                Unpacking::Gzip(from) => from.fill(&mut self.held)?,
                Unpacking::Zstd(from) => from.fill(&mut self.held)?,
            };
        }
    }

    /// `len` bytes at `at`, if all are there.
    fn get(&mut self, at: u64, len: usize) -> Result<Option<&[u8]>> {
        self.hold(at, len)?;
        let start = at.checked_sub(self.start).and_then(|start| usize::try_from(start).ok());
        Ok(start.and_then(|start| self.held.get(start..start.checked_add(len)?)))
    }

    fn payload(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        let max = self.max;
        let wanted = usize::try_from(len).ok().filter(|len| *len <= max);
        let large = || Error::new(Kind::TooLarge, format!("a member of {len} bytes; the bound is {max}")).at_byte(at);
        let wanted = wanted.ok_or_else(large)?;
        self.hold(at, wanted)?;
        let end = self.end();
        self.get(at, wanted)?.ok_or_else(|| cut(len, end).at_byte(at))
    }

    /// Unpacks the rest and forgets it.
    fn drain(&mut self) -> Result<()> {
        while !self.over {
            let end = self.start + self.held.len() as u64;
            self.hold(end, 1)?;
        }
        Ok(())
    }
}

impl Blocks for Pieces {
    fn end(&self) -> u64 {
        if self.over { self.start + self.held.len() as u64 } else { u64::MAX }
    }

    fn block(&mut self, at: u64) -> Result<Option<Block>> {
        Ok(self.get(at, size_of::<Block>())?.and_then(|bytes| bytes.first_chunk().copied()))
    }

    fn read(&mut self, at: u64, len: u64, to: &mut Vec<u8>) -> Result<()> {
        to.clear();
        to.extend_from_slice(self.payload(at, len)?);
        Ok(())
    }

    fn first_set(&mut self, mut at: u64) -> Result<Option<u64>> {
        loop {
            self.hold(at, size_of::<Block>())?;
            let start = at.checked_sub(self.start).and_then(|start| usize::try_from(start).ok());
            let rest = start.and_then(|start| self.held.get(start..)).unwrap_or_default();
            match set_in(rest) {
                Some(set) => return Ok(Some(at + set as u64)),
                None if self.over => return Ok(None),
                // Whole blocks: who asked reads the one that is found.
                None => at += (rest.len() - rest.len() % size_of::<Block>()) as u64,
            }
        }
    }
}
