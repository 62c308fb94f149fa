//! The records of one game, to read and to write, beside the game that was replayed from them.
//! Keeps no copy of a record.

use cozy_chess::{Board, File, Move};
use gristmill_bytes::error::{Error, Kind, Result};

use crate::chess::check::Rule;
use crate::chess::frame::{Frame, FrameMut};
use crate::chess::transform::{PolicyMapping, Transform};

/// Bit of `invariance_info`: the frame is flagged for deletion, there for its history only.
pub(super) const FLAGGED: u8 = 1 << 6;

/// One position of a replayed game.
#[derive(Debug, Clone)]
pub(super) struct Ply {
    pub(super) board: Board,
    /// The file of a pawn that just moved two squares, if a pawn attacks the square it passed.
    pub(super) en_passant: Option<File>,
    /// How often it occurred before.
    pub(super) repetitions: u8,
    /// The transform its record is under, and how policy indices follow it.
    pub(super) transform: Transform,
    pub(super) mapping: PolicyMapping,
    /// The move that led to the next position; none at the end.
    pub(super) played: Option<Move>,
}

/// A game on its way through the passes.
pub(super) struct Game<'a> {
    pub(super) records: &'a mut [u8],
    pub(super) size: usize,
    pub(super) plies: &'a [Ply],
}

impl Game<'_> {
    /// How many frames it has.
    pub(super) fn len(&self) -> usize {
        self.plies.len()
    }

    pub(super) fn frame(&self, i: usize) -> Frame<'_> {
        Frame::new(&self.records[i * self.size..(i + 1) * self.size]).expect("records of one size")
    }

    pub(super) fn frame_mut(&mut self, i: usize) -> FrameMut<'_> {
        FrameMut::new(&mut self.records[i * self.size..(i + 1) * self.size]).expect("records of one size")
    }

    /// Writes a result; whether that changed the frame.
    pub(super) fn set_result(&mut self, i: usize, q: f32, d: f32) -> bool {
        let was = (self.frame(i).result_q(), self.frame(i).result_d());
        if was == (q, d) {
            return false;
        }
        self.frame_mut(i).set_result_q(q).set_result_d(d);
        true
    }

    /// Writes the plies left; whether that changed the frame.
    pub(super) fn set_plies_left(&mut self, i: usize, plies: f32) -> bool {
        let changed = self.frame(i).plies_left() != plies;
        if changed {
            self.frame_mut(i).set_plies_left(plies);
        }
        changed
    }

    /// Whether a position of the last plies, since the last capture or pawn move, occurred before; also when the game
    /// does not go back so far.
    pub(super) fn may_repeat(&self, i: usize) -> bool {
        let plies = usize::from(self.plies[i].board.halfmove_clock());
        plies > i || self.plies[i - plies..=i].iter().any(|ply| ply.repetitions > 0)
    }

    /// Whether all results are draws.
    pub(super) fn is_drawn(&self) -> bool {
        (0..self.len()).all(|i| self.frame(i).result_q() == 0.0)
    }
}

/// A game refused by `rule`, in the terms of the validator.
pub(super) fn refused(rule: Rule, frame: usize, size: usize, offset: usize, reason: String) -> Error {
    let at = (frame * size + offset) as u64;
    Error::new(Kind::Refused(rule.name()), format!("{rule}: {reason}")).in_frame(frame).at_byte(at)
}

/// What is wrong with one record: the rule, the byte within the record, and why.
pub(super) type Fault = (Rule, usize, String);

/// Places the fault of a record.
pub(super) fn placed<T>(result: Result<T, Fault>, frame: usize, size: usize) -> Result<T> {
    result.map_err(|(rule, offset, reason)| refused(rule, frame, size, offset, reason))
}
