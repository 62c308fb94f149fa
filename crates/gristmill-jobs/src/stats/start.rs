//! The frames that stand at the start of chess -> what their policies say together, and what was played.
//! Any input format is known by its position alone.

use std::collections::BTreeMap;

use gristmill_engine::runtime::sum::Sum;
use gristmill_format::chess::{Board, Frame};
use serde::{Deserialize, Serialize};

/// The usual first position.
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// The policies of the start position, taken together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StartPolicy {
    /// Positions that are the start of chess.
    pub positions: u64,
    /// The moves, the most visited first.
    pub moves: Vec<StartMove>,
}

/// One first move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartMove {
    /// In UCI letters.
    pub uci: String,
    /// Its mean probability.
    pub share: f64,
    /// Games that played it; positions without visits do not say.
    pub played: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Start {
    positions: u64,
    /// Sum of probabilities and games, by UCI move.
    moves: BTreeMap<String, (Sum, u64)>,
}

impl Start {
    /// Takes note of the frame if it is the start.
    pub(super) fn add(&mut self, frame: &Frame<'_>) {
        // The white and black pawns of the usual start; hardly any other position goes further.
        if frame.rule50_count() != 0 || frame.plane(0).count_ones() != 8 || frame.plane(6).count_ones() != 8 {
            return;
        }
        let Ok(board) = Board::from_frame(frame) else { return };
        if board.fen() != START {
            return;
        }
        self.positions += 1;
        for (index, share) in (0..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0) {
            if let Some(uci) = board.uci(index) {
                self.moves.entry(uci).or_default().0.add(share.into());
            }
        }
        if let Some(uci) = (frame.visits() > 0).then(|| board.uci(frame.played_idx())).flatten() {
            self.moves.entry(uci).or_default().1 += 1;
        }
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: Start) {
        self.positions += other.positions;
        for (uci, (sum, played)) in other.moves {
            let of_move = self.moves.entry(uci).or_default();
            of_move.0.join(&sum);
            of_move.1 += played;
        }
    }

    pub(super) fn policy(self) -> StartPolicy {
        let positions = self.positions;
        let moves = self.moves.into_iter();
        let mut moves: Vec<StartMove> =
            moves.map(|(uci, (sum, played))| StartMove { uci, share: sum.mean(positions), played }).collect();
        moves.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.uci.cmp(&b.uci)));
        StartPolicy { positions, moves }
    }
}
