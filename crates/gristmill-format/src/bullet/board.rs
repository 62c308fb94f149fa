//! 32 bytes <-> a board with its score and result, as the side to move sees it; what cannot be a board is refused with the byte.
//! Checks what is on the board, not how it came to be.

use std::sync::{Arc, LazyLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};

/// Bytes of a board.
pub const BYTES: usize = 32;

/// First byte of each field.
pub mod at {
    /// Occupied squares: bit 0 is a1 of the side to move.
    pub const OCC: usize = 0;
    /// Four bits for each man, in the order of its bit in `occ`, the lower half of a byte first.
    pub const PCS: usize = 8;
    /// The score in centipawns.
    pub const SCORE: usize = 24;
    /// 0 for a loss, 1 for a draw, 2 for a win.
    pub const RESULT: usize = 26;
    /// The square of the own king.
    pub const KSQ: usize = 27;
    /// The square of the other king, as the other side sees it.
    pub const OPP_KSQ: usize = 28;
    /// Three bytes of which the format says nothing.
    pub const EXTRA: usize = 29;
}

/// The number of a king among the six sorts of men: pawn, knight, bishop, rook, queen, king.
pub const KING: u8 = 5;

/// The bit of a man of the side that does not move.
pub const OTHER: u8 = 8;

/// Men that fit into a board.
const MOST_MEN: u32 = 32;

static LAYOUT: LazyLock<Arc<Layout>> = LazyLock::new(|| {
    let fields: [(&str, Scalar, &[usize]); 7] = [
        ("occ", Scalar::U64, &[]),
        ("pcs", Scalar::U8, &[16]),
        ("score", Scalar::I16, &[]),
        ("result", Scalar::U8, &[]),
        ("ksq", Scalar::U8, &[]),
        ("opp_ksq", Scalar::U8, &[]),
        ("extra", Scalar::U8, &[3]),
    ];
    Arc::new(Layout::packed(&fields).expect("seven fields that fit"))
});

/// The fields of a record.
pub fn layout() -> &'static Arc<Layout> {
    &LAYOUT
}

/// A board that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Board([u8; BYTES]);

impl Board {
    /// The board of a record.
    ///
    /// Errors: `WrongSize` for a record of another size; `OutOfRange` with the byte of the record for what cannot be a board.
    pub fn new(record: &[u8]) -> Result<Self> {
        let bytes: [u8; BYTES] = record.try_into().map_err(|_| {
            let detail = format!("{} bytes, expected a board of {BYTES}", record.len());
            Error::new(Kind::WrongSize, detail).at_byte(0)
        })?;
        let board = Board(bytes);
        board.check(0)?;
        Ok(board)
    }

    /// A board of these men, squares ascending: square and four bits; none where it cannot be.
    pub fn of(men: &[(u8, u8)], score: i16, result: u8) -> Result<Self> {
        let mut bytes = [0; BYTES];
        let mut occ = 0u64;
        for (i, (square, man)) in men.iter().enumerate().take(MOST_MEN as usize) {
            occ |= 1 << (square & 63);
            bytes[at::PCS + i / 2] |= (man & 15) << (4 * (i % 2));
            match man {
                5 => bytes[at::KSQ] = *square,
                13 => bytes[at::OPP_KSQ] = square ^ 56,
                _ => {}
            }
        }
        bytes[..8].copy_from_slice(&occ.to_le_bytes());
        bytes[at::SCORE..at::RESULT].copy_from_slice(&score.to_le_bytes());
        bytes[at::RESULT] = result;
        Board::new(&bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// How many men there are.
    pub fn men(&self) -> u32 {
        self.occ().count_ones()
    }

    /// The score in centipawns, for the side to move.
    pub fn score(&self) -> i16 {
        i16::from_le_bytes([self.0[at::SCORE], self.0[at::SCORE + 1]])
    }

    /// 0, 1 or 2: a loss, a draw or a win of the side to move.
    pub fn result(&self) -> u8 {
        self.0[at::RESULT]
    }

    /// Square and four bits of each man, squares ascending.
    pub fn pieces(&self) -> impl Iterator<Item = (u8, u8)> {
        let mut left = self.occ();
        (0..MOST_MEN as usize).map_while(move |i| {
            let square = (left != 0).then_some(left.trailing_zeros() as u8)?;
            left &= left - 1;
            Some((square, self.0[at::PCS + i / 2] >> (4 * (i % 2)) & 15))
        })
    }

    /// Who stands where, whatever is known of it; left and right exchanged where that is wanted.
    pub fn position(&self, mirrored: bool) -> [u8; 24] {
        let mut men: Vec<(u8, u8)> = self.pieces().collect();
        if mirrored {
            men.iter_mut().for_each(|(square, _)| *square ^= 7);
            men.sort_unstable();
        }
        let (mut out, mut occ) = ([0; 24], 0u64);
        for (i, (square, man)) in men.iter().enumerate() {
            occ |= 1 << square;
            out[at::PCS + i / 2] |= man << (4 * (i % 2));
        }
        out[..8].copy_from_slice(&occ.to_le_bytes());
        out
    }

    fn occ(&self) -> u64 {
        u64::from_le_bytes(*self.0.first_chunk().unwrap_or(&[0; 8]))
    }

    /// Checks it; its first byte is number `start` of what an error names.
    fn check(&self, start: u64) -> Result<()> {
        let refuse = |at: usize, detail: String| Err(Error::new(Kind::OutOfRange, detail).at_byte(start + at as u64));
        let men = self.men();
        if !(2..=MOST_MEN).contains(&men) {
            return refuse(at::OCC, format!("{men} men on the board, expected 2 to {MOST_MEN}"));
        }
        let (mut kings, mut sides) = ([None; 2], [0u8; 2]);
        for (i, (square, man)) in self.pieces().enumerate() {
            let (sort, side) = (man & 7, usize::from(man >> 3));
            let place = at::PCS + i / 2;
            sides[side] += 1;
            match sort {
                0 if !(8..56).contains(&square) => {
                    return refuse(
                        place,
                        format!("a pawn on {}, expected none on the first or last rank", name(square)),
                    );
                }
                0..KING => {}
                KING if kings[side].is_some() => return refuse(place, "a second king of one side".to_owned()),
                KING => kings[side] = Some(square),
                _ => return refuse(place, format!("a man of sort {sort}, expected 0 to {KING}")),
            }
        }
        let [Some(own), Some(other)] = kings else {
            return refuse(at::PCS, "a side without a king".to_owned());
        };
        if sides.iter().any(|men| *men > 16) {
            return refuse(at::PCS, format!("{} and {} men of one side, expected at most 16", sides[0], sides[1]));
        }
        let unused = (men as usize..MOST_MEN as usize).find(|i| self.0[at::PCS + i / 2] >> (4 * (i % 2)) & 15 != 0);
        if let Some(i) = unused {
            return refuse(at::PCS + i / 2, format!("a man without a square, beyond the {men} on the board"));
        }
        if own.abs_diff(other) < 10 && (own % 8).abs_diff(other % 8) < 2 && (own / 8).abs_diff(other / 8) < 2 {
            return refuse(at::PCS, format!("kings side by side, on {} and {}", name(own), name(other)));
        }
        for (at, said, is, whose) in
            [(at::KSQ, self.0[at::KSQ], own, "own"), (at::OPP_KSQ, self.0[at::OPP_KSQ], other ^ 56, "other")]
        {
            if said != is {
                return refuse(at, format!("the {whose} king is said to be on square {said}, it is on {is}"));
            }
        }
        match self.result() {
            0..=2 => Ok(()),
            result => refuse(at::RESULT, format!("a result of {result}, expected 0, 1 or 2")),
        }
    }
}

/// The name of a square, as the side to move sees it.
fn name(square: u8) -> String {
    format!("{}{}", char::from(b'a' + square % 8), square / 8 + 1)
}

/// Checks boards that lie back to back from byte `start` of their file on, and says how many there are.
///
/// Errors: `WrongSize` with the byte where the last one is cut; as [`Board::new`], with frame and byte.
pub fn check_all(bytes: &[u8], start: u64) -> Result<usize> {
    let (boards, rest) = bytes.as_chunks::<BYTES>();
    for (frame, record) in boards.iter().enumerate() {
        Board(*record).check(start + (frame * BYTES) as u64).map_err(|e| e.in_frame(frame))?;
    }
    if rest.is_empty() {
        return Ok(boards.len());
    }
    let detail = format!("{} bytes after the last board, expected boards of {BYTES}", rest.len());
    Err(Error::new(Kind::WrongSize, detail).in_frame(boards.len()).at_byte(start + (boards.len() * BYTES) as u64))
}

/// Whether bytes begin with boards: all that are whole.
pub fn begins(head: &[u8]) -> bool {
    let boards = head.as_chunks::<BYTES>().0;
    !boards.is_empty() && boards.iter().all(|record| Board(*record).check(0).is_ok())
}
