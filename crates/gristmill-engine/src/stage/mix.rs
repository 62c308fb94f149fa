//! Sources of known sizes, with weights -> one endless order of their rows. Numbers only; a function of key and position.
//! Each source gives its rows once in a new order, then again: short sources start over, none has gaps or repeats within a pass.

use crate::runtime::permute::Permutation;
use crate::runtime::seed::Key;

/// The order, and how far it was taken.
#[derive(Debug, Clone)]
pub struct Mix {
    key: Key,
    shuffled: bool,
    sources: Vec<Source>,
    weights: Vec<f64>,
    position: u64,
}

#[derive(Debug, Clone)]
struct Source {
    rows: u64,
    /// Rows given so far.
    given: u64,
    /// Its pass, and the order of it.
    order: Option<(u64, Permutation)>,
}

impl Mix {
    /// An order over sources of these sizes, chosen in proportion to `weights`; in stored order unless `shuffled`.
    /// `None` for an empty source, another number of weights than of sources, weights below 0 or without end, or all 0.
    pub fn new(key: Key, sizes: &[u64], weights: &[f64], shuffled: bool) -> Option<Self> {
        let sound = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        let some = weights.iter().sum::<f64>() > 0.0;
        if !sound || !some || sizes.len() != weights.len() || sizes.contains(&0) {
            return None;
        }
        let source = |rows: &u64| Source { rows: *rows, given: 0, order: None };
        let sources = sizes.iter().map(source).collect();
        Some(Mix { key, shuffled, sources, weights: weights.to_vec(), position: 0 })
    }

    /// How many rows were given.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next row: its source, its number there, and the pass of that source.
    pub fn next_row(&mut self) -> (usize, u64, u64) {
        let choice = if self.sources.len() == 1 {
            0
        } else {
            self.key.at(self.position).weighted(&self.weights).unwrap_or_default()
        };
        self.position += 1;
        let (key, source) = (self.key, &mut self.sources[choice]);
        let (pass, place) = (source.given / source.rows, source.given % source.rows);
        source.given += 1;
        if !self.shuffled {
            return (choice, place, pass);
        }
        if source.order.as_ref().is_none_or(|(known, _)| *known != pass) {
            let key = key.of(b"source", choice as u64).of(b"pass", pass);
            source.order = Some((pass, Permutation::new(key, source.rows)));
        }
        let row = source.order.as_ref().map_or(place, |(_, order)| order.apply(place));
        (choice, row, pass)
    }

    /// Goes to where `position` rows were given, over at most `most` choices among several sources, each of which it has
    /// to look at; whether it is there. One source is gone through at no cost.
    pub fn seek(&mut self, position: u64, most: u64) -> bool {
        if position < self.position {
            self.position = 0;
            self.sources.iter_mut().for_each(|source| source.given = 0);
        }
        if self.sources.len() == 1 {
            self.sources[0].given = position;
            self.position = position;
        }
        let end = position.min(self.position.saturating_add(most));
        while self.position < end {
            let choice = self.key.at(self.position).weighted(&self.weights).unwrap_or_default();
            self.sources[choice].given += 1;
            self.position += 1;
        }
        self.position == position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(mix: &mut Mix, n: usize) -> Vec<(usize, u64, u64)> {
        (0..n).map(|_| mix.next_row()).collect()
    }

    #[test]
    fn each_pass_of_a_source_is_a_permutation_of_its_own() {
        for size in [1u64, 2, 3, 100] {
            let mut mix = Mix::new(Key::new(1, "mix"), &[size], &[1.0], true).unwrap();
            let orders: Vec<Vec<u64>> =
                (0..6).map(|_| rows(&mut mix, size as usize).iter().map(|(_, row, _)| *row).collect()).collect();
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..size).collect::<Vec<_>>());
            }
            assert!(size < 3 || orders.windows(2).any(|pair| pair[0] != pair[1]));
        }
    }

    #[test]
    fn sources_come_in_proportion_and_from_any_position_alike() {
        let new = || Mix::new(Key::new(9, "mix"), &[50, 7, 1000], &[1.0, 2.0, 1.0], true).unwrap();
        let all = rows(&mut new(), 20_000);
        for (source, share) in [(0, 5000), (1, 10_000), (2, 5000)] {
            let count = all.iter().filter(|(from, ..)| *from == source).count();
            assert!(count.abs_diff(share) < 300, "{count} of source {source}");
        }
        for start in [0, 1, 777, 19_999] {
            let mut mix = new();
            assert!(mix.seek(12_345, u64::MAX));
            assert!(mix.seek(start, u64::MAX));
            assert_eq!(rows(&mut mix, 20_000 - start as usize), all[start as usize..]);
            let (mut mix, mut parts) = (new(), 1);
            while !mix.seek(start, 1000) {
                parts += 1;
            }
            assert_eq!(parts, (start.div_ceil(1000)).max(1));
            assert_eq!(rows(&mut mix, 20_000 - start as usize), all[start as usize..]);
        }
    }

    #[test]
    fn what_cannot_be_mixed_is_no_mix() {
        for (sizes, weights) in [
            (&[5u64, 0][..], &[1.0, 1.0][..]),
            (&[5], &[0.0]),
            (&[5], &[f64::NAN]),
            (&[5], &[-1.0]),
            (&[5], &[1.0, 1.0]),
            (&[], &[]),
        ] {
            assert!(Mix::new(Key::new(1, "mix"), sizes, weights, true).is_none());
        }
    }
}
