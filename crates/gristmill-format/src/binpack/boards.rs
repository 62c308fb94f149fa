//! A position <-> the 32 bytes that bulletformat has of it: as the side to move sees it, with score and result alone.
//! A board does not say who moves, nor the ply. A conversion back assumes both, and reports that it did.

use gristmill_bytes::error::{Error, Kind, Result};

use super::men::{Men, Move, Sort};
use super::record::{BYTES, NO_SCORE, Position, Told, push};

/// Bytes of a board.
pub const BOARD: usize = 32;

/// What [`of_board`] takes of a board that does not say it.
pub const TAKEN: &str = "boards do not say it: White moves, nobody may castle, nothing can be taken in passing, ply and \
                         rule50 are 0, no move is known";

impl Position {
    /// Its board.
    pub fn board_bytes(&self) -> [u8; BOARD] {
        let mut board = [0; BOARD];
        let mut occ = 0u64;
        for (i, (square, sort, own)) in self.board().seen().enumerate().take(BOARD) {
            occ |= 1 << square;
            board[8 + i / 2] |= (sort as u8 + if own { 0 } else { 8 }) << (4 * (i % 2));
            match (sort, own) {
                (Sort::King, true) => board[27] = square,
                (Sort::King, false) => board[28] = square ^ 56,
                _ => {}
            }
        }
        board[..8].copy_from_slice(&occ.to_le_bytes());
        board[24..26].copy_from_slice(&self.told().score.to_le_bytes());
        board[26] = (self.told().result + 1).unsigned_abs();
        board
    }
}

/// The record of a board that was checked. [`TAKEN`] fills the fields that a board lacks.
///
/// Errors: `OutOfRange` for the score that says that there is none, and for what cannot be a position.
pub fn of_board(board: &[u8; BOARD]) -> Result<[u8; BYTES]> {
    let score = i16::from_le_bytes([board[24], board[25]]);
    if score == NO_SCORE {
        let detail = format!("a score of {NO_SCORE}, which says in a binpack that there is none");
        return Err(Error::new(Kind::OutOfRange, detail).at_byte(24));
    }
    let occ = u64::from_le_bytes(*board.first_chunk().unwrap_or(&[0; 8]));
    let mut pcs = 0u128;
    for i in 0..occ.count_ones().min(BOARD as u32) as usize {
        let man = board[8 + i / 2] >> (4 * (i % 2)) & 15;
        pcs |= u128::from((man & 7) << 1 | man >> 3) << (4 * i);
    }
    let told = Told { played: Move::NONE, score, ply: 0, result: board[26] as i8 - 1, rule50: 0 };
    let mut record = Vec::with_capacity(BYTES);
    push(&mut record, &Men { occ, pcs }, &told, 0);
    Position::new(&record)?;
    record.first_chunk().copied().ok_or_else(|| Error::new(Kind::WrongSize, "a record of another size"))
}
