//! One parsed line of a log, as logged, and the row that it becomes.
//! Both parsers give the same `Step`; what a row needs beyond it comes from the line before and the sidecar.

use std::borrow::Cow;

use gristmill_bytes::error::Result;

use crate::g2048::board::{Board, CELLS};
use crate::g2048::heuristic::board_eval;
use crate::g2048::moves::Move;
use crate::g2048::row::StepRow;

/// What a line says; `None` where a key is absent or null.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<'a> {
    /// The game's seed.
    pub seed: Option<u64>,
    /// Index of the step in its game.
    pub step_index: Option<u32>,
    /// The highest rank.
    pub max_rank: Option<u8>,
    /// The move that was made.
    pub mv: Move,
    /// Where the EVs come from; absent in old logs, which means `search`.
    pub valuation: Option<Cow<'a, str>>,
    /// Ranks as written, not yet judged.
    pub ranks: [u8; CELLS],
    /// EVs of up, down, left, right; +0.0 where there is none.
    pub evs: [f32; 4],
    /// Bit i (up, down, left, right): the EV is a number.
    pub legal: u8,
    /// Whether `branch_evs` has keys that name no move; they are ignored.
    pub unknown_branch: bool,
}

impl Step<'_> {
    /// The row of the step, but for the name of its valuation.
    ///
    /// Errors: `OutOfRange` for a rank above 31 or a board whose heuristic value leaves 32 bits.
    pub(super) fn row(&self, step_index: u32, seed: u32, max_rank: u8, valuation_type: u8) -> Result<StepRow> {
        let board = Board::new(self.ranks)?;
        let packed = board.pack();
        Ok(StepRow {
            run_id: 0,
            step_index,
            board: packed.board,
            board_eval: board_eval(&board)?,
            tile_65536_mask: packed.mask,
            move_dir: self.mv.index() as u8,
            valuation_type,
            ev_legal: self.legal,
            max_rank,
            seed,
            branch_evs: self.evs,
        })
    }
}
