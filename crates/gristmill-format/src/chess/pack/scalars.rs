//! Values and moves of a record <-> which of them a rule predicts, and those that none does.
//! Works on the bits of values: what is NaN stays the same NaN.

use gristmill_bytes::error::Result;

use super::cursor::Cursor;
use super::header::{Header, Parts};
use super::line::Step;
use crate::chess::record::{Version, at};
use crate::chess::transform::{PolicyMapping, Transform};

/// Offsets of the values, in the order of their bits in a body's head.
const VALUES: [usize; 18] = [
    at::ROOT_Q,
    at::BEST_Q,
    at::ROOT_D,
    at::BEST_D,
    at::ROOT_M,
    at::BEST_M,
    at::PLIES_LEFT,
    at::RESULT_Q,
    at::RESULT_D,
    at::PLAYED_Q,
    at::PLAYED_D,
    at::PLAYED_M,
    at::ORIG_Q,
    at::ORIG_D,
    at::ORIG_M,
    at::POLICY_KLD,
    at::Q_ST,
    at::D_ST,
];

/// Bits of the head of a body that say which values are stored.
pub(super) const VALUE_BITS: u32 = (1 << VALUES.len()) - 1;

/// The NaN of values that are not known.
pub(super) const UNKNOWN: u32 = 0x7fc0_0000;

fn get(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

fn put(record: &mut [u8], at: usize, bits: u32) {
    record[at..at + 4].copy_from_slice(&bits.to_le_bytes());
}

/// Values that a version has.
fn values(version: Version) -> &'static [usize] {
    if version == Version::V7 { &VALUES } else { &VALUES[..17] }
}

/// What value `i` of frame `k` is predicted to be; those of lower numbers that it rests on are in the record.
fn predicted(header: &Header, k: usize, i: usize, record: &[u8]) -> u32 {
    match VALUES[i] {
        at::ROOT_Q | at::PLAYED_Q => get(record, at::BEST_Q),
        at::ROOT_D | at::PLAYED_D => get(record, at::BEST_D),
        at::ROOT_M | at::PLAYED_M => get(record, at::BEST_M),
        at::PLIES_LEFT => {
            let left = f32::from_bits(header.plies_left) + (header.frames - 1 - k) as f32;
            if left.is_nan() { header.plies_left } else { left.to_bits() }
        }
        at::RESULT_Q => header.results[k % 2][0],
        at::RESULT_D => header.results[k % 2][1],
        at::ORIG_Q | at::ORIG_D | at::ORIG_M => UNKNOWN,
        _ => 0,
    }
}

/// The order in which values are predicted: the best move's first, on which others rest.
fn order(version: Version) -> impl Iterator<Item = usize> {
    let rest = (0..values(version).len()).filter(|i| !matches!(i, 1 | 3 | 5));
    [1, 3, 5].into_iter().chain(rest)
}

/// Appends the values of frame `k` that are not predicted, and says which they are.
pub(super) fn write_values(header: &Header, k: usize, record: &[u8], out: &mut Vec<u8>) -> u32 {
    let mut stored = 0;
    for i in order(header.version) {
        let bits = get(record, VALUES[i]);
        if bits != predicted(header, k, i, record) {
            stored |= 1 << i;
            out.extend_from_slice(&bits.to_le_bytes());
        }
    }
    stored
}

/// Reads the values of frame `k` into `record`, which has the size of V7.
///
/// Errors: `Truncated`.
pub(super) fn read_values(
    header: &Header,
    k: usize,
    stored: u32,
    from: &mut Cursor<'_>,
    record: &mut [u8],
) -> Result<()> {
    for i in order(header.version) {
        let bits = if stored >> i & 1 != 0 { from.u32()? } else { predicted(header, k, i, record) };
        put(record, VALUES[i], bits);
    }
    Ok(())
}

/// The policy index of the move that the line plays in frame `k`; 65535 after the last frame. `transform` tells that of
/// a frame, and is called for no other than `k`.
///
/// Errors: those of `transform`.
pub(super) fn played(
    header: &Header,
    parts: &Parts<'_>,
    k: usize,
    transform: impl FnOnce(usize) -> Result<Transform>,
) -> Result<u16> {
    Ok(match k + 1 {
        behind if behind > header.frames => u16::MAX,
        last if last == header.frames => header.last_played,
        _ => {
            let under = match header.mapping {
                Some(mapping) => (transform(k)?, mapping),
                None => (Transform::NONE, PolicyMapping::AsPlanes),
            };
            index(parts.step(header.history + k), k, under)
        }
    })
}

/// The policy index of the step from frame `k`, which is under a transform; 0 where there is no move.
pub(super) fn index(step: Step, k: usize, (transform, mapping): (Transform, PolicyMapping)) -> u16 {
    step.entry(k % 2).and_then(|entry| transform.index(entry, mapping)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::record::V7_BYTES;

    fn header(version: Version) -> Header {
        Header {
            version,
            history: 0,
            frames: 5,
            input_format: 1,
            fill: 0,
            results: [[1.0f32.to_bits(), 0], [(-1.0f32).to_bits(), 0]],
            plies_left: 7.25f32.to_bits(),
            last_played: 0,
            mapping: None,
        }
    }

    #[test]
    fn what_is_predicted_takes_no_byte_and_everything_comes_back() {
        for version in [Version::V6, Version::V7] {
            let header = header(version);
            let mut record = vec![0; V7_BYTES];
            for (offset, value) in [
                (at::BEST_Q, 0.5f32),
                (at::ROOT_Q, 0.5),
                (at::PLAYED_Q, 0.5),
                (at::PLIES_LEFT, 10.25),
                (at::RESULT_Q, -1.0),
                (at::ORIG_Q, f32::NAN),
                (at::ORIG_D, f32::NAN),
                (at::ORIG_M, f32::NAN),
            ] {
                put(&mut record, offset, value.to_bits());
            }
            let mut out = Vec::new();
            assert_eq!(write_values(&header, 1, &record, &mut out), 1 << 1);
            assert_eq!(out, 0.5f32.to_le_bytes());
            put(&mut record, at::ORIG_M, 0x7fc0_0001);
            put(&mut record, at::PLAYED_M, 3.5f32.to_bits());
            out.clear();
            let stored = write_values(&header, 1, &record, &mut out);
            assert_eq!(stored, 1 << 1 | 1 << 11 | 1 << 14);
            let mut read = vec![0; V7_BYTES];
            read_values(&header, 1, stored, &mut Cursor::new(&out), &mut read).unwrap();
            assert_eq!(read, record);
        }
    }
}
