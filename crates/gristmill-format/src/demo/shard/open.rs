//! The bytes of a shard -> its metadata and its trajectories, whole or not at all.
//! Compressed tars are unpacked into memory within a bound; a tar that lacks its end mark, or anything else, is refused.

use std::borrow::Cow;

use super::group::{Groups, Sample, group};
use super::member::read;
use super::meta::ShardMeta;
use crate::container::gzip::{self, Inflater};
use crate::container::tar::{TarLimits, walk};
use crate::container::zstd;
use crate::demo::trajectory::{End, Trajectories};
use crate::demo::value::{Extra, Value};
use crate::error::{Error, Kind, Result};
use crate::layout::Scalar;

/// Field that ends an episode.
const DONES: &str = "dones";

/// Field that says which step a frame is, where frames are stored in another order.
const FRAME: &str = "frame";

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
        } else if bytes.starts_with(&zstd::MAGIC) {
            Packing::Zstd
        } else {
            Packing::Tar
        }
    }
}

/// The tar of a shard, unpacked into `scratch` where it is compressed.
///
/// Errors: what the decompressor says; `TooLarge` beyond `max` bytes.
pub fn unpack<'a>(bytes: &'a [u8], max: usize, scratch: &'a mut Vec<u8>) -> Result<Cow<'a, [u8]>> {
    match Packing::of(bytes) {
        Packing::Tar => return Ok(Cow::Borrowed(bytes)),
        Packing::Gzip => {
            Inflater::default().inflate(bytes, max, scratch)?;
        }
        Packing::Zstd => zstd::decompress(bytes, max, scratch)?,
    }
    Ok(Cow::Borrowed(scratch))
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
}

impl Shard {
    /// Reads a shard: plain, gzip or Zstandard; PAX, GNU or USTAR; every suffix of the members that is known.
    ///
    /// Trajectories end where `dones` is true; what follows the last such frame is a truncated one. Without `dones` the whole
    /// shard is one.
    ///
    /// Errors, with member, frame and byte: whatever is wrong with container, names or values; `Corrupt` for metadata that is
    /// not first or contradicts itself; `TooLarge` beyond `max` bytes, unpacked or as frames.
    pub fn read(bytes: &[u8], max: usize) -> Result<Shard> {
        let mut scratch = Vec::new();
        let tar = unpack(bytes, max, &mut scratch)?;
        let index = walk(&*tar, &TarLimits::default())?;
        if let Some(fault) = index.faults().first() {
            return Err(fault.clone());
        }
        let Groups { metadata, mut samples, ignored } = group(&index, tar.len())?;
        let meta = meta(&tar, &metadata, samples.first(), max)?;
        let shuffled = in_order_of_time(&tar, &mut samples, max)?;
        let mut trajectories = Trajectories::new(max);
        for (number, sample) in samples.iter().enumerate() {
            frame(&tar, sample, max, &mut trajectories).map_err(|e| e.in_frame(number))?;
            let done = trajectories.field(number, DONES).is_some_and(|bytes| bytes.iter().any(|b| *b != 0));
            if done {
                trajectories.end(End::Terminated);
            }
        }
        trajectories.end(End::Truncated);
        Ok(Shard { meta, trajectories, shuffled, ignored })
    }
}

fn frame(tar: &[u8], sample: &Sample, max: usize, to: &mut Trajectories) -> Result<()> {
    let place = |member: &super::Member, e: Error| {
        let at = e.place().offset.unwrap_or(0) + member.span.start as u64;
        Error::new(e.kind(), e.detail()).in_member(&member.name).at_byte(at)
    };
    let mut reads = Vec::with_capacity(sample.members.len());
    for member in &sample.members {
        reads.push(read(member, &tar[member.span.clone()], max).map_err(|e| place(member, e))?);
    }
    let mut values = Vec::with_capacity(reads.len() + 1);
    for (member, read) in sample.members.iter().zip(&reads) {
        read.values(&member.field, &mut values).map_err(|e| place(member, e))?;
    }
    values.push(("__key__".to_owned(), Value::Extra(Extra::Text(sample.key.clone()))));
    let last = sample.members.last().map_or("", |member| member.name.as_str());
    to.push(values).map_err(|e| e.in_member(last))
}

/// The metadata, which must come first; where shards were joined, all must say the same.
fn meta(tar: &[u8], members: &[super::Member], first: Option<&Sample>, max: usize) -> Result<Option<ShardMeta>> {
    let mut found: Option<ShardMeta> = None;
    for member in members {
        let place = |e: Error| e.in_member(&member.name).at_byte(member.span.start as u64);
        let frames_before = first.is_some_and(|sample| sample.members.iter().any(|m| m.span.start < member.span.start));
        if found.is_none() && frames_before {
            let detail = "the metadata must be the first member; frames come before it";
            return Err(place(Error::new(Kind::Corrupt, detail)));
        }
        let meta = ShardMeta::parse(&tar[member.span.clone()], max).map_err(place)?;
        match &found {
            None => found = Some(meta),
            Some(before) => {
                before.mixes_with(&meta).map_err(|e| {
                    place(Error::new(Kind::Corrupt, format!("a second metadata contradicts the first: {}", e.detail())))
                })?;
            }
        }
    }
    Ok(found)
}

/// Puts samples into the order that their `frame` values give, where all have one; whether they were in another.
fn in_order_of_time(tar: &[u8], samples: &mut Vec<Sample>, max: usize) -> Result<bool> {
    let mut numbered = Vec::with_capacity(samples.len());
    for sample in samples.iter() {
        let Some(member) = sample.members.iter().find(|member| member.field == FRAME) else { return Ok(false) };
        let found = read(member, &tar[member.span.clone()], max).map_err(|e| e.in_member(&member.name))?;
        let mut values = Vec::new();
        found.values(FRAME, &mut values).map_err(|e| e.in_member(&member.name))?;
        match values.first() {
            Some((_, Value::Array { scalar, bytes, .. })) if *scalar != Scalar::F64 => {
                let number = scalar.number(bytes).ok_or_else(|| {
                    Error::new(Kind::Corrupt, "expected the number of the frame").in_member(&member.name)
                })?;
                numbered.push((number, member.name.clone()));
            }
            _ => return Ok(false),
        }
    }
    // Joined shards number their frames anew: an order of their own that is already that of time.
    let ascending = |pair: &[(f64, String)]| pair[1].0 > pair[0].0 || pair[1].0 == 0.0;
    if numbered.windows(2).all(ascending) {
        return Ok(false);
    }
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|a, b| numbered[*a].0.total_cmp(&numbered[*b].0));
    if let Some(twice) = order.windows(2).find(|pair| numbered[pair[0]].0 == numbered[pair[1]].0) {
        let detail = format!("two frames are number {}", numbered[twice[1]].0);
        return Err(Error::new(Kind::Corrupt, detail).in_member(&numbered[twice[1]].1));
    }
    let mut sorted = Vec::with_capacity(samples.len());
    for i in order {
        sorted.push(std::mem::replace(&mut samples[i], Sample { key: String::new(), members: Vec::new() }));
    }
    *samples = sorted;
    Ok(true)
}
