//! What rules may ask of the rows of a pack of 2048, and how one that grew is told from another.

use std::path::Path;
use std::sync::Arc;

use gristmill_format::g2048::board::Board;
use gristmill_format::layout::Conform;
use gristmill_format::{Error, Kind, Result};
use xxhash_rust::xxh3::Xxh3;

use super::open::{Pack, sample_up_to};
use crate::marks::{Markable, Place};
use crate::table::{FrameTable, JoinedTable};

/// What lies beside rows, where values do.
const VALUES: [&str; 3] = ["reward", "return_raw", "return_scaled"];

impl Markable for Arc<Pack> {
    fn folder(&self) -> &Path {
        Pack::folder(self)
    }

    fn records(&self) -> Result<Arc<dyn FrameTable>> {
        let mut table = Arc::clone(self.table());
        // Values of other rows than these are as good as none: a rule that asks for them is told that there is no such column.
        if let Ok(Some(values)) = self.values() {
            for name in VALUES {
                table = Arc::new(JoinedTable::new(table, values.table.clone(), name)?);
            }
        }
        Ok(table)
    }

    fn games(&self) -> &'static str {
        "runs"
    }

    fn place(&self, frame: u64) -> Result<Place> {
        let found = self.index().stretch_of(frame);
        let (first, end, game) =
            found.ok_or_else(|| Error::new(Kind::Missing, format!("row {frame} of {}", self.table().len())))?;
        Ok(Place { game, first, end })
    }

    fn derived(&self) -> &'static [&'static str] {
        &["max_exponent", "empty_cells", "tile_sum"]
    }

    fn derive(&self, i: usize, record: &[u8]) -> Result<i64> {
        let board = self.board(record)?;
        Ok(match i {
            0 => board.max_rank().into(),
            1 => board.ranks().iter().filter(|rank| **rank == 0).count() as i64,
            _ => board.sum_tile().cast_signed(),
        })
    }

    fn frames(&self) -> u64 {
        self.table().len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        if frames > self.table().len() {
            return None;
        }
        let mut hash = Xxh3::new();
        hash.update(self.table().layout().to_descr().as_bytes());
        for (first, run) in self.index().stretches().take_while(|(first, _)| *first < frames) {
            for number in [first, run.id, run.seed.unwrap_or(u64::MAX)] {
                hash.update(&number.to_le_bytes());
            }
        }
        sample_up_to(&**self.table(), frames, &mut hash).ok()?;
        Some(hash.digest())
    }
}

impl Pack {
    /// The board of a record of this pack, or of one that begins with such a record.
    fn board(&self, record: &[u8]) -> Result<Board> {
        let layout = self.table().layout();
        let own = record.get(..layout.size()).unwrap_or(record);
        let form = self.columns().form().layout();
        let mut conformed = [0; 64];
        let step = if layout == &**form {
            self.columns().step(own)?
        } else {
            let to = &mut conformed[..form.size()];
            Conform::new(layout, form)?.record(own, to);
            self.columns().step(to)?
        };
        Ok(step.row.decoded_board())
    }
}
