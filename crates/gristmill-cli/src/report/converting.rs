//! What came of converting rows of 2048, and games to text. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::convert::Converted;
use gristmill_jobs::notation::Told;

use super::shares;

/// At most this many lines are about single runs.
const LINES: usize = 20;

/// The text of games that were told.
pub(crate) fn told(told: &Told) -> String {
    let mut out = String::new();
    told.faults.iter().for_each(|fault| _ = writeln!(out, "left out: {fault}"));
    if let Some(share) = &told.share {
        let folder = format!("{}.shares", told.output);
        let holds = format!("{} games of {} positions as {}", told.games, told.frames, told.to.name());
        return out + &shares::made(share, told.dry_run, &holds, &folder);
    }
    let left_out: u64 = told.left_out.values().sum();
    let verb = if told.dry_run { "would hold" } else { "holds" };
    let Told { output, games, frames, bytes, to, .. } = told;
    let _ = write!(out, "{output} {verb} {games} games of {frames} positions as {}, {bytes} bytes", to.name());
    if told.unscored > 0 {
        let _ = write!(out, "; {} positions without a score left out", told.unscored);
    }
    if left_out > 0 {
        let _ = write!(out, "; {left_out} games or files left out");
    }
    told.made_up.iter().for_each(|what| _ = write!(out, "\nmade up: {what}"));
    out
}

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
