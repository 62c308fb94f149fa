//! What demonstrations are like, as distributions. Prints nothing.

use gristmill_jobs::stats::{DemoStats, Numbers};

use super::super::distribution::Distribution;

/// The distributions of demonstrations.
pub(super) fn distributions(found: &DemoStats) -> Vec<Distribution> {
    let mut actions: Vec<(String, u64)> = found.actions.iter().map(|(action, n)| (action.to_string(), *n)).collect();
    actions.extend((found.other_actions > 0).then(|| ("others".to_owned(), found.other_actions)));
    let mut all = vec![
        Distribution::of_spread("steps per trajectory", "trajectories", &found.length),
        of_numbers("return".to_owned(), "trajectories", &found.returns),
        Distribution::of_counts("action", "steps", actions),
    ];
    let components = found.components.iter().enumerate();
    all.extend(components.map(|(i, numbers)| of_numbers(format!("action, component {i}"), "steps", numbers)));
    all
}

/// How trajectories ended.
pub(super) fn ends(found: &DemoStats) -> String {
    let mut out = format!("{} terminated, {} truncated", found.terminated, found.truncated);
    if found.unended > 0 {
        out.push_str(&format!(" ({} without an end that `dones` marks)", found.unended));
    }
    out
}

fn of_numbers(title: String, unit: &'static str, found: &Numbers) -> Distribution {
    let [p10, p25, p50, p75, p90] = found.percentiles;
    let summary = vec![
        format!("mean {:.4} ± {:.4}, {:.4} to {:.4}", found.mean, found.std, found.min, found.max),
        format!("10 % {p10:.4}, 25 % {p25:.4}, 50 % {p50:.4}, 75 % {p75:.4}, 90 % {p90:.4}"),
    ];
    let label = |from: f64, to: f64| if from == to { format!("{from:.3}") } else { format!("{from:.3}..{to:.3}") };
    let bars = found.histogram.iter().map(|bar| (label(bar.from, bar.to), bar.count as f64)).collect();
    Distribution { title, unit, summary, bars }
}
