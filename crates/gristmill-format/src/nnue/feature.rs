//! The men as a side sees them -> the numbers of its features, ascending, in a row that is padded.
//! Bits of masks alone: a board is turned whole, never square by square.

use super::board::{Board, KING, SORTS, Side};

/// Cells of a row: as many as a board has men.
pub const MEN: usize = 32;

/// What stands after the last feature of a row.
pub const NONE: i32 = -1;

/// Squares of a board.
const SQUARES: usize = 64;

/// A set of features. Both see a man by its square, its sort and side, and the square of the own king.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeatureSet {
    /// All men but the kings; Black sees the board turned by half a circle.
    HalfKp,
    /// All men, both kings in one plane; Black sees it upside down, and left and right are exchanged where the own king
    /// stands on the files a to d.
    HalfKaV2Hm,
}

impl FeatureSet {
    /// How many features there are for one side.
    pub const fn inputs(self) -> usize {
        match self {
            FeatureSet::HalfKp => SQUARES * self.of_a_king(),
            FeatureSet::HalfKaV2Hm => SQUARES / 2 * self.of_a_king(),
        }
    }

    /// How many there are for one square of the own king, or one bucket of such squares.
    const fn of_a_king(self) -> usize {
        match self {
            FeatureSet::HalfKp => 1 + 2 * KING * SQUARES,
            FeatureSet::HalfKaV2Hm => (2 * SORTS - 1) * SQUARES,
        }
    }

    /// Writes what `side` sees of a board: features ascending, then [`NONE`].
    pub fn write(self, board: &Board, side: Side, row: &mut [[u8; 4]; MEN]) {
        let men = board.seen_by(side);
        let (own, other) = men.split_at(SORTS);
        let turned = match self {
            // Upside down it is already; exchanging left and right makes half a circle of that.
            FeatureSet::HalfKp => board.is_black(side),
            FeatureSet::HalfKaV2Hm => own[KING].trailing_zeros() % 8 < 4,
        };
        let king = seen(own[KING], turned).trailing_zeros() as usize;
        let first = match self {
            FeatureSet::HalfKp => 1 + self.of_a_king() * king,
            FeatureSet::HalfKaV2Hm => self.of_a_king() * (31 - (4 * (king / 8) + king % 8 - 4)),
        };
        let both = own.iter().zip(other).flat_map(|(own, other)| [*own, *other]).take(2 * KING);
        let kings = match self {
            FeatureSet::HalfKp => 0,
            FeatureSet::HalfKaV2Hm => own[KING] | other[KING],
        };
        let mut cells = row.iter_mut();
        for (plane, mask) in both.chain([kings]).enumerate() {
            let mut left = seen(mask, turned);
            while left != 0 {
                let feature = first + SQUARES * plane + left.trailing_zeros() as usize;
                left &= left - 1;
                if let Some(cell) = cells.next() {
                    *cell = (feature as i32).to_le_bytes();
                }
            }
        }
        cells.for_each(|cell| *cell = NONE.to_le_bytes());
    }
}

/// A mask, with left and right exchanged where that is wanted.
fn seen(mask: u64, turned: bool) -> u64 {
    if turned { mask.reverse_bits().swap_bytes() } else { mask }
}
