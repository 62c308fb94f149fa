//! Boards -> tensors: where the men of a board stand, and what is said of it. Writes no number itself.

use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::error::Result;
use gristmill_bytes::layout::Layout;

use super::board::{Board, OTHER, at, layout};
use crate::positions::{Placed, PlacedEncoder};

/// Boards as tensors.
pub type BoardEncoder = PlacedEncoder<Board>;

impl Placed for Board {
    const RECORDS: &'static str = "boards";
    const UNFIT: &'static str =
        "records of something else, expected boards of bulletformat: the encoder `bullet` is theirs";
    const COLOURS: bool = false;

    fn layout() -> &'static Arc<Layout> {
        layout()
    }

    fn place() -> Range<usize> {
        at::OCC..at::SCORE
    }

    fn read(record: &[u8]) -> Result<Self> {
        Board::new(record)
    }

    fn men(&self) -> impl Iterator<Item = (u8, u8, bool)> {
        self.pieces().map(|(square, man)| (square, man & 7, man & OTHER == 0))
    }

    fn black_to_move(&self) -> Option<bool> {
        None
    }

    fn score(&self) -> f32 {
        Board::score(self).into()
    }

    fn result(&self) -> f32 {
        f32::from(Board::result(self)) / 2.0
    }
}
