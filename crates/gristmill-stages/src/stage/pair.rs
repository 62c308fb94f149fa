//! Trajectories, by their lengths -> which steps stand together as context and target. Numbers only; it reads no byte.
//! No pair reaches across the end of a trajectory; what is drawn depends on key and step alone.

use std::ops::Range;

use gristmill_runtime::runtime::permute::Permutation;
use gristmill_runtime::runtime::seed::Key;

/// Which steps are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Each step with itself.
    Identity,
    /// Each step with the one `offset` before it, which is the context; a trajectory of L steps gives L - offset.
    Offset {
        /// At least 1.
        offset: u64,
    },
    /// The same turned: the later step is the context.
    Reverse {
        /// At least 1.
        offset: u64,
    },
    /// Each step with one before it, by an offset drawn uniformly for each.
    Uniform {
        /// Least offset, at least 1.
        least: u64,
        /// Greatest offset; nearer the start of a trajectory, the greatest that there is.
        most: u64,
    },
}

/// Steps that stand together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Number of the context's step among all steps.
    pub context: Vec<u64>,
    /// Number of the target's step.
    pub target: Vec<u64>,
    /// Trajectory of each pair.
    pub trajectory: Vec<u64>,
    /// Step within the trajectory of the later of the two.
    pub step: Vec<u64>,
}

/// The pairs of trajectories that are `spans` of all steps, in order of time.
pub fn pairs(spans: &[Range<u64>], pairing: Pairing, key: Key) -> Pairs {
    let mut found = Pairs::default();
    let least = match pairing {
        Pairing::Identity => 0,
        Pairing::Offset { offset } | Pairing::Reverse { offset } => offset,
        Pairing::Uniform { least, .. } => least,
    };
    for (trajectory, span) in (0..).zip(spans) {
        for later in span.start.saturating_add(least)..span.end {
            let step = later - span.start;
            let offset = match pairing {
                Pairing::Uniform { least, most } => drawn(key, (later, step), (least, most)),
                _ => least,
            };
            let (context, target) = match pairing {
                Pairing::Reverse { .. } => (later, later - offset),
                _ => (later - offset, later),
            };
            found.context.push(context);
            found.target.push(target);
            found.trajectory.push(trajectory);
            found.step.push(step);
        }
    }
    found
}

/// The offset that is drawn for step `later` of all, which is `step` of its trajectory: from `least` on, which it has, up to `most`.
pub fn drawn(key: Key, (later, step): (u64, u64), (least, most): (u64, u64)) -> u64 {
    least + key.at(later).below(most.min(step) - least + 1)
}

/// The key of the offsets that are drawn for a pass.
pub fn offsets(seed: u64, pass: u64) -> Key {
    Key::new(seed, "pair").of(b"epoch", pass)
}

/// The order of classes of a pass.
pub fn class_order(classes: u64, seed: u64, pass: u64) -> Permutation {
    Permutation::new(Key::new(seed, "jigsaw").of(b"epoch", pass), classes)
}

/// For each step the `size` steps that end with it, oldest first; where the trajectory began later, its first step stands
/// for those before, and the mask is false.
pub fn windows(spans: &[Range<u64>], size: usize) -> (Vec<u64>, Vec<bool>) {
    let steps: u64 = spans.iter().map(|span| span.end - span.start).sum();
    let (mut rows, mut mask) = (Vec::with_capacity(steps as usize * size), Vec::new());
    for span in spans {
        for last in span.clone() {
            for back in (0..size as u64).rev() {
                let row = last.checked_sub(back).filter(|row| *row >= span.start);
                rows.push(row.unwrap_or(span.start));
                mask.push(row.is_some());
            }
        }
    }
    (rows, mask)
}

/// The class of each of `steps` steps: all classes in an order of the pass, again and again.
pub fn classes(steps: u64, classes: u64, seed: u64, pass: u64) -> Vec<u64> {
    let order = class_order(classes, seed, pass);
    (0..steps).map(|step| order.apply(step % classes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPANS: [Range<u64>; 3] = [0..7, 7..8, 8..13];

    fn of(pairing: Pairing) -> Pairs {
        pairs(&SPANS, pairing, Key::new(1, "pair"))
    }

    #[test]
    fn counts_are_those_of_the_lengths_and_no_pair_crosses_an_end() {
        for (offset, counts) in [(1, [6, 0, 4]), (3, [4, 0, 2]), (8, [0, 0, 0])] {
            for pairing in [Pairing::Offset { offset }, Pairing::Reverse { offset }] {
                let found = of(pairing);
                let count = |i: u64| found.trajectory.iter().filter(|t| **t == i).count();
                assert_eq!([count(0), count(1), count(2)], counts, "{pairing:?}");
                for (i, trajectory) in found.trajectory.iter().enumerate() {
                    let span = &SPANS[*trajectory as usize];
                    let (one, two) = (found.context[i], found.target[i]);
                    assert!(span.contains(&one) && span.contains(&two) && one.abs_diff(two) == offset);
                    assert_eq!(one < two, matches!(pairing, Pairing::Offset { .. }));
                    assert_eq!(found.step[i], one.max(two) - span.start);
                }
            }
        }
        let alone = of(Pairing::Identity);
        assert_eq!((alone.context.len(), &alone.context), (13, &alone.target));
        assert_eq!(of(Pairing::Offset { offset: u64::MAX }), Pairs::default());
    }

    #[test]
    fn drawn_offsets_are_uniform_within_what_there_is() {
        let pairing = Pairing::Uniform { least: 2, most: 4 };
        let found = pairs(&[0..30_000, 30_000..30_002], pairing, Key::new(5, "pair"));
        let offset = |i: usize| found.target[i] - found.context[i];
        assert_eq!((found.target[0], offset(0), found.target.len()), (2, 2, 29_998));
        for wanted in 2..=4 {
            let count = (100..29_998).filter(|i| offset(*i) == wanted).count();
            assert!((9600..10_400).contains(&count), "{count} of offset {wanted}");
        }
        assert_eq!(found, pairs(&[0..30_000, 30_000..30_002], pairing, Key::new(5, "pair")));
        assert_ne!(found, pairs(&[0..30_000, 30_000..30_002], pairing, Key::new(6, "pair")));
    }

    #[test]
    fn windows_are_masked_before_the_start() {
        let (rows, mask) = windows(&[0..2, 2..5], 3);
        assert_eq!(rows, [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 2, 3, 4]);
        let word = |i: usize| mask[3 * i..3 * i + 3].iter().filter(|kept| **kept).count();
        assert_eq!((0..5).map(word).collect::<Vec<_>>(), [1, 2, 1, 2, 3]);
        let all = classes(2500, 1000, 3, 0);
        let mut first = all[..1000].to_vec();
        assert_eq!(first, all[1000..2000]);
        first.sort_unstable();
        assert_eq!(first, (0..1000).collect::<Vec<_>>());
    }
}
