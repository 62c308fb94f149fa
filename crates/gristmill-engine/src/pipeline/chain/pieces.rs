//! What is under way between the serial fold and its tasks: copies into slots, pieces of batches, batches and what leaves a chain.
//! Plain data; decides nothing.

use std::sync::Arc;

use gristmill_format::encode::Provenance;
use gristmill_runtime::error::Error;
use gristmill_runtime::runtime::sheet::Sheet;

use crate::pipeline::draw::branch::Block;

/// Rows of one encode task.
pub(in crate::pipeline) const PIECE_ROWS: usize = 64;

/// Copies from a block into slots.
#[derive(Debug)]
pub(in crate::pipeline) struct Fill {
    pub(in crate::pipeline) number: u64,
    pub(in crate::pipeline) block: Arc<Block>,
    /// Row of the block, slot.
    pub(in crate::pipeline) rows: Vec<(u32, u32)>,
}

/// Rows of a batch to encode, once `after` fills are done.
#[derive(Debug)]
pub(in crate::pipeline) struct Piece {
    pub(in crate::pipeline) batch: u64,
    pub(in crate::pipeline) first: usize,
    pub(in crate::pipeline) rows: Vec<(u32, Provenance)>,
    pub(in crate::pipeline) sheet: Arc<Sheet>,
    pub(super) after: u64,
}

impl Piece {
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().map(|(slot, _)| *slot)
    }
}

/// A batch being built.
#[derive(Debug)]
pub(in crate::pipeline) struct Building {
    pub(in crate::pipeline) number: u64,
    pub(in crate::pipeline) sheet: Arc<Sheet>,
    /// Real rows, once closed.
    pub(in crate::pipeline) closed: Option<usize>,
    pub(in crate::pipeline) encoded: usize,
    open_rows: Vec<(u32, Provenance)>,
    pub(super) assigned: usize,
}

/// What leaves a chain, in order.
#[derive(Debug)]
pub(in crate::pipeline) enum Outgoing {
    Batch(Building),
    Fault(Error),
    End,
}

impl Building {
    /// Batch `number`, without rows so far.
    pub(super) fn new(number: u64, sheet: Sheet) -> Self {
        let open_rows = Vec::with_capacity(PIECE_ROWS);
        Building { number, sheet: Arc::new(sheet), closed: None, encoded: 0, open_rows, assigned: 0 }
    }

    /// Adds the row in a slot.
    pub(super) fn add(&mut self, slot: u32, from: Provenance) {
        self.open_rows.push((slot, from));
        self.assigned += 1;
    }

    /// How many rows are in no piece so far.
    pub(super) fn open(&self) -> usize {
        self.open_rows.len()
    }

    /// Those rows as a piece, if there are any, to be encoded once `after` fills are done.
    pub(super) fn piece(&mut self, after: u64) -> Option<Piece> {
        if self.open_rows.is_empty() {
            return None;
        }
        let rows = std::mem::replace(&mut self.open_rows, Vec::with_capacity(PIECE_ROWS));
        let first = self.assigned - rows.len();
        Some(Piece { batch: self.number, first, rows, sheet: Arc::clone(&self.sheet), after })
    }
}
