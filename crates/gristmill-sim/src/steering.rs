//! What runs met so far -> the number of the next run: now and then one that aims at what was met least. Draws nothing: the same runs before
//! give the same number.

use std::collections::BTreeMap;

use crate::coverage::{Coverage, Pair, pairs};
use crate::scenario::aim;

/// Of this number of runs one aims.
const ONE_IN: u64 = 4;

/// Chooses numbers of runs.
#[derive(Debug, Default)]
pub struct Steering {
    runs: u64,
    /// How often a run aimed at a pair.
    aimed: BTreeMap<Pair, u64>,
}

impl Steering {
    /// The number of the run whose turn it is: that of its seed, or one that aims from it at the pair that was met least, and of those at
    /// the one that fewest runs aimed at.
    pub fn number(&mut self, seed: u64, met: &Coverage) -> u64 {
        self.runs += 1;
        if !self.runs.is_multiple_of(ONE_IN) {
            return seed;
        }
        let least = pairs().min_by_key(|pair| {
            let aimed = self.aimed.get(pair).copied().unwrap_or(0);
            (met.times(*pair) + aimed, aimed)
        });
        let Some((pair, number)) = least.and_then(|pair| Some((pair, aim::number(seed, pair)?))) else { return seed };
        *self.aimed.entry(pair).or_default() += 1;
        number
    }
}
