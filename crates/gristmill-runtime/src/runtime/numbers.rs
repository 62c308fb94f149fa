//! Many numbers that are no whole ones -> count, mean, deviation, percentiles and a histogram, in bounded memory.
//! Values are kept to a millionth, and ever coarser where they are more than a few thousand different ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spread::ShareBar;
use super::sum::Sum;

/// At most this many distinct values are counted.
const MOST: usize = 4096;

/// What numbers are kept to at first.
const STEP: f64 = 1e-6;

/// Maximum number of bars of a histogram.
const BARS: usize = 12;

/// The spread of many numbers. All zero when there are none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

/// Counts of numbers. Neither their order nor the parts in which they were counted matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NumberTally {
    /// Numbers are kept to a millionth times 2 to this power: the least that leaves few enough different ones.
    level: i32,
    counts: BTreeMap<i64, u64>,
    count: u64,
    sum: Sum,
    squares: Sum,
    /// The smallest and the largest.
    ends: Option<(f64, f64)>,
}

impl NumberTally {
    /// Takes in a number; what is not finite is left out.
    pub fn add(&mut self, number: f64) {
        if !number.is_finite() {
            return;
        }
        self.count += 1;
        self.sum.add(number);
        self.squares.add_square(number);
        self.reach((number, number));
        // Beyond what a step has numbers for, steps grow as well.
        while step_of(number, self.level).abs() > 2f64.powi(60) {
            self.coarsen(self.level + 1);
        }
        *self.counts.entry(step_of(number, self.level) as i64).or_default() += 1;
        self.bound();
    }

    /// Takes in what was counted elsewhere.
    pub fn join(&mut self, mut other: NumberTally) {
        let level = self.level.max(other.level);
        self.coarsen(level);
        other.coarsen(level);
        for (at, count) in other.counts {
            *self.counts.entry(at).or_default() += count;
        }
        self.bound();
        self.count += other.count;
        self.sum.join(&other.sum);
        self.squares.join(&other.squares);
        other.ends.into_iter().for_each(|ends| self.reach(ends));
    }

    fn reach(&mut self, (least, most): (f64, f64)) {
        let (min, max) = self.ends.unwrap_or((least, most));
        self.ends = Some((min.min(least), max.max(most)));
    }

    fn bound(&mut self) {
        while self.counts.len() > MOST {
            self.coarsen(self.level + 1);
        }
    }

    fn coarsen(&mut self, level: i32) {
        let halved = level.abs_diff(self.level).min(63);
        self.level = level;
        if halved == 0 {
            return;
        }
        let mut counts = BTreeMap::new();
        for (at, n) in std::mem::take(&mut self.counts) {
            *counts.entry(at >> halved).or_default() += n;
        }
        self.counts = counts;
    }

    /// What was counted.
    pub fn numbers(&self) -> Numbers {
        let Some((min, max)) = self.ends else { return Numbers::default() };
        Numbers {
            count: self.count,
            min,
            mean: self.sum.mean(self.count),
            std: self.sum.deviation(&self.squares, self.count),
            max,
            percentiles: [10, 25, 50, 75, 90].map(|p| self.percentile(p, (min, max))),
            histogram: self.histogram((min, max)),
        }
    }

    /// The number that a step stands for.
    fn value(&self, at: i64, (min, max): (f64, f64)) -> f64 {
        (at as f64 * STEP * 2f64.powi(self.level)).clamp(min, max)
    }

    fn percentile(&self, p: u64, ends: (f64, f64)) -> f64 {
        let rank = (u128::from(self.count) * u128::from(p)).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, n)| {
            seen += u128::from(**n);
            seen >= rank
        });
        reached.map_or(ends.1, |(at, _)| self.value(*at, ends))
    }

    fn histogram(&self, (min, max): (f64, f64)) -> Vec<ShareBar> {
        let width = (max - min) / BARS as f64;
        let n = if width > 0.0 { BARS } else { 1 };
        let from = |i: usize| min + i as f64 * width;
        let mut bars: Vec<ShareBar> = (0..n).map(|i| ShareBar { from: from(i), to: from(i + 1), count: 0 }).collect();
        for (at, count) in &self.counts {
            let i = if width > 0.0 { ((self.value(*at, (min, max)) - min) / width) as usize } else { 0 };
            bars[i.min(n - 1)].count += count;
        }
        bars
    }
}

/// The step of a number at a level. At the next level it is half of that, rounded down: also where numbers are so large that they
/// have no millionths.
fn step_of(number: f64, level: i32) -> f64 {
    match number.abs() < 1e9 {
        true => ((number / STEP).round() / 2f64.powi(level)).floor(),
        false => (number / 2f64.powi(level) / STEP).floor(),
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
        let numbers: Vec<f64> = (0..50_000).map(|i| f64::from(i).sin() * 1e3).chain([1e300]).collect();
        numbers.iter().for_each(|number| many.add(*number));
        let found = many.numbers();
        assert!(many.counts.len() <= MOST && found.max == 1e300);
        assert_eq!(found.histogram.iter().map(|bar| bar.count).sum::<u64>(), 50_001);
        for parts in [2, 7] {
            let mut backwards = NumberTally::default();
            for part in numbers.chunks(numbers.len().div_ceil(parts)).rev() {
                let mut tally = NumberTally::default();
                part.iter().rev().for_each(|number| tally.add(*number));
                let text = serde_json::to_string(&tally).unwrap();
                backwards.join(serde_json::from_str(&text).unwrap());
            }
            assert_eq!(backwards.numbers(), found, "{parts} parts");
        }
        let mut one = NumberTally::default();
        one.add(-0.25);
        assert_eq!((one.numbers().histogram.len(), one.numbers().percentiles), (1, [-0.25; 5]));
    }
}
