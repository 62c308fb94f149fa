//! The plan of a loader of rows -> the figures of its shuffle, from a sample of its batches and of its rows. Reads no row,
//! only which game each is of; memory follows the sample.

use std::collections::BTreeMap;

use gristmill_engine::config::LastBatch;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{Lookup, Turn};
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::selection::Selection;
use gristmill_engine::sql::SqlValue;
use gristmill_engine::store::place::is_local;

use super::fetching::metadata_bytes;
use super::figure::{self, Figure, Mean};
use crate::selected;

/// Rows of the batches that are sampled, and the most batches.
const ROWS: u64 = 1 << 17;
const BATCHES: u64 = 128;

/// Rows of which it is sampled where they stand in a pass.
const TURNS: u64 = 4096;

/// Parts of the data and of a pass that places are counted by.
const SIDE: u64 = 8;

/// Rows of the batches whose classes the database says.
const CLASSED: usize = 1 << 15;

/// The longest database that is fetched for classes alone.
const FAR_CLASSES: u64 = 16 << 20;

/// A game: the number of its pack, and its id there.
type Game = (usize, u64);

/// What was measured.
pub(super) struct Measured {
    pub(super) figures: Vec<Figure>,
    /// Batches and rows that were sampled.
    pub(super) sample: (u64, u64),
    /// Share of the sampled rows that are of each pack.
    pub(super) shares: Vec<f64>,
    /// Mean number of rows of a row's game.
    pub(super) mates: f64,
}

/// Measures one pass of a plan over packs, which lie one after another; without packs only by places.
///
/// Errors: `Format` of packs; `Stopped` where `goes_on` says no.
pub(super) fn measure(lookup: &Lookup, packs: &[Selection], goes_on: &mut dyn FnMut() -> bool) -> Result<Measured> {
    let lookup = lookup.as_rank(None, LastBatch::Keep, (0, 1))?;
    let batches = sampled(&lookup, goes_on)?;
    let sample = (batches.len() as u64, batches.iter().map(|rows| rows.len() as u64).sum());
    let mut measured = Measured { figures: Vec::new(), sample, shares: Vec::new(), mates: 1.0 };
    let view = Games { lookup: &lookup, packs };
    if !packs.is_empty() {
        let games: Vec<Vec<Game>> = batches.iter().map(|rows| view.of_rows(rows)).collect::<Result<_>>()?;
        measured.shares = shares(&games, packs.len());
        let (perfect, stored, mates) = view.expected(&batches, &games, &measured.shares)?;
        measured.mates = mates;
        let mut mean = Mean::default();
        games.iter().filter(|games| games.len() > 1).for_each(|games| mean.add(mates_within(games)));
        measured.figures.push(figure::same_game(&mean, perfect, stored));
        measured.figures.extend(view.classes(&games)?);
    }
    measured.figures.extend(match (lookup.epoch(), lookup.is_drawn()) {
        (Some(fed), _) => view.turns(fed, goes_on)?,
        (None, false) => view.places(&batches).into_iter().collect(),
        (None, true) => Vec::new(),
    });
    Ok(measured)
}

/// Other rows of its game that a row meets in its batch, of a sample of the batches of a plan.
pub(super) fn same_game_of(lookup: &Lookup, packs: &[Selection], goes_on: &mut dyn FnMut() -> bool) -> Result<Figure> {
    let lookup = lookup.as_rank(None, LastBatch::Keep, (0, 1))?;
    let (batches, view) = (sampled(&lookup, goes_on)?, Games { lookup: &lookup, packs });
    let games: Vec<Vec<Game>> = batches.iter().map(|rows| view.of_rows(rows)).collect::<Result<_>>()?;
    let (perfect, stored, _) = view.expected(&batches, &games, &shares(&games, packs.len()))?;
    let mut mean = Mean::default();
    games.iter().filter(|games| games.len() > 1).for_each(|games| mean.add(mates_within(games)));
    Ok(figure::same_game(&mean, perfect, stored))
}

/// Rows of some batches, evenly over a pass.
fn sampled(lookup: &Lookup, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<Vec<u64>>> {
    let size = lookup.config().batch_size as u64;
    let all = lookup.pass_rows().div_ceil(size).max(1);
    let some = (ROWS / size).clamp(1, BATCHES).max(8).min(all);
    (0..some)
        .map(|i| match goes_on() {
            true => lookup.batch(i * all / some),
            false => Err(Error::Stopped),
        })
        .collect()
}

/// The share of each pack in the rows of batches.
fn shares(batches: &[Vec<Game>], packs: usize) -> Vec<f64> {
    let mut counts = vec![0u64; packs];
    batches.iter().flatten().for_each(|(pack, _)| counts[*pack] += 1);
    let all = counts.iter().sum::<u64>().max(1) as f64;
    counts.into_iter().map(|count| count as f64 / all).collect()
}

/// Other rows of its game that a row of a batch meets there, on average.
pub(super) fn mates_within<G: Ord + Clone>(games: &[G]) -> f64 {
    let mut sorted = games.to_vec();
    sorted.sort_unstable();
    let met: u64 = sorted.chunk_by(|a, b| a == b).map(|same| (same.len() * (same.len() - 1)) as u64).sum();
    met as f64 / games.len().max(1) as f64
}

/// Which games rows of the table are of.
struct Games<'a> {
    lookup: &'a Lookup,
    packs: &'a [Selection],
}

impl Games<'_> {
    fn of_rows(&self, rows: &[u64]) -> Result<Vec<Game>> {
        rows.iter().map(|row| self.game(*row)).collect()
    }

    fn game(&self, row: u64) -> Result<Game> {
        let (pack, row) = selected::pack_of(self.packs, row);
        Ok((pack, self.packs[pack].pack().place(row)?.game))
    }

    /// How many rows of the game of a row are fed, and how many of its pack.
    fn fed_of(&self, (pack, game): Game) -> (u64, u64) {
        let first: u64 = self.packs[..pack].iter().map(|before| before.pack().total()).sum();
        let (table, fed) = (self.packs[pack].pack(), self.lookup.fed());
        let within = |from: u64, to: u64| fed.rank(first + to) - fed.rank(first + from);
        let stretches = table.stretches(game);
        (stretches.into_iter().map(|(from, to)| within(from, to)).sum(), within(0, table.total()))
    }

    /// Of a row: how many of its game it meets in a batch of a perfect shuffle and in one of the order of the data, and how
    /// many there are.
    fn expected(&self, batches: &[Vec<u64>], games: &[Vec<Game>], shares: &[f64]) -> Result<(f64, f64, f64)> {
        let all: usize = batches.iter().map(Vec::len).sum();
        let step = (all / TURNS as usize).max(1);
        let most = batches.iter().map(Vec::len).max().unwrap_or(1) as f64 - 1.0;
        let [mut same, mut stored, mut mates, mut others] = [Mean::default(); 4];
        for game in games.iter().flatten().step_by(step) {
            let (of_game, of_pack) = self.fed_of(*game);
            let rest = of_game.saturating_sub(1) as f64;
            let share = if self.packs.len() > 1 { shares[game.0] } else { 1.0 };
            same.add(share * rest / of_pack.saturating_sub(1).max(1) as f64);
            stored.add(rest.min(most));
            mates.add(of_game as f64);
        }
        batches.iter().filter(|rows| rows.len() > 1).for_each(|rows| others.add(rows.len() as f64 - 1.0));
        let perfect = if self.lookup.is_drawn() { across(games) } else { others.value() * same.value() };
        Ok((perfect, stored.value(), mates.value()))
    }

    /// Where some rows stand in a pass: how far neighbours of a game are apart, and what places in the data say of it.
    fn turns(&self, fed: &Intervals, goes_on: &mut dyn FnMut() -> bool) -> Result<Vec<Figure>> {
        let (rows, size) = (fed.len(), self.lookup.config().batch_size as u64);
        let some = rows.min(TURNS);
        let (mut distances, mut counts) = (Vec::new(), vec![0u64; (SIDE * SIDE) as usize]);
        for i in 0..some {
            if i % 256 == 0 && !goes_on() {
                return Err(Error::Stopped);
            }
            let rank = i * rows / some;
            let Some(place) = self.place(fed.row(rank), size)? else { continue };
            counts[(rank * SIDE / rows * SIDE + (place * SIDE / rows).min(SIDE - 1)) as usize] += 1;
            if self.packs.is_empty() || rank + 1 == rows {
                continue;
            }
            let next = fed.row(rank + 1);
            if self.game(fed.row(rank))? == self.game(next)? {
                distances.extend(self.place(next, size)?.map(|other| place.abs_diff(other)));
            }
        }
        let neighbours = figure::neighbours(distances, rows, size);
        Ok(neighbours.into_iter().chain(figure::places(&counts, SIDE as usize)).collect())
    }

    /// What places in the data say of places in a pass, by the rows of batches that lie evenly over it: for orders that lead
    /// from no row to its place.
    fn places(&self, batches: &[Vec<u64>]) -> Option<Figure> {
        let (fed, some) = (self.lookup.fed(), batches.len() as u64);
        let mut counts = vec![0u64; (SIDE * SIDE) as usize];
        for (number, rows) in (0..some).zip(batches) {
            let place = number * SIDE / some;
            rows.iter().for_each(|row| counts[(fed.rank(*row) * SIDE / fed.len() * SIDE + place) as usize] += 1);
        }
        if some < SIDE { None } else { figure::places(&counts, SIDE as usize) }
    }

    /// The place of a row in the first pass.
    fn place(&self, row: u64, size: u64) -> Result<Option<u64>> {
        Ok(self.lookup.turns(row, 0)?.into_iter().find_map(|turn| match turn {
            Turn::Batch { batch, row } => Some(batch * size + row),
            Turn::Dropped => None,
        }))
    }

    /// How evenly classes of games fall on batches, where all packs have the same ones.
    fn classes(&self, batches: &[Vec<Game>]) -> Result<Option<Figure>> {
        let columns: Vec<_> = self.packs.iter().map(|selected| selected.pack().class_column()).collect();
        if columns.iter().any(|column| column.is_none() || *column != columns[0]) {
            return Ok(None);
        }
        for pack in self.packs {
            let folder = pack.pack().folder();
            if !is_local(folder) && metadata_bytes(folder)? > FAR_CLASSES {
                return Ok(None);
            }
        }
        let mut taken = 0;
        let some = batches.iter().take_while(|games| {
            taken += games.len();
            taken <= CLASSED.max(8 * games.len())
        });
        let some: Vec<&Vec<Game>> = some.collect();
        let mut games: Vec<Game> = some.iter().flat_map(|games| games.iter().copied()).collect();
        games.sort_unstable();
        games.dedup();
        let mut classes: Vec<String> = Vec::with_capacity(games.len());
        for of_pack in games.chunk_by(|a, b| a.0 == b.0) {
            let ids: Vec<u64> = of_pack.iter().map(|(_, id)| *id).collect();
            let Some(values) = self.packs[of_pack[0].0].classes(&ids)? else { return Ok(None) };
            classes.extend(values.iter().map(named));
        }
        let mut numbers = BTreeMap::new();
        for class in &classes {
            let next = numbers.len();
            numbers.entry(class.clone()).or_insert(next);
        }
        let class = |game: &Game| games.binary_search(game).ok().map_or(0, |at| numbers[&classes[at]]);
        let mut counts = vec![vec![0u64; numbers.len()]; some.len()];
        for (batch, counts) in some.iter().zip(&mut counts) {
            batch.iter().for_each(|game| counts[class(game)] += 1);
        }
        let rows = if self.lookup.epoch().is_some() { self.lookup.pass_rows() } else { u64::MAX };
        Ok(figure::balance(&counts, rows))
    }
}

/// What a class is called.
fn named(value: &SqlValue) -> String {
    format!("{value:?}")
}

/// Rows of one game in a batch of draws that know nothing of each other: by the pairs of rows of different batches.
fn across(batches: &[Vec<Game>]) -> f64 {
    let pairs = |games: &[Game]| mates_within(games) * games.len() as f64;
    let all: Vec<Game> = batches.iter().flatten().copied().collect();
    let within: f64 = batches.iter().map(|games| pairs(games)).sum();
    let inside: f64 = batches.iter().map(|games| (games.len() * games.len().saturating_sub(1)) as f64).sum();
    let total = (all.len() * all.len().saturating_sub(1)) as f64;
    let size = all.len() as f64 / batches.len().max(1) as f64;
    if total <= inside { 0.0 } else { (size - 1.0).max(0.0) * (pairs(&all) - within) / (total - inside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_meet_the_others_of_their_game() {
        assert_eq!(mates_within(&[1, 2, 3]), 0.0);
        assert_eq!(mates_within(&[1, 1, 1, 2]), 6.0 / 4.0);
        assert_eq!(mates_within::<u64>(&[]), 0.0);
    }

    #[test]
    fn draws_are_held_against_pairs_of_different_batches() {
        let batch = |games: [u64; 2]| games.map(|game| (0, game)).to_vec();
        assert_eq!(across(&[batch([1, 2]), batch([1, 2])]), 4.0 / 8.0);
        assert_eq!(across(&[batch([1, 1])]), 0.0, "one batch has no others");
    }
}
