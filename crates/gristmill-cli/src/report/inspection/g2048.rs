//! A 2048 step as text: the board beside the EVs of the four moves. Prints nothing.

use std::fmt::Write;

use gristmill_engine::job::inspect::{Step, StepView};

/// The text of a step, to follow its place.
pub(super) fn text(view: &StepView) -> String {
    let step = &view.step;
    format!(": run {}, step {}, seed {}\n\n{}", step.run_id, step.step_index, step.seed, drawn(step))
}

/// A step drawn: its board beside the EVs, its move, and what was noted.
pub(crate) fn drawn(step: &Step) -> String {
    let mut out = String::new();
    let width = step.drawing.lines().map(str::len).max().unwrap_or_default();
    for (row, branch) in step.drawing.lines().zip(&step.branches) {
        let ev = branch.ev.map_or("-".to_owned(), |ev| format!("{ev:.6}"));
        let mark = if step.mv == Some(branch.mv) { "*" } else { "" };
        let _ = writeln!(out, "{}", format!("  {row:<width$}    {:<5} {ev:>16} {mark}", branch.mv).trim_end());
    }
    let valuation = step.valuation.map_or(format!("valuation type {}", step.valuation_type), str::to_owned);
    let moved = step.mv.unwrap_or("unknown");
    let _ = writeln!(out, "\nmove {moved} by {valuation}, board_eval {}, max_rank {}", step.board_eval, step.max_rank);
    out
}
