//! What was measured of a shuffle and what a perfect one gives -> a figure with its level. Pure: numbers in, numbers out.

use serde::Serialize;

use super::level::Level;

/// The median distance of two random places of a line, as a share of its length: 1 - sqrt(1/2).
const HALF_APART: f64 = 0.292_893_218_813_452_5;

/// Standard errors within which a figure counts as that of a perfect shuffle.
const NOISE: f64 = 4.0;

/// Other rows of its game that a row may meet in its batch, beyond those of a perfect shuffle.
pub(super) const FEW: f64 = 0.1;

/// One figure of a certificate. docs/guide/certificate.md explains each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub says: &'static str,
    /// What was measured.
    pub value: f64,
    /// What a perfect shuffle of the same rows gives.
    pub perfect: f64,
    /// How many rows, pairs or batches it was measured on.
    pub of: u64,
    /// What it says of the shuffle.
    pub level: Level,
}

/// Sums of a measure, for its mean and the error of that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn value(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The standard error of the mean.
    fn error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let (n, mean) = (self.count as f64, self.value());
        ((self.squares / n - mean * mean).max(0.0) / (n - 1.0)).sqrt()
    }
}

/// Other rows of its game that a row meets in its batch; `batches` has the mean of each batch, `stored` what the order of
/// the data would give.
pub(super) fn same_game(batches: &Mean, perfect: f64, stored: f64) -> Figure {
    let value = batches.value();
    let excess = value - perfect;
    let noise = NOISE * batches.error();
    let level = if excess <= (0.25 * perfect).max(FEW) + noise {
        Level::Good
    } else if excess <= (2.0 * perfect).max(10.0 * FEW) + noise {
        Level::Fair
    } else if value < 0.5 * stored {
        Level::Weak
    } else {
        Level::None
    };
    let says = "other rows of its game that a row meets in its batch, on average";
    Figure { name: "same_game", says, value, perfect, of: batches.count, level }
}

/// The median distance, in rows, between neighbours of a game, among rows that fill `length` places.
pub(super) fn neighbours(mut distances: Vec<u64>, length: u64, batch: u64) -> Option<Figure> {
    /// Pairs below which a median says nothing.
    const PAIRS: usize = 20;
    if distances.len() < PAIRS {
        return None;
    }
    let middle = distances.len() / 2;
    let value = *distances.select_nth_unstable(middle).1 as f64;
    let (perfect, batch) = (HALF_APART * length as f64, batch as f64);
    // The standard error of a median of n: about 1.25 deviations / sqrt(n); here the deviation is 0.236 of the length.
    let noise = NOISE * 1.25 * 0.236 * length as f64 / (distances.len() as f64).sqrt();
    let level = if value >= 0.8 * perfect - noise || value >= 32.0 * batch {
        Level::Good
    } else if value >= 4.0 * batch {
        Level::Fair
    } else if value >= batch {
        Level::Weak
    } else {
        Level::None
    };
    let says = "rows between two neighbours of a game, in the median";
    Some(Figure { name: "neighbours", says, value, perfect, of: distances.len() as u64, level })
}

/// How much the place of a row in the data says of its place in the pass: Cramer's V of a square table of counts.
pub(super) fn places(counts: &[u64], side: usize) -> Option<Figure> {
    let total: u64 = counts.iter().sum();
    // Fewer than 5 a cell make chi-square unsound.
    if total < 5 * (side * side) as u64 {
        return None;
    }
    let sum = |cells: &mut dyn Iterator<Item = u64>| cells.sum::<u64>() as f64;
    let rows: Vec<f64> = (0..side).map(|r| sum(&mut counts[r * side..][..side].iter().copied())).collect();
    let columns: Vec<f64> = (0..side).map(|c| sum(&mut counts.iter().skip(c).step_by(side).copied())).collect();
    let n = total as f64;
    let mut chi = 0.0;
    for (i, count) in counts.iter().enumerate() {
        let expected = rows[i / side] * columns[i % side] / n;
        if expected > 0.0 {
            chi += (*count as f64 - expected).powi(2) / expected;
        }
    }
    let freedom = ((side - 1) * (side - 1)) as f64;
    let (value, perfect) = (chi / freedom, 1.0);
    let strength = (chi / (n * (side as f64 - 1.0))).sqrt();
    let level = if value <= 1.0 + NOISE * (2.0 / freedom).sqrt() || strength < 0.1 {
        Level::Good
    } else if strength < 0.3 {
        Level::Fair
    } else if strength < 0.7 {
        Level::Weak
    } else {
        Level::None
    };
    let says = "chi-square over places in the data against places in the pass, by its degrees of freedom";
    Some(Figure { name: "places", says, value, perfect, of: total, level })
}

/// How unevenly classes fall on batches: chi-square of their counts, divided by its degrees of freedom. Each of `batches` counts
/// its rows by class; all batches share the `rows` rows of a pass.
pub(super) fn balance(batches: &[Vec<u64>], rows: u64) -> Option<Figure> {
    let all = batches.iter().flatten().sum::<u64>().max(1) as f64;
    let of_class = |class| batches.iter().map(|counts| counts[class]).sum::<u64>();
    let shares: Vec<f64> = (0..batches.first().map_or(0, Vec::len)).map(|class| of_class(class) as f64 / all).collect();
    let classes = shares.iter().filter(|share| **share > 0.0).count();
    if classes < 2 || batches.len() < 8 {
        return None;
    }
    let (mut chi, mut cells) = (0.0, 0u64);
    for counts in batches {
        let size: u64 = counts.iter().sum();
        // Rows are taken without repetition, so that large batches of few rows vary less.
        let left = 1.0 - size.saturating_sub(1) as f64 / (rows.max(2) - 1) as f64;
        if left <= 0.0 {
            continue;
        }
        cells += 1;
        for (count, share) in counts.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
            let expected = size as f64 * share;
            chi += (*count as f64 - expected).powi(2) / expected / left;
        }
    }
    let freedom = (cells * (classes as u64 - 1)) as f64;
    if freedom == 0.0 {
        return None;
    }
    let (value, noise) = (chi / freedom, NOISE * (2.0 / freedom).sqrt());
    let level = match value - noise {
        good if good <= 1.5 => Level::Good,
        fair if fair <= 5.0 => Level::Fair,
        weak if weak <= 50.0 => Level::Weak,
        _ => Level::None,
    };
    let says = "how unevenly classes fall on batches: chi-square by its degrees of freedom";
    Some(Figure { name: "balance", says, value, perfect: 1.0, of: cells, level })
}

/// How many games a window holds that leaves others out, against a batch.
pub(super) fn window(games: u64, batch: u64) -> Figure {
    let (value, perfect) = (games as f64, 4.0 * batch as f64);
    let level = if value >= perfect {
        Level::Good
    } else if games >= batch {
        Level::Fair
    } else if games >= batch / 8 {
        Level::Weak
    } else {
        Level::None
    };
    let says = "games that batches are drawn from at a time, while there are others";
    Figure { name: "window", says, value, perfect, of: games, level }
}

/// How many games of the window are newer than the game of a drawn row. `shares` has the mean of each batch, as a share of the
/// `seen` different games.
pub(super) fn age(shares: &Mean, seen: usize, window: u64) -> Option<Figure> {
    /// Fewest games for which an order says something.
    const GAMES: usize = 50;
    if seen < GAMES || shares.count < 2 {
        return None;
    }
    let (share, window) = (shares.value(), window.max(1) as f64);
    let noise = NOISE * shares.error().max(0.29 / (seen as f64).sqrt());
    let level = match share - noise {
        young if young <= 0.6 => Level::Good,
        old if old <= 0.75 => Level::Fair,
        older if older <= 0.95 => Level::Weak,
        _ => Level::None,
    };
    let says = "games that came after that of a row, of those that it is drawn from, on average";
    let of = shares.count;
    Some(Figure { name: "age", says, value: share * (window - 1.0), perfect: (window - 1.0) / 2.0, of, level })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> Mean {
        let mut mean = Mean::default();
        values.iter().for_each(|value| mean.add(*value));
        mean
    }

    #[test]
    fn rows_of_one_game_are_judged_by_what_is_beyond_a_perfect_shuffle() {
        let level = |value, perfect, stored| same_game(&mean(&[value, value]), perfect, stored).level;
        assert_eq!(level(0.05, 0.0, 60.0), Level::Good);
        assert_eq!(level(12.0, 10.0, 60.0), Level::Good, "a small pack repeats games however it is shuffled");
        assert_eq!(level(0.9, 0.0, 60.0), Level::Fair);
        assert_eq!(level(20.0, 0.1, 60.0), Level::Weak);
        assert_eq!(level(59.0, 0.1, 60.0), Level::None);
        let noisy = same_game(&mean(&[0.0, 0.4]), 0.0, 60.0);
        assert_eq!((noisy.value, noisy.level), (0.2, Level::Good), "within what few batches can tell");
    }

    #[test]
    fn neighbours_are_far_apart_or_many_batches() {
        assert!(neighbours(vec![5; 10], 1000, 8).is_none());
        let level = |distance| neighbours(vec![distance; 10_000], 1_000_000, 1000).unwrap().level;
        assert_eq!(level(280_000), Level::Good);
        assert_eq!(level(32_000), Level::Good);
        assert_eq!((level(4000), level(1000), level(1)), (Level::Fair, Level::Weak, Level::None));
    }

    #[test]
    fn places_that_say_nothing_of_each_other_are_good() {
        let even = vec![100; 64];
        let figure = places(&even, 8).unwrap();
        assert_eq!((figure.value, figure.level), (0.0, Level::Good));
        let stored: Vec<u64> = (0..64).map(|i| if i / 8 == i % 8 { 800 } else { 0 }).collect();
        assert_eq!(places(&stored, 8).unwrap().level, Level::None);
        assert!(places(&[1; 64], 8).is_none());
    }

    #[test]
    fn classes_that_stand_together_are_seen() {
        let even = vec![vec![50, 50]; 16];
        assert_eq!(balance(&even, 1 << 20).unwrap().level, Level::Good);
        let sorted: Vec<Vec<u64>> = (0..16).map(|i| if i < 8 { vec![100, 0] } else { vec![0, 100] }).collect();
        assert_eq!(balance(&sorted, 1 << 20).unwrap().level, Level::None);
        assert!(balance(&vec![vec![50, 0]; 16], 1 << 20).is_none(), "one class is no balance");
    }

    #[test]
    fn games_are_as_old_as_half_of_their_window() {
        let level = |share| age(&mean(&[share; 16]), 40_000, 1001).unwrap();
        assert_eq!((level(0.5).value, level(0.5).perfect, level(0.5).level), (500.0, 500.0, Level::Good));
        assert_eq!(
            [0.1, 0.7, 0.9, 0.99].map(|share| level(share).level),
            [Level::Good, Level::Fair, Level::Weak, Level::None]
        );
        assert!(age(&mean(&[0.5; 16]), 49, 1001).is_none());
    }

    #[test]
    fn a_window_is_judged_against_a_batch() {
        let level = |games| window(games, 1024).level;
        assert_eq!([4096, 1024, 128, 10].map(level), [Level::Good, Level::Fair, Level::Weak, Level::None]);
    }
}
