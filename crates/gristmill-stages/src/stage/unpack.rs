//! (chunk, use count) -> rows. Successive uses of a chunk select disjoint rows until all were used.
//! A pure function of the chunk's key, its length and the use count: no state, no bytes.

use gristmill_runtime::runtime::permute::Permutation;
use gristmill_runtime::runtime::seed::Key;

/// How rows are selected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unpack {
    /// Each row with this probability; every row once per 1/rate uses (rate mode).
    Rate(f32),
    /// This many rows of a shuffled endless sequence of passes over the chunk (count mode).
    Count(u32),
}

impl Unpack {
    /// Appends the rows of use number `use_count` of a chunk of `frames` rows to `rows`, in emission order. With
    /// `weights`, one per row, a row comes up in a pass with its share of the largest weight (count mode alone).
    pub fn select(&self, key: Key, frames: usize, weights: Option<&[f32]>, use_count: u16, rows: &mut Vec<u32>) {
        let n = u32::try_from(frames).unwrap_or(u32::MAX);
        match (*self, weights) {
            (Unpack::Rate(rate), _) if rate >= 1.0 => rows.extend(0..n),
            (Unpack::Rate(rate), _) => {
                let mut draws = key.at(0);
                partition(n, f64::from(rate), use_count, || draws.unit(), rows);
            }
            (Unpack::Count(count), None) => sequence(key, n, count, use_count, rows),
            (Unpack::Count(count), Some(weights)) => weighted(key, weights, count, use_count, rows),
        }
    }
}

/// The partition sampler: tosses decide to which of many uses each row belongs, round after round.
fn partition(n: u32, p: f64, use_count: u16, mut toss: impl FnMut() -> f64, rows: &mut Vec<u32>) {
    let mut carried = p;
    let mut wanted = f64::from(use_count);
    let mut skip = vec![false; n as usize];
    loop {
        // Uses completed in this round, and the mass left over for the use that straddles two rounds.
        let complete = ((1.0 - carried) / p + 1.0).trunc();
        let last = 1.0 - (carried + (complete - 1.0) * p);
        let mut skip_next = vec![false; n as usize];
        for i in 0..n {
            if skip[i as usize] {
                continue;
            }
            let belongs = ((toss() - carried) / p + 1.0).trunc();
            if belongs == wanted {
                rows.push(i);
            }
            skip_next[i as usize] = belongs >= complete;
        }
        if wanted < complete {
            return;
        }
        wanted -= complete;
        carried = p - last;
        skip = skip_next;
    }
}

fn sequence(key: Key, n: u32, count: u32, use_count: u16, rows: &mut Vec<u32>) {
    if n == 0 {
        return;
    }
    let count = u64::from(count.min(n));
    let first = u64::from(use_count) * count;
    let mut pass = None;
    for at in first..first + count {
        let (number, i) = (at / u64::from(n), at % u64::from(n));
        let order = match pass.take() {
            Some((same, order)) if same == number => order,
            _ => Permutation::new(key.of(b"pass", number), u64::from(n)),
        };
        rows.push(u32::try_from(order.apply(i)).unwrap_or(0));
        pass = Some((number, order));
    }
}

/// As [`sequence`], but each pass leaves rows out by weight. Costs as many tosses as rows lie before the wanted ones:
/// what a use gives is a function of its number, not of the uses before it.
fn weighted(key: Key, weights: &[f32], count: u32, use_count: u16, rows: &mut Vec<u32>) {
    let n = weights.len() as u64;
    let count = u64::from(count).min(n);
    let largest = weights.iter().copied().fold(0.0, f32::max);
    let mut skip = u64::from(use_count) * count;
    let mut left = count;
    for pass in 0.. {
        if left == 0 {
            return;
        }
        let order = Permutation::new(key.of(b"pass", pass), n);
        let mut tosses = key.of(b"weighed", pass).at(0);
        for at in 0..n {
            let i = order.apply(at);
            let weight = weights.get(i as usize).copied().unwrap_or(0.0);
            // The row of the largest weight comes up in every pass, so that there is an end.
            let up = largest <= 0.0 || tosses.unit() < f64::from(weight) / f64::from(largest);
            if up && skip > 0 {
                skip -= 1;
            } else if up && left > 0 {
                rows.push(u32::try_from(i).unwrap_or(0));
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(n: u32, rate: f64, use_count: u16, tosses: &[f64]) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut next = tosses.iter().copied();
        partition(n, rate, use_count, || next.next().expect("enough tosses"), &mut rows);
        rows
    }

    #[test]
    fn partition_follows_the_vectors() {
        let first = [0.05, 0.35, 0.70, 0.95, 0.50, 0.20];
        for (use_count, rows) in [(0, vec![0, 5]), (1, vec![1]), (2, vec![2, 4]), (3, vec![3])] {
            assert_eq!(given(6, 0.25, use_count, &first), rows, "p = 0.25, use {use_count}");
        }
        let both = [first.as_slice(), &[0.10, 0.30, 0.65, 0.99, 0.45]].concat();
        let expected = [vec![0, 1, 5], vec![2, 4], vec![3, 0], vec![1, 5], vec![2, 4]];
        for (use_count, rows) in expected.iter().enumerate() {
            assert_eq!(given(6, 0.4, use_count as u16, &both), *rows, "p = 0.4, use {use_count}");
        }
    }

    fn uses(unpack: Unpack, frames: usize, count: u16) -> Vec<Vec<u32>> {
        let key = Key::new(9, "unpack").of(b"training.1.gz", 0);
        let one = |use_count| {
            let mut rows = Vec::new();
            unpack.select(key, frames, None, use_count, &mut rows);
            rows
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn successive_uses_are_disjoint_and_exhaustive() {
        for (unpack, count) in [(Unpack::Rate(0.25), 4), (Unpack::Count(20), 5)] {
            let mut all: Vec<u32> = uses(unpack, 100, count).concat();
            all.sort_unstable();
            assert_eq!(all, (0..100).collect::<Vec<_>>(), "{unpack:?}");
        }
        assert_eq!(uses(Unpack::Rate(1.0), 5, 3), vec![vec![0, 1, 2, 3, 4]; 3]);
    }

    /// At 0.8 the second use begins with what the first left over.
    #[test]
    fn a_use_that_straddles_two_rounds_takes_what_the_first_left_over() {
        let [first, second] = uses(Unpack::Rate(0.8), 1000, 2).try_into().unwrap();
        assert!((0..1000).filter(|row| !first.contains(row)).all(|row| second.contains(&row)));
        let distinct: std::collections::BTreeSet<_> = second.iter().collect();
        assert!(second.len() == distinct.len() && second.iter().any(|row| first.contains(row)), "{}", second.len());
    }

    #[test]
    fn odd_sizes_are_harmless() {
        assert_eq!(uses(Unpack::Count(7), 0, 2), vec![Vec::<u32>::new(); 2]);
        assert_eq!(uses(Unpack::Rate(0.3), 0, 4), vec![Vec::<u32>::new(); 4]);
        for rows in uses(Unpack::Count(7), 3, 10) {
            let mut sorted = rows.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2], "no more rows than the chunk has");
        }
        let sizes: Vec<usize> = uses(Unpack::Rate(0.03), 4000, 200).iter().map(Vec::len).collect();
        assert!(sizes.iter().all(|s| (60..190).contains(s)), "{sizes:?}");
    }

    #[test]
    fn weighted_rows_come_in_proportion_and_uses_go_on_where_the_last_ended() {
        let weights: Vec<f32> = (1..=10).map(|i| i as f32 / 10.0).collect();
        let key = Key::new(5, "unpack");
        let row = |use_count| {
            let mut rows = Vec::new();
            Unpack::Count(1).select(key, 10, Some(&weights), use_count, &mut rows);
            rows[0]
        };
        let (mut counts, mut all) = ([0f64; 10], Vec::new());
        (0..330).for_each(|use_count| Unpack::Count(10).select(key, 10, Some(&weights), use_count, &mut all));
        all.iter().for_each(|row| counts[*row as usize] += 1.0);
        let chi: f64 = counts
            .iter()
            .zip(&weights)
            .map(|(c, w)| {
                let expected = 600.0 * f64::from(*w);
                (c - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 27.9, "9 degrees of freedom, p = 0.001: {chi} {counts:?}");
        let mut three = Vec::new();
        Unpack::Count(3).select(key, 10, Some(&weights), 4, &mut three);
        assert_eq!(three, [row(12), row(13), row(14)]);
        assert_eq!(three, all[12..15]);
    }

    #[test]
    fn rows_without_weight_come_up_only_where_none_has_any() {
        let rows = |weights: &[f32], use_count| {
            let mut rows = Vec::new();
            Unpack::Count(2).select(Key::new(5, "unpack"), weights.len(), Some(weights), use_count, &mut rows);
            rows
        };
        assert_eq!(rows(&[0.0, 0.0, 3.0, 0.0], 65_535), [2, 2]);
        let mut all = [rows(&[0.0; 4], 0), rows(&[0.0; 4], 1)].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
        assert_eq!(rows(&[], 3), Vec::<u32>::new());
    }

    #[test]
    fn weights_count_beside_the_largest_alone() {
        let rows = |weights: [f32; 4]| {
            let mut rows = Vec::new();
            Unpack::Count(4).select(Key::new(5, "unpack"), 4, Some(&weights), 50, &mut rows);
            rows
        };
        assert_eq!(rows([1.0, 2.0, 4.0, 8.0]), rows([0.125, 0.25, 0.5, 1.0]));
        assert_eq!(rows([1.0, 2.0, 4.0, 8.0]), rows([16.0, 32.0, 64.0, 128.0]));
    }

    #[test]
    fn a_use_that_straddles_two_passes_takes_the_rest_of_the_first() {
        let all = uses(Unpack::Count(7), 10, 10).concat();
        for pass in all.chunks(10) {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(all[..10], all[10..20], "each pass has its own order");
        assert_eq!(uses(Unpack::Rate(1.5), 3, 2), vec![vec![0, 1, 2]; 2]);
    }
}
