//! The configuration of a stream -> the figures of its shuffle, from its first batches, which are planned without being fed:
//! reads how many positions games have, where nobody counted them, and how some of them ended.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{Reads, Sight, SightOptions};
use gristmill_format::encode::Provenance;

use super::figure::{self, Figure, Mean};
use super::rows::mates_within;

/// Rows of the batches that are sampled, and bounds on how many these are.
const ROWS: usize = 1 << 17;
const BATCHES: (usize, usize) = (16, 128);

/// The most games that are read for their classes.
const READ: usize = 4096;

/// Batches after which what a use gives is estimated by those that came.
const LONGEST: u64 = 4096;

/// What was measured.
pub(super) struct Measured {
    pub(super) figures: Vec<Figure>,
    /// Batches and rows that were sampled.
    pub(super) sample: (u64, u64),
    /// Rows of a batch.
    pub(super) batch: u64,
    /// Games that are drawn from at a time, and that there are.
    pub(super) window: (u64, u64),
    /// Positions that a use of a game gives, on average.
    pub(super) uses: f64,
    /// Whether the stream ended within the sample.
    pub(super) ended: bool,
}

/// The same stream over the files that there are, of all ranks, leaving no trace.
pub(super) fn planned(config: &DataLoaderConfig) -> DataLoaderConfig {
    let mut config = DataLoaderConfig {
        seed: Some(config.seed.unwrap_or(0)),
        journal: None,
        replay: false,
        ledger: None,
        quarantine: None,
        rank: None,
        world_size: None,
        skip: Vec::new(),
        ..config.clone()
    };
    config.stage.iter_mut().filter_map(|stage| stage.file_path_provider.as_mut()).for_each(|files| {
        files.watch = Some(false);
    });
    config
}

/// Measures the first batches of an output of a stream as [`planned`].
///
/// Errors: as [`Sight::new`] and [`Sight::next_batch`].
pub(super) fn measure(config: &DataLoaderConfig, output: &str, goes_on: &mut dyn FnMut() -> bool) -> Result<Measured> {
    let options = SightOptions { output: output.to_owned(), first: 0, reads: Reads::Uncounted };
    let sight = Sight::new(config, None, &options)?;
    let (mut batches, mut wanted) = (Vec::<Vec<Provenance>>::new(), BATCHES.0);
    let mut flow = Flow::default();
    while batches.len() < wanted {
        let Some(seen) = sight.next_batch(goes_on)? else { break };
        flow.add(seen.rows.len(), sight.draws());
        wanted = (ROWS / seen.rows.len().max(1)).clamp(BATCHES.0, BATCHES.1);
        batches.push(seen.rows);
    }
    let ended = batches.len() < wanted;
    let balance = balance(&sight, &batches, goes_on)?;
    // Where a reservoir took all there is before the first batch, the end says what it holds.
    while !ended && !flow.is_steady() && flow.batches < LONGEST {
        let Some(seen) = sight.next_batch(goes_on)? else { break };
        flow.add(seen.rows.len(), sight.draws());
    }
    let mut measured = of_batches(&batches, sight.window(), flow.uses(), ended);
    measured.figures.extend(balance);
    Ok(measured)
}

/// Rows that came, and draws that were made for them.
#[derive(Debug, Default)]
struct Flow {
    batches: u64,
    rows: u64,
    draws: u64,
    /// Rows and draws up to the first batch.
    first: (u64, u64),
}

impl Flow {
    fn add(&mut self, rows: usize, draws: u64) {
        self.batches += 1;
        self.rows += rows as u64;
        self.draws = draws;
        if self.batches == 1 {
            self.first = (self.rows, draws);
        }
    }

    /// Whether games were drawn for batches behind the first: a full reservoir then takes a row for each that it gives.
    fn is_steady(&self) -> bool {
        self.draws > self.first.1
    }

    /// Positions that a use of a game gives.
    fn uses(&self) -> f64 {
        let (rows, draws) = if self.is_steady() {
            (self.rows - self.first.0, self.draws - self.first.1)
        } else {
            (self.rows, self.draws)
        };
        rows as f64 / draws.max(1) as f64
    }
}

fn of_batches(batches: &[Vec<Provenance>], (games, there): (u64, u64), uses: f64, ended: bool) -> Measured {
    let rows: usize = batches.iter().map(Vec::len).sum();
    let batch = batches.first().map_or(0, Vec::len);
    let seen: BTreeSet<(u64, u32)> = batches.iter().flatten().map(|row| (row.source, row.chunk)).collect();
    let games = games.max(seen.len() as u64).min(there.max(seen.len() as u64));
    let uses = uses.max(1.0);
    // Any row of the window is as likely as any other: each of the others is of its game with one chance in the number of games.
    let met = |size: usize| (size.max(1) - 1) as f64 / games.max(1) as f64;
    let mixed = games as f64 * uses;
    let mut mean = Mean::default();
    for rows in batches.iter().filter(|rows| rows.len() > 1) {
        let games: Vec<(u64, u32)> = rows.iter().map(|row| (row.source, row.chunk)).collect();
        mean.add(mates_within(&games));
    }
    let stored = (uses - 1.0).min(batch as f64);
    let mut figures = vec![figure::same_game(&mean, met(batch), stored)];
    // Half a pass of the window: beyond it other uses of the same games come.
    let near: Vec<Provenance> = batches.iter().flatten().copied().take((mixed / 2.0) as usize).collect();
    figures.extend(figure::neighbours(distances(&near), near.len() as u64, batch as u64));
    figures.extend(age(batches, games));
    if there > games {
        figures.push(figure::window(games, batch as u64));
    }
    let sample = (batches.len() as u64, rows as u64);
    Measured { figures, sample, batch: batch as u64, window: (games, there), uses, ended }
}

/// How evenly the classes of games fall on the first batches. Reads each game of these batches, and stops before a batch that
/// would bring too many games. The stream passes over games that cannot be read; here they have no class.
///
/// Errors: `Stopped` where `goes_on` says no.
fn balance(sight: &Sight, batches: &[Vec<Provenance>], goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Figure>> {
    let mut known: BTreeMap<(u64, u32), Option<String>> = BTreeMap::new();
    let (mut numbers, mut counts) = (BTreeMap::<String, usize>::new(), Vec::<BTreeMap<usize, u64>>::new());
    for rows in batches {
        let new: BTreeSet<_> = rows.iter().map(|row| (row.source, row.chunk)).collect();
        if known.len() + new.iter().filter(|game| !known.contains_key(game)).count() > READ {
            break;
        }
        let mut count = BTreeMap::new();
        for row in rows {
            let class = match known.entry((row.source, row.chunk)) {
                Entry::Occupied(class) => class.into_mut(),
                Entry::Vacant(_) if !goes_on() => return Err(Error::Stopped),
                Entry::Vacant(vacant) => {
                    let class = sight.class(*row).ok().flatten();
                    vacant.insert(class.map(|class| format!("{class:?}")))
                }
            };
            let Some(class) = class else { continue };
            let next = numbers.len();
            *count.entry(*numbers.entry(class.clone()).or_insert(next)).or_default() += 1;
        }
        counts.push(count);
    }
    let counts: Vec<Vec<u64>> = counts
        .iter()
        .map(|count| (0..numbers.len()).map(|class| count.get(&class).copied().unwrap_or(0)).collect())
        .collect();
    Ok(figure::balance(&counts, u64::MAX))
}

/// How many games of the window are newer than the game of a drawn row, on average.
fn age(batches: &[Vec<Provenance>], games: u64) -> Option<Figure> {
    // Files are numbered in the order in which they arrived, and games in the order of their file.
    let seen: BTreeSet<(u64, u32)> = batches.iter().flatten().map(|row| (row.source, row.chunk)).collect();
    let order: BTreeMap<(u64, u32), usize> =
        seen.iter().rev().enumerate().map(|(newer, game)| (*game, newer)).collect();
    let (mut mean, most) = (Mean::default(), seen.len().max(2) as f64 - 1.0);
    for rows in batches {
        let newer: usize = rows.iter().map(|row| order[&(row.source, row.chunk)]).sum();
        mean.add(newer as f64 / most / rows.len().max(1) as f64);
    }
    figure::age(&mean, seen.len(), games)
}

/// Rows between those of one game that follow each other in it, among the sampled ones.
fn distances(rows: &[Provenance]) -> Vec<u64> {
    let rows = rows.iter().zip(0u64..);
    let mut placed: Vec<_> = rows.map(|(row, at)| (row.source, row.chunk, row.frame, at)).collect();
    placed.sort_unstable();
    let pairs = placed.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
    pairs.map(|pair| pair[0].3.abs_diff(pair[1].3)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(chunk: u32, frame: u32) -> Provenance {
        Provenance { source: 1, chunk, frame }
    }

    #[test]
    fn distances_are_those_of_neighbours_of_a_game() {
        let rows = [row(0, 5), row(1, 0), row(0, 0), row(1, 9), row(0, 6)];
        let mut found = distances(&rows);
        found.sort_unstable();
        assert_eq!(found, [2, 2, 4]);
    }

    #[test]
    fn a_use_is_counted_where_the_reservoir_stays_full_or_by_the_end() {
        let flow = |batches: &[(usize, u64)]| {
            let mut flow = Flow::default();
            batches.iter().for_each(|(rows, draws)| flow.add(*rows, *draws));
            flow
        };
        // 100 draws filled a reservoir; from then on 10 rows need one.
        assert_eq!(flow(&[(10, 101), (10, 102), (10, 103)]).uses(), 10.0);
        let drained = flow(&[(10, 3), (10, 3), (10, 3)]);
        assert!(!drained.is_steady());
        assert_eq!(drained.uses(), 10.0);
    }
}
