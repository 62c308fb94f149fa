//! Rows of a table, asked for by number -> tensors, at once and in the caller's thread: what collate functions need.
//! The random bits of a row are those that a loader of the same seed would give it in the same epoch.

use std::sync::Arc;

use gristmill_format::encode::{Encoder, TensorSpec};
use gristmill_format::layout::Conform;

use super::feed;
use super::plan::Augmentation;
use crate::config::EncoderConfig;
use crate::error::Result;
use crate::pipeline::encoder::of_rows;
use crate::table::{IndexInput, rows_at};

/// Rows that are encoded at a time.
const PIECE_ROWS: usize = 256;

/// An encoder of single rows of a table.
#[derive(Debug, Clone)]
pub struct RowEncoder {
    input: IndexInput,
    encoder: Arc<dyn Encoder>,
    conform: Option<Conform>,
}

impl RowEncoder {
    /// The encoder of a config for the rows of `input`.
    ///
    /// Errors: `Config`, `Unfit`, `Path` and `Format` for a tokenizer.
    pub fn new(input: IndexInput, config: &EncoderConfig) -> Result<Self> {
        let encoder = of_rows(config, input.table.layout(), &input.valuations)?;
        let conform = feed::conform(&*input.table, &*encoder)?;
        Ok(RowEncoder { input, encoder, conform })
    }

    /// The tensors that it makes.
    pub fn outputs(&self) -> &[TensorSpec] {
        self.encoder.outputs()
    }

    /// Encodes the rows at `places`, counted among the selected rows, as they look in `epoch` under `seed`. `out` has one
    /// slice for each tensor, as long as the rows take.
    ///
    /// Errors: `Format` with file and row; `Missing` for a place beyond the last row, `WrongSize` for slices.
    pub fn encode(&self, places: &[u64], seed: u64, epoch: u64, mut out: Vec<&mut [u8]>) -> Result<()> {
        let augmentation = Augmentation::new(seed, epoch);
        let (mut stored, mut records) = (Vec::new(), Vec::new());
        for places in places.chunks(PIECE_ROWS) {
            let rows = rows_at(&self.input.rows, places)?;
            let picks: Vec<_> = rows.iter().map(|row| augmentation.pick(*row, self.encoder.draws())).collect();
            let (table, size) = (&*self.input.table, self.encoder.input().size());
            feed::records(table, self.conform.as_ref(), size, &rows, &mut stored, &mut records)?;
            let mut columns = Vec::with_capacity(out.len());
            let mut later = Vec::with_capacity(out.len());
            for (column, spec) in out.into_iter().zip(self.outputs()) {
                let bytes = (places.len() * spec.row_bytes()).min(column.len());
                let (now, rest) = column.split_at_mut(bytes);
                columns.push(now);
                later.push(rest);
            }
            out = later;
            feed::encode(&*self.encoder, table, &picks, &records, &mut columns)?;
        }
        Ok(())
    }
}
