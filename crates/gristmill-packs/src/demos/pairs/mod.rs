//! Pairs of steps of several data sets, by number -> the tensors of any pair, in any pass: a table of numbers, and their encoder.
//! Every number of a row is checked when the pairs are made, so that no batch fails; nothing is read ahead.

mod piece;
mod puzzle;

use std::sync::Arc;

use gristmill_format::encode::{Encoder, Row, TensorSpec};
use gristmill_format::layout::{Layout, Scalar};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::runtime::intervals::Intervals;
use gristmill_runtime::table::{FrameTable, IndexInput, Recipe};

pub use piece::{Column, Held, Padding, Piece, Scratch, Steps};
pub use puzzle::{Picture, Puzzle};

/// Bytes of a record: the number of a pair.
const NUMBER: usize = 8;

/// The pairs of one data set.
#[derive(Debug)]
pub struct PairSet {
    /// How many there are.
    pub pairs: u64,
    /// What stands in each tensor, in order.
    pub pieces: Vec<Piece>,
}

/// The pairs of all data sets, one set after another: as a table their numbers, as an encoder what makes tensors of these.
/// Random bits of a row are the pass of its data set.
#[derive(Debug)]
pub struct Pairs {
    layout: Layout,
    outputs: Vec<TensorSpec>,
    sets: Vec<PairSet>,
    /// The first pair of each set, and the one after the last.
    first: Vec<u64>,
}

impl Pairs {
    /// Pairs of which each set gives rows of these tensors.
    ///
    /// Errors: `WrongSize`, `OutOfRange` or `Missing`, with the set and the tensor, for pieces that do not fit.
    pub fn new(outputs: Vec<TensorSpec>, sets: Vec<PairSet>) -> Result<Self> {
        let mut first = vec![0];
        for (i, set) in sets.iter().enumerate() {
            let place = |e: Error, name: &str| Error::new(e.kind(), format!("data set {i}, `{name}`: {}", e.detail()));
            if set.pieces.len() != outputs.len() {
                let detail = format!("data set {i} has {} tensors of {}", set.pieces.len(), outputs.len());
                return Err(Error::new(Kind::WrongSize, detail));
            }
            for (piece, output) in set.pieces.iter().zip(&outputs) {
                piece.check(set.pairs, output.row_bytes()).map_err(|e| place(e, &output.name))?;
            }
            first.push(first[i] + set.pairs);
        }
        let layout = Layout::packed(&[("pair", Scalar::U64, &[])])?;
        Ok(Pairs { layout, outputs, sets, first })
    }

    /// How many pairs each set has.
    pub fn sizes(&self) -> Vec<u64> {
        self.sets.iter().map(|set| set.pairs).collect()
    }

    /// All of them as a loader takes them; `identity` is a hash of what they are.
    pub fn input(self: &Arc<Self>, identity: u64) -> IndexInput {
        IndexInput {
            table: Arc::<Pairs>::clone(self),
            rows: Arc::new(Intervals::all(self.len())),
            identity,
            valuations: Vec::new(),
            recipe: Recipe::all(identity),
        }
    }

    /// Set and number there of a pair that there is.
    fn place(&self, pair: u64) -> (&PairSet, u64) {
        let set = self.first.partition_point(|first| *first <= pair) - 1;
        (&self.sets[set], pair - self.first[set])
    }
}

impl FrameTable for Pairs {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn len(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let (numbers, rest) = out.as_chunks_mut::<NUMBER>();
        if numbers.len() != rows.len() || !rest.is_empty() {
            return Err(Error::new(Kind::WrongSize, format!("room for {} pairs of {}", numbers.len(), rows.len())));
        }
        for (row, number) in rows.iter().zip(numbers) {
            if *row >= self.len() {
                return Err(Error::new(Kind::Missing, format!("pair {row} of {}", self.len())));
            }
            *number = row.to_le_bytes();
        }
        Ok(())
    }

    fn want(&self, _: u64, _: u64) {}

    fn locate(&self, row: u64) -> (String, u64) {
        let set = self.first.partition_point(|first| *first <= row) - 1;
        (format!("data set {set}"), row - self.first[set])
    }
}

impl Encoder for Pairs {
    fn input(&self) -> &Layout {
        &self.layout
    }

    fn draws(&self) -> bool {
        true
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn encode(&self, rows: &[Row<'_>], out: &mut [&mut [u8]]) -> Result<()> {
        let mut scratch = Scratch::default();
        for (i, row) in rows.iter().enumerate() {
            let number = row.record.try_into().map(u64::from_le_bytes).ok().filter(|number| *number < self.len());
            let Some(number) = number else {
                let detail = format!("no number of a pair among {}", self.len());
                return Err(Error::new(Kind::OutOfRange, detail).in_frame(i));
            };
            let (set, pair) = self.place(number);
            for ((piece, output), column) in set.pieces.iter().zip(&self.outputs).zip(&mut *out) {
                let bytes = output.row_bytes();
                piece.write(pair, row.bits.bits, &mut column[i * bytes..(i + 1) * bytes], &mut scratch);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
