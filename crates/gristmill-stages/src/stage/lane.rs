//! (source key, chunk index) -> lane: a fixed, published hash deals the chunks to lanes, and lanes to ranks.
//! Says which chunks a lane has, its part of a window's size, and its own draws; knows nothing of any other lane.
//!
//! `lane = XXH3-64(key bytes, 0x00, index as u64 little-endian) mod lanes`, seed 1 (docs/format/lanes.md): another hash
//! than that of a split, so that the sides of a split have the same lanes.

use gristmill_runtime::runtime::seed::Key;
use xxhash_rust::xxh3::Xxh3;

/// Seed of the hash; a split's is 0.
const SEED: u64 = 1;

/// The lane of a chunk, of `lanes`.
pub fn lane_of(key: &str, index: u64, lanes: u32) -> u32 {
    let mut hash = Xxh3::with_seed(SEED);
    hash.update(key.as_bytes());
    hash.update(&[0]);
    hash.update(&index.to_le_bytes());
    (hash.digest() % u64::from(lanes.max(1))) as u32
}

/// One of several lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashLane {
    /// Which, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

impl HashLane {
    /// Its part of a size that all lanes share: the parts differ by 1 at most, and their sum is `whole`.
    pub fn share(self, whole: u64) -> u64 {
        let of = u64::from(self.of.max(1));
        whole / of + u64::from(u64::from(self.index) < whole % of)
    }

    /// The key of its own draws within those of a stage.
    pub fn key(self, stage: Key) -> Key {
        stage.of(b"lane", u64::from(self.index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::split::identity_hash;

    #[test]
    fn the_hash_is_the_published_one() {
        let mut bytes = b"training.1.gz\0".to_vec();
        bytes.extend_from_slice(&5u64.to_le_bytes());
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, 1);
        assert_eq!(u64::from(lane_of("training.1.gz", 5, 48)), hash % 48);
        assert_eq!(hash, GOLDEN);
    }

    const GOLDEN: u64 = 17_384_113_676_011_611_469;

    #[test]
    fn lanes_are_even_and_even_on_each_side_of_a_split() {
        let mut counts = [[0u32; 8]; 2];
        for i in 0..16_000u64 {
            let (key, index) = (format!("training.{}.tar", i / 100), i % 100);
            counts[(identity_hash(&key, index) % 2) as usize][lane_of(&key, index, 8) as usize] += 1;
        }
        assert!(counts.iter().flatten().all(|n| (880..1_120).contains(n)), "{counts:?}");
    }

    #[test]
    fn shares_add_up_and_keys_differ() {
        for (whole, of) in [(48, 48), (50_000, 48), (7, 3), (0, 4)] {
            let shares: Vec<u64> = (0..of).map(|index| HashLane { index, of }.share(whole)).collect();
            assert_eq!(shares.iter().sum::<u64>(), whole);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
        let key = |index| HashLane { index, of: 2 }.key(Key::new(1, "pool")).value();
        assert_ne!(key(0), key(1));
    }
}
