//! Weights -> which of several sources each position of an endless order belongs to, and how many positions each had before.
//! In exact proportion, never some positions away from it; any position is as near as the first. Holds no table.

use super::permute::Permutation;
use super::seed::Key;

/// Positions that are shuffled among themselves.
pub const BLOCK: u64 = 1024;

/// 2^64 divided by the golden ratio: multiples of it fill the circle more evenly than those of any other number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The circle.
const WHOLE: u128 = 1 << 64;

/// Arcs of a circle, one for each source, as long as its weight. Position after position goes round by `STEP` and belongs
/// to the source whose arc it meets; so the numbers of hits are sums of floors, which Euclid's algorithm adds up.
#[derive(Debug, Clone)]
pub struct Shares {
    key: Key,
    start: u64,
    /// Where each arc ends.
    ends: Vec<u128>,
}

/// The positions of one block.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    shares: &'a Shares,
    first: u64,
    order: Permutation,
}

impl Shares {
    /// Shares in proportion to `weights`. `None` for none, weights below 0 or without end, or all 0.
    pub fn new(key: Key, weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        if weights.iter().any(|weight| *weight < 0.0) || !total.is_finite() || total <= 0.0 {
            return None;
        }
        let last = weights.iter().rposition(|weight| *weight > 0.0)?;
        let mut reached = 0.0;
        let end = |(i, weight): (usize, &f64)| {
            reached += weight;
            if i < last { (((reached / total) * WHOLE as f64) as u128).min(WHOLE) } else { WHOLE }
        };
        let ends = weights.iter().enumerate().map(end).collect();
        Some(Shares { key, start: key.at(0).bits(), ends })
    }

    /// How many of the positions before block `block` belong to each source. `block * BLOCK` must be below 2^63.
    pub fn before(&self, block: u64) -> Vec<u64> {
        let count = block * BLOCK;
        let start = u128::from(self.start);
        let round = floors(count, start);
        // A point lies before the end of an arc unless the way from there to the end of the circle passes its start.
        let below = |end: &u128| u128::from(count).wrapping_add(round).wrapping_sub(floors(count, start + WHOLE - end));
        let mut from = 0;
        let own = |end: &u128| {
            let to = below(end) as u64;
            to - std::mem::replace(&mut from, to)
        };
        self.ends.iter().map(own).collect()
    }

    /// The positions `block * BLOCK ..` of a block.
    pub fn block(&self, block: u64) -> Block<'_> {
        Block { shares: self, first: block * BLOCK, order: Permutation::new(self.key.of(b"block", block), BLOCK) }
    }
}

impl Block<'_> {
    /// The source that the block's position `place`, below [`BLOCK`], belongs to.
    pub fn source(&self, place: u64) -> usize {
        let number = self.first + self.order.apply(place);
        let point = u128::from(number.wrapping_mul(STEP).wrapping_add(self.shares.start));
        self.shares.ends.partition_point(|end| *end <= point)
    }
}

/// The sum of floor((i * STEP + start) / 2^64) over i below `count` < 2^63, for a start below 2^65; modulo 2^128.
fn floors(count: u64, start: u128) -> u128 {
    let (mut n, mut m, mut a, mut b) = (u128::from(count), WHOLE, u128::from(STEP), start);
    let mut sum = 0u128;
    while n > 0 {
        sum = sum.wrapping_add((n * (n - 1) / 2).wrapping_mul(a / m)).wrapping_add(n.wrapping_mul(b / m));
        (a, b) = (a % m, b % m);
        let reach = a * n + b;
        if reach < m {
            break;
        }
        (n, b) = (reach / m, reach % m);
        (m, a) = (a, m);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_floors_are_those_of_a_loop() {
        for start in [0, 1, 12_345, u128::from(STEP), WHOLE - 1, WHOLE, WHOLE + 77] {
            let mut sum = 0;
            for count in 0..3000 {
                assert_eq!(floors(count, start), sum, "{count} from {start}");
                sum += (u128::from(count) * u128::from(STEP) + start) >> 64;
            }
        }
    }

    #[test]
    fn counts_are_those_of_going_through_and_never_far_from_the_shares() {
        let weights = [1.0, 0.0, 3.0, 0.001, 0.25, 0.0];
        let total: f64 = weights.iter().sum();
        let shares = Shares::new(Key::new(4, "share"), &weights).unwrap();
        let mut counts = vec![0u64; weights.len()];
        for block in 0..200 {
            assert_eq!(shares.before(block), counts, "block {block}");
            for (count, weight) in counts.iter().zip(weights) {
                let due = (block * BLOCK) as f64 * weight / total;
                assert!((*count as f64 - due).abs() < 4.0, "block {block}: {count} of {due}");
            }
            let positions = shares.block(block);
            (0..BLOCK).for_each(|place| counts[positions.source(place)] += 1);
        }
    }

    #[test]
    fn far_blocks_are_as_near_as_the_first() {
        let shares = Shares::new(Key::new(4, "share"), &[1.0, 2.0, 1e-12]).unwrap();
        let block = (1 << 53) - 2;
        let (before, behind) = (shares.before(block), shares.before(block + 1));
        assert_eq!(before.iter().sum::<u64>(), block * BLOCK);
        let positions = shares.block(block);
        for source in 0..3 {
            let count = (0..BLOCK).filter(|place| positions.source(*place) == source).count() as u64;
            assert_eq!(behind[source] - before[source], count);
        }
        assert!(before[1].abs_diff(block * BLOCK / 3 * 2) < 1 << 22, "a share is as exact as numbers of 64 bits are");
    }

    #[test]
    fn order_within_a_block_is_drawn() {
        let shares = Shares::new(Key::new(9, "share"), &[1.0, 1.0]).unwrap();
        let block = |number| {
            let positions = shares.block(number);
            (0..BLOCK).map(|place| positions.source(place)).collect::<Vec<_>>()
        };
        assert_ne!(block(0), block(1));
        // Runs of a fair coin: half of all neighbours differ.
        let changes = (0..50).flat_map(block).collect::<Vec<_>>().windows(2).filter(|two| two[0] != two[1]).count();
        assert!(changes.abs_diff(25_600) < 600, "{changes}");
    }

    #[test]
    fn what_gives_no_shares_is_refused() {
        for weights in
            [&[][..], &[0.0, 0.0], &[1.0, -1.0, 3.0], &[f64::NAN], &[f64::INFINITY, 1.0], &[f64::MAX, f64::MAX]]
        {
            assert!(Shares::new(Key::new(1, "share"), weights).is_none(), "{weights:?}");
        }
    }
}
