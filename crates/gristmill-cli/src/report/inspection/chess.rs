//! A chess position as text: the board beside its moves, then values and result. Prints nothing.

use std::fmt::Write;

use gristmill_engine::job::inspect::{ChessView, ValueRow};

/// The text of a position, to follow its place; the board in letters if `ascii`.
pub(super) fn text(view: &ChessView, ascii: bool) -> String {
    let mut out = format!(": version {}, input format {}\n", view.version, view.input_format);
    let _ = writeln!(out, "{}\n", view.fen);
    let board = view.drawings[usize::from(ascii)].trim_end().to_owned();
    let moves = moves(view);
    let rows = board.lines().count().max(moves.len());
    for row in 0..rows {
        let left = board.lines().nth(row).unwrap_or_default();
        let right = moves.get(row).map_or("", String::as_str);
        let _ = writeln!(out, "{}", format!("  {left:<22}{right}").trim_end());
    }
    let _ = writeln!(out, "\n             q        d        m");
    view.values.iter().for_each(|row| out.push_str(&value(row)));
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
    let _ = writeln!(out, "played {}, best {}, {} visits", named(&view.played), named(&view.best), view.visits);
    let result = match view.values.first() {
        Some(ValueRow { q, .. }) if *q > 0.5 => format!("{} wins", view.side),
        Some(ValueRow { q, .. }) if *q < -0.5 => format!("{} loses", view.side),
        _ => "a draw".to_owned(),
    };
    let left = view.values.first().map_or(0.0, |row| row.m);
    let _ = writeln!(out, "result {result}, {left:.1} plies left, rule 50 at {}", view.rule50);
    if !view.flags.is_empty() {
        let _ = writeln!(out, "{}", view.flags.join(", "));
    }
    out
}

fn moves(view: &ChessView) -> Vec<String> {
    let mut lines = vec![format!("{} legal moves", view.legal_moves)];
    for m in &view.moves {
        let bar = "#".repeat((m.share * 24.0).round().clamp(0.0, 24.0) as usize);
        lines.push(format!("{:<5} {:>5.1} % {bar}", m.uci, m.share * 100.0));
    }
    lines
}

fn value(row: &ValueRow) -> String {
    let number = |x: f32, decimals: usize| match x.is_nan() {
        true => "-".to_owned(),
        false => format!("{x:.decimals$}"),
    };
    format!("{:<8} {:>8} {:>8} {:>8}\n", row.name, number(row.q, 4), number(row.d, 4), number(row.m, 1))
}
