//! A verification as text: one line per fault, the first of each check drawn, then the sum. Prints nothing.

use std::fmt::Write;

use gristmill_format::error::plain;
use gristmill_jobs::verify::{Example, Fault, Verification};

use super::inspection::g2048;

/// The text of `found`.
pub(crate) fn text(found: &Verification) -> String {
    let mut out = String::new();
    found.faults.iter().for_each(|fault| out.push_str(&line(fault)));
    let more = found.fault_count - found.faults.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "... and {more} more faults");
    }
    found.examples.iter().for_each(|example| out.push_str(&drawn(example)));
    let failed: Vec<String> =
        found.checks.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    if !failed.is_empty() {
        let _ = writeln!(out, "faults by check: {}", failed.join(", "));
    }
    let verdict = if found.ok { "ok".to_owned() } else { format!("{} faults", found.fault_count) };
    let _ = write!(out, "{verdict}: {} frames in {} chunks in {} files", found.checked, found.chunks, found.files);
    if found.skipped > 0 {
        let _ = write!(out, ", {} other files", found.skipped);
    }
    if found.unreadable > 0 {
        let _ = write!(out, "; {} faults are of what could not be read, and may be sound: try again", found.unreadable);
    }
    if found.salvageable > 0 {
        let _ = write!(out, "; {} whole records can be had from damaged chunks", found.salvageable);
    }
    out
}

/// The first fault of a check, with the row before it and the row itself.
fn drawn(example: &Example) -> String {
    let mut out = format!("\nthe first of {}: {}", example.fault.check(), line(&example.fault));
    for step in example.before.iter().chain([&example.row]) {
        let _ = writeln!(out, "step {}, seed {}\n{}", step.step_index, step.seed, g2048::drawn(step));
    }
    out
}

/// A line on a fault, with its place.
pub(super) fn line(fault: &Fault) -> String {
    let name = |name: &Option<String>| name.as_deref().map(|name| plain(name).into_owned());
    let mut out = name(&fault.file).unwrap_or_default();
    let mut part = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(out, ", {name} {value}");
        }
    };
    part("member", name(&fault.member));
    part("chunk", fault.chunk.map(|n| n.to_string()));
    part("run", fault.run.map(|n| n.to_string()));
    part(if fault.run.is_some() { "row" } else { "frame" }, fault.frame.map(|n| n.to_string()));
    part("line", fault.line.map(|n| n.to_string()));
    part("column", fault.column.map(|n| n.to_string()));
    part("byte", fault.offset.map(|n| n.to_string()));
    let unreadable = if fault.unreadable { "unreadable: " } else { "" };
    let _ = write!(out, ": {unreadable}{}: {}", fault.check(), fault.detail);
    if let Some(n) = fault.salvageable {
        let _ = write!(out, " ({n} whole records can be had)");
    }
    out + "\n"
}
