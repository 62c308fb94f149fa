//! The pieces of a game, in order -> the game: rows mended where a piece had to guess, names unified, remarks gathered.
//! Also a whole game at once. The sums do not depend on how the text was cut.

use std::fmt;

use gristmill_bytes::error::{Error, Result};
use gristmill_bytes::source::Limits;

use super::names::{MAX_VALUATIONS, Valuations};
use super::piece::{Piece, RowDefaults, parse_piece};
use super::sidecar::Sidecar;
use crate::g2048::row::{ALIGNED_BYTES, at};

/// A game whose pieces are being joined.
#[derive(Debug, Clone, Default)]
pub struct Game {
    joined: Piece,
}

/// What a game came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GameSummary {
    /// How many rows.
    pub rows: u64,
    /// Names of valuations by the ids in the rows; the three known ones first, others in order of first sight.
    pub valuations: Valuations,
    /// What a reader should know, though no row is wrong.
    pub remarks: Vec<Remark>,
}

/// Something odd about a game that costs it nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// The sidecar promised another number of rows.
    RowCount {
        /// Rows found.
        found: u64,
        /// The sidecar's `num_moves`.
        promised: u64,
    },
    /// No row has an EV.
    NoEvs,
    /// Rows whose `branch_evs` has keys that name no move.
    UnknownBranches(u64),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::RowCount { found, promised } => write!(f, "{found} rows, the sidecar says {promised} moves"),
            Remark::NoEvs => write!(f, "no row has an EV"),
            Remark::UnknownBranches(rows) => {
                write!(f, "{rows} rows have EVs of moves by other names, which are ignored")
            }
        }
    }
}

impl Game {
    /// Takes the next piece and mends its rows in place: indices that continue those of the piece before, valuation
    /// ids.
    /// `rows` are exactly the rows of the piece.
    ///
    /// Errors: `OutOfRange`, at the line where the piece begins, when the game has too many names of valuations. Panics when `rows` are not the piece's.
    pub fn join(&mut self, piece: &Piece, rows: &mut [u8]) -> Result<()> {
        assert_eq!(rows.len() as u64, piece.rows * ALIGNED_BYTES as u64, "the rows of the piece");
        let ids = self.joined.valuations.unify(&piece.valuations);
        let ids = ids.map_err(|e| e.at_line(self.joined.lines + 1, 1).at_byte(self.joined.bytes))?;
        if ids[..piece.valuations.names().len()].iter().enumerate().any(|(was, is)| was != usize::from(*is)) {
            renumber(rows, &ids);
        }
        let mut last = piece.last_index;
        if let Some(mut index) = self.joined.last_index {
            for row in &mut rows.as_chunks_mut::<ALIGNED_BYTES>().0[..piece.unanchored as usize] {
                index = index.saturating_add(1);
                row[at::STEP_INDEX..][..4].copy_from_slice(&index.to_le_bytes());
            }
            if piece.unanchored == piece.rows {
                last = Some(index);
            }
        }
        self.joined.last_index = last;
        self.joined.rows += piece.rows;
        self.joined.lines += piece.lines;
        self.joined.bytes += piece.bytes;
        self.joined.legal |= piece.legal;
        self.joined.unknown_branches += piece.unknown_branches;
        Ok(())
    }

    /// The error of a piece that follows those joined so far, with its line and byte counted from the start of the game.
    #[must_use]
    pub fn place(&self, e: Error) -> Error {
        e.after_lines(self.joined.lines, self.joined.bytes)
    }

    /// Rows joined so far.
    pub fn rows(&self) -> u64 {
        self.joined.rows
    }

    /// Names of valuations joined so far.
    pub fn valuations(&self) -> &Valuations {
        &self.joined.valuations
    }

    /// The sums, and the remarks that comparing them with the sidecar gives.
    pub fn finish(self, sidecar: &Sidecar) -> GameSummary {
        let Piece { rows, legal, unknown_branches, valuations, .. } = self.joined;
        let mut remarks = Vec::new();
        if rows != sidecar.num_moves {
            remarks.push(Remark::RowCount { found: rows, promised: sidecar.num_moves });
        }
        if legal == 0 {
            remarks.push(Remark::NoEvs);
        }
        if unknown_branches > 0 {
            remarks.push(Remark::UnknownBranches(unknown_branches));
        }
        GameSummary { rows, valuations, remarks }
    }
}

/// Gives the valuation ids of aligned rows their new numbers.
pub(super) fn renumber(rows: &mut [u8], ids: &[u8; MAX_VALUATIONS]) {
    for row in rows.as_chunks_mut::<ALIGNED_BYTES>().0 {
        row[at::VALUATION_TYPE] = ids[usize::from(row[at::VALUATION_TYPE])];
    }
}

/// Parses a whole game: its sidecar, and its inflated lines. Replaces `rows` by its aligned rows (48 bytes each,
/// `run_id` 0, valuation ids of the game's own table).
///
/// Errors: as [`parse_piece`], with line, column and byte in `text`; what `rows` holds then is unspecified.
pub fn parse_game(sidecar: &Sidecar, text: &[u8], limits: &Limits, rows: &mut Vec<u8>) -> Result<GameSummary> {
    rows.clear();
    let mut game = Game::default();
    let piece = parse_piece(text, &sidecar.defaults(), limits.max_chunk_bytes, rows)?;
    game.join(&piece, rows)?;
    Ok(game.finish(sidecar))
}

impl Sidecar {
    /// What rows take from the sidecar where a line does not say.
    pub fn defaults(&self) -> RowDefaults {
        RowDefaults { seed: self.seed as u32, max_rank: self.max_rank.unwrap_or(0) }
    }
}
