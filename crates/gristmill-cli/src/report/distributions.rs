//! What games are like, as text and as a page of plots. Prints nothing.

mod demo;
mod g2048;

use gristmill_jobs::stats::{Share, Stats};

use super::distribution::Distribution;
use super::page::{self, Page};

/// The text of `found`.
pub(crate) fn text(found: &Stats) -> String {
    let (chunks, frames) = names(found);
    let mut out = format!("{} {chunks}, {} {frames} in {} files", found.chunks, found.frames, found.files);
    for (n, what) in left_out(found) {
        out.push_str(&format!(", {n} {what}"));
    }
    out.push_str(&format!("\n{}\n", sizes(found)));
    out.push_str(&endings(found).map_or("\n".to_owned(), |endings| format!("{endings}\n\n")));
    found.demos.iter().for_each(|demos| out.push_str(&format!("{}\n\n", demo::ends(demos))));
    distributions(found).iter().for_each(|distribution| out.push_str(&distribution.text()));
    out
}

/// A page about `found`, which is called `title`.
pub(crate) fn html(title: &str, found: &Stats) -> String {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let (chunks, frames) = names(found);
    let mut facts = vec![
        fact(chunks, found.chunks.to_string()),
        fact(frames, found.frames.to_string()),
        fact("files", found.files.to_string()),
    ];
    facts.extend(left_out(found).map(|(n, what)| fact(what, n.to_string())));
    facts.push(fact("size", sizes(found)));
    facts.extend(endings(found).map(|endings| fact("endings", endings)));
    facts.extend(found.demos.iter().map(|demos| fact("ends", demo::ends(demos))));
    page::html(&Page { title, facts, distributions: distributions(found), ..Page::default() })
}

/// What chunks and frames are called: of demonstrations alone other than of games.
fn names(found: &Stats) -> (&'static str, &'static str) {
    match &found.demos {
        Some(demos) if demos.trajectories == found.chunks => ("trajectories", "steps"),
        _ => ("games", "positions"),
    }
}

fn left_out(found: &Stats) -> impl Iterator<Item = (u64, &'static str)> {
    [
        (found.bad_chunks, "bad chunks"),
        (found.bad_files, "bad files"),
        (found.unreadable, "unreadable"),
        (found.skipped, "other files"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
}

fn sizes(found: &Stats) -> String {
    let ratio = found.inflated_bytes as f64 / (found.stored_bytes.max(1)) as f64;
    let (stored, inflated) = (super::bytes(found.stored_bytes), super::bytes(found.inflated_bytes));
    format!("{stored} compressed, {inflated} inflated, ratio {ratio:.1}")
}

/// How games of chess ended, where there are any.
fn endings(found: &Stats) -> Option<String> {
    let ended = || format!("adjudicated {}, cut at the maximum length {}", found.adjudicated, found.maximum_length);
    (found.length.count > 0).then(ended)
}

/// What is distributed how, in order.
pub(super) fn distributions(found: &Stats) -> Vec<Distribution> {
    let results = found.results;
    let results = [("white wins", results.white), ("draw", results.draw), ("black wins", results.black)];
    let mut all = vec![
        Distribution::of_counts("result", "games", results),
        Distribution::of_spread("plies per game", "games", &found.length),
        Distribution::of_spread("ply in the game", "positions", &found.plies),
        men(found),
        weights(found),
        start(found),
        Distribution::of_spread("visits per position", "positions", &found.visits),
        Distribution::of_spread("legal moves per position", "positions", &found.legal_moves),
        Distribution::of_counts("record version", "positions", found.versions.iter().map(|(v, n)| (*v, *n))),
        Distribution::of_counts("input format", "positions", found.input_formats.iter().map(|(v, n)| (*v, *n))),
    ];
    all.extend(found.g2048.iter().flat_map(g2048::distributions));
    all.extend(found.demos.iter().flat_map(demo::distributions));
    let numbers = found.kinds.values().flat_map(|counts| &counts.numbers);
    all.extend(
        numbers.map(|(name, counts)| Distribution::of_counts(name, "frames", counts.iter().map(|(v, n)| (*v, *n)))),
    );
    all
}

/// All numbers of men between the fewest and the most, so that gaps are seen.
fn men(found: &Stats) -> Distribution {
    let ends = found.men.keys().next().zip(found.men.keys().next_back());
    let counts = ends.into_iter().flat_map(|(fewest, most)| *fewest..=*most);
    let counts = counts.map(|men| (men, found.men.get(&men).copied().unwrap_or_default()));
    Distribution::of_counts("men on the board", "positions", counts)
}

fn weights(found: &Stats) -> Distribution {
    let Share { min, mean, max, percentiles: [p10, p25, p50, p75, p90], .. } = found.weights;
    let mut summary = vec![
        format!("{min:.4} to {max:.4}, mean {mean:.4}"),
        format!("10 % {p10:.4}, 25 % {p25:.4}, 50 % {p50:.4}, 75 % {p75:.4}, 90 % {p90:.4}"),
    ];
    if found.unweighed > 0 {
        summary.push(format!("{} positions have no value of the network to weigh by", found.unweighed));
    }
    let bars = found.weights.histogram.iter();
    let bars = bars.map(|bar| (format!("{:.3}-{:.3}", bar.from, bar.to), bar.count as f64)).collect();
    Distribution { title: "weight by difference focus".to_owned(), unit: "positions", summary, bars }
}

fn start(found: &Stats) -> Distribution {
    let bars = found.start.moves.iter().map(|first| (first.uci.clone(), first.share)).collect();
    let played = found.start.moves.iter().filter(|first| first.played > 0);
    let played: Vec<String> = played.map(|first| format!("{} {}", first.uci, first.played)).collect();
    let mut summary = vec![format!("mean over {} positions", found.start.positions)];
    if !played.is_empty() {
        summary.push(format!("played: {}", played.join(", ")));
    }
    Distribution { title: "policy of the start position".to_owned(), unit: "mean probability", summary, bars }
}
