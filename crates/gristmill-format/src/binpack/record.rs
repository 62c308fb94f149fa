//! A position with its move, score and result: a record of 33 bytes, and what rules and trainers ask of it.
//! Men are written as the file has them; the fields beside them are plain numbers.

use std::sync::{Arc, LazyLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

use super::board::Board;
use super::men::{Men, Move};

/// Bytes of a record.
pub const BYTES: usize = 33;

/// The score that says that there is none.
pub const NO_SCORE: i16 = 32002;

/// The highest ply that a file can have.
pub const LAST_PLY: u16 = (1 << 14) - 1;

/// First byte of each field.
pub mod at {
    /// Occupied squares: bit 0 is a1, bit 63 is h8.
    pub const OCC: usize = 0;
    /// Four bits for each man, in the order of its bit in `occ`, the lower half of a byte first.
    pub const PCS: usize = 8;
    /// The move that was played.
    pub const MOVE: usize = 24;
    /// The score, for the side to move.
    pub const SCORE: usize = 26;
    /// Plies since the game began.
    pub const PLY: usize = 28;
    /// -1, 0 or 1 for the side to move.
    pub const RESULT: usize = 30;
    /// Plies since a man was taken or a pawn moved.
    pub const RULE50: usize = 31;
    /// How often the position stood before in its chain.
    pub const REPEATED: usize = 32;
}

/// What a man is worth to [`Position::simple_eval`], from pawn to queen: Stockfish's own numbers.
pub const WORTH: [i64; 5] = [208, 781, 825, 1276, 2538];

static LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| {
    let fields: [(&str, Scalar, &[usize]); 8] = [
        ("occ", Scalar::U64, &[]),
        ("pcs", Scalar::U8, &[16]),
        ("move", Scalar::U16, &[]),
        ("score", Scalar::I16, &[]),
        ("game_ply", Scalar::U16, &[]),
        ("result", Scalar::I8, &[]),
        ("rule50", Scalar::U8, &[]),
        ("repeated", Scalar::U8, &[]),
    ];
    Arc::new(Layout::packed(&fields).expect("eight fields that fit"))
});

/// The fields of a record.
pub fn layout() -> &'static Arc<Layout> {
    &LAYOUT
}

/// What is known of a position beside its men.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// The move that was played; [`Move::NONE`] where none is known.
    pub played: Move,
    /// The score for the side to move; [`NO_SCORE`] for none.
    pub score: i16,
    /// Plies since the game began.
    pub ply: u16,
    /// -1, 0 or 1: a loss, a draw or a win of the side to move.
    pub result: i8,
    /// Plies since a man was taken or a pawn moved.
    pub rule50: u8,
}

/// A record that was checked.
#[derive(Debug, Clone)]
pub struct Position {
    board: Board,
    told: Told,
    repeated: u8,
}

impl Position {
    /// The position of a record.
    ///
    /// Errors: `WrongSize` for a record of another size; `OutOfRange` with the byte of the record for what cannot be.
    pub fn new(record: &[u8]) -> Result<Self> {
        let bytes: &[u8; BYTES] = record.try_into().map_err(|_| {
            let detail = format!("{} bytes, expected a position of {BYTES}", record.len());
            Error::new(Kind::WrongSize, detail).at_byte(0)
        })?;
        let board = Board::new(men(bytes))?;
        let told = told(bytes);
        check(&board, &told)?;
        Ok(Position { board, told, repeated: bytes[at::REPEATED] })
    }

    /// The men and the rights.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// What is known beside them.
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// How often it stood before in its chain.
    pub fn repeated(&self) -> u8 {
        self.repeated
    }

    /// Whether it has a score.
    pub fn has_score(&self) -> bool {
        self.told.score != NO_SCORE
    }

    /// Whether the move takes a man.
    pub fn takes(&self) -> bool {
        self.told.played.is_passing() || (!self.told.played.is_castling() && self.board.other(self.told.played.to()))
    }

    /// The men of the side to move less those of the other, in Stockfish's units ([`WORTH`]).
    pub fn simple_eval(&self) -> i64 {
        let mut sum = 0;
        for (_, sort, own) in self.board.seen() {
            let worth = WORTH.get(sort as usize).copied().unwrap_or(0);
            sum += if own { worth } else { -worth };
        }
        sum
    }

    /// What rules may use beside the fields of records, in the order of [`DERIVED`].
    ///
    /// Errors: `Missing` for a number beyond them.
    pub fn derived(&self, i: usize) -> Result<i64> {
        Ok(match i {
            0 => self.board.occ().count_ones().into(),
            1 => self.board.in_check().into(),
            2 => self.takes().into(),
            3 => self.told.played.promotion().is_some().into(),
            4 => self.told.played.is_castling().into(),
            5 => self.simple_eval(),
            6 => (!self.has_score()).into(),
            7 => self.board.black().into(),
            _ => return Err(Error::new(Kind::Missing, format!("number {i} of what rules may use of a position"))),
        })
    }
}

/// What rules may use beside the fields of records.
pub const DERIVED: [&str; 8] =
    ["men", "in_check", "capture", "promotion", "castling", "simple_eval", "no_score", "black_to_move"];

/// The men of a record.
pub(super) fn men(record: &[u8; BYTES]) -> Men {
    Men {
        occ: u64::from_le_bytes(*record.first_chunk().unwrap_or(&[0; 8])),
        pcs: record[at::PCS..].first_chunk().map_or(0, |pcs| u128::from_le_bytes(*pcs)),
    }
}

/// What a record has beside its men.
pub(super) fn told(record: &[u8; BYTES]) -> Told {
    let two = |at: usize| [record[at], record[at + 1]];
    Told {
        played: Move(u16::from_le_bytes(two(at::MOVE))),
        score: i16::from_le_bytes(two(at::SCORE)),
        ply: u16::from_le_bytes(two(at::PLY)),
        result: i8::from_le_bytes([record[at::RESULT]]),
        rule50: record[at::RULE50],
    }
}

/// That the rest of a record goes with its men.
pub(super) fn check(board: &Board, told: &Told) -> Result<()> {
    let refuse = |at: usize, detail: String| Err(Error::new(Kind::OutOfRange, detail).at_byte(at as u64));
    board.check_move(told.played).map_err(|e| e.at_byte(at::MOVE as u64))?;
    if told.ply > LAST_PLY {
        return refuse(at::PLY, format!("ply {}, expected at most {LAST_PLY}", told.ply));
    }
    if !(-1..=1).contains(&told.result) {
        return refuse(at::RESULT, format!("a result of {}, expected -1, 0 or 1", told.result));
    }
    Ok(())
}

/// Adds a record.
pub fn push(out: &mut Vec<u8>, men: &Men, told: &Told, repeated: u8) {
    let mut record = [0; BYTES];
    record[..at::PCS].copy_from_slice(&men.occ.to_le_bytes());
    record[at::PCS..at::MOVE].copy_from_slice(&men.pcs.to_le_bytes());
    record[at::MOVE..at::SCORE].copy_from_slice(&told.played.0.to_le_bytes());
    record[at::SCORE..at::PLY].copy_from_slice(&told.score.to_le_bytes());
    record[at::PLY..at::RESULT].copy_from_slice(&told.ply.to_le_bytes());
    record[at::RESULT] = told.result.to_le_bytes()[0];
    record[at::RULE50] = told.rule50;
    record[at::REPEATED] = repeated;
    out.extend_from_slice(&record);
}

/// How many of the last `known` records, at most, have these men and rights.
pub(super) fn same(records: &[u8], men: &Men, known: usize) -> u8 {
    // Two moves of each side are the least that lead back.
    let earlier = records.as_chunks::<BYTES>().0.iter().rev().take(known).skip(3).step_by(2);
    let found = earlier.filter(|record| self::men(record) == *men).count();
    u8::try_from(found).unwrap_or(u8::MAX)
}

/// Checks records that lie back to back, and says how many there are.
///
/// Errors: `WrongSize` with the byte where the last one is cut; as [`Position::new`], with frame and byte.
pub fn check_all(bytes: &[u8]) -> Result<usize> {
    let (records, rest) = bytes.as_chunks::<BYTES>();
    for (frame, record) in records.iter().enumerate() {
        Position::new(record).map_err(|e| e.in_frame(frame).after_lines(0, (frame * BYTES) as u64))?;
    }
    if rest.is_empty() {
        return Ok(records.len());
    }
    let detail = format!("{} bytes after the last position, expected positions of {BYTES}", rest.len());
    Err(Error::new(Kind::WrongSize, detail).in_frame(records.len()).at_byte((records.len() * BYTES) as u64))
}
