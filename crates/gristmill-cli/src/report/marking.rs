//! Marks as text: a line for one that was made, a line for each that there is. Prints nothing.

use std::fmt::Write;

use gristmill_engine::marks::{Fit, Listed};
use gristmill_jobs::mark::{Marked, PartMarked};

use super::shares;

/// The text of a marking.
pub(crate) fn marked(marked: &Marked) -> String {
    let verb = if marked.dry_run { "would mark" } else { "marks" };
    let Marked { pack, name, marked, frames, asked, .. } = marked;
    format!("{name} of {pack} {verb} {marked} of {frames} frames ({}); {asked} checked", share(*marked, *frames))
}

/// The text of a share of a mark.
pub(crate) fn shared(made: &PartMarked) -> String {
    let holds = format!("{} of {} frames", made.marked, made.asked);
    shares::made(&made.share, made.dry_run, &holds, &made.folder)
}

/// The text of a removal.
pub(crate) fn removed(name: &str, left: usize) -> String {
    format!("{name} is removed; {left} marks are left")
}

/// A line for each mark.
pub(crate) fn listed(marks: &[Listed]) -> String {
    let mut out = String::new();
    for mark in marks {
        let Listed { name, origin, rule, marked, frames, fit, fault } = mark;
        let fit = match fit {
            Fit::Fits => "",
            Fit::Grown => "; the pack has grown since: --update extends it",
            Fit::Foreign => "; it is of another pack",
            Fit::Damaged => "it cannot be read",
        };
        let _ = match fault {
            Some(fault) => writeln!(out, "{name}: {fit}: {fault}"),
            None if rule.is_empty() => writeln!(out, "{name}: {marked} of {frames} frames, {origin}{fit}"),
            None => writeln!(
                out,
                "{name}: {marked} of {frames} frames ({}), {origin}: {rule}{fit}",
                share(*marked, *frames)
            ),
        };
    }
    if marks.is_empty() {
        "there are no marks; `gristmill mark PACK NAME --rule SQL` makes one".to_owned()
    } else {
        out.trim_end().to_owned()
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / (whole as f64).max(1.0))
}
