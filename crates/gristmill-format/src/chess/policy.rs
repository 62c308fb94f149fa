//! The 1858 moves of the policy vector: index <-> (from, to, promotion), as the side to move sees the board.
//! Built by the compiler; knows no position.

use std::fmt;

use super::record::POLICY;

/// A promotion with an index of its own; promotion to a knight is the plain move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promotion {
    /// To a queen.
    Queen,
    /// To a rook.
    Rook,
    /// To a bishop.
    Bishop,
}

/// One entry of the policy vector. Squares are `8 * rank + file`, rank 0 being the mover's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Move {
    /// Square moved from, 0..64; for castling the king's.
    pub from: u8,
    /// Square moved to, 0..64; for castling the rook's.
    pub to: u8,
    /// The piece promoted to, unless none or a knight.
    pub promotion: Option<Promotion>,
}

/// The entries in order of index.
pub const MOVES: [Move; POLICY] = list();

/// Index of each (from, to) without promotion; `POLICY` where there is none.
static PLAIN: [[u16; 64]; 64] = plain();

/// Where the promotions start.
const PROMOTIONS: usize = 1792;

const fn is_step(from: u8, to: u8) -> bool {
    let ranks = (from / 8).abs_diff(to / 8);
    let files = (from % 8).abs_diff(to % 8);
    let queen = ranks == 0 || files == 0 || ranks == files;
    let knight = (ranks == 1 && files == 2) || (ranks == 2 && files == 1);
    from != to && (queen || knight)
}

const fn list() -> [Move; POLICY] {
    let mut moves = [Move { from: 0, to: 0, promotion: None }; POLICY];
    let mut n = 0;
    let mut from = 0;
    while from < 64 {
        let mut to = 0;
        while to < 64 {
            if is_step(from, to) {
                moves[n] = Move { from, to, promotion: None };
                n += 1;
            }
            to += 1;
        }
        from += 1;
    }
    let mut from = 48;
    while from < 56 {
        let mut to = if from == 48 { 56 } else { from + 7 };
        while to <= from + 9 && to < 64 {
            moves[n] = Move { from, to, promotion: Some(Promotion::Queen) };
            moves[n + 1] = Move { from, to, promotion: Some(Promotion::Rook) };
            moves[n + 2] = Move { from, to, promotion: Some(Promotion::Bishop) };
            n += 3;
            to += 1;
        }
        from += 1;
    }
    assert!(n == POLICY);
    moves
}

#[allow(clippy::cast_possible_truncation, reason = "1858 fits in u16; `try_from` is not const")]
const fn plain() -> [[u16; 64]; 64] {
    let mut index = [[POLICY as u16; 64]; 64];
    let mut i = 0;
    while i < PROMOTIONS {
        index[MOVES[i].from as usize][MOVES[i].to as usize] = i as u16;
        i += 1;
    }
    index
}

/// The policy index of a move; `None` when no piece moves so, or a promotion does not go from rank 7 to rank 8.
///
/// Castling is the king capturing its own rook (`e1h1`, `e1a1`).
pub fn index(from: u8, to: u8, promotion: Option<Promotion>) -> Option<u16> {
    let plain = *PLAIN.get(usize::from(from))?.get(usize::from(to))?;
    if usize::from(plain) == POLICY {
        return None;
    }
    let Some(promotion) = promotion else { return Some(plain) };
    let (file, to_file) = (from % 8, to % 8);
    if from / 8 != 6 || to / 8 != 7 || file.abs_diff(to_file) > 1 {
        return None;
    }
    // File a has two targets, each further file three; the first target of file f is f - 1.
    let target = u16::from(3 * file + to_file - file);
    Some(PROMOTIONS as u16 + 3 * target + promotion as u16)
}

/// The move of policy index `i`; `None` from 1858 on.
pub fn entry(i: u16) -> Option<Move> {
    MOVES.get(usize::from(i)).copied()
}

impl fmt::Display for Move {
    /// The move in UCI letters as the side to move sees it, such as `d2d4` or `a7b8q`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let square = |s: u8| (char::from(b'a' + s % 8), s / 8 + 1);
        let ((from_file, from_rank), (to_file, to_rank)) = (square(self.from), square(self.to));
        write!(f, "{from_file}{from_rank}{to_file}{to_rank}")?;
        match self.promotion {
            Some(Promotion::Queen) => write!(f, "q"),
            Some(Promotion::Rook) => write!(f, "r"),
            Some(Promotion::Bishop) => write!(f, "b"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_table_has_the_published_hash() {
        let text = MOVES.iter().map(Move::to_string).collect::<Vec<_>>().join("\n");
        let hash = Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hash, "4a901f49851725496e39e34648dd58f240950fa6b72a0bbf6b2816b9af767cc7");
    }

    #[test]
    fn published_indices() {
        for (uci, i) in [
            ("a1b1", 0),
            ("b1c3", 36),
            ("g1f3", 159),
            ("d2d4", 293),
            ("e2e4", 322),
            ("a7a8", 1401),
            ("h7h8", 1597),
            ("h8g8", 1791),
            ("a7a8q", 1792),
            ("a7a8r", 1793),
            ("a7a8b", 1794),
            ("b7a8q", 1798),
            ("e7e8q", 1828),
            ("h7h8b", 1857),
            ("e1h1", 103),
            ("e1a1", 97),
        ] {
            assert_eq!(entry(i).unwrap().to_string(), uci);
        }
    }

    #[test]
    fn index_is_the_inverse_of_the_table_and_refuses_the_rest() {
        for (i, m) in MOVES.iter().enumerate() {
            assert_eq!(index(m.from, m.to, m.promotion).map(usize::from), Some(i), "{m}");
        }
        let promotions = [None, Some(Promotion::Queen), Some(Promotion::Rook), Some(Promotion::Bishop)];
        let all = (0..70).flat_map(|from| (0..70).map(move |to| (from, to)));
        let known = all.flat_map(|(from, to)| promotions.map(|p| index(from, to, p))).flatten().count();
        assert_eq!(known, POLICY);
        assert_eq!(entry(1858), None);
    }
}
