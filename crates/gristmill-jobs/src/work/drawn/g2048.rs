//! A 2048 step row -> its board, move and EVs as data. Judges nothing.

use gristmill_format::g2048::log::KNOWN_VALUATIONS;
use gristmill_format::g2048::{Move, StepRow};
use serde::Serialize;

use super::FramePlace;

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
#[derive(Debug, Clone, Serialize)]
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
    #[serde(rename = "move")]
    pub mv: Option<&'static str>,
    /// Where the EVs come from: id, and name where it has one everywhere.
    pub valuation_type: u8,
    /// See `valuation_type`.
    pub valuation: Option<&'static str>,
    /// EVs of up, down, left, right.
    pub branches: Vec<BranchView>,
}

/// One branch.
#[derive(Debug, Clone, Serialize)]
pub struct BranchView {
    /// The move.
    #[serde(rename = "move")]
    pub mv: &'static str,
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
}
