//! What rules may ask of the positions of a chunk pack, and how one that grew is told from another.

use std::path::Path;
use std::sync::Arc;

use gristmill_format::chess::{Frame, InputFormat};
use gristmill_format::{Error, Kind, Result};

use super::open::{ChunkPack, table};
use crate::marks::{Markable, Place};
use crate::table::FrameTable;

/// Planes of the pieces of both sides in the position itself, six each; the thirteenth of a board tells repetitions.
const PIECES: usize = 12;

/// Bit of `invariance_info` that says in canonical formats that Black is to move.
const BLACK: u8 = 1 << 7;

impl Markable for Arc<ChunkPack> {
    fn folder(&self) -> &Path {
        ChunkPack::folder(self)
    }

    fn records(&self) -> Result<Arc<dyn FrameTable>> {
        Ok(table(self))
    }

    fn games(&self) -> &'static str {
        "games"
    }

    fn place(&self, frame: u64) -> Result<Place> {
        let missing = || Error::new(Kind::Missing, format!("frame {frame} of {}", self.len()));
        let game = self.game_of(frame).ok_or_else(missing)?;
        let (first, frames) = ChunkPack::frames(self, game).ok_or_else(missing)?;
        Ok(Place { game, first, end: first + frames })
    }

    fn derived(&self) -> &'static [&'static str] {
        &["men", "black_to_move"]
    }

    fn derive(&self, i: usize, record: &[u8]) -> Result<i64> {
        let frame = Frame::new(record)?;
        Ok(match i {
            0 => (0..PIECES).map(|plane| i64::from(frame.plane(plane).count_ones())).sum(),
            _ => match frame.input_format()? {
                InputFormat::Classical | InputFormat::Castling => i64::from(frame.side_to_move_or_enpassant() != 0),
                _ => i64::from(frame.invariance_info() & BLACK != 0),
            },
        })
    }

    fn frames(&self) -> u64 {
        self.len()
    }

    fn identity_of(&self, frames: u64) -> Option<u64> {
        self.identity_up_to(frames)
    }
}
