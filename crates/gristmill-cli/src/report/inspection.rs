//! An inspection as text: the header, the layout, the frame drawn. Prints nothing.

use std::fmt::Write;

use gristmill_engine::job::inspect::{FieldView, FrameView, Inspection, ValueRow};

/// The text of `seen`; the board in letters if `ascii`.
pub(crate) fn text(seen: &Inspection, ascii: bool) -> String {
    let mut out = format!("{}: {}, {}\n", seen.path, seen.format, super::bytes(seen.size));
    let _ = write!(out, "{} chunks, {} frames", seen.chunks, seen.frames);
    if seen.key.is_none() {
        let by_format: Vec<String> = seen.formats.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let _ = write!(out, " in {} files ({})", seen.files, by_format.join(", "));
    }
    if seen.skipped > 0 {
        let _ = write!(out, ", {} other files", seen.skipped);
    }
    out.push('\n');
    if let Some(fault) = &seen.first_fault {
        let _ = writeln!(out, "{} bad chunks; the first fault: {fault}", seen.bad_chunks);
    }
    if let Some(layout) = &seen.layout {
        let _ = writeln!(out, "\nrecord of {} bytes:", layout.size);
        layout.fields.iter().for_each(|f| out.push_str(&field(f)));
    }
    if let Some(view) = &seen.frame {
        out.push('\n');
        out.push_str(&frame(view, ascii));
    }
    out
}

fn field(field: &FieldView) -> String {
    let shape = field.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    format!("{:>7}  {:<26} {:<4} {shape}", field.offset, field.name, field.dtype).trim_end().to_owned() + "\n"
}

fn frame(view: &FrameView, ascii: bool) -> String {
    let mut out = format!("chunk {}, frame {} of {}", view.chunk, view.frame, view.frames);
    if let Some(member) = &view.member {
        let _ = write!(out, ", {member}");
    }
    let _ = writeln!(out, ": version {}, input format {}", view.version, view.input_format);
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

fn moves(view: &FrameView) -> Vec<String> {
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
