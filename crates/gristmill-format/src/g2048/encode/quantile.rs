//! Numbers seen over and over, pass after pass -> their exact quantiles, in memory that does not grow with them.
//! Each pass counts numbers by their next leading bits, within the few ranges where a wanted number still may lie.

/// Leading bits that the first pass tells apart.
const FIRST_BITS: u32 = 20;

/// Counters of a later pass, 32 MiB of them: the more ranges, the fewer bits a pass tells apart.
const COUNTERS: u64 = 1 << 22;

/// Maximum number of leading bits that a later pass tells apart.
const NEXT_BITS: u32 = 14;

/// Wanted order statistics of a stream that can be read several times.
#[derive(Debug, Clone)]
pub struct Quantiles {
    /// How many even points are wanted, both ends among them.
    points: usize,
    /// How many numbers there are; known after the first pass.
    count: u64,
    ranges: Vec<Range>,
    /// Value found for each wanted rank.
    found: Vec<(u64, f64)>,
    first: bool,
}

/// Numbers whose keys start with the same bits.
#[derive(Debug, Clone)]
struct Range {
    /// The leading bits, and how many they are.
    prefix: u64,
    bits: u32,
    /// Wanted ranks, counted within the range, beside the same among all numbers.
    ranks: Vec<(u64, u64)>,
    counts: Vec<u64>,
    lowest: u64,
    highest: u64,
}

/// Leading bits, their number, wanted ranks: a range before its counters are made.
type Narrower = (u64, u32, Vec<(u64, u64)>);

impl Range {
    fn new(prefix: u64, bits: u32, step: u32, ranks: Vec<(u64, u64)>) -> Self {
        Range { prefix, bits, ranks, counts: vec![0; 1 << step.min(64 - bits)], lowest: u64::MAX, highest: 0 }
    }

    fn step(&self) -> u32 {
        self.counts.len().trailing_zeros()
    }

    fn add(&mut self, key: u64, times: u64) {
        let (below, slots) = (64 - self.bits - self.step(), self.counts.len());
        self.counts[(key >> below) as usize & (slots - 1)] += times;
        self.lowest = self.lowest.min(key);
        self.highest = self.highest.max(key);
    }
}

/// A key whose order as a whole number is the order of numbers; zeros of both signs are one.
fn key(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn value(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

impl Quantiles {
    /// Quantiles at `points` even points, at least 2: the least number, those between, the greatest.
    pub fn new(points: usize) -> Self {
        let all = Range::new(0, 0, FIRST_BITS, Vec::new());
        Quantiles { points: points.max(2), count: 0, ranges: vec![all], found: Vec::new(), first: true }
    }

    /// Takes in a number that comes `times` times in the current pass; NaN must not be among them.
    pub fn add(&mut self, value: f64, times: u64) {
        let key = key(value);
        if self.first {
            self.count += times;
            self.ranges[0].add(key, times);
        } else {
            let at = self.ranges.partition_point(|range| range.prefix <= key >> (64 - range.bits));
            if let Some(range) = at.checked_sub(1).and_then(|at| self.ranges.get_mut(at))
                && range.prefix == key >> (64 - range.bits)
            {
                range.add(key, times);
            }
        }
    }

    /// How many numbers there are, after the first pass.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends a pass; whether another one over the same numbers is needed.
    pub fn end_pass(&mut self) -> bool {
        let mut ranges = std::mem::take(&mut self.ranges);
        if std::mem::take(&mut self.first) && self.count > 0 {
            let mut wanted: Vec<u64> = (0..self.points).flat_map(|i| self.between(i)).map(|(rank, _)| rank).collect();
            wanted.sort_unstable();
            wanted.dedup();
            ranges[0].ranks = wanted.into_iter().map(|rank| (rank, rank)).collect();
        }
        let mut next = Vec::new();
        for range in ranges {
            self.narrow(&range, &mut next);
        }
        let step = (COUNTERS / (next.len() as u64).max(1)).max(2).ilog2().min(NEXT_BITS);
        self.ranges.extend(next.into_iter().map(|(prefix, bits, ranks)| Range::new(prefix, bits, step, ranks)));
        if self.ranges.is_empty() {
            self.found.sort_unstable_by_key(|(rank, _)| *rank);
        }
        !self.ranges.is_empty()
    }

    /// The ranges within a range that wanted numbers lie in, or the numbers themselves.
    fn narrow(&mut self, range: &Range, next: &mut Vec<Narrower>) {
        if range.lowest == range.highest {
            self.found.extend(range.ranks.iter().map(|(_, rank)| (*rank, value(range.lowest))));
            return;
        }
        let mut before = 0;
        let mut ranks = range.ranks.iter().peekable();
        for (slot, count) in (0u64..).zip(&range.counts) {
            let inside: Vec<(u64, u64)> = std::iter::from_fn(|| ranks.next_if(|(rank, _)| *rank < before + count))
                .map(|(rank, among_all)| (rank - before, *among_all))
                .collect();
            before += count;
            if inside.is_empty() {
                continue;
            }
            let (prefix, bits) = (range.prefix << range.step() | slot, range.bits + range.step());
            if bits == 64 {
                self.found.extend(inside.iter().map(|(_, rank)| (*rank, value(prefix))));
            } else {
                next.push((prefix, bits, inside));
            }
        }
    }

    /// The two ranks around even point `i`, each with its weight as NumPy's linear method has it.
    fn between(&self, i: usize) -> [(u64, f64); 2] {
        let last = self.count.saturating_sub(1);
        let share = if i + 1 == self.points { 1.0 } else { i as f64 * (1.0 / (self.points - 1) as f64) };
        let at = share * last as f64;
        let below = (at.floor() as u64).min(last);
        [(below, at - at.floor()), ((below + 1).min(last), 0.0)]
    }

    /// The quantiles, when no further pass is needed; none where there were no numbers.
    pub fn values(&self) -> Option<Vec<f64>> {
        let of = |rank: u64| {
            let at = self.found.binary_search_by_key(&rank, |(found, _)| *found).ok()?;
            Some(self.found[at].1)
        };
        let point = |i: usize| {
            let [(below, t), (above, _)] = self.between(i);
            let (a, b) = (of(below)?, of(above)?);
            // As NumPy interpolates, so that the same numbers give the same quantiles.
            Some(if t >= 0.5 { b - (b - a) * (1.0 - t) } else { a + (b - a) * t })
        };
        (0..self.points).map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(values: &[f64], points: usize) -> (Option<Vec<f64>>, usize) {
        let mut quantiles = Quantiles::new(points);
        let mut passes = 1;
        values.iter().for_each(|value| quantiles.add(*value, 1));
        while quantiles.end_pass() {
            passes += 1;
            values.iter().for_each(|value| quantiles.add(*value, 1));
        }
        (quantiles.values(), passes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn quantiles_are_those_of_the_sorted_numbers(
            values in prop::collection::vec(prop_oneof![-1e6..0.0f64, -1e-3..1e-3f64, (-50i32..50).prop_map(f64::from)], 1..300),
            points in 2usize..40,
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let (found, passes) = exact(&values, points);
            let found = found.unwrap();
            prop_assert!(passes <= 5, "{} passes", passes);
            for (i, found) in found.iter().enumerate() {
                let at = i as f64 / (points - 1) as f64 * (sorted.len() - 1) as f64;
                let (low, high) = (sorted[at as usize], sorted[(at as usize + 1).min(sorted.len() - 1)]);
                let expected = low + (high - low) * at.fract();
                prop_assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{} {}", found, expected);
            }
            prop_assert_eq!(found.first().copied(), sorted.first().map(|v| v + 0.0));
            prop_assert_eq!(found.last().copied(), sorted.last().map(|v| v + 0.0));
        }
    }

    #[test]
    fn thousands_of_points_share_the_same_memory() {
        let values: Vec<f64> = (0..40_000).map(|i| -1.0 / f64::from(i + 1)).collect();
        let (found, _) = exact(&values, 20_000);
        let found = found.unwrap();
        assert!(found.len() == 20_000 && found.windows(2).all(|pair| pair[0] < pair[1]));
        let mut quantiles = Quantiles::new(20_000);
        values.iter().for_each(|value| quantiles.add(*value, 1));
        quantiles.end_pass();
        let counters: usize = quantiles.ranges.iter().map(|range| range.counts.len()).sum();
        assert!(counters as u64 <= COUNTERS, "{counters}");
    }

    #[test]
    fn few_different_numbers_take_few_passes_and_none_give_none() {
        let whole: Vec<f64> = (0..100_000).map(|i| -f64::from(i % 5000)).collect();
        assert_eq!(exact(&whole, 5), (Some(vec![-4999.0, -3749.25, -2499.5, -1249.75, 0.0]), 3));
        assert_eq!(exact(&[3.5; 9], 4), (Some(vec![3.5; 4]), 1));
        assert_eq!(exact(&[], 4), (None, 1));
    }
}
