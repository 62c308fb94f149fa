//! What came of converting rows of 2048, as text. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::convert::Converted;

/// At most this many lines are about single runs.
const LINES: usize = 20;

/// The text of a conversion.
pub(crate) fn text(converted: &Converted) -> String {
    let mut out = String::new();
    converted.remarks.iter().take(LINES).for_each(|odd| _ = writeln!(out, "odd: {odd}"));
    if converted.remarks.len() > LINES {
        let _ = writeln!(out, "... and {} more such runs", converted.remarks.len() - LINES);
    }
    converted.lost.iter().for_each(|what| _ = writeln!(out, "dropped: {what}"));
    converted.filled.iter().for_each(|what| _ = writeln!(out, "made up: {what}"));
    let Converted { output, from, to, rows, read, runs, .. } = converted;
    let verb = if converted.dry_run { "would hold" } else { "holds" };
    let _ = write!(out, "{output} {verb} {rows} rows of {runs} games as {to}, from {from}");
    if rows < read {
        let _ = write!(out, "; {} without partners left out", read - rows);
    }
    if converted.sorted {
        let _ = write!(out, "; brought into order of game and step");
    }
    out
}
