//! The boards of a game as one line: a first board, then steps of two bytes; boards that no step makes are stored whole.
//! Knows how men move, not whether they may.

use crate::chess::policy::{Move as Entry, Promotion};
use crate::chess::transform::mirror;

/// Twelve stored words: pawn to king of the side that moves in frame 0, then those of the other, as the first sees them.
pub(super) type Men = [u64; 12];

/// Bytes of a board stored whole.
pub(super) const MEN_BYTES: usize = 96;

/// The board that games usually begin with.
pub(super) const START: Men = [
    0xff00,
    0x42,
    0x24,
    0x81,
    0x10,
    0x08,
    0x00ff_0000_0000_0000,
    0x42 << 56,
    0x24 << 56,
    0x81 << 56,
    0x10 << 56,
    0x08 << 56,
];

/// What happens between two boards: from in bits 0 to 5, to in bits 6 to 11 (bits of stored words), the kind above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step(pub(super) u16);

/// Kinds of steps; 1 to 4 are promotions to knight, bishop, rook and queen.
mod kind {
    pub(super) const PLAIN: u16 = 0;
    pub(super) const QUEEN: u16 = 4;
    pub(super) const CASTLE: u16 = 5;
    pub(super) const EN_PASSANT: u16 = 6;
    pub(super) const STAY: u16 = 7;
    pub(super) const WHOLE: u16 = 8;
}

impl Step {
    /// The next board is stored whole.
    pub(super) const WHOLE: Step = Step(kind::WHOLE << 12);

    fn new(from: u32, to: u32, kind: u16) -> Self {
        Step(from as u16 | (to as u16) << 6 | kind << 12)
    }

    fn parts(self) -> (u32, u32, u16) {
        (u32::from(self.0 & 63), u32::from(self.0 >> 6 & 63), self.0 >> 12)
    }

    /// Whether it is of a kind that there is, with nothing in unused bits.
    pub(super) fn is_known(self) -> bool {
        let (from, to, kind) = self.parts();
        kind <= kind::EN_PASSANT || kind <= kind::WHOLE && from == 0 && to == 0
    }

    /// Makes the step of side `mover` (0 or 1) on `men`.
    #[inline]
    pub(super) fn make(self, men: &mut Men, mover: usize) {
        let (from, to, kind) = self.parts();
        let (f, t) = (1u64 << from, 1u64 << to);
        let (first, second) = men.split_at_mut(6);
        let (own, other) = if mover == 0 { (first, second) } else { (second, first) };
        match kind {
            kind::PLAIN => {
                for men in own {
                    *men = *men & !f ^ (*men >> from & 1) << to;
                }
                other.iter_mut().for_each(|men| *men &= !t);
            }
            1..=kind::QUEEN => {
                own[0] &= !f;
                own[usize::from(kind)] |= t;
                other.iter_mut().for_each(|men| *men &= !t);
            }
            kind::CASTLE => {
                // Stored words count files from h: the side with the smaller bit is the king's.
                let rank = from & !7;
                let (king, rook) = if to & 7 < from & 7 { (rank | 1, rank | 2) } else { (rank | 5, rank | 4) };
                own[5] = own[5] & !f | 1 << king;
                own[3] = own[3] & !t | 1 << rook;
            }
            kind::EN_PASSANT => {
                own[0] = own[0] & !f | t;
                other[0] &= !(1 << (from & !7 | to & 7));
            }
            _ => {}
        }
    }

    /// The step of side `mover` from one board to the next, if there is one.
    pub(super) fn between(before: &Men, after: &Men, mover: usize) -> Option<Self> {
        let own = 6 * mover;
        let gone = |i: usize| before[own + i] & !after[own + i];
        let come = |i: usize| after[own + i] & !before[own + i];
        let bit = |mask: u64| mask.trailing_zeros() & 63;
        let works = |step: &Step| {
            let mut men = *before;
            step.make(&mut men, mover);
            men == *after
        };
        if before == after {
            return Some(Step(kind::STAY << 12));
        }
        let plain = (0..6).find(|i| gone(*i) != 0).map(|i| Step::new(bit(gone(i)), bit(come(i)), kind::PLAIN));
        let promotion = (1..=4).find(|i| come(*i) != 0).map(|i| Step::new(bit(gone(0)), bit(come(i)), i as u16));
        let en_passant = Step::new(bit(gone(0)), bit(come(0)), kind::EN_PASSANT);
        let king = bit(before[own + 5]);
        let rooks = before[own + 3];
        let castling = (0..64).filter(|to| rooks >> to & 1 == 1).map(|to| Step::new(king, to, kind::CASTLE));
        plain.into_iter().chain(promotion).chain([en_passant]).chain(castling).find(works)
    }

    /// The step as its mover sees it, without a transform; none where there is no move.
    pub(super) fn entry(self, mover: usize) -> Option<Entry> {
        let (from, to, kind) = self.parts();
        let turn = if mover == 0 { 7 } else { 7 ^ 56 };
        let promotion = match kind {
            kind::QUEEN => Some(Promotion::Queen),
            3 => Some(Promotion::Rook),
            2 => Some(Promotion::Bishop),
            kind::PLAIN | 1 | kind::CASTLE | kind::EN_PASSANT => None,
            _ => return None,
        };
        Some(Entry { from: (from ^ turn) as u8, to: (to ^ turn) as u8, promotion })
    }
}

/// The board as the other side sees it, which comes first then.
pub(super) fn turned(men: &Men) -> Men {
    std::array::from_fn(|i| mirror(men[(i + 6) % 12]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::policy;

    /// A stored bit of a square such as `e1`.
    fn at(square: &str) -> u64 {
        let [file, rank] = square.as_bytes() else { panic!("{square}") };
        1 << ((u32::from(rank - b'1') * 8 + u32::from(file - b'a')) ^ 7)
    }

    fn men(own: [&[&str]; 6], other: [&[&str]; 6]) -> Men {
        let mut men = [0; 12];
        for (mask, squares) in men.iter_mut().zip(own.iter().chain(&other)) {
            squares.iter().for_each(|square| *mask |= at(square));
        }
        men
    }

    fn index_of(step: Step, mover: usize) -> Option<u16> {
        step.entry(mover).and_then(|entry| policy::index(entry.from, entry.to, entry.promotion))
    }

    const NONE: [&[&str]; 6] = [&[]; 6];

    #[test]
    fn every_kind_of_move_is_a_step_with_its_policy_index() {
        let rows = [
            (
                START,
                {
                    let mut m = START;
                    m[0] = m[0] & !at("e2") | at("e4");
                    m
                },
                Some(322),
            ),
            (
                men([&["b7"], &[], &[], &[], &[], &["e1"]], [&[], &[], &[], &["a8"], &[], &["h8"]]),
                men([&[], &[], &[], &[], &["a8"], &["e1"]], [&[], &[], &[], &[], &[], &["h8"]]),
                Some(1798),
            ),
            (
                men([&["a7"], &[], &[], &[], &[], &["e1"]], NONE),
                men([&[], &["a8"], &[], &[], &[], &["e1"]], NONE),
                Some(1401),
            ),
            (
                men([&[], &[], &[], &["a1", "h1"], &[], &["e1"]], NONE),
                men([&[], &[], &[], &["a1", "f1"], &[], &["g1"]], NONE),
                Some(103),
            ),
            (
                men([&[], &[], &[], &["a1", "h1"], &[], &["e1"]], NONE),
                men([&[], &[], &[], &["d1", "h1"], &[], &["c1"]], NONE),
                Some(97),
            ),
            (
                men([&["e5"], &[], &[], &[], &[], &["e1"]], [&["d5"], &[], &[], &[], &[], &["e8"]]),
                men([&["d6"], &[], &[], &[], &[], &["e1"]], [&[], &[], &[], &[], &[], &["e8"]]),
                policy::index(36, 43, None),
            ),
        ];
        for (before, after, index) in rows {
            let step = Step::between(&before, &after, 0).unwrap();
            assert!(step.is_known());
            assert_eq!(index_of(step, 0), index, "{step:?}");
            let (before, after) = (turned(&before), turned(&after));
            let step = Step::between(&before, &after, 1).unwrap();
            let mut made = before;
            step.make(&mut made, 1);
            assert_eq!((made, index_of(step, 1)), (after, index));
        }
    }

    #[test]
    fn a_board_that_no_move_makes_is_none_and_no_step_breaks() {
        assert_eq!(Step::between(&START, &START, 1).and_then(|step| index_of(step, 1)), None);
        assert_eq!(Step::between(&START, &[7; 12], 0), None);
        for bits in 0..=u16::MAX {
            let mut board = START;
            Step(bits).make(&mut board, usize::from(bits & 1));
            let _ = index_of(Step(bits), 0);
        }
        assert!(!Step(9 << 12).is_known() && !Step(7 << 12 | 1).is_known() && Step::WHOLE.is_known());
    }
}
