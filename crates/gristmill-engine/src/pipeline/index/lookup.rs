//! Batch and row number -> which row of the table stands there, in which epoch: from the plan alone, for later
//! questions. Reads no row and starts nothing; any batch costs the same.

use std::ops::Range;
use std::sync::Arc;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{IndexInput, Recipe};
use gristmill_stages::config::{IndexConfig, LastBatch, Shuffle, Skip};

use super::assembly::epoch;
use super::mixed::sources;
use super::plan::Plan;
use super::rehearse::{Fetches, Read, WALKED, Walk};
use super::state::IndexState;
use super::weighted::Sampler;
use crate::pipeline::ledger::Digests;

/// What a loader of rows delivers, by number.
#[derive(Debug, Clone)]
pub struct Lookup {
    plan: Plan,
    config: IndexConfig,
    seed: u64,
    epoch: Arc<Intervals>,
    sampler: Option<Arc<Sampler>>,
    /// The batch that comes next, where a run stands somewhere.
    next: Option<u64>,
}

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRow {
    /// Passes completed before it.
    pub epoch: u64,
    /// Its number in the table.
    pub row: u64,
}

/// Where a row stands in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// In a batch.
    Batch {
        /// Its number.
        batch: u64,
        /// The row of it, counted over all ranks.
        row: u64,
    },
    /// Among the rows left over at an end, which fill no batch and are dropped.
    Dropped,
}

/// What a saved state of rows says of the plan.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What decides which row stands where, with the seed and the batches before the next that were left out; it has no end.
    pub config: IndexConfig,
    /// Number of the next batch.
    pub batch: u64,
    /// Hash of the selected rows and of their pack, hexadecimal.
    pub data: String,
    /// How they were selected; absent in states from before it was kept.
    pub selection: Option<Recipe>,
}

impl Standing {
    /// Reads the text of a state.
    ///
    /// Errors: `State`.
    pub fn read(text: &str) -> Result<Self> {
        let IndexState {
            seed,
            batch,
            batch_size,
            shuffle,
            sampling,
            mix,
            view,
            data,
            selection,
            last_batch,
            skipped,
            ..
        } = IndexState::read(text)?;
        let (seed, apart, last_batch) = (Some(seed), last_batch.is_some(), last_batch.unwrap_or_default());
        let decides = IndexConfig { batch_size, shuffle, sampling, mix, view, seed, ..IndexConfig::default() };
        let skip = skipped.into_iter().map(|(first, end)| Skip { output: None, first, end }).collect();
        let config = IndexConfig { epochs: None, apart, last_batch, skip, ..decides };
        Ok(Standing { config, batch, data, selection })
    }
}

impl Lookup {
    pub(super) fn new(
        config: &IndexConfig,
        seed: u64,
        epoch: Arc<Intervals>,
        sampler: Option<Arc<Sampler>>,
    ) -> Result<Self> {
        let plan = Plan::new(config, seed, Arc::clone(&epoch))?.sampled(sampler.clone());
        Ok(Lookup { plan, config: config.clone(), seed, epoch, sampler, next: None })
    }

    /// The same, of a run whose next batch is this one.
    pub fn at(self, next: u64) -> Self {
        Lookup { next: Some(next), ..self }
    }

    /// The batch that comes next, where a run stands somewhere.
    pub fn upcoming(&self) -> Option<u64> {
        self.next
    }

    /// The plan of a config, of which encoder and tensors do not matter, with this seed, over rows of a pack.
    ///
    /// Errors: `Config` with the field; `Format` for a game that cannot be weighed where rows are drawn by weight.
    pub fn of(config: &IndexConfig, seed: u64, input: &IndexInput) -> Result<Self> {
        let epoch = match &config.view {
            None => Arc::clone(&input.rows),
            Some(view) => epoch(&*input.table, &input.rows, view)?,
        };
        let sampler = Sampler::new(input, &epoch, config)?.map(Arc::new);
        Lookup::new(config, seed, epoch, sampler)
    }

    /// The same over rows of several packs, which lie one after another and are mixed as `config.mix` says.
    ///
    /// Errors: as [`Lookup::of`] and of a loader of the same.
    pub fn of_several(mut config: IndexConfig, seed: u64, inputs: Vec<IndexInput>) -> Result<Self> {
        let (input, lens) = IndexInput::chained(inputs)?;
        let rows = match &config.view {
            None => Arc::clone(&input.rows),
            Some(view) => epoch(&*input.table, &input.rows, view)?,
        };
        config.mix = Some(sources(config.mix.take(), &lens, &rows)?);
        Lookup::new(&config, seed, rows, None)
    }

    /// The plan of a config over this many rows, whose numbers do not matter.
    ///
    /// Errors: `Config` with the field.
    pub fn counted(config: &IndexConfig, seed: u64, rows: u64) -> Result<Self> {
        let rows = config.mix.as_ref().map_or(rows, |mix| mix.sizes.iter().sum());
        Lookup::new(config, seed, Arc::new(Intervals::all(rows)), None)
    }

    /// The same for another end and another rank.
    ///
    /// Errors: `Config` with the field.
    pub fn as_rank(&self, epochs: Option<u64>, last_batch: LastBatch, (rank, world_size): (u64, u64)) -> Result<Self> {
        let config = IndexConfig { epochs, last_batch, rank, world_size, ..self.config.clone() };
        Lookup::new(&config, self.seed, Arc::clone(&self.epoch), self.sampler.clone())
    }

    /// The same with another order of rows.
    ///
    /// Errors: `Config` with the field.
    pub fn shuffled(&self, shuffle: Shuffle, last_batch: LastBatch) -> Result<Self> {
        let config = IndexConfig { shuffle, last_batch, ..self.config.clone() };
        Lookup::new(&config, self.seed, Arc::clone(&self.epoch), self.sampler.clone())
    }

    /// What decides which row stands where.
    pub fn config(&self) -> &IndexConfig {
        &self.config
    }

    /// Rows of a pass, of all ranks together.
    pub fn pass_rows(&self) -> u64 {
        self.plan.selected()
    }

    /// Numbers of the rows that may be fed.
    pub fn fed(&self) -> &Intervals {
        &self.epoch
    }

    /// Whether rows are drawn by weight, any number of times.
    pub fn is_drawn(&self) -> bool {
        self.sampler.is_some()
    }

    /// Numbers of the rows of this rank in batch `number`, in order; none where there is no such batch.
    ///
    /// Errors: as [`Lookup::row`].
    pub fn batch(&self, number: u64) -> Result<Vec<u64>> {
        let mut picks = Vec::new();
        self.plan.picks(number, 0, self.rows(number), &mut picks, false)?;
        Ok(picks.into_iter().map(|pick| pick.row).collect())
    }

    /// Numbers of the rows that an epoch has, each once; none where rows are drawn or sources mixed by weight.
    pub fn epoch(&self) -> Option<&Intervals> {
        (self.sampler.is_none() && !self.plan.is_mixed()).then_some(&*self.epoch)
    }

    /// What fetching the rows of `input`, of which this is the plan, asks for: of the first pass and of the second, from now on.
    ///
    /// Errors: as [`Lookup::row`]; `Stopped` where `goes_on` says no.
    pub fn fetches(&self, input: &IndexInput, goes_on: &mut dyn FnMut() -> bool) -> Result<Fetches> {
        self.fetched(input, 1, &mut |picks| Ok(picks.iter().map(|pick| pick.row..pick.row + 1).collect()), goes_on)
    }

    /// The same, where `read` says which rows of the table stand for picks, `steps` for each.
    pub(super) fn fetched<'a>(
        &'a self,
        input: &'a IndexInput,
        steps: usize,
        read: &'a mut Read<'a>,
        goes_on: &'a mut dyn FnMut() -> bool,
    ) -> Result<Fetches> {
        let all = || self.plan.selected().div_ceil(self.config.batch_size as u64);
        let batches = self.plan.per_pass().unwrap_or_else(all);
        let (plan, table, selected) = (&self.plan, &*input.table, &*input.rows);
        let reads = plan.batch_rows() * steps;
        Walk { plan, table, batches, reads, most: WALKED, selected, read, goes_on }.fetches()
    }

    /// How many batches there are in all epochs, with those that are left out; none when there is no end.
    pub fn batches(&self) -> Option<u64> {
        self.plan.batches()
    }

    /// Rows of this rank in batch `number`; none after the end.
    pub fn rows(&self, number: u64) -> usize {
        if self.plan.reaches(number) { self.plan.share(number).rows } else { 0 }
    }

    /// Row `i` of this rank in batch `number`; none where there is no such row.
    ///
    /// Errors: `Format` for a game that cannot be weighed where rows are drawn by weight.
    pub fn row(&self, number: u64, i: usize) -> Result<Option<PlacedRow>> {
        if i >= self.rows(number) {
            return Ok(None);
        }
        let mut picks = Vec::with_capacity(1);
        self.plan.picks(number, i, i + 1, &mut picks, false)?;
        Ok(picks.first().map(|pick| PlacedRow { epoch: self.plan.epoch(number, i), row: pick.row }))
    }

    /// Where a row of the table stands in a pass, whichever rank has it: the inverse of [`Lookup::row`], at the same cost. Once where it is
    /// fed, any number of times where packs are mixed by weight; never for a row that is not fed, and for a pass after the last.
    ///
    /// Errors: `Unsupported` where rows are drawn by weight: such an order has no inverse.
    pub fn turns(&self, row: u64, epoch: u64) -> Result<impl Iterator<Item = Turn> + '_> {
        if self.sampler.is_some() {
            let why = "its rows are drawn by weight, any number of times in a pass";
            let text = "only an order without draws leads from a row back to its batches";
            let instead = "`xray` names the rows of a batch, and `verify-run` proves from ledgers what was delivered";
            return Err(Error::Unsupported(format!("{why}, and {text}; {instead}")));
        }
        let is_there = self.plan.passes().is_none_or(|passes| epoch < passes);
        let turn = |(batch, row)| match self.plan.reaches(batch) {
            true => Turn::Batch { batch, row },
            false => Turn::Dropped,
        };
        let found = is_there.then(|| self.plan.found(row, epoch)).into_iter().flatten();
        Ok(found.map(turn))
    }

    /// How often [`Lookup::turns`] may find a row in a pass: once, unless packs are mixed by weight.
    pub fn often(&self, row: u64, epoch: u64) -> u64 {
        self.plan.often(row, epoch)
    }

    /// Whether a batch is one of those that are left out.
    pub fn is_left_out(&self, batch: u64) -> bool {
        self.plan.skips().has(batch)
    }

    /// How many passes there are; none when there is no end.
    pub fn passes(&self) -> Option<u64> {
        self.plan.passes()
    }

    /// The pass that a batch begins in.
    pub fn pass(&self, batch: u64) -> u64 {
        self.plan.epoch(batch, 0)
    }

    /// Adds all rows of this rank in some batches.
    ///
    /// Errors: as [`Lookup::row`].
    pub fn digest(&self, batches: Range<u64>, digests: &mut Digests) -> Result<()> {
        let mut picks = Vec::new();
        for number in batches {
            self.plan.picks(number, 0, self.rows(number), &mut picks, false)?;
            self.plan.digest(number, 0, &picks, digests);
        }
        Ok(())
    }
}
