//! Records where the table has them -> one part of each record, back to back, as tensors of fields are. The compiler knows the length of
//! most copies. Never looks at what it copies.

use gristmill_format::Result;

/// A table that copies parts of its records, and never a whole record first.
pub trait Parts {
    /// Copies parts of these records. Each of `parts` is a first byte in the record and a number of bytes. `out` has one slice for each
    /// part, and the slice has room for that part of every row.
    ///
    /// Errors: as [`FrameTable::gather`](super::FrameTable::gather).
    fn copy(&self, rows: &[u64], parts: &[(usize, usize)], out: &mut [&mut [u8]]) -> Result<()>;
}

/// Copies one part of each record into `out`. `part` is a first byte in the record and a number of bytes.
///
/// Panics if a record ends before the part does, and if `out` is not as long as all parts together.
pub fn copy_part(records: &[&[u8]], part: (usize, usize), out: &mut [u8]) {
    let len = part.1;
    assert_eq!(Some(out.len()), records.len().checked_mul(len), "as long as the parts");
    match len {
        0 => {}
        1 => exact::<1>(records, part.0, out),
        2 => exact::<2>(records, part.0, out),
        4 => exact::<4>(records, part.0, out),
        8 => exact::<8>(records, part.0, out),
        46 => exact::<46>(records, part.0, out),
        48 => exact::<48>(records, part.0, out),
        9..=16 => by_ends::<8>(records, part, out),
        17..=32 => by_ends::<16>(records, part, out),
        33..=64 => by_ends::<32>(records, part, out),
        65..=128 => by_ends::<64>(records, part, out),
        _ => {
            for (record, out) in records.iter().zip(out.chunks_exact_mut(len)) {
                out.copy_from_slice(&record[part.0..part.0 + len]);
            }
        }
    }
}

fn exact<const N: usize>(records: &[&[u8]], at: usize, out: &mut [u8]) {
    for (record, out) in records.iter().zip(out.as_chunks_mut::<N>().0) {
        out.copy_from_slice(&record[at..at + N]);
    }
}

/// Copies parts of `N` to 2 `N` bytes: the first `N` bytes, then the last `N`. The two copies may overlap.
fn by_ends<const N: usize>(records: &[&[u8]], (at, len): (usize, usize), out: &mut [u8]) {
    for (record, out) in records.iter().zip(out.chunks_exact_mut(len)) {
        let part = &record[at..at + len];
        out[..N].copy_from_slice(&part[..N]);
        out[len - N..].copy_from_slice(&part[len - N..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_any_length_are_copied() {
        let bytes: Vec<u8> = (0..2000u32).map(|i| (i * 7 % 251) as u8).collect();
        for len in (0..140).chain([255, 300]) {
            for at in [0, 1, 13] {
                for count in [0, 1, 2, 5] {
                    let records: Vec<&[u8]> = (0..count).map(|i| &bytes[i * 300..][..at + len + i % 2]).collect();
                    let mut out = vec![0xEE; count * len];
                    copy_part(&records, (at, len), &mut out);
                    let expected: Vec<u8> = records.iter().flat_map(|record| record[at..at + len].to_vec()).collect();
                    assert_eq!(out, expected, "{count} parts of {len} bytes from {at} on");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "as long as the parts")]
    fn a_slice_of_another_length_is_refused() {
        copy_part(&[&[1, 2, 3]], (0, 2), &mut [0; 3]);
    }
}
