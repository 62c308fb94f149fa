//! An index -> another index of the same range: a keyed permutation in O(1) memory, with its inverse.
//! A balanced Feistel network with cycle walking; each round is a multiply and a shift. Holds no table.

use super::seed::Key;

/// Rounds. Ciphers of four have shipped that fail the measures of `tests/shuffle_quality.rs`; eight leave a margin.
const ROUNDS: usize = 8;

/// A permutation of `0..n`, fixed by its key.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    half: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..n` that belongs to `key`.
    pub fn new(key: Key, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut draws = key.at(n);
        Permutation { n, half: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| draws.bits()) }
    }

    /// Where `i` goes. `i` must be below `n`.
    pub fn apply(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        self.walk(i, |s, x| s.keys.iter().fold(x, |x, key| s.round(x, *key)))
    }

    /// What goes to `i`: `invert(apply(i)) == i`.
    pub fn invert(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        self.walk(i, |s, x| {
            let swapped = s.swap(x);
            s.swap(s.keys.iter().rev().fold(swapped, |x, key| s.round(x, *key)))
        })
    }

    /// Repeats a permutation of the enclosing power of four until the value is in range again.
    fn walk(&self, i: u64, step: impl Fn(&Self, u64) -> u64) -> u64 {
        let mut x = step(self, i);
        while x >= self.n {
            x = step(self, x);
        }
        x
    }

    fn round(&self, x: u64, key: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (left, right) = (x >> self.half, x & mask);
        let mut mixed = (right ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        right << self.half | (left ^ (mixed >> 29)) & mask
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
            for i in 0..n {
                let j = permutation.apply(i);
                assert_eq!(permutation.invert(j), i, "n {n}");
                assert!(!std::mem::replace(&mut seen[j as usize], true), "n {n}: {j} twice");
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
}
