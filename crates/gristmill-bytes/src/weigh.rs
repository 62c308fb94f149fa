//! Chunks -> what each of their frames weighs: the seam that samplers by weight use, and the one rule that needs no game.
//! Pure: a weight is a function of the record and the rule's numbers alone.

use std::fmt::Debug;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::Result;
use crate::source::Chunk;

/// Weighs frames. Weights are finite and not negative.
pub trait Weigher: Send + Sync + Debug {
    /// Stands for the rule, its version and all its numbers: what was learnt with it is kept under this id.
    fn id(&self) -> u64;

    /// The weight of every frame, where all have the same: then the number of frames is enough.
    fn uniform(&self) -> Option<f32>;

    /// Replaces `out` by the weights of the chunk's frames, in order.
    ///
    /// Errors: `Unsupported` for records that the rule does not know.
    fn weigh(&self, chunk: &Chunk, out: &mut Vec<f32>) -> Result<()>;
}

/// The weight of a chunk: the sum over its frames, in their order, in single precision; finite like its terms.
pub fn total(weights: impl IntoIterator<Item = f32>) -> f32 {
    weights.into_iter().fold(0.0, |sum: f32, weight| sum + weight).min(f32::MAX)
}

/// The id of a rule: a hash of its name, its version and its numbers.
pub fn rule_id(name: &str, version: u32, numbers: &[f32]) -> u64 {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&version.to_le_bytes());
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    xxh3_64(&bytes)
}

/// Every frame weighs the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uniform(pub f32);

impl Weigher for Uniform {
    fn id(&self) -> u64 {
        rule_id("uniform", 1, &[self.0])
    }

    fn uniform(&self) -> Option<f32> {
        Some(self.0)
    }

    fn weigh(&self, chunk: &Chunk, out: &mut Vec<f32>) -> Result<()> {
        out.clear();
        out.resize(chunk.frames, self.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_made_in_order_and_in_single_precision() {
        let weights = [16_777_216.0, 1.0, 1.0, -16_777_216.0];
        assert_eq!(total(weights), 0.0, "each 1 is lost beside 2^24");
        assert_eq!(total([1.0; 81]), 81.0);
        assert_eq!(total([f32::MAX; 3]), f32::MAX);
        let mut out = vec![9.0; 7];
        Uniform(0.5).weigh(&Chunk { frames: 3, ..Chunk::default() }, &mut out).unwrap();
        assert_eq!(out, [0.5; 3]);
    }

    #[test]
    fn another_rule_or_number_is_another_id() {
        let ids = [
            rule_id("uniform", 1, &[1.0]),
            rule_id("uniform", 2, &[1.0]),
            rule_id("uniform", 1, &[0.5]),
            rule_id("uniform", 1, &[1.0, 1.0]),
            rule_id("uniforn", 1, &[1.0]),
        ];
        assert!((1..5).all(|i| !ids[..i].contains(&ids[i])), "{ids:?}");
        assert_eq!(ids[0], Uniform(1.0).id());
    }
}
