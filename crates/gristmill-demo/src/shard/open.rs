//! The bytes of a shard -> its metadata and its trajectories, whole or not at all.
//! Compressed tars are unpacked into memory within a bound; a tar that lacks its end mark, or anything else, is refused.

use std::borrow::Cow;

use gristmill_bytes::container::gzip::{self, Inflater};
use gristmill_bytes::container::tar::{Held, Members, TarLimits, set_in};
use gristmill_bytes::container::zstd;
use gristmill_bytes::error::{Error, Kind, Result};

use super::meta::ShardMeta;
use super::reader::{FRAME, Reader, is_done, order_of_time};
use crate::names::shown;
use crate::trajectory::{End, Tape, Trajectories};
use crate::value::Extra;

/// What is around a tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Nothing.
    Tar,
    /// gzip: `.tgz`, `.tar.gz`.
    Gzip,
    /// Zstandard: `.tar.zst`.
    Zstd,
}

impl Packing {
    /// By the first bytes.
    pub fn of(bytes: &[u8]) -> Packing {
        if bytes.starts_with(&gzip::MAGIC) {
            Packing::Gzip
        } else if bytes.starts_with(&zstd::MAGIC) || zstd::is_skippable(bytes) {
            Packing::Zstd
        } else {
            Packing::Tar
        }
    }
}

/// How much room [`unpack_into`] wants for what `bytes` unpack to; `None` where nothing says it, or nothing is packed.
pub fn room(bytes: &[u8]) -> Option<usize> {
    match Packing::of(bytes) {
        Packing::Tar => None,
        Packing::Gzip => gzip::told(bytes),
        Packing::Zstd => zstd::most(bytes),
    }
}

/// Unpacks `bytes` to the start of `out` and says how many bytes they are; `None` on any error, which
/// [`unpack`] then names.
///
/// Errors: `Io` where there is no memory.
pub fn unpack_into(bytes: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    match Packing::of(bytes) {
        Packing::Tar => Ok(None),
        Packing::Gzip => Inflater::default().inflate_into(bytes, out),
        Packing::Zstd => zstd::decompress_into(bytes, out),
    }
}

/// What a file unpacks to.
#[derive(Debug)]
pub struct Unpacked<'a> {
    /// The bytes.
    pub plain: Cow<'a, [u8]>,
    /// What comes after the packed stream and is no part of it.
    pub behind: Option<Error>,
}

/// The tar of a shard, unpacked into `scratch` where it is compressed.
///
/// Errors: what the decompressor says; `TooLarge` beyond `max` bytes.
pub fn unpack<'a>(bytes: &'a [u8], max: usize, scratch: &'a mut Vec<u8>) -> Result<Unpacked<'a>> {
    let mut behind = None;
    match Packing::of(bytes) {
        Packing::Tar => return Ok(Unpacked { plain: Cow::Borrowed(bytes), behind }),
        Packing::Gzip => {
            let end = bytes.len() - Inflater::default().inflate(bytes, max, scratch)?.trailing;
            behind = set_in(&bytes[end..]).map(|set| behind_gzip((end + set) as u64));
        }
        Packing::Zstd => zstd::decompress(bytes, max, scratch)?,
    }
    Ok(Unpacked { plain: Cow::Borrowed(scratch), behind })
}

/// The fault of a byte that comes after a gzip stream.
pub(super) fn behind_gzip(at: u64) -> Error {
    let detail =
        "bytes after the gzip stream that are not gzip data: something was joined to it, or a part of it is lost";
    Error::new(Kind::Corrupt, detail).at_byte(at)
}

/// A shard that was read.
#[derive(Debug, Clone)]
pub struct Shard {
    /// What it says about itself; ordinary WebDataset shards say nothing.
    pub meta: Option<ShardMeta>,
    /// Its frames, in order of time.
    pub trajectories: Trajectories,
    /// Whether the frames were stored in another order than that of time.
    pub shuffled: bool,
    /// Members that are not data by their names.
    pub ignored: usize,
    /// What comes after the end mark of the tar.
    pub behind: Option<Error>,
}

impl Shard {
    /// Reads a shard: plain, gzip or Zstandard; PAX, GNU or USTAR; every suffix of the members that is known.
    ///
    /// Trajectories end where `dones` is true; what follows the last such frame is a truncated one. Without `dones` the whole
    /// shard is one.
    ///
    /// Errors, with member, frame and byte: whatever is wrong with container, names or values, and what follows the end of
    /// either; `Corrupt` for metadata that is not first or contradicts itself; `TooLarge` beyond `max` bytes, unpacked or as
    /// frames.
    pub fn read(bytes: &[u8], max: usize) -> Result<Shard> {
        let mut scratch = Vec::new();
        let Unpacked { plain, behind } = unpack(bytes, max, &mut scratch)?;
        let found = Shard::of_tar(&plain, max)?;
        match behind.or_else(|| found.behind.clone()) {
            Some(fault) => Err(fault),
            None => Ok(found),
        }
    }

    /// Reads a plain shard; what follows its end mark is noted.
    ///
    /// Errors: as [`Shard::read`].
    pub fn of_tar(tar: &[u8], max: usize) -> Result<Shard> {
        shard(tar, max, Trajectories::new(max))
    }

    /// Reads a plain shard whose arrays stay where they lie in `tar`; `max` bounds what is made beside it. What comes after its
    /// end mark is noted.
    ///
    /// Errors: as [`Shard::read`].
    pub fn over(tar: &Tape, max: usize) -> Result<Shard> {
        shard(tar.bytes(), max, Trajectories::over(tar.clone(), max))
    }
}

/// Reads the frames of a tar to where there are none yet.
fn shard(tar: &[u8], max: usize, to: Trajectories) -> Result<Shard> {
    let mut members = Members::new(Held { bytes: tar, base: 0 }, TarLimits::default()).lenient(true);
    let (none, mut reader) = (to.clone(), Reader::new(to, max));
    while let Some(member) = members.following()? {
        let bytes = members.blocks().payload(member.offset, member.len)?;
        reader.member(&member, bytes)?;
    }
    reader.finish()?;
    let behind = members.behind();
    let Reader { meta, mut to, numbers, ignored, .. } = reader;
    let order = numbers.map(|numbers| order_of_time(&numbers)).transpose().map_err(|e| in_its_member(e, &to))?;
    let order = order.flatten();
    if let Some(order) = &order {
        to = in_order(&to, order, none)?;
    }
    to.end(End::Truncated);
    Ok(Shard { meta, trajectories: to, shuffled: order.is_some(), ignored, behind })
}

/// A refusal of the number of a frame, with the member that has it.
fn in_its_member(e: Error, all: &Trajectories) -> Error {
    let keys = all.extras().get("__key__");
    let frame = e.place().frame.and_then(|frame| usize::try_from(frame).ok());
    match keys.zip(frame).and_then(|(keys, frame)| keys.get(frame)) {
        Some((_, Extra::Text(key))) => e.in_member(shown(&format!("{key}.{FRAME}"))),
        _ => e,
    }
}

/// The same frames in another order, and the trajectories that they are then.
fn in_order(all: &Trajectories, order: &[usize], mut sorted: Trajectories) -> Result<Trajectories> {
    for frame in order {
        sorted.push_from(all, *frame)?;
        if is_done(&sorted, sorted.frames() - 1) {
            sorted.end(End::Terminated);
        }
    }
    Ok(sorted)
}
