//! The sampling of a config over chunks that can be weighed -> the row of each draw: no chunk is decoded to be rejected.
//! Chances are those by which the pool of a stream accepts, with the largest weight of all in place of that so far.

use std::sync::{Arc, OnceLock};

use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Uniform, Weigher, total};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::table::{FrameTable, IndexInput, Pick, Weighed};
use gristmill_stages::config::{HanseForm, HanseSamplingConfig, IndexConfig, PositionChoice, Shuffle, View};
use gristmill_stages::stage::pool::Chance;
use gristmill_stages::stage::weighted::{Weighted, Weights};

use crate::pipeline::plan::acceptance::weigher;

/// The field of the config that all of this is about.
const FIELD: &str = "sampling";

/// Draws rows of a table by weight.
#[derive(Debug)]
pub(super) struct Sampler {
    games: Weighted,
    /// Weighs the rows of a chunk, where not each is as likely as any.
    rows_by: Option<Arc<dyn Weigher>>,
    /// What the rows of each chunk weigh, once it was drawn, where all together take little memory; else nothing.
    kept: Box<[OnceLock<Weights>]>,
    table: Arc<dyn FrameTable>,
    rows: Arc<Intervals>,
}

/// The weights of at most this many rows are kept in memory: 128 MiB of them.
const MOST_KEPT: u64 = 32 << 20;

/// Buffers of one task.
#[derive(Debug, Default)]
struct Scratch {
    chunk: Chunk,
    all: Vec<f32>,
    selected: Vec<f32>,
}

impl Sampler {
    /// What a config says about sampling over `rows` of the table of `input`; `None` where it says nothing.
    ///
    /// Errors: `Config` with the field; `Format`, with the file, for a chunk that cannot be weighed.
    pub(super) fn new(input: &IndexInput, rows: &Arc<Intervals>, config: &IndexConfig) -> Result<Option<Self>> {
        let Some(sampling) = &config.sampling else { return Ok(None) };
        if config.shuffle != Shuffle::Rows {
            return Err(Error::config(FIELD, "draws have no order of their own; leave `shuffle` as it is"));
        }
        if let Some(View::Trajectory { .. }) = config.view {
            return Err(Error::config(FIELD, "trajectories come each once; take windows, or leave the sampling out"));
        }
        let Some(weighed) = input.table.weighed() else {
            let text = "these rows come in no games that can be weighed; sample from a pack of whole games";
            return Err(Error::config(FIELD, text));
        };
        let frames = weigher(FIELD, sampling.position_sampling.as_ref())?;
        let (chance, chunks): (_, Arc<dyn Weigher>) = match chance(sampling)? {
            length @ Chance::Length { .. } => (length, Arc::new(Uniform(1.0))),
            weight => (weight, Arc::clone(&frames)),
        };
        let sizes = sizes(weighed, rows, &*chunks)?;
        let largest = sizes.iter().map(|(_, weight)| *weight).fold(0.0, f32::max);
        let kept = if rows.len() <= MOST_KEPT { sizes.len() } else { 0 };
        let games = Weighted::new(sizes.into_iter().map(|(rows, weight)| (rows, chance.of(weight, largest))));
        if games.total() <= 0.0 && !rows.is_empty() {
            return Err(Error::field(
                FIELD,
                "hanse_sampling_gamma",
                "no game has a chance that a number can hold; lower it",
            ));
        }
        let rows_by = (sampling.positions == PositionChoice::Weighted && frames.uniform().is_none()).then_some(frames);
        let kept = (0..if rows_by.is_some() { kept } else { 0 }).map(|_| OnceLock::new()).collect();
        Ok(Some(Sampler { games, rows_by, kept, table: Arc::clone(&input.table), rows: Arc::clone(rows) }))
    }

    /// Appends the rows of the draws of these numbers under a root seed.
    ///
    /// Errors: `Format`, with the file, for a chunk that cannot be weighed.
    pub(super) fn picks(&self, root: u64, numbers: impl Iterator<Item = u64>, picks: &mut Vec<Pick>) -> Result<()> {
        let key = Key::new(root, "weighted");
        let mut scratch = Scratch::default();
        for number in numbers {
            let mut drawn = self.games.draw(key, number);
            let place = match (&self.rows_by, self.table.weighed()) {
                (Some(weigher), Some(weighed)) => match self.kept.get(drawn.chunk).and_then(OnceLock::get) {
                    Some(weights) => drawn.by(weights),
                    None => {
                        weigh(weighed, &self.rows, (drawn.first, drawn.places), &**weigher, &mut scratch)?;
                        let weights = Weights::new(&scratch.selected);
                        let place = drawn.by(&weights);
                        if let Some(kept) = self.kept.get(drawn.chunk) {
                            let _ = kept.set(weights);
                        }
                        place
                    }
                },
                _ => drawn.any(),
            };
            picks.push(Pick { row: self.rows.row(place), bits: drawn.bits() });
        }
        Ok(())
    }
}

fn chance(sampling: &HanseSamplingConfig) -> Result<Chance> {
    let gamma = sampling.hanse_sampling_gamma;
    if !(gamma.is_finite() && gamma >= 0.0) {
        return Err(Error::field(FIELD, "hanse_sampling_gamma", "expected a number of at least 0"));
    }
    match (sampling.hanse_sampling_form, sampling.hanse_sampling_threshold) {
        (HanseForm::Weight, _) => Ok(Chance::Weight { gamma }),
        (HanseForm::Length, Some(threshold)) if threshold > 0 => Ok(Chance::Length { threshold, gamma }),
        (HanseForm::Length, _) => {
            let text = "the length form needs the frames of a game that has the full chance: at least 1";
            Err(Error::field(FIELD, "hanse_sampling_threshold", text))
        }
    }
}

/// Selected rows and weight of each chunk that has any, in order. Of a chunk in part only the selected rows weigh.
fn sizes(weighed: &dyn Weighed, rows: &Intervals, weigher: &dyn Weigher) -> Result<Vec<(u64, f32)>> {
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for (start, end) in rows.iter() {
        let (mut at, mut chunk) = (start, weighed.chunk_at(start));
        while at < end {
            let behind = weighed.rows_of(chunk).1.min(end);
            match counted.last_mut().filter(|(last, _)| *last == chunk) {
                Some((_, selected)) => *selected += behind - at,
                None => counted.push((chunk, behind - at)),
            }
            (at, chunk) = (behind, chunk + 1);
        }
    }
    let totals = weighed.totals(weigher);
    let (mut place, mut scratch) = (0, Scratch::default());
    let mut sizes = Vec::with_capacity(counted.len());
    for (chunk, selected) in counted {
        let (first, behind) = weighed.rows_of(chunk);
        let known = totals.get(chunk as usize).filter(|weight| selected == behind - first && !weight.is_nan());
        let weight = match known {
            Some(weight) => *weight,
            None => {
                weigh(weighed, rows, (place, selected), weigher, &mut scratch)?;
                total(scratch.selected.iter().copied())
            }
        };
        sizes.push((selected, weight));
        place += selected;
    }
    Ok(sizes)
}

/// Puts what the selected rows of one chunk weigh into `scratch.selected`: `count` places from `first` on.
fn weigh(
    weighed: &dyn Weighed,
    rows: &Intervals,
    (first, count): (u64, u64),
    weigher: &dyn Weigher,
    scratch: &mut Scratch,
) -> Result<()> {
    let Scratch { chunk, all, selected } = scratch;
    let number = weighed.chunk_at(rows.row(first));
    weighed.weights(number, weigher, chunk, all)?;
    let (start, end) = weighed.rows_of(number);
    if count == end - start {
        std::mem::swap(all, selected);
        return Ok(());
    }
    selected.clear();
    let of = |place| all.get((rows.row(place) - start) as usize).copied().unwrap_or(0.0);
    selected.extend((first..first + count).map(of));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use gristmill_format::layout::{Layout, Scalar};

    use super::*;
    use gristmill_stages::config::PositionSamplingConfig;

    /// Games of these lengths; row r weighs r % 4 by any weigher that tells rows apart.
    #[derive(Debug)]
    struct Games {
        layout: Layout,
        ends: Vec<u64>,
    }

    impl Games {
        fn new(lengths: &[u64]) -> Arc<Self> {
            let ends = lengths
                .iter()
                .scan(0, |end, n| {
                    *end += n;
                    Some(*end)
                })
                .collect();
            Arc::new(Games { layout: Layout::packed(&[("byte", Scalar::U8, &[])]).unwrap(), ends })
        }
    }

    impl FrameTable for Games {
        fn layout(&self) -> &Layout {
            &self.layout
        }
        fn len(&self) -> u64 {
            *self.ends.last().unwrap()
        }
        fn gather(&self, _: &[u64], _: &mut [u8]) -> gristmill_format::Result<()> {
            unreachable!("no record is needed")
        }
        fn want(&self, _: u64, _: u64) {}
        fn locate(&self, row: u64) -> (String, u64) {
            (String::new(), row)
        }
        fn weighed(&self) -> Option<&dyn Weighed> {
            Some(self)
        }
    }

    fn of_row(row: u64) -> f32 {
        (row % 4) as f32
    }

    impl Weighed for Games {
        fn chunk_at(&self, row: u64) -> u64 {
            self.ends.partition_point(|end| *end <= row) as u64
        }
        fn rows_of(&self, chunk: u64) -> (u64, u64) {
            let chunk = chunk as usize;
            (chunk.checked_sub(1).map_or(0, |before| self.ends[before]), self.ends[chunk])
        }
        fn totals(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
            let sum = |chunk| {
                let (first, end) = self.rows_of(chunk);
                (first..end).map(|row| weigher.uniform().unwrap_or(of_row(row))).sum()
            };
            (0..self.ends.len() as u64).map(sum).collect()
        }
        fn weights(
            &self,
            chunk: u64,
            weigher: &dyn Weigher,
            _: &mut Chunk,
            out: &mut Vec<f32>,
        ) -> gristmill_format::Result<()> {
            let (first, end) = self.rows_of(chunk);
            out.clear();
            out.extend((first..end).map(|row| weigher.uniform().unwrap_or(of_row(row))));
            Ok(())
        }
    }

    const LENGTHS: [u64; 6] = [5, 1, 12, 3, 7, 20];

    fn selected(ranges: &[Range<u64>]) -> IndexInput {
        let mut rows = Intervals::default();
        ranges.iter().for_each(|range| rows.push(range.start, range.end));
        IndexInput {
            table: Games::new(&LENGTHS),
            rows: Arc::new(rows),
            identity: 0,
            valuations: Vec::new(),
            recipe: gristmill_runtime::table::Recipe::all(0),
        }
    }

    fn focus() -> Option<PositionSamplingConfig> {
        Some(PositionSamplingConfig { diff_focus_q_weight: Some(1.0), ..PositionSamplingConfig::default() })
    }

    fn config(sampling: HanseSamplingConfig) -> IndexConfig {
        IndexConfig { sampling: Some(sampling), ..IndexConfig::default() }
    }

    /// Chi-square of draws against the exact expectation, by (chance of a game, share of a row in it).
    fn chi_square(input: &IndexInput, sampling: HanseSamplingConfig, share: impl Fn(u64) -> f64) -> (f64, usize) {
        let sampler = Sampler::new(input, &input.rows, &config(sampling)).unwrap().unwrap();
        let mut picks = Vec::new();
        sampler.picks(11, 0..60_000, &mut picks).unwrap();
        let rows: Vec<u64> = input.rows.iter().flat_map(|(start, end)| start..end).collect();
        assert!(picks.iter().all(|pick| rows.contains(&pick.row)), "only selected rows");
        let all: f64 = rows.iter().map(|row| share(*row)).sum();
        let mut chi = 0.0;
        let mut found = 0;
        for row in rows {
            let (count, expected) = (picks.iter().filter(|pick| pick.row == row).count(), 60_000.0 * share(row) / all);
            assert!(expected > 0.0 || count == 0, "row {row} has no chance");
            if expected > 0.0 {
                chi += (count as f64 - expected).powi(2) / expected;
                found += 1;
            }
        }
        (chi, found - 1)
    }

    /// Below this with a probability of more than 0.999 (Wilson and Hilferty).
    fn bound(freedom: usize) -> f64 {
        let n = freedom as f64;
        n * (1.0 - 2.0 / (9.0 * n) + 3.09 * (2.0 / (9.0 * n)).sqrt()).powi(3)
    }

    #[test]
    fn frequencies_are_those_of_accepting_and_rejecting() {
        let whole = selected(std::slice::from_ref(&(0..48)));
        let parts = selected(&[2..5, 6..9, 11..21, 28..29, 40..48]);
        for input in [&whole, &parts] {
            let games = Games::new(&LENGTHS);
            let of_game = |row: u64, weight: &dyn Fn(u64) -> f64| -> f64 {
                let (first, end) = games.rows_of(games.chunk_at(row));
                let rows = input.rows.iter().flat_map(|(start, behind)| start.max(first)..behind.min(end));
                rows.map(weight).sum()
            };
            let one = |_: u64| 1.0;
            let weight = |row: u64| f64::from(of_row(row));
            let default = HanseSamplingConfig::default();
            let plain = HanseSamplingConfig { hanse_sampling_gamma: 2.5, ..default.clone() };
            let share = |row| of_game(row, &one).powf(2.5) / of_game(row, &one);
            let (chi, freedom) = chi_square(input, plain, share);
            assert!(chi < bound(freedom), "by length: {chi}, {freedom}");
            let length = HanseSamplingConfig {
                hanse_sampling_form: HanseForm::Length,
                hanse_sampling_threshold: Some(6),
                ..default.clone()
            };
            let share = |row| (of_game(row, &one) / 6.0).min(1.0) / of_game(row, &one);
            let (chi, freedom) = chi_square(input, length, share);
            assert!(chi < bound(freedom), "with a threshold: {chi}, {freedom}");
            for (positions, gamma) in
                [(PositionChoice::Weighted, 1.0), (PositionChoice::Weighted, 0.5), (PositionChoice::Uniform, 1.5)]
            {
                let weighed = HanseSamplingConfig {
                    hanse_sampling_gamma: gamma,
                    position_sampling: focus(),
                    positions,
                    ..default.clone()
                };
                let share = |row| {
                    let within: &dyn Fn(u64) -> f64 = if positions == PositionChoice::Uniform { &one } else { &weight };
                    of_game(row, &weight).powf(gamma) * within(row) / of_game(row, within).max(1e-9)
                };
                let (chi, freedom) = chi_square(input, weighed, share);
                assert!(chi < bound(freedom), "{positions:?}, gamma {gamma}: {chi}, {freedom}");
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_field() {
        let input = selected(std::slice::from_ref(&(0..48)));
        let default = HanseSamplingConfig::default;
        let length = HanseSamplingConfig { hanse_sampling_form: HanseForm::Length, ..default() };
        let faint = HanseSamplingConfig {
            hanse_sampling_threshold: Some(u64::MAX),
            hanse_sampling_gamma: 1e6,
            ..length.clone()
        };
        let nothing = PositionSamplingConfig { diff_focus_q_weight: Some(-1.0), ..PositionSamplingConfig::default() };
        for (sampling, word) in [
            (HanseSamplingConfig { hanse_sampling_gamma: f64::NAN, ..default() }, "hanse_sampling_gamma"),
            (HanseSamplingConfig { hanse_sampling_gamma: -1.0, ..default() }, "hanse_sampling_gamma"),
            (length, "hanse_sampling_threshold"),
            (faint, "hanse_sampling_gamma"),
            (HanseSamplingConfig { position_sampling: Some(nothing), ..default() }, "position_sampling"),
        ] {
            let error = Sampler::new(&input, &input.rows, &config(sampling)).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let blocks = IndexConfig { shuffle: Shuffle::Off, ..config(default()) };
        assert!(Sampler::new(&input, &input.rows, &blocks).unwrap_err().to_string().contains("shuffle"));
        assert!(Sampler::new(&input, &input.rows, &IndexConfig::default()).unwrap().is_none());
    }
}
