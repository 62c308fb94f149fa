//! Step rows -> counts, and the differences that edges are made of. Neither the order of rows nor the parts they come in matter.

use serde::{Deserialize, Serialize};

use super::fit::FitOptions;
use super::tokenizer::{Valuation, round};
use crate::g2048::row::StepRow;

/// What became of the rows and branches of one kind of valuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Rows.
    pub rows: u64,
    /// Branches beside the chosen one that have a value.
    pub branches: u64,
    /// Of these, failures.
    pub failures: u64,
    /// Of these, as good as the chosen one.
    pub ties: u64,
    /// Of these, better than the chosen one.
    pub better: u64,
    /// Of these, worse: what the edges are made of.
    pub used: u64,
}

/// What became of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Found {
    /// By [`Valuation`].
    counts: [Counts; 3],
    /// Rows of valuations that are not fitted.
    pub other: u64,
    /// Rows that the tokenizer cannot encode.
    pub unusable: u64,
}

impl Found {
    /// Counts a row, and calls `each` with its differences. All of them are finite and below 0. `kind` is the valuation of the row, if the
    /// tokenizer knows it.
    pub fn add(
        &mut self,
        options: &FitOptions,
        kind: Option<Valuation>,
        row: &StepRow,
        each: &mut dyn FnMut(Valuation, f64),
    ) {
        let Some(kind) = kind.filter(|kind| options.kinds.contains(kind)) else {
            self.other += 1;
            return;
        };
        let values = row.branch_evs.map(f64::from);
        let legal = |i: usize| row.ev_legal >> i & 1 != 0;
        let chosen = usize::from(row.move_dir);
        if chosen > 3 || !legal(chosen) || (0..4).any(|i| legal(i) && !values[i].is_finite()) {
            self.unusable += 1;
            return;
        }
        let counts = &mut self.counts[kind as usize];
        counts.rows += 1;
        let (eval, tolerance) = (f64::from(row.board_eval), options.zero_tolerance);
        let cutoff = options.failure_cutoff as f64;
        let measure = |i: usize| match kind {
            Valuation::Search => round(values[i] * 1000.0) - eval,
            _ => values[i],
        };
        let best = measure(chosen);
        for i in (0..4).filter(|&i| i != chosen && legal(i)) {
            let measured = measure(i);
            let difference = measured - best;
            let (tie, failure) = match kind {
                Valuation::Search => (difference.abs() <= 0.5, measured < cutoff),
                _ => (difference.abs() <= tolerance, measured <= tolerance),
            };
            counts.branches += 1;
            if tie {
                counts.ties += 1;
            } else if failure {
                counts.failures += 1;
            } else if difference > 0.0 {
                counts.better += 1;
            } else {
                counts.used += 1;
                each(kind, difference);
            }
        }
    }

    /// Adds the counts of other rows.
    pub fn join(&mut self, more: &Found) {
        self.other += more.other;
        self.unusable += more.unusable;
        for (sums, more) in self.counts.iter_mut().zip(&more.counts) {
            sums.rows += more.rows;
            sums.branches += more.branches;
            sums.failures += more.failures;
            sums.ties += more.ties;
            sums.better += more.better;
            sums.used += more.used;
        }
    }

    /// Rows and branches of a kind.
    pub fn counts(&self, kind: Valuation) -> Counts {
        self.counts[kind as usize]
    }
}
