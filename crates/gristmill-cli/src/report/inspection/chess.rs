//! A chess position as text: the board beside its moves, then values and result. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::inspect::{ChessView, ValueRow};

use super::Parts;

/// The text of a position, to follow its place.
pub(super) fn text(view: &ChessView, parts: &Parts) -> String {
    let mut out = format!(": version {}, input format {}\n", view.version, view.input_format);
    let _ = writeln!(out, "{}\n", view.fen);
    let board = view.drawings[usize::from(parts.ascii)].trim_end().to_owned();
    let moves = moves(view, parts.record);
    let rows = board.lines().count().max(moves.len());
    for row in 0..rows {
        let left = board.lines().nth(row).unwrap_or_default();
        let width = left.chars().count();
        // A coloured square is as wide as the others at the edge of the board, too.
        let (left, width) = match squares(left, row, view).filter(|_| parts.color) {
            Some(coloured) => (coloured, width + 1),
            None => (left.to_owned(), width),
        };
        let pad = " ".repeat(22_usize.saturating_sub(width));
        let right = moves.get(row).map_or("", String::as_str);
        let _ = writeln!(out, "{}", format!("  {left}{pad}{right}").trim_end());
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

/// The moves that were visited, or all of them.
fn moves(view: &ChessView, all: bool) -> Vec<String> {
    let mut lines = vec![format!("{} legal moves", view.legal_moves)];
    let most = view.moves.iter().map(|m| m.share).fold(f32::MIN_POSITIVE, f32::max);
    for m in view.moves.iter().filter(|m| all || m.share > 0.0) {
        let bar = "#".repeat((m.share / most * 24.0).round().clamp(0.0, 24.0) as usize);
        let is = |named: &Option<String>| named.as_ref() == Some(&m.uci);
        let mark = match (is(&view.best), is(&view.played)) {
            (true, true) => " best, played",
            (true, false) => " best",
            (false, true) => " played",
            (false, false) => "",
        };
        lines.push(format!("{:<5} {:>5.1} % {bar}{mark}", m.uci, m.share * 100.0));
    }
    lines
}

/// A line of the board with the colours of its squares, those of the move that was played in green; none for other lines.
fn squares(line: &str, row: usize, view: &ChessView) -> Option<String> {
    const LIGHT: &str = "180";
    const DARK: &str = "137";
    const PLAYED: &str = "71";
    let (rank, files) = line.split_once(' ').filter(|_| row < 8)?;
    let mut out = format!("{rank} ");
    for (file, piece) in files.chars().filter(|c| *c != ' ').take(8).enumerate() {
        let square = format!("{}{rank}", char::from(b'a' + file as u8));
        let played = view.played.as_ref().is_some_and(|uci| uci.starts_with(&square) || uci.get(2..4) == Some(&square));
        let ground = if played {
            PLAYED
        } else if (file + row).is_multiple_of(2) {
            LIGHT
        } else {
            DARK
        };
        let piece = if piece == '.' || piece == '·' { ' ' } else { piece };
        let _ = write!(out, "\x1b[48;5;{ground}m\x1b[38;5;16m{piece} ");
    }
    Some(out + "\x1b[0m")
}

fn value(row: &ValueRow) -> String {
    let number = |x: f32, decimals: usize| match x.is_nan() {
        true => "-".to_owned(),
        false => format!("{x:.decimals$}"),
    };
    format!("{:<8} {:>8} {:>8} {:>8}\n", row.name, number(row.q, 4), number(row.d, 4), number(row.m, 1))
}
