//! Runs or games, each with its key -> three sides, or folds, by the published hash; and the same of a selection of rows.
//! Nothing is on two sides; the val side is that of a split in two with the same share and seed.

use std::collections::HashMap;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::table::{Step, ThreeWay};
use gristmill_stages::stage::split::Side;

use super::metadata::Run;
use super::select::{SHARES, Selection};

/// Most folds.
pub const MOST_FOLDS: u32 = 1000;

/// For each run, by its id, what stands for it in the hash; runs of one key are on one side.
pub type Keys = HashMap<u64, u64>;

/// Those outside a fold, and its own.
pub(crate) type Fold<T> = (Vec<T>, Vec<T>);

fn key_of(keys: Option<&Keys>, run: &Run) -> u64 {
    match keys {
        Some(keys) => keys.get(&run.id).copied().unwrap_or(run.id),
        None => run.seed.unwrap_or(run.id),
    }
}

/// Deals `all`, ascending and each with its key, to train, val and test.
///
/// Errors: `Config` in `val` or `test` for shares that are none or leave nothing for training, and when none falls on a side;
/// `what` they are called.
pub(crate) fn three<T: Copy>(all: &[(T, u64)], what: &str, val: f64, test: f64, seed: u64) -> Result<[Vec<T>; 3]> {
    for (name, share) in [("val", val), ("test", test)] {
        if !(0.0..1.0).contains(&share) {
            return Err(Error::config(name, format!("{share}, expected a share of the {what}: 0 or more, below 1")));
        }
    }
    let [of_val, of_test] = [val, test].map(|share| (share * SHARES as f64) as u64);
    let Some(left) = SHARES.checked_sub(of_val + of_test).filter(|left| *left > 0) else {
        return Err(Error::config("test", format!("val {val} and test {test} leave nothing for training")));
    };
    // The val side last: it is the same as without a test side.
    let sides = dealt(all, &[left, of_test, of_val], seed)?;
    for (name, share, side) in [("val", val, &sides[2]), ("test", test, &sides[1])] {
        if side.is_empty() && share > 0.0 {
            let count = all.len();
            let text = format!(
                "none of the {count} {what} falls on the {name} side at {share}: raise it, or take another seed"
            );
            return Err(Error::config(name, text));
        }
    }
    let [train, test, val] = <[Vec<T>; 3]>::try_from(sides).unwrap_or_default();
    Ok([train, val, test])
}

/// Deals `all` to `of` folds.
///
/// Errors: `Config` in `folds` for fewer than 2 or more than [`MOST_FOLDS`], and for a fold that none falls into.
pub(crate) fn folds<T: Copy + Ord>(all: &[(T, u64)], what: &str, of: u32, seed: u64) -> Result<Vec<Fold<T>>> {
    if !(2..=MOST_FOLDS).contains(&of) {
        return Err(Error::config("folds", format!("{of}, expected 2 to {MOST_FOLDS}")));
    }
    let dealt = dealt(all, &vec![1; of as usize], seed)?;
    let mut made = Vec::new();
    for (fold, own) in dealt.iter().enumerate() {
        if own.is_empty() {
            let count = all.len();
            let text =
                format!("none of the {count} {what} falls into fold {fold} of {of}: take fewer, or another seed");
            return Err(Error::config("folds", text));
        }
        let others = dealt.iter().enumerate().filter(|(other, _)| *other != fold);
        let mut others: Vec<T> = others.flat_map(|(_, other)| other).copied().collect();
        others.sort_unstable();
        made.push((others, own.clone()));
    }
    Ok(made)
}

fn dealt<T: Copy>(all: &[(T, u64)], weights: &[u64], seed: u64) -> Result<Vec<Vec<T>>> {
    let sides: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::new(weights, i)).collect();
    let sides = sides.ok_or_else(|| Error::config("val", "these are no shares"))?;
    let (key, mut dealt) = (format!("split {seed}"), vec![Vec::new(); sides.len()]);
    for (one, index) in all {
        if let Some(side) = sides.iter().position(|side| side.holds(&key, *index)) {
            dealt[side].push(*one);
        }
    }
    Ok(dealt)
}

impl Selection {
    /// Three sides, by run: train, about the share `val`, and about the share `test`, as [`Selection::split`] has two; or with
    /// other keys, as [`Selection::split_by_keys`].
    ///
    /// Errors: `Config` in `val` or `test` for shares that are none or leave nothing for training, and when no run falls on a
    /// side.
    pub fn split_three(&self, val: f64, test: f64, seed: u64, keys: Option<&Keys>) -> Result<[Self; 3]> {
        let [train, second, third] = three(&self.keyed(keys), "runs", val, test, seed)?;
        let said = |side| Step::SplitThree { val, test, seed, side };
        let made = [(train, ThreeWay::Train), (second, ThreeWay::Val), (third, ThreeWay::Test)];
        let outside: Vec<u32> = made[1].0.iter().chain(&made[2].0).copied().collect();
        let mut selections = Vec::new();
        for (runs, side) in made {
            let step = match (keys, side) {
                (None, _) => said(side),
                (Some(_), ThreeWay::Train) => Step::SplitRuns { ids: self.ids_of(&outside), second: false },
                (Some(_), _) => Step::SplitRuns { ids: self.ids_of(&runs), second: true },
            };
            selections.push(self.of_runs(runs)?.after(step));
        }
        <[Self; 3]>::try_from(selections).map_err(|_| Error::config("val", "three sides were expected"))
    }

    /// `of` pairs of sides, by run: in each, all runs but those of a fold, and those. Each run is in one fold.
    ///
    /// Errors: `Config` in `folds` for fewer than 2 or more than 1000, and for a fold that no run falls into.
    pub fn folds(&self, of: u32, seed: u64, keys: Option<&Keys>) -> Result<Vec<(Self, Self)>> {
        let made = folds(&self.keyed(keys), "runs", of, seed)?;
        let pair = |(fold, (others, own)): (u32, Fold<u32>)| {
            let ids = self.ids_of(&own);
            let step = |second| match keys {
                None => Step::Fold { of, seed, fold, second },
                Some(_) => Step::SplitRuns { ids: ids.clone(), second },
            };
            Ok((self.of_runs(others)?.after(step(false)), self.of_runs(own)?.after(step(true))))
        };
        (0..).zip(made).map(pair).collect()
    }

    /// Positions of the selected runs, with their keys.
    fn keyed(&self, keys: Option<&Keys>) -> Vec<(u32, u64)> {
        self.runs().iter().map(|run| (*run, key_of(keys, &self.pack().index().runs()[*run as usize]))).collect()
    }

    fn ids_of(&self, runs: &[u32]) -> Vec<u64> {
        let mut ids: Vec<u64> = runs.iter().map(|run| self.pack().index().runs()[*run as usize].id).collect();
        ids.sort_unstable();
        ids
    }
}
