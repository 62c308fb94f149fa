//! Batch and row number -> which row of the table stands there, in which epoch: the plan alone, for whoever asks later.
//! Reads no row and starts nothing; any batch costs the same.

use std::ops::Range;
use std::sync::Arc;

use super::plan::Plan;
use super::state::IndexState;
use crate::config::IndexConfig;
use crate::error::Result;
use crate::pipeline::ledger::Digests;
use crate::runtime::intervals::Intervals;
use crate::table::Recipe;

/// What a loader of rows delivers, by number.
#[derive(Debug, Clone)]
pub struct Lookup {
    plan: Plan,
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
    /// Hash of the selected rows and of what they are rows of, hexadecimal.
    pub data: String,
    /// How they were selected; absent in states from before it was kept.
    pub selection: Option<Recipe>,
}

impl Standing {
    /// Reads the text of a state.
    ///
    /// Errors: `State`.
    pub fn read(text: &str) -> Result<Self> {
        let IndexState { seed, batch, batch_size, shuffle, data, selection, .. } = IndexState::read(text)?;
        let config = IndexConfig { batch_size, shuffle, seed: Some(seed), epochs: None, ..IndexConfig::default() };
        Ok(Standing { config, batch, data, selection })
    }
}

impl Lookup {
    /// The plan of a config with this seed, over the selected rows.
    ///
    /// Errors: `Config` with the field.
    pub fn new(config: &IndexConfig, seed: u64, rows: Arc<Intervals>) -> Result<Self> {
        Ok(Lookup { plan: Plan::new(config, seed, rows)? })
    }

    /// How many batches there are in all epochs, with those that are left out; none when there is no end.
    pub fn batches(&self) -> Option<u64> {
        self.plan.batches()
    }

    /// Rows of this rank in batch `number`; none behind the end.
    pub fn rows(&self, number: u64) -> usize {
        if self.plan.reaches(number) { self.plan.share(number).rows } else { 0 }
    }

    /// Row `i` of this rank in batch `number`; none where there is no such row.
    pub fn row(&self, number: u64, i: usize) -> Option<PlacedRow> {
        (i < self.rows(number)).then(|| {
            let mut picks = Vec::with_capacity(1);
            self.plan.picks(number, i, i + 1, &mut picks, false);
            picks.first().map(|pick| PlacedRow { epoch: self.plan.epoch(number, i), row: pick.row })
        })?
    }

    /// Adds all rows of this rank in some batches.
    pub fn digest(&self, batches: Range<u64>, digests: &mut Digests) {
        let mut picks = Vec::new();
        for number in batches {
            self.plan.picks(number, 0, self.rows(number), &mut picks, false);
            self.plan.digest(number, 0, &picks, digests);
        }
    }
}
