//! What each round of a permutation mixes into the left half of a number, for every right half -> all rounds as look-ups.
//! Knows no key.

use super::{LANES, ROUNDS, WIDEST};

/// Entries of a table: as many as the widest half needs, so that no look-up checks a bound.
const ENTRIES: usize = 1 << WIDEST;

/// A table for each round. It has an entry for each right half.
#[derive(Debug)]
pub(super) struct Tables {
    half: u32,
    added: Box<[[u16; ENTRIES]]>,
}

impl Tables {
    /// Makes the tables. Round `k` mixes `mixed(k, right)` into the left half. A half has `half` bits, at most [`WIDEST`].
    pub(super) fn new(half: u32, mixed: impl Fn(usize, u64) -> u64) -> Self {
        let mut added = vec![[0; ENTRIES]; ROUNDS].into_boxed_slice();
        for (k, table) in added.iter_mut().enumerate() {
            (0..1u64 << half).zip(table).for_each(|(right, added)| *added = mixed(k, right) as u16);
        }
        Tables { half, added }
    }

    /// Sends numbers through all rounds. The processor looks up several of them at once.
    #[inline]
    pub(super) fn rounds(&self, numbers: [u64; LANES]) -> [u64; LANES] {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (numbers.map(|x| x >> self.half), numbers.map(|x| x & mask));
        let look_up = |table: &[u16; ENTRIES], half: u64| u64::from(table[half as usize % ENTRIES]);
        // After two rounds each half stands where it stood, so that none is moved.
        for [even, odd] in self.added.as_chunks::<2>().0 {
            (0..LANES).for_each(|i| left[i] ^= look_up(even, right[i]));
            (0..LANES).for_each(|i| right[i] ^= look_up(odd, left[i]));
        }
        std::array::from_fn(|i| left[i] << self.half | right[i])
    }
}

const _: () = assert!(ROUNDS.is_multiple_of(2), "rounds go in pairs");
