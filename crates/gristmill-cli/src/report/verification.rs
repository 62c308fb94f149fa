//! A verification as text: one line per fault, then the sum. Prints nothing.

use std::fmt::Write;

use gristmill_engine::job::verify::{Fault, Verification};

/// The text of `found`.
pub(crate) fn text(found: &Verification) -> String {
    let mut out = String::new();
    found.faults.iter().for_each(|fault| out.push_str(&line(fault)));
    let more = found.fault_count - found.faults.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "... and {more} more faults");
    }
    let verdict = if found.ok { "ok".to_owned() } else { format!("{} faults", found.fault_count) };
    let _ = write!(out, "{verdict}: {} frames in {} chunks in {} files", found.checked, found.chunks, found.files);
    if found.skipped > 0 {
        let _ = write!(out, ", {} other files", found.skipped);
    }
    if found.salvageable > 0 {
        let _ = write!(out, "; {} whole records can be had from damaged chunks", found.salvageable);
    }
    out
}

fn line(fault: &Fault) -> String {
    let mut out = fault.file.clone().unwrap_or_default();
    let mut part = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(out, ", {name} {value}");
        }
    };
    part("member", fault.member.clone());
    part("chunk", fault.chunk.map(|n| n.to_string()));
    part("frame", fault.frame.map(|n| n.to_string()));
    part("line", fault.line.map(|n| n.to_string()));
    part("column", fault.column.map(|n| n.to_string()));
    part("byte", fault.offset.map(|n| n.to_string()));
    let _ = write!(out, ": {}: {}", fault.rule.unwrap_or(fault.kind), fault.detail);
    if let Some(n) = fault.salvageable {
        let _ = write!(out, " ({n} whole records can be had)");
    }
    out + "\n"
}
