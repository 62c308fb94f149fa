//! The rows of a 2048 game, one after another -> whether their number and their end are those of a database or sidecar.

use serde::{Deserialize, Serialize};

use super::moves::{Move, slide};
use super::row::StepRow;

/// A game has as many rows as its metadata says.
pub const STEPS: &str = "steps";
/// The highest tile in the metadata is that of the boards.
pub const HIGHEST_TILE: &str = "highest_tile";

/// Packs store all ranks from this one on as this one.
const CLAMPED: u8 = 16;

/// The highest rank that appears by itself: the tile 4.
const SPAWNED: u8 = 2;

/// The rows of a game so far.
#[derive(Debug, Clone, Default)]
pub struct Played {
    rows: u64,
    /// Highest rank of the boards.
    most: u8,
    last: Option<StepRow>,
}

impl Played {
    /// Takes in the next row.
    pub fn add(&mut self, row: &StepRow) {
        self.rows += 1;
        self.most = self.most.max(row.decoded_board().max_rank());
        self.last = Some(*row);
    }

    /// What they come to.
    pub fn ended(&self) -> Ended {
        let after = self.last.map(|last| {
            let after = Move::from_index(last.move_dir).and_then(|mv| slide(&last.decoded_board(), mv).ok()?);
            after.map_or(0, |after| after.board.max_rank())
        });
        Ended { rows: self.rows, most: self.most, after }
    }
}

/// What rows of a game come to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Ended {
    /// How many.
    pub rows: u64,
    /// Highest rank of the boards.
    most: u8,
    /// Highest rank after the last move. `None` without rows.
    after: Option<u8>,
}

impl Ended {
    /// Takes in what follows.
    pub fn join(&mut self, later: &Ended) {
        self.rows += later.rows;
        self.most = self.most.max(later.most);
        self.after = later.after.or(self.after);
    }

    /// Compares the game with its metadata. Returns the check that fails, with the stated and the found value.
    pub fn against(&self, steps: u64, highest_tile: u64) -> Option<(&'static str, String)> {
        if steps != self.rows {
            return Some((STEPS, format!("{steps} steps are said of the game; it has {} rows", self.rows)));
        }
        let most = self.after?.max(self.most);
        let said = highest_tile.is_power_of_two().then(|| (highest_tile.trailing_zeros() as u8).min(CLAMPED));
        if said.is_some_and(|said| (self.most..=most.max(SPAWNED)).contains(&said)) {
            return None;
        }
        let detail =
            format!("{highest_tile} is said to be the highest tile of the game; its boards have {}", 1u64 << most);
        Some((HIGHEST_TILE, detail))
    }
}
