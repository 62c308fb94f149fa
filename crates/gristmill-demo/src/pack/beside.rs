//! What has no fixed size <-> blocks of neighbouring frames, each compressed by itself.
//! Names, kinds and order come back; no text is taken for one that is none.

use std::collections::BTreeMap;
use std::ops::Range;

use gristmill_bytes::container::blocks::MOST_BLOCK;
use gristmill_bytes::container::zstd;
use gristmill_bytes::error::{Error, Kind, Result};

use super::header::Header;
use crate::value::Extra;

/// Values of a field: frame and value.
pub(super) type Extras = BTreeMap<String, Vec<(usize, Extra)>>;

/// A block ends after this many frames, or after [`BYTES`].
const FRAMES: usize = 64;
const BYTES: usize = 256 << 10;

/// Bytes of a block's place: first frame, bytes when unpacked, where it ends.
const ENTRY: usize = 12;

const LEVEL: i32 = 12;

/// Packs `extras`, whose frames ascend, to the end of `out`.
///
/// Errors: `TooLarge` for one value beyond [`MOST_BLOCK`], naming its field.
pub(super) fn pack(extras: &Extras, header: &mut Header, out: &mut Vec<u8>) -> Result<()> {
    let mut all: Vec<(usize, &str, &Extra)> = Vec::new();
    for (name, values) in extras {
        all.extend(values.iter().map(|(frame, extra)| (*frame, name.as_str(), extra)));
    }
    all.sort_by_key(|(frame, ..)| *frame);
    let (mut table, mut blocks) = (Vec::new(), Vec::new());
    let (mut plain, mut first) = (Vec::new(), 0);
    let mut close = |first: usize, plain: &mut Vec<u8>| -> Result<()> {
        blocks.extend(zstd::compress(LEVEL, plain)?);
        [first, plain.len(), blocks.len()].iter().for_each(|n| table.extend_from_slice(&(*n as u32).to_le_bytes()));
        plain.clear();
        Ok(())
    };
    let mut before = None;
    for (frame, name, extra) in all {
        let full = frame >= first + FRAMES || plain.len() >= BYTES;
        if full && before != Some(frame) && !plain.is_empty() {
            close(first, &mut plain)?;
        }
        if plain.is_empty() {
            first = frame;
        }
        before = Some(frame);
        let (kind, bytes): (u8, &[u8]) = match extra {
            Extra::Text(text) => (0, text.as_bytes()),
            Extra::Bytes(bytes) => (1, bytes),
            Extra::Json(text) => (2, text.as_bytes()),
            Extra::Pickle(bytes) => (3, bytes),
        };
        let name_len = u16::try_from(name.len()).map_err(|_| too_large(name, name.len()))?;
        plain.extend_from_slice(&(frame as u32).to_le_bytes());
        plain.extend_from_slice(&name_len.to_le_bytes());
        plain.push(kind);
        plain.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        plain.extend_from_slice(name.as_bytes());
        plain.extend_from_slice(bytes);
        if plain.len() > MOST_BLOCK {
            return Err(too_large(name, plain.len()));
        }
    }
    if !plain.is_empty() {
        close(first, &mut plain)?;
    }
    header.beside = (out.len() as u32, (table.len() / ENTRY) as u32);
    out.extend_from_slice(&table);
    out.extend_from_slice(&blocks);
    Ok(())
}

fn too_large(name: &str, len: usize) -> Error {
    Error::new(Kind::TooLarge, format!("`{name}`: {len} bytes beside one frame; the bound is {MOST_BLOCK}"))
}

/// Reads what travels beside some frames of a chunk.
///
/// Errors: `Corrupt` and `Truncated`, with the byte.
pub(super) fn read(header: &Header, bytes: &[u8], frames: &Range<usize>) -> Result<Extras> {
    let (start, count) = (header.beside.0 as usize, header.beside.1 as usize);
    let corrupt = |detail: &str, at: usize| Error::new(Kind::Corrupt, detail.to_owned()).at_byte(at as u64);
    let data = count.checked_mul(ENTRY).and_then(|table| table.checked_add(start));
    let table = data.and_then(|data| bytes.get(start..data));
    let table = table.ok_or_else(|| corrupt("the blocks beside do not lie within it", start))?;
    let word =
        |entry: &[u8; ENTRY], i: usize| entry[4 * i..].first_chunk().map_or(0, |w| u32::from_le_bytes(*w) as usize);
    let entries = table.as_chunks::<ENTRY>().0;
    let (mut found, mut plain) = (Extras::new(), Vec::new());
    for (i, entry) in entries.iter().enumerate() {
        let next = entries.get(i + 1).map_or(usize::MAX, |entry| word(entry, 0));
        if next <= frames.start || word(entry, 0) >= frames.end {
            continue;
        }
        let from = i.checked_sub(1).map_or(0, |before| word(&entries[before], 2));
        let base = start + table.len();
        let stored = bytes.get(base..).and_then(|blocks| blocks.get(from..word(entry, 2)));
        let stored = stored.ok_or_else(|| corrupt("a block beside does not lie within it", base))?;
        let most = word(entry, 1).min(MOST_BLOCK);
        zstd::decompress(stored, most, &mut plain).map_err(|e| e.at_byte((base + from) as u64))?;
        let mut rest = &plain[..];
        while !rest.is_empty() {
            let one = one(&mut rest).ok_or_else(|| corrupt("a value ends beyond its block", base + from))?;
            let (frame, name, extra) = one;
            if frames.contains(&frame) {
                found.entry(name.to_owned()).or_default().push((frame, extra));
            }
        }
    }
    Ok(found)
}

/// Takes the next value off a block; none where it is damaged.
fn one<'a>(rest: &mut &'a [u8]) -> Option<(usize, &'a str, Extra)> {
    let (head, after) = rest.split_first_chunk::<11>()?;
    let frame = u32::from_le_bytes(*head.first_chunk()?) as usize;
    let name_len = usize::from(u16::from_le_bytes([head[4], head[5]]));
    let len = u32::from_le_bytes(*head[7..].first_chunk()?) as usize;
    let (name, after) = after.split_at_checked(name_len)?;
    let (value, after) = after.split_at_checked(len)?;
    *rest = after;
    let text = |bytes: &[u8]| str::from_utf8(bytes).ok().map(str::to_owned);
    let extra = match head[6] {
        0 => Extra::Text(text(value)?),
        1 => Extra::Bytes(value.to_vec()),
        2 => Extra::Json(text(value)?),
        3 => Extra::Pickle(value.to_vec()),
        _ => return None,
    };
    Some((frame, str::from_utf8(name).ok()?, extra))
}
