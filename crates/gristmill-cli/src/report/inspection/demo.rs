//! A step of a demonstration as text: a table of its fields. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::inspect::{DemoView, ValueView};

/// The text of a step, to follow its place.
pub(super) fn text(view: &DemoView) -> String {
    let mut out = "\n\n".to_owned();
    let width = view.values.iter().map(|value| value.name.len()).max().unwrap_or_default();
    for value in &view.values {
        let shape = value.shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let line = format!("  {:<width$}  {:<4} {shape:<10} {}", value.name, value.dtype, range(value));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn range(value: &ValueView) -> String {
    match (value.min, value.max, value.mean) {
        (Some(one), _, _) if value.shape.is_empty() => one.to_string(),
        (Some(min), Some(max), Some(mean)) => format!("{min} to {max}, mean {mean:.3}"),
        _ => String::new(),
    }
}
