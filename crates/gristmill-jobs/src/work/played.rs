//! The rows of a 2048 game, one after another -> whether they are as many, and end as, a database or sidecar says.

use gristmill_format::g2048::moves::slide;
use gristmill_format::g2048::{Move, StepRow};

/// A game has as many rows as its metadata says.
pub(crate) const STEPS: &str = "steps";
/// The highest tile in the metadata is that of the boards.
pub(crate) const HIGHEST_TILE: &str = "highest_tile";

/// Ranks from this one on are one in packs.
const CLAMPED: u8 = 16;

/// The highest rank that appears by itself: the tile 4.
const SPAWNED: u8 = 2;

/// The rows of a game so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Played {
    pub(crate) rows: u64,
    /// Highest rank of the boards.
    most: u8,
    last: Option<StepRow>,
}

impl Played {
    /// Takes in the next row.
    pub(crate) fn add(&mut self, row: &StepRow) {
        self.rows += 1;
        self.most = self.most.max(row.decoded_board().max_rank());
        self.last = Some(*row);
    }

    /// Takes in what follows.
    pub(crate) fn join(&mut self, later: &Played) {
        self.rows += later.rows;
        self.most = self.most.max(later.most);
        self.last = later.last.or(self.last);
    }

    /// Compares the game with its metadata. Returns the check that fails, with the stated and the found value.
    pub(crate) fn against(&self, steps: u64, highest_tile: u64) -> Option<(&'static str, String)> {
        if steps != self.rows {
            return Some((STEPS, format!("{steps} steps are said of the game; it has {} rows", self.rows)));
        }
        let last = self.last?;
        let after = Move::from_index(last.move_dir).and_then(|mv| slide(&last.decoded_board(), mv).ok()?);
        let most = after.map_or(0, |after| after.board.max_rank()).max(self.most);
        let said = highest_tile.is_power_of_two().then(|| (highest_tile.trailing_zeros() as u8).min(CLAMPED));
        if said.is_some_and(|said| (self.most..=most.max(SPAWNED)).contains(&said)) {
            return None;
        }
        let detail =
            format!("{highest_tile} is said to be the highest tile of the game; its boards have {}", 1u64 << most);
        Some((HIGHEST_TILE, detail))
    }
}
