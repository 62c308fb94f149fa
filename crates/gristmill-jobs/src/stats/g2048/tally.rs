//! Step rows, one after another -> counts that can be joined with those of other rows.

use std::collections::BTreeMap;

use gristmill_format::g2048::moves::{legal, slide};
use gristmill_format::g2048::{Move, StepRow};

use serde::{Deserialize, Serialize};

use super::ValuationStats;
use super::gaps::GapTally;

/// Counts of rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RowTally {
    pub(super) rows: u64,
    /// By number; the last for what is no move.
    pub(super) moves: [u64; 5],
    /// By the number of legal moves.
    pub(super) legal: [u64; 5],
    pub(super) valuations: BTreeMap<u8, Valuation>,
    /// Highest rank of the boards, and of the board after the newest move.
    most: u8,
}

/// Counts of rows of one valuation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Valuation {
    rows: u64,
    best_chosen: u64,
    gaps: GapTally,
}

impl RowTally {
    /// Takes in a row.
    pub(super) fn add(&mut self, row: &StepRow) {
        let board = row.decoded_board();
        let legal = legal(&board);
        self.rows += 1;
        self.moves[usize::from(row.move_dir.min(4))] += 1;
        self.legal[legal.count_ones() as usize] += 1;
        self.most = self.most.max(board.max_rank());
        if board.max_rank() == self.most
            && let Some(mv) = Move::from_index(row.move_dir)
            && let Ok(Some(after)) = slide(&board, mv)
        {
            self.most = self.most.max(after.board.max_rank());
        }
        self.valuations.entry(row.valuation_type).or_default().add(row, legal & row.ev_legal);
    }

    /// The highest tile of the boards.
    pub(super) fn highest_tile(&self) -> u64 {
        if self.most == 0 { 0 } else { 1 << self.most }
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: RowTally) {
        self.rows += other.rows;
        self.most = self.most.max(other.most);
        self.moves.iter_mut().zip(other.moves).for_each(|(count, more)| *count += more);
        self.legal.iter_mut().zip(other.legal).for_each(|(count, more)| *count += more);
        for (id, of_id) in other.valuations {
            self.valuations.entry(id).or_default().join(of_id);
        }
    }
}

impl Valuation {
    /// Takes in a row with EVs of `these` moves.
    fn add(&mut self, row: &StepRow, these: u8) {
        self.rows += 1;
        let (mut best, mut second) = (None::<(usize, f32)>, None::<f32>);
        for (mv, &ev) in row.branch_evs.iter().enumerate().filter(|(mv, _)| these >> mv & 1 == 1) {
            if best.is_none_or(|(_, most)| ev > most) {
                second = best.map(|(_, ev)| ev);
                best = Some((mv, ev));
            } else if second.is_none_or(|most| ev > most) {
                second = Some(ev);
            }
        }
        if let (Some((_, most)), Some(second)) = (best, second) {
            self.gaps.add(f64::from(most) - f64::from(second));
            // Of equal EVs each is the best.
            let chosen = row.branch_evs.get(usize::from(row.move_dir)).filter(|_| these >> row.move_dir & 1 == 1);
            self.best_chosen += u64::from(chosen == Some(&most));
        }
    }

    /// Takes in what was counted elsewhere.
    pub(super) fn join(&mut self, other: Valuation) {
        self.rows += other.rows;
        self.best_chosen += other.best_chosen;
        self.gaps.join(other.gaps);
    }

    pub(super) fn finish(self) -> ValuationStats {
        ValuationStats { rows: self.rows, best_chosen: self.best_chosen, gaps: self.gaps.finish() }
    }
}

/// Counts by the name of the move.
pub(super) fn by_move(counts: [u64; 5]) -> BTreeMap<&'static str, u64> {
    let names = Move::ALL.map(Move::name).into_iter().chain(["unknown"]);
    names.zip(counts).filter(|(name, count)| *name != "unknown" || *count > 0).collect()
}
