//! Positions -> tensors: where the men of a position stand, what is said of it, and the board of bulletformat. Writes no other number.

use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::error::Result;
use gristmill_bytes::layout::{Layout, Scalar};

use super::boards::BOARD;
use super::record::{Position, at, layout};
use crate::positions::{Named, Placed, PlacedEncoder};

/// Positions as tensors.
pub type PositionEncoder = PlacedEncoder<Position>;

impl Placed for Position {
    const RECORDS: &'static str = "positions";
    const UNFIT: &'static str =
        "records of something else, expected positions of a binpack: the encoder `binpack` is theirs";
    const COLOURS: bool = true;
    const MORE: &'static [Named] = &[("board", Scalar::U8, &[BOARD])];

    fn layout() -> &'static Arc<Layout> {
        layout()
    }

    fn place() -> Range<usize> {
        at::OCC..at::MOVE
    }

    fn read(record: &[u8]) -> Result<Self> {
        Position::new(record)
    }

    fn men(&self) -> impl Iterator<Item = (u8, u8, bool)> {
        self.board().seen().map(|(square, sort, own)| (square, sort as u8, own))
    }

    fn black_to_move(&self) -> Option<bool> {
        Some(self.board().black())
    }

    fn score(&self) -> f32 {
        self.told().score.into()
    }

    fn result(&self) -> f32 {
        f32::from(self.told().result + 1) / 2.0
    }

    fn write(&self, _: usize, row: &mut [u8]) {
        row.copy_from_slice(&self.board_bytes());
    }
}
