//! Draws -> the random bits of a row, with their origin (key, number, words); and a row of a batch, which has such bits.

use gristmill_format::encode::RandomBits;

use crate::runtime::seed::Draws;

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// Its number in the table.
    pub row: u64,
    /// Random bits of the row in this epoch.
    pub bits: RandomBits,
}

/// The next bits of `draws`, with the place that they are drawn from.
pub fn random_bits(draws: &mut Draws) -> RandomBits {
    let (key, number, words) = draws.place();
    RandomBits { bits: draws.bits(), key, number, words: words as u32 }
}
