//! A 2048 step row -> its board, move and EVs as data. Judges nothing.

use gristmill_format::g2048::log::KNOWN_VALUATIONS;
use gristmill_format::g2048::{Board, Move, StepRow};
use serde::{Deserialize, Serialize};

use super::FramePlace;
use crate::word::{self, Word};

/// One step as data, and where it is.
#[derive(Debug, Clone, Serialize)]
pub struct StepView {
    /// Where it is.
    #[serde(flatten)]
    pub place: FramePlace,
    /// What it is.
    #[serde(flatten)]
    pub step: Step,
}

/// One step as data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// Game in its pack; 0 in a raw log.
    pub run_id: u32,
    /// Index of the step in its game, as logged.
    pub step_index: u32,
    /// The sixteen ranks, row by row; 0 is empty.
    pub ranks: [u8; 16],
    /// The board drawn, one line for each row.
    #[serde(skip)]
    pub drawing: String,
    /// Heuristic value of the board.
    pub board_eval: i32,
    /// Highest rank, as logged.
    pub max_rank: u8,
    /// Low 32 bits of the game's seed.
    pub seed: u32,
    /// The move made; absent where the number names none.
    #[serde(rename = "move", deserialize_with = "word::some")]
    pub mv: Option<Word>,
    /// Where the EVs come from: id, and name where it has one everywhere.
    pub valuation_type: u8,
    /// See `valuation_type`.
    #[serde(deserialize_with = "word::some")]
    pub valuation: Option<Word>,
    /// EVs of up, down, left, right.
    pub branches: Vec<BranchView>,
}

/// One branch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BranchView {
    /// The move.
    #[serde(rename = "move", deserialize_with = "word::one")]
    pub mv: Word,
    /// Its EV; absent where it was logged as illegal.
    pub ev: Option<f32>,
}

impl Step {
    /// The view of one row.
    pub(crate) fn new(row: &StepRow) -> Self {
        let board = row.decoded_board();
        let ev = |mv: Move| (row.ev_legal >> mv.index() & 1 == 1).then_some(row.branch_evs[mv.index()]);
        Step {
            run_id: row.run_id,
            step_index: row.step_index,
            ranks: *board.ranks(),
            drawing: board.to_string(),
            board_eval: row.board_eval,
            max_rank: row.max_rank,
            seed: row.seed,
            mv: Move::from_index(row.move_dir).map(Move::name),
            valuation_type: row.valuation_type,
            valuation: KNOWN_VALUATIONS.get(usize::from(row.valuation_type)).copied(),
            branches: Move::ALL.map(|mv| BranchView { mv: mv.name(), ev: ev(mv) }).to_vec(),
        }
    }

    /// Draws the board again.
    pub(crate) fn redraw(&mut self) {
        self.drawing = Board::new(self.ranks).map(|board| board.to_string()).unwrap_or_default();
    }
}
