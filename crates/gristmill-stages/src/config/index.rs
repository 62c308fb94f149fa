//! What an index loader is to do with the rows of a table: batches, epochs, order, ranks.
//! Pure data, in JSON from Python; what fits the table is judged by `pipeline`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::sampling::HanseSamplingConfig;
use super::skip::Skip;
use super::stages::{EncoderConfig, LastBatch};
use super::view::View;
use crate::stage::mix::Exhausted;

/// In which order each epoch goes through the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shuffle {
    /// As they are stored.
    Off,
    /// Any row anywhere (the default).
    #[default]
    Rows,
    /// Blocks of neighbouring rows in random order, the rows of several shuffled together: for packs beyond memory.
    Blocks {
        /// Rows of a block.
        rows: u64,
        /// Blocks whose rows are shuffled together.
        blocks: u64,
    },
}

/// Weights from a batch on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reweighted {
    /// The first batch that they hold for, above 0.
    pub batch: u64,
    /// How often each source is chosen.
    pub weights: Vec<f64>,
}

/// Rows of several sources, which lie one after another in the table, in proportion to weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MixConfig {
    /// Rows of each source.
    pub sizes: Vec<u64>,
    /// How often each is chosen.
    pub weights: Vec<f64>,
    /// The weights that follow those, in ascending order of their batches; only for sources that start over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Reweighted>,
    /// What happens when a source has given all its rows.
    pub exhausted: Exhausted,
    /// Rows of a pass, of all ranks together; where absent as many as the sources have, or as there are until a pass ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Whether the sources are rows of packs, whose augmentation is drawn for each row and pass.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub packs: bool,
}

/// A loader of rows by number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndexConfig {
    /// What makes rows of tensors.
    pub encoder: EncoderConfig,
    /// The tensors of games of chess, in order, as for streams; `planes`, `probs` and `values` when empty. Rows of other
    /// games have none to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<String>,
    /// What stands for a row: itself when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// Rows of a batch, of all ranks together.
    pub batch_size: usize,
    /// Passes over the rows; without an end when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Whether each pass has batches of its own, and `last_batch` says what becomes of what is left over at its end. Else
    /// batches run on across the ends of passes, and all but the very last are full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// The order of rows.
    pub shuffle: Shuffle,
    /// Draws rows by weight instead, with repetition: an epoch is as many draws as there are rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<HanseSamplingConfig>,
    /// Mixes several sources instead, each of which gives every row once before it gives one again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<MixConfig>,
    /// What becomes of the last partial batch.
    pub last_batch: LastBatch,
    /// Root of every random draw; drawn once and saved when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Worker threads; the number of cores when absent. Never changes a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Batches that may wait for the consumer.
    pub queue_capacity: usize,
    /// Which of the ranks this is, from 0.
    pub rank: u64,
    /// How many ranks share each batch; must divide its size.
    pub world_size: u64,
    /// Batches to leave out, such as `18200..18350`. All others keep their numbers and bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<Skip>,
    /// Ledger of what was delivered, which `gristmill verify-run` reads; several ranks write one each beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
}

impl Default for IndexConfig {
    fn default() -> Self {
        IndexConfig {
            encoder: EncoderConfig::default(),
            tensors: Vec::new(),
            view: None,
            batch_size: 1024,
            epochs: Some(1),
            apart: false,
            shuffle: Shuffle::default(),
            sampling: None,
            mix: None,
            last_batch: LastBatch::default(),
            seed: None,
            threads: None,
            queue_capacity: 4,
            rank: 0,
            world_size: 1,
            skip: Vec::new(),
            ledger: None,
        }
    }
}

impl IndexConfig {
    /// Batches of a pass over `rows` rows, where each pass has batches of its own.
    pub fn per_pass(&self, rows: u64) -> u64 {
        let size = self.batch_size.max(1) as u64;
        match self.last_batch {
            LastBatch::Drop => rows / size,
            LastBatch::Keep | LastBatch::Pad => rows.div_ceil(size),
        }
    }

    /// The row at which a batch begins, counted over all passes of `rows` rows; none beyond 64 bits.
    pub fn begins(&self, batch: u64, rows: u64) -> Option<u64> {
        let size = self.batch_size as u64;
        match self.per_pass(rows) {
            batches if self.apart && batches > 0 => {
                (batch / batches).checked_mul(rows)?.checked_add(batch % batches * size)
            }
            _ => batch.checked_mul(size),
        }
    }

    /// Reads JSON; an unknown key is refused with the nearest known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> gristmill_runtime::Result<Self> {
        super::parse::options(text)
    }

    /// Writes JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
