//! Many numbers of 0 and more, of any magnitude -> their spread, with a histogram by powers of ten.
//! Numbers keep eight leading bits, so that memory stays bounded; mean, least and most are exact.

use std::collections::BTreeMap;

use gristmill_engine::runtime::sum::Sum;
use serde::{Deserialize, Serialize};

/// How far apart EVs are. All zero when there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// How many numbers.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// Percentiles 10, 25, 50, 75 and 90 (nearest rank), exact to one in a hundred.
    pub percentiles: [f64; 5],
    /// Ranges from one power of ten to the next, the first from 0.
    pub histogram: Vec<GapBar>,
}

/// One range of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapBar {
    /// Smallest number that falls in it.
    pub from: f64,
    /// The number that it ends before.
    pub to: f64,
    /// How many numbers there are in it.
    pub count: u64,
}

/// Power of ten at which the first range ends.
const LEAST: i32 = -6;

/// Bits of an `f32` that a number does without.
const DROPPED: u32 = 16;

/// Counts of numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GapTally {
    counts: BTreeMap<u32, u64>,
    count: u64,
    sum: Sum,
    min: f64,
    max: f64,
}

impl GapTally {
    /// Takes in a number; one that is not finite is left out.
    pub(super) fn add(&mut self, gap: f64) {
        if !gap.is_finite() {
            return;
        }
        let gap = gap.max(0.0);
        *self.counts.entry((gap as f32).min(f32::MAX).to_bits() >> DROPPED).or_default() += 1;
        self.min = if self.count == 0 { gap } else { self.min.min(gap) };
        self.max = self.max.max(gap);
        self.sum.add(gap);
        self.count += 1;
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: GapTally) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum.join(&other.sum);
        self.count += other.count;
        for (key, count) in other.counts {
            *self.counts.entry(key).or_default() += count;
        }
    }

    pub(super) fn finish(self) -> Gaps {
        if self.count == 0 {
            return Gaps::default();
        }
        let value = |key: u32| f64::from(f32::from_bits(key << DROPPED));
        let percentile = |p: u64| {
            let rank = (u128::from(self.count) * u128::from(p)).div_ceil(100).max(1);
            let mut seen = 0;
            let reached = self.counts.iter().find(|(_, count)| {
                seen += u128::from(**count);
                seen >= rank
            });
            reached.map_or(self.max, |(key, _)| value(*key).clamp(self.min, self.max))
        };
        let mut histogram = vec![GapBar { from: 0.0, to: 10f64.powi(LEAST), count: 0 }];
        for (&key, &count) in &self.counts {
            let mut last = histogram.len() - 1;
            while value(key) >= histogram[last].to {
                last += 1;
                let power = LEAST + last as i32;
                histogram.push(GapBar { from: 10f64.powi(power - 1), to: 10f64.powi(power), count: 0 });
            }
            histogram[last].count += count;
        }
        Gaps {
            count: self.count,
            min: self.min,
            mean: self.sum.mean(self.count),
            max: self.max,
            percentiles: [10, 25, 50, 75, 90].map(percentile),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_known_numbers_and_of_joined_ones() {
        let (mut one, mut two) = (GapTally::default(), GapTally::default());
        (0..500).for_each(|i| one.add(f64::from(i) / 100.0));
        (500..1000).for_each(|i| two.add(f64::from(i) / 100.0));
        [f64::NAN, f64::INFINITY].into_iter().for_each(|odd| two.add(odd));
        one.join(GapTally::default());
        one.join(two);
        let gaps = one.finish();
        assert_eq!((gaps.count, gaps.min, gaps.max), (1000, 0.0, 9.99));
        assert!((gaps.mean - 4.995).abs() < 1e-9);
        for (p, expected) in gaps.percentiles.into_iter().zip([0.99, 2.49, 4.99, 7.49, 8.99]) {
            assert!((p - expected).abs() <= expected / 100.0, "{p} {expected}");
        }
        assert_eq!(gaps.histogram.iter().map(|bar| bar.count).sum::<u64>(), 1000);
        assert_eq!((gaps.histogram[0].count, gaps.histogram.len()), (1, 8));
    }

    #[test]
    fn numbers_of_any_size_stay_bounded() {
        let mut tally = GapTally::default();
        (0..100_000u32).for_each(|i| tally.add(f64::from(f32::from_bits(i.wrapping_mul(48_271) >> 1))));
        tally.add(f64::MAX);
        assert!(tally.counts.len() <= 1 << 15);
        assert!(tally.finish().histogram.len() < 400);
    }
}
