//! Twelve masks of men, and who is White where that is known -> the same men as either side sees them.
//! Refuses what no row has room for, and what has no king to see from; does not ask whether a game can reach it.

use gristmill_bytes::error::{Error, Kind, Result};

use super::feature::MEN;

/// The number of a king among the six sorts of men: pawn, knight, bishop, rook, queen, king.
pub(super) const KING: usize = 5;

/// How many sorts there are.
pub(super) const SORTS: usize = 6;

/// A side: the one to move, or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side to move.
    ToMove,
    /// The side that waits.
    Waiting,
}

/// The men of a position that has one king of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Board {
    men: [u64; 2 * SORTS],
    black: Option<bool>,
}

impl Board {
    /// A position of these men: pawns to king of the side to move, then of the other, as the side to move sees them (bit 0 is
    /// a1, its own men stand below); and whether Black is to move, where that is known.
    ///
    /// Errors: `OutOfRange` where a side has not one king, two men stand on one square, or there are more men than a row holds.
    pub fn new(men: [u64; 2 * SORTS], black_to_move: Option<bool>) -> Result<Self> {
        let refuse = |detail: String| Err(Error::new(Kind::OutOfRange, detail));
        for (king, whose) in [(men[KING], "the side to move"), (men[SORTS + KING], "the other side")] {
            if king.count_ones() != 1 {
                return refuse(format!("{} kings of {whose}, expected one", king.count_ones()));
            }
        }
        let count: u32 = men.iter().map(|mask| mask.count_ones()).sum();
        let squares = men.iter().fold(0, |all, mask| all | mask).count_ones();
        if squares != count {
            return refuse(format!("{count} men on {squares} squares, expected one man on a square"));
        }
        if count as usize > MEN {
            return refuse(format!("{count} men on the board, expected at most {MEN}"));
        }
        Ok(Board { men, black: black_to_move })
    }

    /// How many men there are, kings included: 2 to 32.
    pub fn count(&self) -> u32 {
        self.men.iter().map(|mask| mask.count_ones()).sum()
    }

    /// Whether Black is to move; none where the position does not say it.
    pub fn black_to_move(&self) -> Option<bool> {
        self.black
    }

    /// Whether a side is Black. Where nobody knows it, the side to move is taken for White.
    pub(super) fn is_black(&self, side: Side) -> bool {
        self.black.unwrap_or(false) == (side == Side::ToMove)
    }

    /// The men as a side sees them: its own first, standing below.
    pub(super) fn seen_by(&self, side: Side) -> [u64; 2 * SORTS] {
        match side {
            Side::ToMove => self.men,
            Side::Waiting => std::array::from_fn(|i| self.men[(i + SORTS) % (2 * SORTS)].swap_bytes()),
        }
    }
}
