//! A 2048 step as text: the board beside the EVs of the four moves. Prints nothing.

use std::fmt::Write;

use gristmill_engine::job::inspect::StepView;

/// The text of a step, to follow its place.
pub(super) fn text(view: &StepView) -> String {
    let mut out = format!(": run {}, step {}, seed {}\n\n", view.run_id, view.step_index, view.seed);
    let width = view.drawing.lines().map(str::len).max().unwrap_or_default();
    for (row, branch) in view.drawing.lines().zip(&view.branches) {
        let ev = branch.ev.map_or("-".to_owned(), |ev| format!("{ev:.6}"));
        let mark = if view.mv == Some(branch.mv) { "*" } else { "" };
        let _ = writeln!(out, "{}", format!("  {row:<width$}    {:<5} {ev:>16} {mark}", branch.mv).trim_end());
    }
    let valuation = view.valuation.map_or(format!("valuation type {}", view.valuation_type), str::to_owned);
    let moved = view.mv.unwrap_or("unknown");
    let _ = writeln!(out, "\nmove {moved} by {valuation}, board_eval {}, max_rank {}", view.board_eval, view.max_rank);
    out
}
