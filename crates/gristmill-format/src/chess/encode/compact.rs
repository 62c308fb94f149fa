//! A record -> the bytes that a device expands: planes as bits with their scalars, the policy as pairs, legal moves as bits.
//! `docs/format/compact.md` has each byte. Never rounds: what is expanded is what the other outputs are, bit for bit.

use gristmill_bytes::encode::Sparse;
use gristmill_bytes::error::{Error, Kind, Result};

use super::simd::{self, Stores};
use crate::chess::frame::Frame;
use crate::chess::record::{POLICY, at};

/// Bytes of a row of `planes:packed`: the 104 words, the eight bytes after them, and the input format.
pub const PACKED_BYTES: usize = at::ROOT_Q - at::PLANES + 4;

/// Bytes of a row of `legal:bits`: bit `i % 8` of byte `i / 8` is move `i`.
pub const LEGAL_BYTES: usize = POLICY.div_ceil(8);

/// Pairs of a row of `probs:sparse` where nothing is said. The last one is never a move.
pub const PAIRS: u16 = 128;

/// The fewest and the most pairs that may be asked for.
pub const LEAST_PAIRS: u16 = 2;
/// See [`LEAST_PAIRS`].
pub const MOST_PAIRS: u16 = 512;

/// What moves have that are not legal, in the data of all current writers.
const ILLEGAL: u32 = (-1.0f32).to_bits();

/// Writes a row of `planes:packed`. Errors: `OutOfRange` for an unknown input format.
pub(super) fn planes(stores: Stores, frame: &Frame<'_>, row: &mut [u8]) -> Result<()> {
    frame.input_format()?;
    let (stored, format) = row.split_at_mut(PACKED_BYTES - 4);
    simd::copy(stores, &frame.bytes()[at::PLANES..at::ROOT_Q], stored);
    format.copy_from_slice(&frame.bytes()[at::INPUT_FORMAT..at::PROBABILITIES]);
    Ok(())
}

/// The policy of a record as it is stored, or as its packed form lists it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Policy<'a> {
    /// Of every move, in order.
    Stored(&'a [u8]),
    /// Of some moves.
    Listed(Sparse<'a>),
}

/// Writes a row of `probs:sparse`: the moves that have another value than most, ascending; then pairs of -1 and that value.
///
/// Errors: `OutOfRange` where there is no room for all of them and one pair more.
pub(super) fn pairs(policy: Policy<'_>, indices: &mut [u8], values: &mut [u8]) -> Result<()> {
    let mut stored = [0; 4 * POLICY];
    let bytes = match policy {
        Policy::Listed(listed) if is_short(&listed) => {
            let moves = listed.indices.iter().copied().zip(listed.values.iter().map(|value| value.to_bits()));
            return write(moves, listed.fill.to_bits(), indices, values);
        }
        Policy::Listed(listed) => {
            listed.write(&mut stored);
            &stored
        }
        Policy::Stored(bytes) => bytes,
    };
    let entries = || bytes.as_chunks::<4>().0.iter().map(|entry| u32::from_le_bytes(*entry));
    // What more than half of all entries are; where nothing is, there are more others than any row has pairs.
    let is_most = |fill: u32| entries().map(|bits| usize::from(bits == fill)).sum::<usize>() > POLICY / 2;
    let fill = if is_most(ILLEGAL) { ILLEGAL } else { majority(entries()) };
    write((0..).zip(entries()), fill, indices, values)
}

/// Whether most entries are the fill, and the others in order: then the list is what all of the vector would give.
fn is_short(listed: &Sparse<'_>) -> bool {
    listed.indices.len() < POLICY / 2 && listed.indices.is_sorted_by(|a, b| a < b)
}

/// What more than half of some numbers are, if anything is.
fn majority(numbers: impl Iterator<Item = u32>) -> u32 {
    let (mut found, mut lead) = (ILLEGAL, 0usize);
    for number in numbers {
        match lead {
            0 => (found, lead) = (number, 1),
            _ if number == found => lead += 1,
            _ => lead -= 1,
        }
    }
    found
}

fn write(moves: impl Iterator<Item = (u16, u32)>, fill: u32, indices: &mut [u8], values: &mut [u8]) -> Result<()> {
    let (indices, values) = (indices.as_chunks_mut::<2>().0, values.as_chunks_mut::<4>().0);
    let (room, mut count) = (values.len().saturating_sub(1), 0);
    for (index, bits) in moves.filter(|(_, bits)| *bits != fill) {
        if count < room {
            indices[count] = index.to_le_bytes();
            values[count] = bits.to_le_bytes();
        }
        count += 1;
    }
    if count > room {
        let detail = format!(
            "a policy of {count} moves, where probs:sparse:{} has room for {room}; take probs:sparse:{} or probs",
            room + 1,
            (count + 1).min(MOST_PAIRS.into())
        );
        return Err(Error::new(Kind::OutOfRange, detail).at_byte(at::PROBABILITIES as u64));
    }
    indices[count..].fill((-1i16).to_le_bytes());
    values[count..].fill(fill.to_le_bytes());
    Ok(())
}

/// Writes a row of `legal:bits`.
pub(super) fn legal(policy: Policy<'_>, row: &mut [u8]) {
    match policy {
        Policy::Stored(bytes) => {
            for (byte, entries) in row.iter_mut().zip(bytes.as_chunks::<4>().0.chunks(8)) {
                let is_legal = |entry: &[u8; 4]| u8::from(f32::from_le_bytes(*entry) >= 0.0);
                *byte = entries.iter().rev().fold(0, |bits, entry| bits << 1 | is_legal(entry));
            }
        }
        Policy::Listed(listed) => {
            row.fill(if listed.fill >= 0.0 { u8::MAX } else { 0 });
            if let Some(last) = row.last_mut() {
                *last &= (1 << (POLICY % 8)) - 1;
            }
            for (index, value) in listed.indices.iter().zip(listed.values) {
                let (byte, bit) = (&mut row[usize::from(index / 8)], 1 << (index % 8));
                *byte = if *value >= 0.0 { *byte | bit } else { *byte & !bit };
            }
        }
    }
}
