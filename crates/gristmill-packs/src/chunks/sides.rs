//! A selection of games or trajectories -> its sides: two, three, or folds, by the published hash of their records, or by keys that
//! are given. No game is on two sides.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::table::{Step, ThreeWay};
use gristmill_stages::stage::split::Side;

use super::select::GameSelection;
use crate::pack::select::SHARES;
use crate::pack::sides::{Fold, Keys, folds, three};

impl GameSelection {
    /// Two sides, by game: about the share `val` on the second. The side of a game depends on `seed` and its records alone:
    /// the same in every pack that it is in, and repeated games are on one side.
    ///
    /// Errors: `Config` in `val` for a share outside 0..1, and when no game falls on that side; `Format` for the database.
    pub fn split(&self, val: f64, seed: u64) -> Result<(Self, Self)> {
        let (first, second) = self.sides(val, seed, None)?;
        let step = |second| Step::Split { val, seed, second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// The same with a key for each game in place of the hash of its records: games of one key are on one side.
    ///
    /// Errors: `Config`, as [`GameSelection::split`].
    pub fn split_by_keys(&self, val: f64, seed: u64, keys: &Keys) -> Result<(Self, Self)> {
        let (first, second) = self.sides(val, seed, Some(keys))?;
        // Where the keys came from is not known here; which games they put where is.
        let ids = second.games().to_vec();
        let step = |second| Step::SplitRuns { ids: ids.clone(), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// Three sides, by game: train, about the share `val`, and about the share `test`; by the hash of their records, or by `keys`.
    /// The val side is that of [`GameSelection::split`].
    ///
    /// Errors: `Config` in `val` or `test` for shares that are none or leave nothing for training, and when no game falls on a
    /// side; `Format` for the database.
    pub fn split_three(&self, val: f64, test: f64, seed: u64, keys: Option<&Keys>) -> Result<[Self; 3]> {
        let [train, second, third] = three(&self.keyed(keys)?, "games", val, test, seed)?;
        let mut outside: Vec<u64> = second.iter().chain(&third).copied().collect();
        outside.sort_unstable();
        Ok([(train, ThreeWay::Train), (second, ThreeWay::Val), (third, ThreeWay::Test)].map(|(games, side)| {
            let step = match (keys, side) {
                (None, _) => Step::SplitThree { val, test, seed, side },
                (Some(_), ThreeWay::Train) => Step::SplitRuns { ids: outside.clone(), second: false },
                (Some(_), _) => Step::SplitRuns { ids: games.clone(), second: true },
            };
            self.of(games).after(step)
        }))
    }

    /// `of` pairs of sides, by game: in each, all games but those of a fold, and those. Each game is in one fold.
    ///
    /// Errors: `Config` in `folds` for fewer than 2 or more than 1000, and for a fold that no game falls into; `Format` for the
    /// database.
    pub fn folds(&self, of: u32, seed: u64, keys: Option<&Keys>) -> Result<Vec<(Self, Self)>> {
        let made = folds(&self.keyed(keys)?, "games", of, seed)?;
        let pair = |(fold, (others, own)): (u32, Fold<u64>)| {
            let step = |second| match keys {
                None => Step::Fold { of, seed, fold, second },
                Some(_) => Step::SplitRuns { ids: own.clone(), second },
            };
            (self.of(others).after(step(false)), self.of(own.clone()).after(step(true)))
        };
        Ok((0..).zip(made).map(pair).collect())
    }

    /// The selected games with what stands for each in the hash.
    fn keyed(&self, keys: Option<&Keys>) -> Result<Vec<(u64, u64)>> {
        if let Some(keys) = keys {
            return Ok(self.games().iter().filter_map(|game| Some((*game, *keys.get(game)?))).collect());
        }
        let mut keyed = Vec::with_capacity(self.games().len());
        self.database()?.each(&mut |game| {
            if self.games().binary_search(&game.id).is_ok() {
                keyed.push((game.id, game.content as u64));
            }
            Ok(())
        })?;
        Ok(keyed)
    }

    fn sides(&self, val: f64, seed: u64, keys: Option<&Keys>) -> Result<(Self, Self)> {
        let shares = (0.0..1.0).contains(&val).then_some((val * SHARES as f64) as u64);
        let side = shares.and_then(|share| Side::new(&[SHARES - share, share], 1));
        let (Some(side), Some(share)) = (side, shares) else {
            return Err(Error::config("val", format!("{val}, expected a share of the games: 0 or more, below 1")));
        };
        let key = format!("split {seed}");
        let (second, first): (Vec<_>, Vec<_>) =
            self.keyed(keys)?.into_iter().partition(|(_, content)| side.holds(&key, *content));
        if second.is_empty() && share > 0 {
            let games = first.len();
            let text =
                format!("none of the {games} games falls on the val side at {val}: raise it, or take another seed");
            return Err(Error::config("val", text));
        }
        let of = |side: Vec<(u64, u64)>| self.of(side.into_iter().map(|(game, _)| game).collect());
        Ok((of(first), of(second)))
    }
}
