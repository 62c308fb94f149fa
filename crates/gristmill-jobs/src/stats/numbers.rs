//! Many numbers that are no whole ones -> count, mean, deviation, percentiles and a histogram, in bounded memory.
//! Values are kept to a millionth, and ever coarser where they are more than a few thousand different ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ShareBar;

/// At most this many distinct values are counted.
const MOST: usize = 4096;

/// Maximum number of bars of a histogram.
const BARS: usize = 12;

/// The spread of many numbers. All zero when there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// How many numbers.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the numbers themselves (not an estimate for others).
    pub std: f64,
    /// The largest.
    pub max: f64,
    /// Percentiles 10, 25, 50, 75 and 90 (nearest rank).
    pub percentiles: [f64; 5],
    /// Up to twelve ranges of equal width that hold all numbers.
    pub histogram: Vec<ShareBar>,
}

/// Counts of numbers.
#[derive(Debug, Clone)]
pub(super) struct NumberTally {
    step: f64,
    counts: BTreeMap<i64, u64>,
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean (Welford 1962).
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for NumberTally {
    fn default() -> Self {
        let (min, max) = (f64::INFINITY, f64::NEG_INFINITY);
        NumberTally { step: 1e-6, counts: BTreeMap::new(), count: 0, mean: 0.0, squares: 0.0, min, max }
    }
}

impl NumberTally {
    /// Takes in a number; what is not finite is left out.
    pub(super) fn add(&mut self, number: f64) {
        if !number.is_finite() {
            return;
        }
        self.count += 1;
        let before = number - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (number - self.mean);
        (self.min, self.max) = (self.min.min(number), self.max.max(number));
        // Beyond what a step has numbers for, steps grow as well.
        while (number / self.step).abs() > 2f64.powi(60) {
            self.coarsen();
        }
        *self.counts.entry((number / self.step).round() as i64).or_default() += 1;
        while self.counts.len() > MOST {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.step *= 2.0;
        let mut counts = BTreeMap::new();
        for (at, n) in std::mem::take(&mut self.counts) {
            *counts.entry(at.div_euclid(2)).or_default() += n;
        }
        self.counts = counts;
    }

    pub(super) fn numbers(&self) -> Numbers {
        if self.count == 0 {
            return Numbers::default();
        }
        Numbers {
            count: self.count,
            min: self.min,
            mean: self.mean,
            std: (self.squares / self.count as f64).max(0.0).sqrt(),
            max: self.max,
            percentiles: [10, 25, 50, 75, 90].map(|p| self.percentile(p)),
            histogram: self.histogram(),
        }
    }

    /// The number that a step stands for.
    fn value(&self, at: i64) -> f64 {
        (at as f64 * self.step).clamp(self.min, self.max)
    }

    fn percentile(&self, p: u64) -> f64 {
        let rank = (u128::from(self.count) * u128::from(p)).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, n)| {
            seen += u128::from(**n);
            seen >= rank
        });
        reached.map_or(self.max, |(at, _)| self.value(*at))
    }

    fn histogram(&self) -> Vec<ShareBar> {
        let width = (self.max - self.min) / BARS as f64;
        let n = if width > 0.0 { BARS } else { 1 };
        let from = |i: usize| self.min + i as f64 * width;
        let mut bars: Vec<ShareBar> = (0..n).map(|i| ShareBar { from: from(i), to: from(i + 1), count: 0 }).collect();
        for (at, count) in &self.counts {
            let i = if width > 0.0 { ((self.value(*at) - self.min) / width) as usize } else { 0 };
            bars[i.min(n - 1)].count += count;
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_and_many_different_ones() {
        let mut tally = NumberTally::default();
        assert_eq!(tally.numbers(), Numbers::default());
        [1.0, 2.0, 3.0, 6.0, f64::NAN].into_iter().for_each(|n| tally.add(n));
        let found = tally.numbers();
        assert_eq!((found.count, found.min, found.mean, found.max), (4, 1.0, 3.0, 6.0));
        assert!((found.std - 3.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((found.percentiles, found.histogram.len()), ([1.0, 1.0, 2.0, 3.0, 6.0], 12));
        let mut many = NumberTally::default();
        (0..50_000).for_each(|i| many.add(f64::from(i).sin() * 1e3));
        many.add(1e300);
        let found = many.numbers();
        assert!(many.counts.len() <= MOST && found.max == 1e300);
        assert_eq!(found.histogram.iter().map(|bar| bar.count).sum::<u64>(), 50_001);
        let mut one = NumberTally::default();
        one.add(-0.25);
        assert_eq!((one.numbers().histogram.len(), one.numbers().percentiles), (1, [-0.25; 5]));
    }
}
