//! (name, index) -> side. A fixed, published hash: the same game is on the same side in every run, on every machine, and in
//! whatever it is packed, since it goes by the name that it had as a file.
//!
//! `side` is the first j with `hash mod total < weight[0] + … + weight[j]`, where
//! `hash = XXH3-64(key bytes, 0x00, index as u64 little-endian)`, seed 0 (docs/format/split.md).

use xxhash_rust::xxh3::Xxh3;

/// Key and index of a chunk by the name that it has in its tar or chunk file, without folders; by that of its file where it has
/// none, which is so for a game that is a file.
pub fn original<'a>(key: &'a str, member: Option<&'a str>, index: u64) -> (&'a str, u64) {
    let base = member.and_then(|member| member.rsplit('/').find(|part| !part.is_empty()));
    base.map_or((key, index), |base| (base, 0))
}

/// The published hash of a chunk's identity.
pub fn identity_hash(key: &str, index: u64) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(key.as_bytes());
    hash.update(&[0]);
    hash.update(&index.to_le_bytes());
    hash.digest()
}

/// The published hash by which the train and val sides of a weighted split are cut into folds. It has another seed, so that folds
/// are even whatever the weights are.
pub fn fold_hash(key: &str, index: u64) -> u64 {
    let mut hash = Xxh3::with_seed(1);
    hash.update(key.as_bytes());
    hash.update(&[0]);
    hash.update(&index.to_le_bytes());
    hash.digest()
}

/// One of several folds, for cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    /// How many there are, at least 2.
    pub of: u64,
    /// Which one, from 0.
    pub number: u64,
}

/// One side of a weighted split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    from: u64,
    to: u64,
    total: u64,
    /// A fold, and whether this side is what is in it, or what is in the others.
    fold: Option<(Fold, bool)>,
}

impl Side {
    /// Side `index` of `weights`; `None` when the weights are all zero, overflow, or have no such index.
    pub fn new(weights: &[u64], index: usize) -> Option<Self> {
        let total = weights.iter().try_fold(0u64, |sum, w| sum.checked_add(*w)).filter(|t| *t > 0)?;
        let from: u64 = weights.get(..index)?.iter().sum();
        Some(Side { from, to: from + weights.get(index)?, total, fold: None })
    }

    /// Side `index` where what the first two sides have together is dealt again: the second gets what is in a fold, the first what
    /// is in the others. The sides after them stay what they are.
    ///
    /// `None` as for [`Side::new`], for fewer than two sides, and for a fold that does not exist.
    pub fn folded(weights: &[u64], fold: Fold, index: usize) -> Option<Self> {
        let side = Side::new(weights, index)?;
        if fold.of < 2 || fold.number >= fold.of {
            return None;
        }
        let [first, second, ..] = weights else { return None };
        let (to, own) = (first + second, index == 1);
        Some(if index < 2 { Side { from: 0, to, fold: Some((fold, own)), ..side } } else { side })
    }

    /// All sides of `weights`, with a fold or without.
    ///
    /// Errors: what is wrong with the weights, or with the fold.
    pub fn all(weights: &[u64], fold: Option<Fold>) -> Result<Vec<Self>, String> {
        let sides: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::new(weights, i)).collect();
        let sides = sides.filter(|sides| !sides.is_empty());
        let sides = sides.ok_or("expected whole weights with a positive sum that fits 64 bits")?;
        let Some(fold) = fold else { return Ok(sides) };
        let folded: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::folded(weights, fold, i)).collect();
        folded.ok_or_else(|| {
            let (Fold { of, number }, sides) = (fold, weights.len());
            format!(
                "fold {number} of {of} for {sides} sides; expected 2 sides or more, 2 folds or more, and one of them"
            )
        })
    }

    /// Whether the chunk is on this side.
    pub fn holds(&self, key: &str, index: u64) -> bool {
        let at = identity_hash(key, index) % self.total;
        let in_fold = |(fold, own): (Fold, bool)| (fold_hash(key, index) % fold.of == fold.number) == own;
        (self.from..self.to).contains(&at) && self.fold.is_none_or(in_fold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_is_on_exactly_one_side_in_proportion() {
        let weights = [7, 0, 3];
        let sides: Vec<Side> = (0..3).map(|i| Side::new(&weights, i).unwrap()).collect();
        let mut counts = [0u32; 3];
        for i in 0..10_000 {
            let key = format!("training.{}.gz", i / 10);
            let on: Vec<usize> = (0..3).filter(|&s| sides[s].holds(&key, i % 10)).collect();
            assert_eq!(on.len(), 1);
            counts[on[0]] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((6_850..7_150).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn folds_part_what_is_not_tested_and_are_even() {
        let weights = [7, 1, 2];
        let tested = Side::new(&weights, 2).unwrap();
        let (mut counts, mut of_test) = ([0u32; 5], 0);
        for i in 0..10_000 {
            let key = format!("training.{i}.gz");
            let on = |number, index| Side::folded(&weights, Fold { of: 5, number }, index).unwrap().holds(&key, 0);
            of_test += u32::from(tested.holds(&key, 0));
            for number in 0..5 {
                let on = [on(number, 0), on(number, 1), on(number, 2)];
                assert_eq!(on.iter().filter(|on| **on).count(), 1);
                assert_eq!(on[2], tested.holds(&key, 0), "the test side is that of no folds");
                counts[number as usize] += u32::from(on[1]);
            }
            assert_eq!((0..5).filter(|number| on(*number, 1)).count(), usize::from(!tested.holds(&key, 0)));
        }
        assert!(
            counts.iter().all(|count| (1_480..1_720).contains(count)) && (1_850..2_150).contains(&of_test),
            "{counts:?}"
        );
        for (weights, of, number) in
            [(&[1, 1][..], 1, 0), (&[1, 1], 0, 0), (&[1, 1], 3, 3), (&[1], 2, 0), (&[0, 0], 2, 0)]
        {
            assert_eq!(Side::folded(weights, Fold { of, number }, 0), None, "{weights:?} {number} of {of}");
        }
    }

    #[test]
    fn the_hash_is_the_published_one() {
        let mut bytes = b"training.1.gz\0".to_vec();
        bytes.extend_from_slice(&5u64.to_le_bytes());
        assert_eq!(identity_hash("training.1.gz", 5), xxhash_rust::xxh3::xxh3_64(&bytes));
        assert_eq!(identity_hash("training.1.gz", 5), GOLDEN);
        assert_eq!(fold_hash("training.1.gz", 5), xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, 1));
    }

    const GOLDEN: u64 = 9_788_083_725_887_541_872;

    #[test]
    fn a_game_keeps_its_name_in_whatever_it_is_packed() {
        let loose = original("training.1.gz", None, 0);
        assert_eq!(loose, ("training.1.gz", 0));
        let members =
            ["training.1.gz", "d/training.1.gz", "sub/games.tar/d/training.1.gz", "games-00000.chunks/training.1.gz"];
        for member in members {
            assert_eq!(original("games.tar", Some(member), 5), loose, "{member}");
        }
        for nameless in [None, Some(""), Some("/")] {
            assert_eq!(original("games.tar", nameless, 5), ("games.tar", 5));
        }
    }

    #[test]
    fn useless_weights_are_refused() {
        for weights in [vec![], vec![0, 0], vec![u64::MAX, 1]] {
            assert_eq!(Side::new(&weights, 0), None);
        }
        assert_eq!(Side::new(&[1], 1), None);
    }
}
