//! A pack of whole games as text: what it holds, its files, how games ended, what was left out. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::inspect::PackView;

use crate::report::bytes;

/// At most this many left-out games are named.
const NAMED: usize = 3;

pub(super) fn text(pack: &PackView) -> String {
    let mut out = format!("pack of {} games ({}), {} before\n", pack.games, pack.codec, bytes(pack.stored_bytes));
    if let Some(results) = &pack.results {
        let _ = write!(out, "won by White {}, drawn {}, won by Black {}", results.white, results.drawn, results.black);
        if results.other > 0 {
            let _ = write!(out, ", other results {}", results.other);
        }
        out.push('\n');
    }
    for (what, counts) in [("version", &pack.versions), ("input format", &pack.input_formats)] {
        counts.iter().for_each(|(value, games)| _ = writeln!(out, "{what} {value}: {games} games"));
    }
    for file in &pack.chunk_files {
        let _ = writeln!(out, "{}: {} games, {} frames", file.name, file.games, file.frames);
    }
    if !pack.left_out.is_empty() {
        let _ = writeln!(out, "left out: {}", pack.left_out.len());
        for left in pack.left_out.iter().take(NAMED) {
            let _ = writeln!(out, "  {}: {}: {}", left.file, left.kind, left.detail);
        }
    }
    out
}
