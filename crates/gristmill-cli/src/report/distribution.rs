//! A distribution of anything, of any game: what is counted, and a bar for each value or range.
//! Text and pages are made of these alone; prints nothing.

use std::fmt::Write;

use gristmill_jobs::stats::Spread;

/// The longest bar in a text.
const BAR: f64 = 40.0;

/// How much of something falls where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distribution {
    /// What is distributed, such as `plies per game`.
    pub(crate) title: String,
    /// What the bars count, in the plural, such as `games`.
    pub(crate) unit: &'static str,
    /// A line or two about the whole; may be empty.
    pub(crate) summary: Vec<String>,
    /// Values or ranges in order, and how many fall there.
    pub(crate) bars: Vec<(String, f64)>,
}

impl Distribution {
    /// Counts of named things.
    pub(crate) fn of_counts(
        title: &str,
        unit: &'static str,
        counts: impl IntoIterator<Item = (impl ToString, u64)>,
    ) -> Self {
        let bars = counts.into_iter().map(|(name, n)| (name.to_string(), n as f64)).collect();
        Distribution { title: title.to_owned(), unit, summary: Vec::new(), bars }
    }

    /// A spread of whole numbers.
    pub(crate) fn of_spread(title: &str, unit: &'static str, spread: &Spread) -> Self {
        let [p10, p25, p50, p75, p90] = spread.percentiles;
        let summary = vec![
            format!("{} to {}, mean {:.1}", spread.min, spread.max, spread.mean),
            format!("10 % {p10}, 25 % {p25}, 50 % {p50}, 75 % {p75}, 90 % {p90}"),
        ];
        let label = |from: u64, to: u64| if from == to { from.to_string() } else { format!("{from}-{to}") };
        let bars = spread.histogram.iter().map(|bar| (label(bar.from, bar.to), bar.count as f64)).collect();
        Distribution { title: title.to_owned(), unit, summary, bars }
    }

    /// Whether it has nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.bars.iter().all(|(_, n)| *n == 0.0)
    }

    /// The sum of all bars.
    pub(crate) fn sum(&self) -> f64 {
        self.bars.iter().map(|(_, n)| n).sum()
    }

    /// It as text: title, summary, a line for each bar. Nothing when there is nothing to show.
    pub(crate) fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let most = self.bars.iter().map(|(_, n)| *n).fold(0.0, f64::max);
        let sum = self.sum();
        let mut out = format!("{} ({})\n", self.title, self.unit);
        self.summary.iter().for_each(|line| _ = writeln!(out, "  {line}"));
        for (label, n) in &self.bars {
            let bar = "#".repeat((n / most * BAR).round() as usize);
            let share = n / sum * 100.0;
            let _ = writeln!(out, "{}", format!("  {label:>13} {:>9} {share:>5.1} % {bar}", amount(*n)).trim_end());
        }
        out.push('\n');
        out
    }
}

/// An amount for people: whole numbers as they are, others with three digits after the point.
pub(crate) fn amount(n: f64) -> String {
    if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.3}") }
}
