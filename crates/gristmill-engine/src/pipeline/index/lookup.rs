//! Batch and row number -> which row of the table stands there, in which epoch: from the plan alone, for later
//! questions. Reads no row and starts nothing; any batch costs the same.

use std::ops::Range;
use std::sync::Arc;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{IndexInput, Recipe};
use gristmill_stages::config::{IndexConfig, LastBatch};

use super::assembly::epoch;
use super::plan::Plan;
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
}

/// One row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedRow {
    /// Passes completed before it.
    pub epoch: u64,
    /// Its number in the table.
    pub row: u64,
}

/// What a saved state of rows says of the plan.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What decides which row stands where, with the seed; it has no end.
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
        let IndexState { seed, batch, batch_size, shuffle, sampling, mix, view, data, selection, last_batch, .. } =
            IndexState::read(text)?;
        let (seed, apart, last_batch) = (Some(seed), last_batch.is_some(), last_batch.unwrap_or_default());
        let decides = IndexConfig { batch_size, shuffle, sampling, mix, view, seed, ..IndexConfig::default() };
        let config = IndexConfig { epochs: None, apart, last_batch, ..decides };
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
        Ok(Lookup { plan, config: config.clone(), seed, epoch, sampler })
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

    /// Numbers of the rows that an epoch has, each once; none where rows are drawn or sources mixed by weight.
    pub fn epoch(&self) -> Option<&Intervals> {
        (self.sampler.is_none() && !self.plan.is_mixed()).then_some(&*self.epoch)
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
