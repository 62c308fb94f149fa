//! A 2048 step as text: the board beside the EVs of the four moves. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::inspect::{Step, StepView};

/// The text of a step, to follow its place.
pub(super) fn text(view: &StepView, color: bool) -> String {
    let step = &view.step;
    format!(": run {}, step {}, seed {}\n\n{}", step.run_id, step.step_index, step.seed, painted(step, color))
}

/// A step drawn: its board beside the EVs, its move, and what was noted.
pub(crate) fn drawn(step: &Step) -> String {
    painted(step, false)
}

/// The same, with tiles in colours.
fn painted(step: &Step, color: bool) -> String {
    let mut out = String::new();
    let width = step.drawing.lines().map(str::len).max().unwrap_or_default();
    let best = step.branches.iter().filter_map(|branch| branch.ev).fold(f32::NEG_INFINITY, f32::max);
    for (number, (row, branch)) in step.drawing.lines().zip(&step.branches).enumerate() {
        let ev = branch.ev.map_or("-".to_owned(), |ev| format!("{ev:.6}"));
        let made = if step.mv == Some(branch.mv) { "*" } else { "" };
        let mark = if branch.ev == Some(best) { format!("{made} best") } else { made.to_owned() };
        let tiles = format!("{row:<width$}");
        let tiles = if color { tinted(&tiles, &step.ranks[4 * number..4 * number + 4]) } else { tiles };
        let _ = writeln!(out, "{}", format!("  {tiles}    {:<5} {ev:>16} {mark}", branch.mv).trim_end());
    }
    let valuation = step.valuation.map_or(format!("valuation type {}", step.valuation_type), str::to_owned);
    let moved = step.mv.unwrap_or("unknown");
    let _ = writeln!(out, "\nmove {moved} by {valuation}, board_eval {}, max_rank {}", step.board_eval, step.max_rank);
    out
}

/// A row of tiles, each in the colour of its rank.
fn tinted(row: &str, ranks: &[u8]) -> String {
    const GROUNDS: [u8; 12] = [236, 255, 230, 215, 209, 203, 196, 221, 220, 214, 178, 172];
    let cell = row.chars().count().div_ceil(ranks.len().max(1));
    let letters: Vec<char> = row.chars().collect();
    let mut out = String::new();
    for (tile, rank) in letters.chunks(cell.max(1)).zip(ranks) {
        let ground = GROUNDS.get(usize::from(*rank)).copied().unwrap_or(21);
        let ink = if *rank == 0 || usize::from(*rank) >= GROUNDS.len() { 252 } else { 16 };
        out += &format!("\x1b[48;5;{ground}m\x1b[38;5;{ink}m{}", tile.iter().collect::<String>());
    }
    out + "\x1b[0m"
}
