//! Number of a draw -> a chunk by its chance, and a place in it by weight: Hanse sampling where every chance is known.
//! A pure function of key and number, found by a search among sums; nothing is rejected, nothing remembered.

use gristmill_format::encode::RandomBits;
use gristmill_runtime::runtime::seed::{Draws, Key};
use gristmill_runtime::table::random_bits;

/// Chunks with their chances. Places are counted over all chunks.
#[derive(Debug, Clone, Default)]
pub struct Weighted {
    /// The place after the last of each chunk.
    ends: Vec<u64>,
    /// The chances of each chunk and of those before it.
    sums: Vec<f64>,
}

/// What the places of a chunk weigh.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    total: f64,
    each: Box<[f32]>,
}

impl Weights {
    /// One weight for each place.
    pub fn new(each: &[f32]) -> Self {
        Weights { total: each.iter().map(|weight| f64::from(*weight)).sum(), each: each.into() }
    }
}

/// A chunk that was drawn, and the random numbers of its draw.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// Its number among those that have places.
    pub chunk: usize,
    /// Its first place.
    pub first: u64,
    /// How many places it has.
    pub places: u64,
    draws: Draws,
}

impl Weighted {
    /// Chunks in order: how many places each has, and its chance, which is finite and not negative.
    pub fn new(chunks: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let (mut end, mut sum) = (0, 0.0);
        let mut all = Weighted::default();
        for (places, chance) in chunks.into_iter().filter(|(places, _)| *places > 0) {
            end += places;
            sum += chance;
            all.ends.push(end);
            all.sums.push(sum);
        }
        all
    }

    /// The sum of all chances; where it is not positive, nothing can be drawn.
    pub fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// Draw `number`: the chunk in proportion to its chance. There must be one that has any.
    pub fn draw(&self, key: Key, number: u64) -> Drawn {
        let mut draws = key.at(number);
        // Below the total, though not always after rounding: then the last with a chance, as for all that is near it.
        let at = (draws.unit() * self.total()).min(self.total().next_down());
        let chunk = self.sums.partition_point(|sum| *sum <= at);
        let first = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        Drawn { chunk, first, places: self.ends[chunk] - first, draws }
    }
}

impl Drawn {
    /// One of its places, each as likely as any.
    pub fn any(&mut self) -> u64 {
        self.first + self.draws.below(self.places)
    }

    /// One of its places in proportion to `weights`, one for each; any where none is positive.
    pub fn by(&mut self, Weights { total, each: weights }: &Weights) -> u64 {
        let mut left = self.draws.unit() * total;
        let mut found = None;
        for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            found = Some(i as u64);
            left -= f64::from(*weight);
            if left < 0.0 {
                break;
            }
        }
        match found {
            Some(i) => self.first + i,
            None => self.any(),
        }
    }

    /// Random bits for what is done with the row.
    pub fn bits(&mut self) -> RandomBits {
        random_bits(&mut self.draws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of (found - expected)^2 / expected; what is not expected must not be found.
    fn chi_square(found: &[u64], shares: &[f64]) -> f64 {
        let (draws, all): (u64, f64) = (found.iter().sum(), shares.iter().sum());
        let each = found.iter().zip(shares).map(|(found, share)| {
            let expected = draws as f64 * share / all;
            assert!(expected > 0.0 || *found == 0, "{found} of what has no chance");
            if expected > 0.0 { (*found as f64 - expected).powi(2) / expected } else { 0.0 }
        });
        each.sum()
    }

    #[test]
    fn chunks_and_places_come_in_proportion() {
        let chunks = [(3, 0.5), (0, 9.0), (1, 0.0), (4, 1.0), (2, 0.25), (5, 0.0)];
        let order = Weighted::new(chunks);
        let key = Key::new(3, "draws");
        let (mut any, mut by) = ([0; 15], [0; 15]);
        for number in 0..40_000 {
            any[order.draw(key, number).any() as usize] += 1;
            let mut drawn = order.draw(key, number);
            let weights: Vec<f32> = (0..drawn.places).map(|i| i as f32).collect();
            by[drawn.by(&Weights::new(&weights)) as usize] += 1;
        }
        let uniform = chunks.iter().flat_map(|(n, chance)| vec![chance / *n as f64; *n as usize]);
        let chi = chi_square(&any, &uniform.collect::<Vec<_>>());
        assert!(chi < 26.1, "8 degrees of freedom, p = 0.001: {chi}");
        let of = |(n, chance): &(u64, f64)| {
            let (n, chance) = (*n, *chance);
            let all = (n * n.saturating_sub(1) / 2) as f64;
            (0..n).map(move |i| chance * i as f64 / all.max(1.0))
        };
        let chi = chi_square(&by, &chunks.iter().flat_map(of).collect::<Vec<_>>());
        assert!(chi < 20.6, "5 degrees of freedom, p = 0.001: {chi}");
    }

    #[test]
    fn odd_chances_are_harmless() {
        let key = Key::new(3, "draws");
        let tiny = Weighted::new([(1, 0.0), (2, f64::MIN_POSITIVE), (1, 0.0)]);
        assert!((0..50).all(|number| (1..3).contains(&tiny.draw(key, number).any())));
        let mut drawn = tiny.draw(key, 0);
        assert!((1..3).contains(&drawn.by(&Weights::new(&[0.0, 0.0]))), "no weight at all: any");
        assert_eq!((Weighted::new([]).total(), Weighted::new([(5, 0.0)]).total()), (0.0, 0.0));
    }

    /// Which places a seed gives is a promise: a change here is a change of format.
    #[test]
    fn draws_are_pinned_across_versions() {
        let order = Weighted::new((1..1000).map(|i| (i, (i as f64).sqrt())));
        let key = Key::new(5, "draws");
        let found: Vec<u64> = (0..6).map(|number| order.draw(key, number << 40).any()).collect();
        assert_eq!(found, PINNED);
    }

    const PINNED: [u64; 6] = [62849, 40433, 146_737, 28394, 462_290, 10471];
}
