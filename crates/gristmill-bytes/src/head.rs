//! A chunk that was decoded whole -> sums that tell later whether its stored bytes, and the first of the bytes inside, are
//! still the same (docs/format/side-index.md). Inflates nothing, and believes no length.

use std::num::NonZeroU32;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Parts of a chunk: a sum stands at the end of each but the last.
pub const PARTS: usize = 8;

/// What is remembered of a chunk that was sound, so that its head can be inflated alone and be held against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// XXH3-64 of its stored bytes.
    pub stored: u64,
    /// How many bytes they inflate to.
    pub len: NonZeroU32,
    /// Low halves of the XXH3-64 of the first bytes inside: up to the end of the first part, of the second, and so on.
    pub sums: [u32; PARTS - 1],
}

impl Head {
    /// Of a chunk by its stored bytes and the bytes inside; none where it is empty, or too long to be told.
    pub fn of(stored: &[u8], inside: &[u8]) -> Option<Head> {
        let len = NonZeroU32::new(u32::try_from(inside.len()).ok()?)?;
        let mut head = Head { stored: xxh3_64(stored), len, sums: [0; PARTS - 1] };
        let (mut hash, part) = (Xxh3Default::new(), head.part());
        for (i, sum) in head.sums.iter_mut().enumerate() {
            let end = inside.len().min((i + 1) * part);
            hash.update(&inside[end.min(i * part)..end]);
            *sum = hash.digest() as u32;
        }
        Some(head)
    }

    /// Whether the chunk was stored as these bytes.
    pub fn is_of(&self, stored: &[u8]) -> bool {
        xxh3_64(stored) == self.stored
    }

    /// The fewest bytes, not below `want`, that a sum is of; none where the whole is as near.
    pub fn place(&self, want: usize) -> Option<usize> {
        let place = want.max(1).div_ceil(self.part()).checked_mul(self.part())?;
        (place < self.len.get() as usize).then_some(place)
    }

    /// Whether the chunk begins with these bytes, as many as [`Head::place`] gives.
    pub fn begins_with(&self, first: &[u8]) -> bool {
        let sum = (first.len() / self.part()).checked_sub(1).and_then(|i| self.sums.get(i));
        first.len().is_multiple_of(self.part()) && sum == Some(&(xxh3_64(first) as u32))
    }

    /// Bytes of a part.
    fn part(&self) -> usize {
        (self.len.get() as usize).div_ceil(PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    #[test]
    fn each_place_begins_with_its_bytes_and_no_others() {
        for len in [1, 2, 7, 8, 9, 63, 64, 1000, 8356] {
            let inside = bytes(len);
            let head = Head::of(b"stored", &inside).unwrap();
            assert!(head.is_of(b"stored") && !head.is_of(b"storet"));
            for want in 0..=len + 9 {
                let Some(place) = head.place(want) else {
                    assert!(want + len.div_ceil(PARTS) >= len, "{want} of {len}");
                    continue;
                };
                assert!(want <= place && place < want.max(1) + len.div_ceil(PARTS) && place < len);
                let mut first = inside[..place].to_vec();
                assert!(head.begins_with(&first), "{place} of {len}");
                assert!(!head.begins_with(&first[1..]) && !head.begins_with(&[]));
                first[place / 2] ^= 1;
                assert!(!head.begins_with(&first));
            }
        }
        assert_eq!(Head::of(b"stored", b""), None);
    }
}
