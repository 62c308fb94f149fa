//! A whole trajectory -> packed bytes. The same trajectory gives the same bytes; nothing is left out, and what has no place is
//! refused by name.

use gristmill_bytes::container::blocks::Run;
use gristmill_bytes::error::{Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::beside::{self, Extras};
use super::cut::cut;
use super::header::{About, Header, MOST_OPEN};
use crate::trajectory::End;
use crate::value::Extra;

/// Bytes of a block of rows, and of one of pieces: where measured sizes no longer fall much, and one block costs little.
const ROWS: usize = 16 << 10;
const PIECES: usize = 128 << 10;

/// The level of Zstandard for blocks, and for those of pieces that fill a block or more: there the higher level takes several times as
/// long for few bytes (docs/design/2026-11-21-demonstration-packs.md).
const LEVEL: i32 = 12;
const LEVEL_OF_MANY: i32 = 9;

/// Largest element that blocks are turned by.
const MOST_UNIT: usize = 16;

/// How the blocks of a packed trajectory are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Blocks {
    /// Compressed by Zstandard, where that makes them smaller.
    #[default]
    Compressed,
    /// As they are: larger, and read without unpacking.
    Plain,
}

/// A trajectory that is to be packed.
#[derive(Debug, Clone, Copy)]
pub struct Trajectory<'a> {
    /// What it is of.
    pub about: &'a About,
    /// Its records, back to back.
    pub records: &'a [u8],
    /// What has no fixed size, by field, frames ascending.
    pub extras: &'a Extras,
    /// How it ended.
    pub end: End,
}

/// Packs a trajectory to the end of `out`, which is empty. `blocks` says how records are stored; what travels beside them is
/// compressed in any case.
///
/// Errors: `Empty` without frames, `WrongSize` for a part of a record, `TooLarge` for 4 GiB and for a field or value of more than
/// 64 MiB in one frame, `Unsupported` for records within records; the field is named.
pub fn pack(trajectory: &Trajectory<'_>, blocks: Blocks, out: &mut Vec<u8>) -> Result<()> {
    let (layout, records) = (&trajectory.about.layout, trajectory.records);
    let size = layout.size();
    if records.is_empty() || !records.len().is_multiple_of(size) {
        let kind = if records.is_empty() { Kind::Empty } else { Kind::WrongSize };
        return Err(Error::new(kind, format!("{} bytes of records of {size}", records.len())));
    }
    let too_long = |_| Error::new(Kind::TooLarge, "more frames than 32 bits count");
    let frames = u32::try_from(records.len() / size).map_err(too_long)?;
    let pieces = cut(layout, records)?;
    let mut header = Header::new(trajectory.end, frames, size as u32);
    header.fields = pieces.fields;
    out.resize(Header::len(header.fields.len(), 1 + pieces.pools.len()), 0);
    header.put_about(trajectory.about, out)?;
    let level = |level| (blocks == Blocks::Compressed).then_some(level);
    header.runs.push(Run::pack(&pieces.rows, (pieces.row, pieces.row), ROWS, level(LEVEL), out)?);
    for (i, pool) in pieces.pools.iter().enumerate() {
        let unit = if pool.unit <= MOST_UNIT { pool.unit } else { 1 };
        let level = level(if pool.bytes.len() < PIECES { LEVEL } else { LEVEL_OF_MANY });
        let run = Run::pack(&pool.bytes, (pool.piece, unit), PIECES, level, out).map_err(|e| {
            let field = header.fields.iter().position(|place| usize::from(place.run) == i + 1);
            let name = field.map_or("", |field| &layout.fields()[field].name);
            Error::new(e.kind(), format!("field `{name}`: {}", e.detail()))
        })?;
        header.runs.push(run);
    }
    if header.runs.iter().map(Run::open_bytes).sum::<u64>() > MOST_OPEN {
        return Err(Error::new(Kind::TooLarge, format!("blocks of more than {MOST_OPEN} bytes for one step")));
    }
    beside::pack(trajectory.extras, &mut header, out)?;
    u32::try_from(out.len())
        .map_err(|_| Error::new(Kind::TooLarge, "one trajectory packs to more than 4 GiB, the limit"))?;
    header.write(out);
    Ok(())
}

/// XXH3-128 of a trajectory: its records, and what travels beside them. The same wherever it is.
pub fn content(records: &[u8], extras: &Extras) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(records);
    for (name, values) in extras {
        hash.update(name.as_bytes());
        for (frame, extra) in values {
            let (kind, bytes): (u64, &[u8]) = match extra {
                Extra::Text(text) => (0, text.as_bytes()),
                Extra::Bytes(bytes) => (1, bytes),
                Extra::Json(text) => (2, text.as_bytes()),
                Extra::Pickle(bytes) => (3, bytes),
            };
            [*frame as u64, kind, bytes.len() as u64].iter().for_each(|n| hash.update(&n.to_le_bytes()));
            hash.update(bytes);
        }
    }
    hash.digest128()
}
