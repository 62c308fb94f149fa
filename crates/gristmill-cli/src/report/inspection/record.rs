//! Every field of a record as text: a line for each number, arrays without the value that most of them have.
//! Prints nothing.

use std::fmt::Write;

use gristmill_jobs::inspect::{Cell, Record};

/// Arrays of at most this many elements are written out.
const SHORT: usize = 16;

/// Widest line of a long array, in letters.
const WIDE: usize = 100;

/// The text of a record.
pub(super) fn text(record: &Record) -> String {
    let mut out = String::new();
    for (name, cell) in &record.0 {
        match cell {
            Cell::Array(cells) if cells.len() > SHORT => long(&mut out, name, cells),
            cell => _ = writeln!(out, "  {name:<26} {}", word(cell)),
        }
    }
    out
}

fn word(cell: &Cell) -> String {
    match cell {
        Cell::Unsigned(n) => n.to_string(),
        Cell::Signed(n) => n.to_string(),
        Cell::Single(x) if x.is_nan() => "-".to_owned(),
        Cell::Double(x) if x.is_nan() => "-".to_owned(),
        Cell::Single(x) => x.to_string(),
        Cell::Double(x) => x.to_string(),
        Cell::Truth(x) => x.to_string(),
        Cell::Bytes(text) => text.clone(),
        Cell::Array(cells) => cells.iter().map(word).collect::<Vec<_>>().join(" "),
        Cell::Record(record) => {
            let fields: Vec<String> = record.0.iter().map(|(name, cell)| format!("{name} {}", word(cell))).collect();
            format!("({})", fields.join(", "))
        }
    }
}

/// Numbers of 64 bits are bits of boards: they are written as such.
fn long(out: &mut String, name: &str, cells: &[Cell]) {
    let words: Vec<String> = cells.iter().map(word).collect();
    let mut sorted: Vec<&str> = words.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let usual = sorted.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map_or("", |same| same[0]).to_owned();
    let _ = writeln!(out, "  {name:<26} {} numbers, all {usual} but", cells.len());
    let wide = cells.iter().any(|cell| matches!(cell, Cell::Unsigned(n) if *n > u64::from(u32::MAX)));
    let mut line = String::new();
    for (i, (cell, word)) in cells.iter().zip(&words).enumerate().filter(|(_, (_, word))| **word != usual) {
        let shown = match cell {
            Cell::Unsigned(n) if wide => format!("{i}: {n:016x}  "),
            _ => format!("{i}: {word}  "),
        };
        if line.len() + shown.len() > WIDE {
            let _ = writeln!(out, "    {}", line.trim_end());
            line.clear();
        }
        line.push_str(&shown);
    }
    if !line.is_empty() {
        let _ = writeln!(out, "    {}", line.trim_end());
    }
}
