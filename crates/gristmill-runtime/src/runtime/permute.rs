//! An index -> another index of the same range: a keyed permutation in O(1) memory, with its inverse.
//! A balanced Feistel network with cycle walking. A round multiplies and shifts, or looks up what that gives. Never draws: the key fixes all.

mod tables;

use std::sync::Arc;

use super::seed::Key;
use tables::Tables;

/// Rounds. Ciphers of four have shipped that fail the measures of `tests/shuffle_quality.rs`; eight leave a margin.
const ROUNDS: usize = 8;

/// Numbers that go through the rounds side by side. No number waits for the multiplications of another.
const LANES: usize = 4;

/// The most numbers that [`Permutation::apply_all`] walks together.
const TOGETHER: usize = 256;

/// [`Permutation::tabled`] makes tables for halves of at most this many bits. The eight tables take 64 KiB.
const WIDEST: u32 = 12;

/// To clear the memory of the tables takes no longer than to permute two to the power of this many numbers.
const CLEARED: u32 = 8;

/// A permutation of `0..n`, fixed by its key.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    half: u32,
    keys: [u64; ROUNDS],
    /// The rounds as look-ups. [`Permutation::tabled`] makes them.
    tables: Option<Arc<Tables>>,
}

impl Permutation {
    /// The permutation of `0..n` that belongs to `key`.
    pub fn new(key: Key, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut draws = key.at(n);
        Permutation { n, half: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| draws.bits()), tables: None }
    }

    /// Returns the same permutation with tables, by which [`Permutation::apply_all`] takes about half the time. To make the tables takes as
    /// long as to permute [`Permutation::breaks_even`] numbers. A range of more than 2^24 numbers gets no tables.
    #[must_use]
    pub fn tabled(mut self) -> Self {
        self.tables = (self.half <= WIDEST).then(|| Arc::new(Tables::new(self.half, |k, half| self.mixed(k, half))));
        self
    }

    /// Returns how many numbers a caller must permute before tables save time, or `None` if this range gets no tables.
    pub fn breaks_even(&self) -> Option<u64> {
        // The memory of the tables is cleared, however few entries this range needs.
        (self.half <= WIDEST).then(|| 1 << self.half.max(CLEARED))
    }

    /// Returns what round `k` mixes into the left half of a number whose right half is `half`.
    fn mixed(&self, k: usize, half: u64) -> u64 {
        self.add(self.keys[k], 0, half)
    }

    /// Size of the range.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Where `i` goes. `i` must be below `n`.
    pub fn apply(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        self.walk(i, |s, x| s.rounds(s.keys, [x])[0])
    }

    /// Replaces each number by where [`Permutation::apply`] sends it. All numbers must be below `n`.
    pub fn apply_all(&self, numbers: &mut [u64]) {
        match self.tables.as_deref() {
            Some(tables) => self.walk_all(numbers, |lanes| tables.rounds(lanes)),
            None => self.walk_all(numbers, |lanes| self.rounds(self.keys, lanes)),
        }
    }

    #[inline]
    fn walk_all(&self, numbers: &mut [u64], step: impl Fn([u64; LANES]) -> [u64; LANES]) {
        for numbers in numbers.chunks_mut(TOGETHER) {
            let (lanes, rest) = numbers.as_chunks_mut::<LANES>();
            lanes.iter_mut().for_each(|lanes| *lanes = step(*lanes));
            let mut lanes = [0; LANES];
            lanes[..rest.len()].copy_from_slice(rest);
            rest.copy_from_slice(&step(lanes)[..rest.len()]);
            // The places of the numbers that are still out of range. No branch depends on a number.
            let (mut places, mut left) = ([0u8; TOGETHER], 0);
            for (place, number) in numbers.iter().enumerate() {
                places[left] = place as u8;
                left += usize::from(*number >= self.n);
            }
            while left > 0 {
                let mut beyond = 0;
                for first in (0..left).step_by(LANES) {
                    let lanes: [_; LANES] = std::array::from_fn(|i| places[(first + i).min(left - 1)]);
                    let stepped = step(lanes.map(|place| numbers[usize::from(place)]));
                    for (place, number) in lanes.into_iter().zip(stepped).take(left - first) {
                        numbers[usize::from(place)] = number;
                        places[beyond] = place;
                        beyond += usize::from(number >= self.n);
                    }
                }
                left = beyond;
            }
        }
    }

    /// What goes to `i`: `invert(apply(i)) == i`.
    pub fn invert(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut keys = self.keys;
        keys.reverse();
        self.walk(i, |s, x| s.swap(s.rounds(keys, [s.swap(x)])[0]))
    }

    /// Repeats a permutation of the enclosing power of four until the value is in range again.
    fn walk(&self, i: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        let mut x = step(self, i);
        while x >= self.n {
            x = step(self, x);
        }
        x
    }

    #[inline]
    fn rounds<const N: usize>(&self, keys: [u64; ROUNDS], numbers: [u64; N]) -> [u64; N] {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (numbers.map(|x| x >> self.half), numbers.map(|x| x & mask));
        for key in keys {
            let mixed = std::array::from_fn(|i| self.add(key, left[i], right[i]));
            (left, right) = (right, mixed);
        }
        std::array::from_fn(|i| left[i] << self.half | right[i])
    }

    /// Returns the left half of a number after one round.
    #[inline]
    fn add(&self, key: u64, left: u64, right: u64) -> u64 {
        let mut mixed = (right ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (left ^ (mixed >> 29)) & ((1u64 << self.half) - 1)
    }

    fn swap(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        (x & mask) << self.half | x >> self.half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_permuted_and_inverted() {
        for n in (1..200).chain([1023, 1024, 1025, 100_003]) {
            let permutation = Permutation::new(Key::new(n, "test"), n);
            let mut seen = vec![false; n as usize];
            let mut all: Vec<u64> = (0..n).collect();
            permutation.apply_all(&mut all);
            let mut by_tables: Vec<u64> = (0..n).collect();
            permutation.clone().tabled().apply_all(&mut by_tables);
            assert_eq!(by_tables, all, "n {n}");
            for i in 0..n {
                let j = permutation.apply(i);
                assert_eq!(all[i as usize], j, "n {n}");
                assert_eq!(permutation.invert(j), i, "n {n}");
                assert!(!std::mem::replace(&mut seen[j as usize], true), "n {n}: {j} twice");
            }
        }
    }

    #[test]
    fn tables_of_any_width_give_the_same_order() {
        for bits in 0..=2 * WIDEST + 2 {
            for n in [(1 << bits) - 1, 1 << bits, (1 << bits) + 1] {
                let permutation = Permutation::new(Key::new(n, "width"), n);
                let tabled = permutation.clone().tabled();
                assert_eq!(tabled.tables.is_some(), permutation.breaks_even().is_some(), "n {n}");
                assert_eq!(tabled.tables.is_some(), n <= 1 << (2 * WIDEST), "n {n}");
                for count in [0, 1, 3, 4, 5, 255, 256, 257, 700] {
                    // Both ends of the range, whatever its size.
                    let ends = (0..count).map(|i| if i % 2 == 0 { i } else { n.wrapping_sub(i) });
                    let mut numbers: Vec<u64> = ends.filter(|i| *i < n).collect();
                    let alone: Vec<u64> = numbers.iter().map(|i| permutation.apply(*i)).collect();
                    tabled.apply_all(&mut numbers);
                    assert_eq!(numbers, alone, "n {n}, {count} numbers");
                }
            }
        }
    }

    #[test]
    fn ranges_near_the_widest_do_not_overflow() {
        let n = (1 << 62) + 12_345;
        let permutation = Permutation::new(Key::new(3, "wide"), n);
        for i in [0, 1, n / 2, n - 1] {
            assert_eq!(permutation.invert(permutation.apply(i)), i);
        }
    }

    #[test]
    fn a_key_has_its_order_for_good() {
        let permutation = Permutation::new(Key::new(7, "order"), 1000);
        assert_eq!([0, 1, 2, 500, 999].map(|i| permutation.apply(i)), [750, 77, 941, 730, 442]);
        assert_eq!((permutation.len(), permutation.is_empty()), (1000, false));
        assert!(Permutation::new(Key::new(7, "order"), 0).is_empty());
    }
}
