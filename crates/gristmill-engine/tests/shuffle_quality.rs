//! The shuffles are not merely permutations: they must be as random as a uniform one by three measures.
//! The same measures, on a four-round cipher that loaders have shipped with, fail: the test can tell.

use gristmill_engine::runtime::permute::Permutation;
use gristmill_engine::runtime::seed::Key;

const N: u64 = 1_000_000;
const GAME: u64 = 128;
const BATCH: usize = 1024;

/// Commonest XOR difference of neighbouring outputs (share of pairs), neighbours that stay near (against chance),
/// and pairs from the same game in a batch (mean).
#[derive(Debug)]
struct Measures {
    commonest_difference: f64,
    near: f64,
    same_game: f64,
}

fn measure(order: &[u64]) -> Measures {
    let n = order.len() as u64;
    let mut differences: Vec<u64> = order.chunks_exact(2).map(|pair| pair[0] ^ pair[1]).collect();
    differences.sort_unstable();
    let commonest = differences.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap();
    let near = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < n / 1000).count();
    let mut pairs = 0u64;
    let mut seen = vec![0u64; (n / GAME + 1) as usize];
    for batch in order.chunks_exact(BATCH) {
        for i in batch {
            pairs += seen[(i / GAME) as usize];
            seen[(i / GAME) as usize] += 1;
        }
        batch.iter().for_each(|i| seen[(i / GAME) as usize] = 0);
    }
    Measures {
        commonest_difference: commonest as f64 / differences.len() as f64,
        near: near as f64 / (n - 1) as f64 * 500.0,
        same_game: pairs as f64 / (n as usize / BATCH) as f64,
    }
}

fn fisher_yates(seed: u64) -> Vec<u64> {
    let mut draws = Key::new(seed, "fisher-yates").at(0);
    let mut order: Vec<u64> = (0..N).collect();
    (1..N).rev().for_each(|i| order.swap(i as usize, draws.below(i + 1) as usize));
    order
}

/// Whether the measures are those of a uniform shuffle, with room for chance.
fn passes(found: &Measures, uniform: &Measures) -> bool {
    found.commonest_difference < 3.0 * uniform.commonest_difference
        && (found.near - uniform.near).abs() < 0.08
        && (found.same_game - uniform.same_game).abs() < 1.5
}

#[test]
fn keyed_permutations_are_as_good_as_fisher_yates() {
    let uniform = measure(&fisher_yates(1));
    assert!(passes(&measure(&fisher_yates(2)), &uniform), "two uniform shuffles agree with each other");
    for seed in 0..5 {
        let permutation = Permutation::new(Key::new(42 + seed, "extract").of(b"epoch", 0), N);
        let order: Vec<u64> = (0..N).map(|i| permutation.apply(i)).collect();
        let found = measure(&order);
        assert!(passes(&found, &uniform), "seed {seed}: {found:?} against {uniform:?}");
    }
}

/// A cycle-walking Feistel cipher with the shift-and-and round function and four rounds: what not to do.
fn four_weak_rounds(seed: u64) -> Vec<u64> {
    let half = 10;
    let mask = (1u64 << half) - 1;
    let rotate = |x: u64, by: u32| (x << by | x >> (half - by)) & mask;
    let mut draws = Key::new(seed, "weak").at(0);
    let keys: Vec<u64> = (0..4).map(|_| draws.bits() & mask).collect();
    let once = |x: u64| {
        let (left, right) = keys
            .iter()
            .fold((x >> half, x & mask), |(l, r), key| (r, l ^ (rotate(r, 1) & rotate(r, 8)) ^ rotate(r, 2) ^ key));
        left << half | right
    };
    let walk = |i: u64| std::iter::successors(Some(once(i)), |x| Some(once(*x))).find(|x| *x < N).unwrap();
    (0..N).map(walk).collect()
}

#[test]
fn the_measures_catch_a_weak_cipher() {
    let uniform = measure(&fisher_yates(1));
    let weak = measure(&four_weak_rounds(42));
    assert!(weak.commonest_difference > 3.0 * uniform.commonest_difference, "{weak:?} against {uniform:?}");
    assert!(!passes(&weak, &uniform));
}

#[test]
fn no_two_epochs_of_two_seeds_coincide() {
    let order = |seed: u64, epoch: u64| {
        let permutation = Permutation::new(Key::new(seed, "extract").of(b"epoch", epoch), 1000);
        (0..1000).map(|i| permutation.apply(i)).collect::<Vec<u64>>()
    };
    let orders: Vec<Vec<u64>> =
        (0..8).flat_map(|seed| (0..8).map(move |epoch| (seed, epoch))).map(|(s, e)| order(s, e)).collect();
    for (i, one) in orders.iter().enumerate() {
        for other in &orders[..i] {
            let same = one.iter().zip(other).filter(|(a, b)| a == b).count();
            assert!(same < 12, "{same} of 1000 places coincide");
        }
    }
}
