//! A selection -> its sides: two, three, or folds, by the published hash of each game, by keys, by SQL or by ids.
//! No game is on two sides; the val side of three is that of a split in two with the same share and seed.

use std::collections::HashMap;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::sql::SqlValue;
use gristmill_runtime::table::{Param, Step, ThreeWay};
use gristmill_stages::stage::split::Side;

use super::Selection;

/// Most folds.
pub const MOST_FOLDS: u32 = 1000;

/// Shares of a split are whole numbers of this many.
const SHARES: u64 = 1 << 53;

/// For each game, by its id, what stands for it in the hash; games of one key are on one side.
pub type Keys = HashMap<u64, u64>;

impl Selection {
    /// Two sides, by game: about the share `val` of the games on the second. The side of a game depends on `seed` and the
    /// game alone (its seed, the hash of its records): the same in every pack that the game is in, and games that occur twice
    /// are on one side.
    ///
    /// Errors: `Config` in `val` for a share outside 0..1, and when no game falls on that side; `Format` for the database.
    pub fn split(&self, val: f64, seed: u64) -> Result<(Self, Self)> {
        let (first, second) = self.two(val, seed, None)?;
        let step = |second| Step::Split { val, seed, second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// The same with another key for each game: games of one key are on one side.
    ///
    /// Errors: `Config`, as [`Selection::split`].
    pub fn split_by_keys(&self, val: f64, seed: u64, keys: &Keys) -> Result<(Self, Self)> {
        // Where the keys came from is not known here; which games they put where is.
        Ok(by_ids(self.two(val, seed, Some(keys))?))
    }

    fn two(&self, val: f64, seed: u64, keys: Option<&Keys>) -> Result<(Self, Self)> {
        let [first, second] = self.dealt([("val", val)], seed, keys)?;
        Ok((self.of_games(first)?, self.of_games(second)?))
    }

    /// Three sides, by game: train, about the share `val`, and about the share `test`, as [`Selection::split`] has two; or with
    /// other keys, as [`Selection::split_by_keys`].
    ///
    /// Errors: `Config` in `val` or `test` for shares that are none or leave nothing for training, and when no game falls on a
    /// side; `Format` for the database.
    pub fn split_three(&self, val: f64, test: f64, seed: u64, keys: Option<&Keys>) -> Result<[Self; 3]> {
        let [train, second, third] = self.dealt([("val", val), ("test", test)], seed, keys)?;
        let mut outside = [&second[..], &third].concat();
        outside.sort_unstable();
        let side = |games: Vec<u64>, side| {
            let step = match (keys, side) {
                (None, _) => Step::SplitThree { val, test, seed, side },
                (Some(_), ThreeWay::Train) => Step::SplitRuns { ids: outside.clone(), second: false },
                (Some(_), _) => Step::SplitRuns { ids: games.clone(), second: true },
            };
            Ok::<_, Error>(self.of_games(games)?.after(step))
        };
        Ok([side(train, ThreeWay::Train)?, side(second, ThreeWay::Val)?, side(third, ThreeWay::Test)?])
    }

    /// `of` pairs of sides, by game: in each, all games but those of a fold, and those. Each game is in one fold.
    ///
    /// Errors: `Config` in `folds` for fewer than 2 or more than 1000, and for a fold that no game falls into; `Format` for the
    /// database.
    pub fn folds(&self, of: u32, seed: u64, keys: Option<&Keys>) -> Result<Vec<(Self, Self)>> {
        if !(2..=MOST_FOLDS).contains(&of) {
            return Err(Error::config("folds", format!("{of}, expected 2 to {MOST_FOLDS}")));
        }
        let made = deal(&self.keyed(keys)?, &vec![1; of as usize], seed)?;
        if let Some(fold) = made.iter().position(Vec::is_empty) {
            let (count, what) = (self.games.len(), self.pack.games_table());
            let text =
                format!("none of the {count} {what} falls into fold {fold} of {of}: take fewer, or another seed");
            return Err(Error::config("folds", text));
        }
        let pair = |(fold, own): (u32, Vec<u64>)| {
            let (first, second) = self.apart(self.of_games(own)?)?;
            if keys.is_some() {
                return Ok(by_ids((first, second)));
            }
            let step = |second| Step::Fold { of, seed, fold, second };
            Ok((first.after(step(false)), second.after(step(true))))
        };
        (0..).zip(made).map(pair).collect()
    }

    /// Two sides, by game: on the second those that `sql` names, as in [`Selection::query`].
    ///
    /// Errors: as [`Selection::query`].
    pub fn split_by(&self, sql: &str, params: &[SqlValue]) -> Result<(Self, Self)> {
        let (first, second) = self.apart(self.named(sql, params)?)?;
        let step = |second| Step::SplitWhere { sql: sql.to_owned(), params: Param::of(params), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    /// Two sides, by game: on the second those of these ids.
    ///
    /// Errors: `Format` as [`PackTable::frames_of`](crate::pack_table::PackTable::frames_of).
    pub fn split_ids(&self, ids: Vec<u64>) -> Result<(Self, Self)> {
        let (first, second) = self.apart(self.of_ids(ids.clone())?)?;
        let step = |second| Step::SplitRuns { ids: ids.clone(), second };
        Ok((first.after(step(false)), second.after(step(true))))
    }

    fn apart(&self, second: Self) -> Result<(Self, Self)> {
        let left = self.games.iter().filter(|game| second.games.binary_search(game).is_err());
        Ok((self.of_games(left.copied().collect())?, second))
    }

    /// The selected games with what stands for each in the hash.
    fn keyed(&self, keys: Option<&Keys>) -> Result<Vec<(u64, u64)>> {
        let key =
            |keys: &Keys| self.games.iter().map(|game| (*game, keys.get(game).copied().unwrap_or(*game))).collect();
        keys.map_or_else(|| self.pack.split_keys(&self.games), |keys| Ok(key(keys)))
    }

    /// The games that remain for training, and those of each of `N - 1` shares.
    fn dealt<const N: usize, const SIDES: usize>(
        &self,
        shares: [(&str, f64); N],
        seed: u64,
        keys: Option<&Keys>,
    ) -> Result<[Vec<u64>; SIDES]> {
        let what = self.pack.games_table();
        if let Some((name, share)) = shares.iter().find(|(_, share)| !(0.0..1.0).contains(share)) {
            return Err(Error::config(name, format!("{share}, expected a share of the {what}: 0 or more, below 1")));
        }
        let parts = shares.map(|(_, share)| (share * SHARES as f64) as u64);
        let Some(left) = SHARES.checked_sub(parts.iter().sum()).filter(|left| *left > 0) else {
            let said = shares.map(|(name, share)| format!("{name} {share}")).join(" and ");
            return Err(Error::config(shares[N - 1].0, format!("{said} leave nothing for training")));
        };
        // The val side last: it is the same as without a test side.
        let weights: Vec<u64> = [left].into_iter().chain(parts.into_iter().rev()).collect();
        let keyed = self.keyed(keys)?;
        let mut sides = deal(&keyed, &weights, seed)?;
        sides[1..].reverse();
        for (((name, share), part), side) in shares.iter().zip(parts).zip(&sides[1..]) {
            if side.is_empty() && part > 0 {
                let count = keyed.len();
                let text = format!(
                    "none of the {count} {what} falls on the {name} side at {share}: raise it, or take another seed"
                );
                return Err(Error::config(name, text));
            }
        }
        sides.try_into().map_err(|_| Error::config("val", "a side too few"))
    }
}

/// The sides with what says which games are on them, whatever put them there.
fn by_ids((first, second): (Selection, Selection)) -> (Selection, Selection) {
    let ids = second.games.to_vec();
    let step = |second| Step::SplitRuns { ids: ids.clone(), second };
    (first.after(step(false)), second.after(step(true)))
}

/// Deals games, each with its key, to as many sides as there are weights.
fn deal(keyed: &[(u64, u64)], weights: &[u64], seed: u64) -> Result<Vec<Vec<u64>>> {
    let sides = Side::all(weights, None).map_err(|text| Error::config("val", text))?;
    let (key, mut dealt) = (format!("split {seed}"), vec![Vec::new(); sides.len()]);
    for (game, index) in keyed {
        if let Some(side) = sides.iter().position(|side| side.holds(&key, *index)) {
            dealt[side].push(*game);
        }
    }
    Ok(dealt)
}
