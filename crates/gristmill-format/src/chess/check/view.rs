//! One record -> what its position is about: format, side to move, transform, and the twelve masks of its men.
//! Decoded once for all rules; a record of an unknown format has no view.

use cozy_chess::{Color, Piece};

use super::{Rule, Tell};
use crate::chess::frame::Frame;
use crate::chess::record::{InputFormat, at};
use crate::chess::transform::{Transform, flip, mirror};
use gristmill_bytes::error::Result;

/// Bit of `invariance_info` that says black is to move, in canonical formats.
const BLACK: u8 = 1 << 7;

/// The outer ranks.
const OUTER: u64 = 0xff00_0000_0000_00ff;

#[derive(Clone, Copy)]
pub(in crate::chess) struct View<'a> {
    pub(in crate::chess) frame: Frame<'a>,
    pub(in crate::chess) format: InputFormat,
    pub(in crate::chess) transform: Transform,
    pub(in crate::chess) black: bool,
    /// Pawns to king of the side to move, then of the other, as the side to move sees them, the transform undone.
    pub(in crate::chess) men: [u64; 12],
}

impl<'a> View<'a> {
    /// Errors: `OutOfRange` for an unknown input format.
    pub(in crate::chess) fn new(frame: Frame<'a>) -> Result<Self> {
        let format = frame.input_format()?;
        let canonical = format.is_canonical();
        let transform = if canonical { Transform::from_bits(frame.invariance_info()) } else { Transform::NONE };
        let black = match canonical {
            true => frame.invariance_info() & BLACK != 0,
            false => frame.side_to_move_or_enpassant() != 0,
        };
        let mut men = [0; 12];
        for (plane, mask) in men.iter_mut().enumerate() {
            *mask = transform.undo(flip(frame.plane(plane)));
        }
        Ok(View { frame, format, transform, black, men })
    }

    /// Queenside and kingside right of the side to move, then of the other, as stored.
    pub(super) fn rights(&self) -> [u8; 4] {
        let frame = self.frame;
        [frame.castling_us_ooo(), frame.castling_us_oo(), frame.castling_them_ooo(), frame.castling_them_oo()]
    }

    /// Whether a tablebase of seven men can know the position.
    pub(super) fn is_tablebase(&self) -> bool {
        self.men.iter().map(|mask| mask.count_ones()).sum::<u32>() <= 7 && self.rights() == [0; 4]
    }

    /// Tells what is wrong with the number and the places of the men; `false` when no board can hold them.
    pub(super) fn judge_men(&self, tell: &mut Tell<'_>) -> bool {
        let mut sound = true;
        let mut wrong = |plane: usize, reason: &dyn Fn() -> String| {
            sound = false;
            tell.breach(Rule::Men, at::PLANES + 8 * plane, reason);
        };
        let mut seen = 0;
        for (plane, mask) in self.men.iter().enumerate() {
            if seen & mask != 0 {
                wrong(plane, &|| format!("plane {plane} has a man where another plane has one"));
            }
            seen |= mask;
        }
        for (first, whose) in [(0, "the side to move"), (6, "the other side")] {
            let count = |piece: usize| self.men[first + piece].count_ones();
            let (pawns, kings) = (count(0), count(5));
            if kings != 1 {
                wrong(first + 5, &|| format!("{whose} has {kings} kings; expected one"));
            }
            if self.men[first] & OUTER != 0 {
                wrong(first, &|| format!("{whose} has a pawn on an outer rank"));
            }
            let promoted = [(1, 2), (2, 2), (3, 2), (4, 1)].map(|(piece, own)| count(piece).saturating_sub(own));
            let promoted = promoted.iter().sum::<u32>();
            if pawns + promoted > 8 {
                wrong(first, &|| format!("{whose} has {pawns} pawns and {promoted} promoted men; expected 8 in all"));
            }
        }
        sound
    }

    /// Tells whether the stored transform is the one that the position asks for.
    pub(super) fn judge_transform(&self, tell: &mut Tell<'_>) {
        if !self.format.is_canonical() {
            return;
        }
        let expected = Transform::of_position(&self.men, self.rights() != [0; 4]);
        if expected != self.transform {
            tell.breach(Rule::Transform, at::INVARIANCE_INFO, || {
                format!("transform {:#05b}; the position asks for {:#05b}", self.transform.bits(), expected.bits())
            });
        }
    }

    /// Where the men stand, as White sees it.
    pub(in crate::chess) fn placement(&self) -> Placement {
        let seen = |mask: u64| if self.black { mirror(mask) } else { mask };
        let side = |first: usize| self.men[first..first + 6].iter().fold(0, |all, mask| all | mask);
        let (us, them) = (seen(side(0)), seen(side(6)));
        let mut pieces = [0; 6];
        for (piece, mask) in pieces.iter_mut().enumerate() {
            *mask = seen(self.men[piece] | self.men[piece + 6]);
        }
        Placement { colors: if self.black { [them, us] } else { [us, them] }, pieces }
    }
}

/// The men of a position, as White sees it: by colour and by piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::chess) struct Placement {
    pub(in crate::chess) colors: [u64; 2],
    pieces: [u64; 6],
}

impl Placement {
    pub(in crate::chess) fn of(board: &cozy_chess::Board) -> Self {
        Placement {
            colors: Color::ALL.map(|color| board.colors(color).0),
            pieces: Piece::ALL.map(|piece| board.pieces(piece).0),
        }
    }
}
