//! Many whole numbers -> their spread: smallest, largest, mean, percentiles, a histogram.
//! Exact below 1024; above, numbers keep their leading ten bits, so that memory stays bounded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts of numbers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    counts: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
    least: Option<u64>,
    most: u64,
}

/// The spread of many numbers. All zero when there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many numbers.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: u64,
    /// Percentiles 10, 25, 50, 75 and 90 (nearest rank).
    pub percentiles: [u64; 5],
    /// Up to twelve ranges of equal width that hold all numbers.
    pub histogram: Vec<Bar>,
}

/// One range of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Smallest number that falls in it.
    pub from: u64,
    /// Largest number that falls in it.
    pub to: u64,
    /// How many do.
    pub count: u64,
}

/// The spread of many numbers that are no whole ones, rounded to millionths. All zero when there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// How many numbers.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// Percentiles 10, 25, 50, 75 and 90 (nearest rank).
    pub percentiles: [f64; 5],
    /// Up to twelve ranges of equal width that hold all numbers.
    pub histogram: Vec<ShareBar>,
}

/// One range of a histogram of such numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareBar {
    /// Smallest number that falls in it.
    pub from: f64,
    /// Largest number that falls in it.
    pub to: f64,
    /// How many do.
    pub count: u64,
}

impl Spread {
    /// The spread of the numbers divided by `unit`.
    pub fn scaled(&self, unit: f64) -> Share {
        let number = |n: u64| n as f64 / unit;
        let bar = |bar: &Bar| ShareBar { from: number(bar.from), to: number(bar.to), count: bar.count };
        Share {
            count: self.count,
            min: number(self.min),
            mean: self.mean / unit,
            max: number(self.max),
            percentiles: self.percentiles.map(number),
            histogram: self.histogram.iter().map(bar).collect(),
        }
    }
}

/// Maximum number of bars of a histogram.
const BARS: u64 = 12;

impl Tally {
    /// Takes in a number.
    pub fn add(&mut self, n: u64) {
        let spare = (64 - n.leading_zeros()).saturating_sub(10);
        *self.counts.entry(n >> spare << spare).or_default() += 1;
        self.count += 1;
        self.sum += u128::from(n);
        self.least = Some(self.least.map_or(n, |least| least.min(n)));
        self.most = self.most.max(n);
    }

    /// Takes in what was counted elsewhere.
    pub fn join(&mut self, other: Tally) {
        for (n, count) in other.counts {
            *self.counts.entry(n).or_default() += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.into_iter().chain(other.least).min();
        self.most = self.most.max(other.most);
    }

    /// What was counted.
    pub fn spread(&self) -> Spread {
        let Some(min) = self.least else { return Spread::default() };
        Spread {
            count: self.count,
            min,
            mean: self.sum as f64 / self.count as f64,
            max: self.most,
            percentiles: [10, 25, 50, 75, 90].map(|p| self.percentile(p)),
            histogram: self.histogram(min),
        }
    }

    fn percentile(&self, p: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(p)).div_ceil(100).max(1);
        let mut seen = 0;
        for (&n, &count) in &self.counts {
            seen += u128::from(count);
            if seen >= rank {
                return n;
            }
        }
        self.most
    }

    fn histogram(&self, min: u64) -> Vec<Bar> {
        let width = ((self.most - min) / BARS) + 1;
        let bars = (self.most - min) / width + 1;
        let mut out: Vec<Bar> = (0..bars)
            .map(|i| Bar { from: min + i * width, to: (min + i * width).saturating_add(width - 1), count: 0 })
            .collect();
        for (&n, &count) in &self.counts {
            // A rounded number may lie below the smallest.
            out[(n.saturating_sub(min) / width) as usize].count += count;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_known_numbers() {
        let mut tally = Tally::default();
        assert_eq!(tally.spread(), Spread::default());
        (1..=100).for_each(|n| tally.add(n));
        let spread = tally.spread();
        assert_eq!((spread.min, spread.max, spread.mean), (1, 100, 50.5));
        assert_eq!(spread.percentiles, [10, 25, 50, 75, 90]);
        assert_eq!(spread.histogram.iter().map(|b| b.count).sum::<u64>(), 100);
        assert!(spread.histogram.len() <= 12 && spread.histogram[0].from == 1);
    }

    #[test]
    fn hostile_numbers_stay_bounded() {
        let mut tally = Tally::default();
        (0..100_000u64).for_each(|n| tally.add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        tally.add(u64::MAX);
        assert!(tally.counts.len() < 60_000);
        let spread = tally.spread();
        assert_eq!((spread.max, spread.histogram.iter().map(|b| b.count).sum::<u64>()), (u64::MAX, 100_001));
    }
}
