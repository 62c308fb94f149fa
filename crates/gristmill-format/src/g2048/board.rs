//! Sixteen ranks <-> the packed board of a step row (a u64 of nibbles and the mask of 65536 tiles), alone and in arrays.
//! Holds no rule of the game; ranks above what the heuristic can hold are refused here, once.

use std::fmt;

use gristmill_bytes::error::{Error, Kind, Result};

/// Cells of a board.
pub const CELLS: usize = 16;

/// Highest rank (exponent of a tile) that a board may hold.
pub const MAX_RANK: u8 = 31;

/// Highest rank that a packed board keeps apart: higher ones come back as this one (65536).
pub const MAX_PACKED_RANK: u8 = 16;

/// Highest rank that fits in a nibble.
const MAX_NIBBLE: u8 = 15;

/// A position: ranks in row-major order, cell 0 top left; 0 is empty, rank r is the tile 2^r.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Board([u8; CELLS]);

/// A board as step rows store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Packed {
    /// Cell i in bits 63-4i..=60-4i, clamped to 15.
    pub board: u64,
    /// Bit i is set where cell i has rank 16 or more.
    pub mask: u16,
}

impl Board {
    /// The empty board.
    pub const EMPTY: Board = Board([0; CELLS]);

    /// A board from its ranks.
    ///
    /// Errors: `OutOfRange` for a rank above [`MAX_RANK`].
    pub fn new(ranks: [u8; CELLS]) -> Result<Self> {
        match ranks.iter().position(|&rank| rank > MAX_RANK) {
            None => Ok(Board(ranks)),
            Some(cell) => {
                let detail = format!("cell {cell} has rank {}; ranks (exponents) go from 0 to {MAX_RANK}", ranks[cell]);
                Err(Error::new(Kind::OutOfRange, detail))
            }
        }
    }

    /// The ranks.
    pub fn ranks(&self) -> &[u8; CELLS] {
        &self.0
    }

    /// The highest rank.
    pub fn max_rank(&self) -> u8 {
        self.0.iter().fold(0, |most, &rank| most.max(rank))
    }

    /// Sum of the tiles.
    pub fn sum_tile(&self) -> u64 {
        self.0.iter().filter(|rank| **rank > 0).map(|rank| 1 << rank).sum()
    }

    /// The same position with rank `rank` in `cell`. Panics when the cell is not below 16 or the rank above
    /// [`MAX_RANK`]; both are the caller's own.
    #[must_use]
    pub fn with(mut self, cell: usize, rank: u8) -> Self {
        assert!(rank <= MAX_RANK, "rank {rank}");
        self.0[cell] = rank;
        self
    }

    /// The ranks as nibbles, when all are at most 15.
    pub fn nibbles(&self) -> Option<u64> {
        let wide = u128::from_be_bytes(self.0);
        (wide & 0xf0f0_f0f0_f0f0_f0f0_f0f0_f0f0_f0f0_f0f0 == 0)
            .then(|| gather((wide >> 64) as u64) << 32 | gather(wide as u64))
    }

    /// The board of sixteen nibbles: ranks 0 to 15.
    pub fn from_nibbles(board: u64) -> Self {
        let wide = u128::from(spread(board >> 32)) << 64 | u128::from(spread(board & 0xffff_ffff));
        Board(wide.to_be_bytes())
    }

    /// The stored form: ranks of 16 and more become nibble 15 and a bit of the mask.
    pub fn pack(&self) -> Packed {
        if let Some(board) = self.nibbles() {
            return Packed { board, mask: 0 };
        }
        let mut packed = Packed::default();
        for (cell, &rank) in self.0.iter().enumerate() {
            packed.board = packed.board << 4 | u64::from(rank.min(MAX_NIBBLE));
            packed.mask |= u16::from(rank > MAX_NIBBLE) << cell;
        }
        packed
    }

    /// Undoes [`Board::pack`]: a set bit of the mask means rank 16, whatever the nibble.
    pub fn unpack(packed: Packed) -> Self {
        let mut board = Board::from_nibbles(packed.board);
        let mut mask = packed.mask;
        while mask != 0 {
            board.0[mask.trailing_zeros() as usize] = MAX_PACKED_RANK;
            mask &= mask - 1;
        }
        board
    }
}

impl TryFrom<[u8; CELLS]> for Board {
    type Error = Error;

    fn try_from(ranks: [u8; CELLS]) -> Result<Self> {
        Board::new(ranks)
    }
}

/// Four lines of four tiles, right-aligned in columns, a dot where it is empty.
impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = (1u64 << self.max_rank()).to_string().len();
        for (i, row) in self.0.chunks_exact(4).enumerate() {
            let tiles = row.iter().map(|&rank| if rank == 0 { ".".to_owned() } else { (1u64 << rank).to_string() });
            let tiles: Vec<String> = tiles.map(|tile| format!("{tile:>width$}")).collect();
            write!(f, "{}{}", if i > 0 { "\n" } else { "" }, tiles.join(" "))?;
        }
        Ok(())
    }
}

/// Eight bytes below 16, the first the highest -> eight nibbles in the lower half.
fn gather(bytes: u64) -> u64 {
    let pairs = (bytes | bytes >> 4) & 0x00ff_00ff_00ff_00ff;
    let quads = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    (quads | quads >> 16) & 0xffff_ffff
}

/// Undoes [`gather`].
fn spread(nibbles: u64) -> u64 {
    let quads = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff;
    let pairs = (quads | quads << 8) & 0x00ff_00ff_00ff_00ff;
    (pairs | pairs << 4) & 0x0f0f_0f0f_0f0f_0f0f
}

/// Packs boards of `ranks` (sixteen each, row-major) into `boards` and `masks`.
///
/// Errors: `WrongSize` unless all three have the same number of boards; `OutOfRange`, with the index of the board as
/// the frame, for a rank above [`MAX_RANK`].
pub fn pack_all(ranks: &[u8], boards: &mut [u64], masks: &mut [u16]) -> Result<()> {
    same_number(ranks, boards, masks)?;
    for (i, (cells, (board, mask))) in ranks.as_chunks().0.iter().zip(boards.iter_mut().zip(masks)).enumerate() {
        let packed = Board::new(*cells).map_err(|e| e.in_frame(i))?.pack();
        (*board, *mask) = (packed.board, packed.mask);
    }
    Ok(())
}

/// Unpacks `boards` and `masks` into `ranks` (sixteen for each board).
///
/// Errors: `WrongSize` unless all three have the same number of boards.
pub fn unpack_all(boards: &[u64], masks: &[u16], ranks: &mut [u8]) -> Result<()> {
    same_number(ranks, boards, masks)?;
    for (cells, (&board, &mask)) in ranks.as_chunks_mut().0.iter_mut().zip(boards.iter().zip(masks)) {
        *cells = Board::unpack(Packed { board, mask }).0;
    }
    Ok(())
}

fn same_number(ranks: &[u8], boards: &[u64], masks: &[u16]) -> Result<()> {
    let whole = ranks.len().is_multiple_of(CELLS);
    if whole && ranks.len() / CELLS == boards.len() && boards.len() == masks.len() {
        return Ok(());
    }
    let detail = format!("{} ranks (16 a board), {} boards and {} masks", ranks.len(), boards.len(), masks.len());
    Err(Error::new(Kind::WrongSize, detail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORKED: [u8; 16] = [0, 1, 2, 3, 4, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn a_worked_example() {
        let board = Board::new(WORKED).unwrap();
        let packed = Packed { board: 0x0123_4f67_89ab_cdef, mask: 0x20 };
        assert_eq!(board.pack(), packed);
        assert_eq!(Board::unpack(packed), board);
        assert_eq!(
            board.to_string(),
            "    .     2     4     8\n   16 65536    64   128\n  256   512  1024  2048\n 4096  8192 16384 32768"
        );
    }

    #[test]
    fn a_set_bit_of_the_mask_is_rank_16_whatever_the_nibble() {
        for nibble in 0..16u64 {
            let board = Board::unpack(Packed { board: nibble << 60, mask: 1 });
            assert_eq!(board.ranks()[0], 16);
        }
    }

    #[test]
    fn higher_ranks_come_back_as_16_and_too_high_ones_are_refused() {
        let mut ranks = [0; 16];
        for rank in 17..=MAX_RANK {
            ranks[3] = rank;
            let packed = Board::new(ranks).unwrap().pack();
            assert_eq!(packed, Packed { board: 0x000f << 48, mask: 8 });
            assert_eq!(Board::unpack(packed).ranks()[3], 16);
        }
        ranks[15] = 32;
        let e = Board::new(ranks).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains("cell 15 has rank 32"), "{e}");
    }

    #[test]
    fn arrays_of_unequal_length_and_high_ranks_say_so() {
        let (mut boards, mut masks) = ([0; 2], [0; 2]);
        assert_eq!(pack_all(&[0; 31], &mut boards, &mut masks).unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(pack_all(&[0; 32], &mut boards, &mut masks[..1]).unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(unpack_all(&boards, &masks, &mut [0; 16]).unwrap_err().kind(), Kind::WrongSize);
        let mut ranks = [0; 32];
        ranks[20] = 99;
        assert_eq!(pack_all(&ranks, &mut boards, &mut masks).unwrap_err().place().frame, Some(1));
    }

    proptest! {
        #[test]
        fn packing_and_unpacking_are_inverse(ranks in prop::collection::vec(0u8..=16, 16 * 3)) {
            let (mut boards, mut masks, mut back) = ([0; 3], [0; 3], [0; 48]);
            pack_all(&ranks, &mut boards, &mut masks).unwrap();
            unpack_all(&boards, &masks, &mut back).unwrap();
            prop_assert_eq!(&back[..], &ranks[..]);
            for (i, cells) in ranks.chunks_exact(16).enumerate() {
                for (cell, rank) in cells.iter().enumerate() {
                    prop_assert_eq!(boards[i] >> (60 - 4 * cell) & 15, u64::from(*rank.min(&15)));
                    prop_assert_eq!(masks[i] >> cell & 1 == 1, *rank == 16);
                }
            }
        }
    }
}
