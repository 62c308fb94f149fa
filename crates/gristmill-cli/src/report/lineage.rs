//! How data came to be, as text: a line for each job, the newest first, and what went into it below, further in. Prints nothing.

use std::fmt::Write;

use gristmill_engine::lineage::Step;

/// The text of a lineage.
pub(crate) fn text(steps: &[Step]) -> String {
    let mut out = String::new();
    add(&mut out, steps, 0);
    out.trim_end().to_owned()
}

fn add(out: &mut String, steps: &[Step], depth: usize) {
    for step in steps.iter().rev() {
        let _ = write!(out, "{:1$}{2}", "", 2 * depth, step.job);
        if !step.writer.is_empty() {
            let _ = write!(out, " ({})", step.writer);
        }
        for (name, value) in &step.options {
            let _ = write!(out, " {name}={value}");
        }
        if let Some(sources) = &step.sources {
            let (games, bytes) = (sources.games, super::bytes(sources.stored_bytes));
            let _ = write!(out, ": {games} games, {bytes}, from {} (xxh3 {})", sources.name, sources.xxh3_128);
        }
        out.push('\n');
        step.from.iter().for_each(|from| add(out, from, depth + 1));
    }
}
