//! Numbers of rows -> their tensors, at once and in the caller's thread: what collate functions need.
//! The random bits of a row are those that a loader of the same seed would give it in the same epoch.

use gristmill_format::encode::TensorSpec;
use gristmill_runtime::error::Result;
use gristmill_runtime::table::{IndexInput, rows_at};
use gristmill_stages::config::EncoderConfig;

use super::assembly::{Assembly, Scratch};
use super::plan::Augmentation;

/// Rows that are encoded at a time.
const PIECE_ROWS: usize = 256;

/// An encoder of single rows of a table.
#[derive(Debug)]
pub struct RowEncoder {
    assembly: Assembly,
}

impl RowEncoder {
    /// The encoder of a config for the rows of `input`; of games of chess these tensors, as in
    /// [`IndexConfig`](gristmill_stages::config::IndexConfig).
    ///
    /// Errors: `Config`, `Unfit`, `Path` and `Format` for a tokenizer.
    pub fn new(input: &IndexInput, config: &EncoderConfig, tensors: &[String]) -> Result<Self> {
        Ok(RowEncoder { assembly: Assembly::new(input, config, tensors, None)? })
    }

    /// The tensors that it makes.
    pub fn outputs(&self) -> &[TensorSpec] {
        self.assembly.outputs()
    }

    /// Encodes the rows at `places`, counted among the selected rows, as they look in `epoch` under `seed`. `out` has one
    /// slice for each tensor, as long as the rows take.
    ///
    /// Errors: `Format` with file and row; `Missing` for a place beyond the last row, `WrongSize` for slices.
    pub fn encode(&self, places: &[u64], seed: u64, epoch: u64, mut out: Vec<&mut [u8]>) -> Result<()> {
        let augmentation = Augmentation::new(seed, epoch);
        let (mut scratch, mut picks) = (Scratch::default(), Vec::new());
        for places in places.chunks(PIECE_ROWS) {
            let rows = rows_at(self.assembly.rows(), places)?;
            picks.clear();
            augmentation.add(&rows, self.assembly.draws(), &mut picks);
            let mut columns = Vec::with_capacity(out.len());
            let mut later = Vec::with_capacity(out.len());
            for (column, spec) in out.into_iter().zip(self.outputs()) {
                let bytes = (places.len() * spec.row_bytes()).min(column.len());
                let (now, rest) = column.split_at_mut(bytes);
                columns.push(now);
                later.push(rest);
            }
            out = later;
            self.assembly.gather(&picks, &mut scratch)?;
            self.assembly.encode(&scratch, &mut columns)?;
        }
        Ok(())
    }
}
