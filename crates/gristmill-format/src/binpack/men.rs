//! The words of the format: sorts of men, men on their squares, moves in 16 bits.
//! Says what bits mean; whether they make sense is for the board to say.

use std::fmt;

/// The sorts of men.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// A pawn.
    Pawn,
    /// A knight.
    Knight,
    /// A bishop.
    Bishop,
    /// A rook.
    Rook,
    /// A queen.
    Queen,
    /// A king.
    King,
}

impl Sort {
    /// All of them, in the order of their numbers.
    pub const ALL: [Sort; 6] = [Sort::Pawn, Sort::Knight, Sort::Bishop, Sort::Rook, Sort::Queen, Sort::King];
}

/// As `e2e4`, or `e7e8q`; castling as the king takes the rook, `none` where no move is known.
impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Move::NONE {
            return f.write_str("none");
        }
        let name = |square: u8| (char::from(b'a' + square % 8), square / 8 + 1);
        let ((from, start), (to, end)) = (name(self.from()), name(self.to()));
        write!(f, "{from}{start}{to}{end}")?;
        match self.promotion() {
            Some(_) => write!(f, "{}", ['n', 'b', 'r', 'q'][usize::from(self.0 & 3)]),
            None => Ok(()),
        }
    }
}

/// Occupied squares, and four bits for each man in their order, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Men {
    /// A bit for each occupied square: 0 is a1, 63 is h8.
    pub occ: u64,
    /// Twice the sort and one for Black; 12 to 15 say more.
    pub pcs: u128,
}

/// A move in 16 bits: what kind of move, from where, to where, and what a pawn becomes. Castling goes to the own rook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Move(pub u16);

impl Move {
    /// No move is known.
    pub const NONE: Move = Move(0);

    pub(super) fn of(kind: u16, from: u8, to: u8, becomes: u16) -> Self {
        Move(kind << 14 | u16::from(from) << 8 | u16::from(to) << 2 | becomes)
    }

    /// Where it begins.
    pub fn from(self) -> u8 {
        (self.0 >> 8) as u8 & 63
    }

    /// Where it ends; for castling, where the rook is.
    pub fn to(self) -> u8 {
        (self.0 >> 2) as u8 & 63
    }

    /// What a pawn becomes; none for other moves.
    pub fn promotion(self) -> Option<Sort> {
        (self.0 >> 14 == 1).then(|| Sort::ALL[1 + usize::from(self.0 & 3)])
    }

    /// Whether it castles.
    pub fn is_castling(self) -> bool {
        self.0 >> 14 == 2
    }

    /// Whether it takes a pawn in passing.
    pub fn is_passing(self) -> bool {
        self.0 >> 14 == 3
    }
}
