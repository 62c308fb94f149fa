//! A selection of rows -> its runs dealt to three sides, or to folds: by the published hash, or by keys that are given.
//! No run is on two sides; the val side is that of a split in two with the same share and seed.

use std::collections::HashMap;

use super::metadata::Run;
use super::select::{SHARES, Selection};
use crate::error::{Error, Result};
use crate::stage::split::Side;
use crate::table::{Step, ThreeWay};

/// Most folds.
const MOST_FOLDS: u32 = 1000;

/// For each run, by its id, what stands for it in the hash; runs of one key are on one side.
pub type Keys = HashMap<u64, u64>;

fn key_of(keys: Option<&Keys>, run: &Run) -> u64 {
    match keys {
        Some(keys) => keys.get(&run.id).copied().unwrap_or(run.id),
        None => run.seed.unwrap_or(run.id),
    }
}

impl Selection {
    /// Three sides, by run: train, about the share `val`, and about the share `test`, as [`Selection::split`] has two; or with
    /// other keys, as [`Selection::split_by_keys`].
    ///
    /// Errors: `Config` in `val` or `test` for shares that are none or leave nothing for training, and when no run falls on a
    /// side.
    pub fn split_three(&self, val: f64, test: f64, seed: u64, keys: Option<&Keys>) -> Result<[Self; 3]> {
        for (name, share) in [("val", val), ("test", test)] {
            if !(0.0..1.0).contains(&share) {
                return Err(Error::config(name, format!("{share}, expected a share of the runs: 0 or more, below 1")));
            }
        }
        let [of_val, of_test] = [val, test].map(|share| (share * SHARES as f64) as u64);
        let Some(left) = SHARES.checked_sub(of_val + of_test).filter(|left| *left > 0) else {
            return Err(Error::config("test", format!("val {val} and test {test} leave nothing for training")));
        };
        // The val side last: it is the same as without a test side.
        let weights = [left, of_test, of_val];
        let sides = self.dealt(&weights, seed, keys)?;
        for (name, share, side) in [("val", val, &sides[2]), ("test", test, &sides[1])] {
            if side.is_empty() && share > 0.0 {
                let text = format!(
                    "none of the {} runs falls on the {name} side at {share}: raise it, or take another seed",
                    self.run_ids().len()
                );
                return Err(Error::config(name, text));
            }
        }
        let [train, third, second] = <[Vec<u32>; 3]>::try_from(sides).unwrap_or_default();
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
        if !(2..=MOST_FOLDS).contains(&of) {
            return Err(Error::config("folds", format!("{of}, expected 2 to {MOST_FOLDS}")));
        }
        let dealt = self.dealt(&vec![1; of as usize], seed, keys)?;
        let mut made = Vec::new();
        for (fold, runs) in (0..).zip(&dealt) {
            if runs.is_empty() {
                let text = format!(
                    "none of the {} runs falls into fold {fold} of {of}: take fewer, or another seed",
                    self.run_ids().len()
                );
                return Err(Error::config("folds", text));
            }
            let mut others: Vec<u32> = dealt.iter().filter(|other| *other != runs).flatten().copied().collect();
            others.sort_unstable();
            let ids = self.ids_of(runs);
            let step = |second| match keys {
                None => Step::Fold { of, seed, fold, second },
                Some(_) => Step::SplitRuns { ids: ids.clone(), second },
            };
            made.push((self.of_runs(others)?.after(step(false)), self.of_runs(runs.clone())?.after(step(true))));
        }
        Ok(made)
    }

    /// Positions of the selected runs, by side.
    fn dealt(&self, weights: &[u64], seed: u64, keys: Option<&Keys>) -> Result<Vec<Vec<u32>>> {
        let sides: Option<Vec<Side>> = (0..weights.len()).map(|i| Side::new(weights, i)).collect();
        let sides = sides.ok_or_else(|| Error::config("val", "these are no shares"))?;
        let (key, mut dealt) = (format!("split {seed}"), vec![Vec::new(); sides.len()]);
        for &run in self.runs() {
            let index = key_of(keys, &self.pack().index().runs()[run as usize]);
            if let Some(side) = sides.iter().position(|side| side.holds(&key, index)) {
                dealt[side].push(run);
            }
        }
        Ok(dealt)
    }

    fn ids_of(&self, runs: &[u32]) -> Vec<u64> {
        let mut ids: Vec<u64> = runs.iter().map(|run| self.pack().index().runs()[*run as usize].id).collect();
        ids.sort_unstable();
        ids
    }
}
