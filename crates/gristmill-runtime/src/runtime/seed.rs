//! (root seed, stage, identity, ordinal) -> random numbers. The one place where generators are made.
//! Counter-based (Philox4x32-10, Salmon et al. 2011): any draw can be made again from its key and ordinal alone.

use std::hash::{BuildHasher, Hasher};

use xxhash_rust::xxh3::xxh3_64;

/// How many rounds Philox makes, and the numbers that each round multiplies by.
const ROUNDS: usize = 10;
const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];

/// How many ordinals [`Key::first_bits`] draws for at once.
const LANES: usize = 4;

/// What a stream of draws belongs to. Two keys that differ in any part give unrelated streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// The key of a stage (or of a part of one) under a root seed.
    pub fn new(root: u64, stage: &str) -> Self {
        let mut bytes = Vec::with_capacity(8 + stage.len());
        bytes.extend_from_slice(&root.to_le_bytes());
        bytes.extend_from_slice(stage.as_bytes());
        Key(xxh3_64(&bytes))
    }

    /// The key of something named within this key, such as one chunk of one source, or one epoch.
    #[must_use]
    pub fn of(self, name: &[u8], number: u64) -> Self {
        let mut bytes = Vec::with_capacity(16 + name.len());
        bytes.extend_from_slice(&self.0.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(name);
        Key(xxh3_64(&bytes))
    }

    /// The draws that belong to one ordinal: a stream of its own for every ordinal.
    pub fn at(self, ordinal: u64) -> Draws {
        Draws { key: self.0, ordinal, block: 0, words: [0; 4], left: 0 }
    }

    /// Replaces each ordinal by the first [`Draws::bits`] of its stream. The processor draws for several ordinals at once.
    pub fn first_bits(self, ordinals: &mut [u64]) {
        let (lanes, rest) = ordinals.as_chunks_mut::<LANES>();
        lanes.iter_mut().for_each(|lanes| *lanes = self.first_of(*lanes));
        let mut last = [0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        rest.copy_from_slice(&self.first_of(last)[..rest.len()]);
    }

    /// Philox for several ordinals: each array has one 32-bit word of each of them.
    fn first_of(self, ordinals: [u64; LANES]) -> [u64; LANES] {
        let low = |numbers: [u64; LANES]| numbers.map(|x| x & 0xFFFF_FFFF);
        let mut counter = [low(ordinals), ordinals.map(|x| x >> 32), [0; LANES], [0; LANES]];
        let mut key = [lo(self.0), hi(self.0)];
        for _ in 0..ROUNDS {
            let (a, b) = (counter[0].map(|x| x * MULTIPLIERS[0]), counter[2].map(|x| x * MULTIPLIERS[1]));
            let [one, other] = key.map(u64::from);
            counter = [
                std::array::from_fn(|i| b[i] >> 32 ^ counter[1][i] ^ one),
                low(b),
                std::array::from_fn(|i| a[i] >> 32 ^ counter[3][i] ^ other),
                low(a),
            ];
            key = next_key(key);
        }
        std::array::from_fn(|i| counter[0][i] | counter[1][i] << 32)
    }

    /// The key itself, for deriving round keys of a permutation.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// A root seed from the operating system's entropy, for a run that was given none.
pub fn fresh_root() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// A stream of random numbers, a pure function of its key and ordinal.
#[derive(Debug, Clone)]
pub struct Draws {
    key: u64,
    ordinal: u64,
    block: u64,
    words: [u32; 4],
    left: usize,
}

impl Draws {
    fn word(&mut self) -> u32 {
        if self.left == 0 {
            let counter = [lo(self.ordinal), hi(self.ordinal), lo(self.block), hi(self.block)];
            self.words = philox(counter, [lo(self.key), hi(self.key)]);
            self.block += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.words[3 - self.left]
    }

    /// A uniform 64-bit number.
    pub fn bits(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    /// Where the next draw comes from: key, ordinal, and how many words of 32 bits were drawn before.
    pub fn place(&self) -> (u64, u64, u64) {
        (self.key, self.ordinal, 4 * self.block - self.left as u64)
    }

    /// A uniform number in `0..n`, without bias (Lemire 2019). `n` must not be 0.
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let mut product = u128::from(self.bits()) * u128::from(n);
        if (product as u64) < n {
            let floor = n.wrapping_neg() % n;
            while (product as u64) < floor {
                product = u128::from(self.bits()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An index drawn in proportion to `weights`; weights that are not positive are never drawn.
    /// `None` when no weight is positive.
    pub fn weighted(&mut self, weights: &[f64]) -> Option<usize> {
        let total: f64 = weights.iter().filter(|w| **w > 0.0).sum();
        let mut left = self.unit() * total;
        let mut last = None;
        for (i, &weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            last = Some(i);
            if left < weight {
                break;
            }
            left -= weight;
        }
        last
    }
}

fn lo(x: u64) -> u32 {
    x as u32
}

fn hi(x: u64) -> u32 {
    (x >> 32) as u32
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let a = u64::from(counter[0]) * MULTIPLIERS[0];
        let b = u64::from(counter[2]) * MULTIPLIERS[1];
        counter = [hi(b) ^ counter[1] ^ key[0], lo(b), hi(a) ^ counter[3] ^ key[1], lo(a)];
        key = next_key(key);
    }
    counter
}

/// The key of the next round.
fn next_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([!0; 4], [!0; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn first_bits_of_many_are_those_of_each() {
        for (root, count) in [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (u64::MAX, 1000)] {
            let key = Key::new(root, "bits").of(b"epoch", root);
            let ordinals: Vec<u64> =
                (0..count).map(|i| [i, u64::MAX - i, i << 32, 1 << 31 | i][i as usize % 4]).collect();
            let mut bits = ordinals.clone();
            key.first_bits(&mut bits);
            assert_eq!(bits, ordinals.iter().map(|ordinal| key.at(*ordinal).bits()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_place_is_where_the_next_draw_comes_from() {
        let key = Key::new(42, "pool");
        let mut draws = key.at(7);
        let mut whole = key.at(7);
        let words: Vec<u32> = (0..12).map(|_| whole.word()).collect();
        for n in 0..5 {
            assert_eq!(draws.place(), (key.value(), 7, 2 * n));
            let at = 2 * n as usize;
            assert_eq!(draws.bits(), u64::from(words[at]) | u64::from(words[at + 1]) << 32);
        }
    }

    #[test]
    fn sequences_are_pinned_across_versions() {
        let key = Key::new(42, "pool");
        let mut draws = key.at(7);
        let first: Vec<u64> = (0..6).map(|_| draws.below(1000)).collect();
        let mut again = key.at(7);
        assert_eq!(first, (0..6).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert_eq!(first, PINNED);
        assert_ne!(key.at(8).bits(), key.at(7).bits());
        assert_ne!(Key::new(43, "pool").at(7).bits(), key.at(7).bits());
        assert_ne!(key.of(b"a", 1).at(7).bits(), key.of(b"a", 2).at(7).bits());
    }

    const PINNED: [u64; 6] = [970, 203, 25, 626, 58, 625];

    #[test]
    fn bounded_and_weighted_draws_follow_their_distribution() {
        let key = Key::new(1, "chi-square");
        let mut counts = [0f64; 7];
        let mut weighted = [0f64; 4];
        let weights = [0.5, 0.0, 3.0, 1.5];
        let n = 70_000;
        for i in 0..n {
            let mut draws = key.at(i);
            counts[draws.below(7) as usize] += 1.0;
            weighted[draws.weighted(&weights).unwrap()] += 1.0;
        }
        let expected = n as f64 / 7.0;
        let chi: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        assert!(chi < 22.5, "6 degrees of freedom, p = 0.001: {chi}");
        assert_eq!(weighted[1], 0.0);
        let chi: f64 = [0, 2, 3]
            .iter()
            .map(|&i| {
                let expected = n as f64 * weights[i] / 5.0;
                (weighted[i] - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 13.8, "2 degrees of freedom, p = 0.001: {chi}");
        assert_eq!(key.at(0).weighted(&[0.0, -1.0]), None);
    }
}
