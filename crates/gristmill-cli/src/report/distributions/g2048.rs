//! What 2048 games are like, as distributions. Prints nothing.

use gristmill_jobs::stats::{Gaps, StepStats};

use super::super::distribution::Distribution;

/// The distributions of 2048 games.
pub(super) fn distributions(found: &StepStats) -> Vec<Distribution> {
    let counts = |title: &str, unit, counts: Vec<(String, u64)>| Distribution::of_counts(title, unit, counts);
    let mut all = vec![
        Distribution::of_spread("score", "games", &found.score),
        Distribution::of_spread("steps per game", "games", &found.length),
        tiles(found),
        counts("move", "steps", found.moves.iter().map(|(name, n)| (name.to_string(), *n)).collect()),
        counts("legal moves", "steps", found.legal_moves.iter().map(|(legal, n)| (legal.to_string(), *n)).collect()),
        counts("valuation", "steps", found.valuations.iter().map(|(name, of)| (name.clone(), of.rows)).collect()),
    ];
    for (name, of) in &found.valuations {
        all.push(gaps(name, &of.gaps, of.best_chosen));
    }
    all
}

/// Games by highest tile, and the share that reached each.
fn tiles(found: &StepStats) -> Distribution {
    let mut left = found.games;
    let reached = found.highest_tiles.iter().map(|(tile, n)| {
        let share = left as f64 / found.games.max(1) as f64 * 100.0;
        left -= n;
        format!("{tile} {share:.1} %")
    });
    let reached: Vec<String> = reached.collect();
    let tiles = found.highest_tiles.iter().map(|(tile, n)| (*tile, *n));
    let mut tiles = Distribution::of_counts("highest tile", "games", tiles);
    tiles.summary.push(format!("reached: {}", reached.join(", ")));
    tiles
}

/// How far the best move is from the second, in the units of the valuation.
fn gaps(name: &str, gaps: &Gaps, best_chosen: u64) -> Distribution {
    let [p10, p25, p50, p75, p90] = gaps.percentiles.map(number);
    let share = best_chosen as f64 / gaps.count.max(1) as f64 * 100.0;
    let summary = vec![
        format!("{} to {}, mean {}", number(gaps.min), number(gaps.max), number(gaps.mean)),
        format!("10 % {p10}, 25 % {p25}, 50 % {p50}, 75 % {p75}, 90 % {p90}"),
        format!("the move with the highest EV was made in {share:.2} %"),
    ];
    let bars = gaps.histogram.iter();
    let bars = bars.map(|bar| (format!("< {}", number(bar.to)), bar.count as f64)).collect();
    Distribution { title: format!("gap between the best two EVs, {name}"), unit: "steps", summary, bars }
}

/// Four digits of a number, whatever its magnitude.
fn number(n: f64) -> String {
    if n == 0.0 || (1e-3..1e5).contains(&n) {
        format!("{:.4}", n).trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{n:.1e}")
    }
}
