//! What each round of a permutation mixes into the left half of a number, for every right half -> all rounds as look-ups.
//! Knows no key.

use super::{LANES, ROUNDS};

/// A table for each round. It has an entry for each right half.
#[derive(Debug)]
pub(super) struct Tables {
    half: u32,
    /// The tables of all rounds, one after another.
    added: Box<[u16]>,
}

impl Tables {
    /// Makes the tables. Round `k` mixes `mixed(k, right)` into the left half. A half has `half` bits, at most 16.
    pub(super) fn new(half: u32, mixed: impl Fn(usize, u64) -> u64) -> Self {
        let of_round = |k| (0..1u64 << half).map(move |right| (k, right));
        let added = (0..ROUNDS).flat_map(of_round).map(|(k, right)| mixed(k, right) as u16).collect();
        Tables { half, added }
    }

    /// Sends numbers through all rounds. The processor looks up several of them at once.
    #[inline]
    pub(super) fn rounds(&self, numbers: [u64; LANES]) -> [u64; LANES] {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (numbers.map(|x| x >> self.half), numbers.map(|x| x & mask));
        for table in self.added.chunks_exact(1 << self.half) {
            let add = |i: usize| left[i] ^ table.get(right[i] as usize).map_or(0, |added| u64::from(*added));
            let mixed = std::array::from_fn(add);
            (left, right) = (right, mixed);
        }
        std::array::from_fn(|i| left[i] << self.half | right[i])
    }
}
