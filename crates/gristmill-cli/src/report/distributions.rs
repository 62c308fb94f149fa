//! Statistics as text: counts, shares and bars. Prints nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use gristmill_engine::job::stats::{Spread, Stats};

/// The longest bar.
const BAR: f64 = 40.0;

/// The text of `found`.
pub(crate) fn text(found: &Stats) -> String {
    let mut out = format!("{} games, {} positions in {} files", found.chunks, found.frames, found.files);
    for (n, what) in [(found.bad_chunks, "bad chunks"), (found.bad_files, "bad files"), (found.skipped, "other files")]
    {
        if n > 0 {
            let _ = write!(out, ", {n} {what}");
        }
    }
    let ratio = found.inflated_bytes as f64 / (found.stored_bytes.max(1)) as f64;
    let (stored, inflated) = (super::bytes(found.stored_bytes), super::bytes(found.inflated_bytes));
    let _ = writeln!(out, "\n{stored} compressed, {inflated} inflated, ratio {ratio:.1}\n");
    let results = found.results;
    let rows = [("white wins", results.white), ("draw", results.draw), ("black wins", results.black)];
    bars(&mut out, "result", rows.map(|(name, n)| (name.to_owned(), n)).into_iter());
    let _ = writeln!(out, "adjudicated {}, cut at the maximum length {}\n", found.adjudicated, found.maximum_length);
    spread(&mut out, "plies per game", &found.length);
    spread(&mut out, "visits per position", &found.visits);
    spread(&mut out, "legal moves per position", &found.legal_moves);
    counts(&mut out, "record version", &found.versions);
    counts(&mut out, "input format", &found.input_formats);
    out
}

fn counts(out: &mut String, name: &str, counts: &BTreeMap<u32, u64>) {
    bars(out, name, counts.iter().map(|(value, n)| (value.to_string(), *n)));
}

fn spread(out: &mut String, name: &str, spread: &Spread) {
    if spread.count == 0 {
        return;
    }
    let [p10, p25, p50, p75, p90] = spread.percentiles;
    let _ = writeln!(out, "{name}: {} to {}, mean {:.1}", spread.min, spread.max, spread.mean);
    let _ = writeln!(out, "  10 % {p10}, 25 % {p25}, 50 % {p50}, 75 % {p75}, 90 % {p90}");
    let label = |from: u64, to: u64| if from == to { from.to_string() } else { format!("{from}-{to}") };
    bars(out, "", spread.histogram.iter().map(|bar| (label(bar.from, bar.to), bar.count)));
    out.push('\n');
}

fn bars(out: &mut String, name: &str, rows: impl Iterator<Item = (String, u64)> + Clone) {
    let most = rows.clone().map(|(_, n)| n).max().unwrap_or(0).max(1);
    let sum = rows.clone().map(|(_, n)| n).sum::<u64>().max(1);
    if !name.is_empty() {
        let _ = writeln!(out, "{name}");
    }
    for (label, n) in rows {
        let bar = "#".repeat((n as f64 / most as f64 * BAR).round() as usize);
        let share = n as f64 / sum as f64 * 100.0;
        let _ = writeln!(out, "{}", format!("  {label:>11} {n:>9} {share:>5.1} % {bar}").trim_end());
    }
}
