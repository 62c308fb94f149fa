//! Series of numbers over the frames of a game -> a chart with one cursor. What is no number is a gap.

use std::fmt::Write;

use serde::Serialize;

use crate::html::{escape, number};

/// Units of a chart.
pub(super) const WIDTH: f64 = 1000.0;
pub(super) const HEIGHT: f64 = 100.0;

/// Some series of one unit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Chart {
    /// What they are.
    pub(crate) title: String,
    /// The least range that is shown; none for that of the numbers.
    #[serde(skip)]
    pub(crate) range: Option<[f64; 2]>,
    /// The series: names and a number for each frame that was read.
    pub(crate) series: Vec<(String, Vec<f64>)>,
}

impl Chart {
    /// A chart without series.
    pub(crate) fn new(title: &str, range: Option<[f64; 2]>, names: &[&str]) -> Self {
        let series = names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        Chart { title: title.to_owned(), range, series }
    }

    /// Adds a number to each series.
    pub(crate) fn push(&mut self, values: &[f64]) {
        for ((_, series), value) in self.series.iter_mut().zip(values) {
            series.push(*value);
        }
    }

    /// Whether no series has a number.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.iter().all(|(_, series)| !series.iter().any(|value| value.is_finite()))
    }

    /// Takes out the series without a number.
    pub(crate) fn tidied(mut self) -> Self {
        self.series.retain(|(_, series)| series.iter().any(|value| value.is_finite()));
        self
    }
}

/// A chart over frames; `at` are the frames that were read, of `frames`, the cursor stands on `frame`, and `faults` are marked.
pub(crate) fn chart(chart: &Chart, at: &[u64], frames: u64, frame: u64, faults: &[u64]) -> String {
    let values = || chart.series.iter().flat_map(|(_, series)| series).copied().filter(|value| value.is_finite());
    let (mut least, mut most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if let Some([from, to]) = chart.range {
        (least, most) = (least.min(from), most.max(to));
    }
    let y = |value: f64| match most > least {
        true => 4.0 + (HEIGHT - 8.0) * (1.0 - (value - least) / (most - least)),
        false => HEIGHT / 2.0,
    };
    let mut out = format!("<figure class=\"chart\"><figcaption><strong>{}</strong>", escape(&chart.title));
    if chart.series.len() > 1 {
        for (i, (name, _)) in chart.series.iter().enumerate() {
            let _ = write!(out, "<span class=\"key s{i}\">{}</span>", escape(name));
        }
    }
    let _ = write!(
        out,
        "<span class=\"range\">{} … {}</span></figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{}, from {} to {}\" data-chart>",
        number(least),
        number(most),
        escape(&chart.title),
        number(least),
        number(most)
    );
    if least < 0.0 && most > 0.0 {
        let _ = write!(out, "<line class=\"zero\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{0:.2}\" y2=\"{0:.2}\"/>", y(0.0));
    }
    for fault in faults {
        let _ = write!(
            out,
            "<line class=\"fault\" x1=\"{0:.2}\" x2=\"{0:.2}\" y1=\"0\" y2=\"{HEIGHT}\"><title>frame {fault}</title></line>",
            place(*fault, frames)
        );
    }
    for (i, (_, series)) in chart.series.iter().enumerate() {
        let _ = write!(out, "<path class=\"line s{i}\" d=\"");
        let mut pen = 'M';
        for (frame, value) in at.iter().zip(series) {
            if value.is_finite() {
                let _ = write!(out, "{pen}{:.2} {:.2}", place(*frame, frames), y(*value));
                pen = 'L';
            } else {
                pen = 'M';
            }
        }
        out.push_str("\"/>");
    }
    let x = place(frame, frames);
    let _ = write!(out, "<line class=\"cursor\" x1=\"{x:.2}\" x2=\"{x:.2}\" y1=\"0\" y2=\"{HEIGHT}\"/></svg></figure>");
    out
}

/// Where a frame stands.
pub(super) fn place(frame: u64, frames: u64) -> f64 {
    if frames > 1 { frame as f64 / (frames - 1) as f64 * WIDTH } else { WIDTH / 2.0 }
}

/// Frames to read of `frames`: all, or `most` of them evenly spaced, the first and the last among them.
pub(crate) fn sampled(frames: u64, most: u64) -> Vec<u64> {
    if frames <= most {
        return (0..frames).collect();
    }
    let most = most.max(2);
    (0..most).map(|i| (u128::from(i) * u128::from(frames - 1) / u128::from(most - 1)) as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_part_a_line_and_the_cursor_stands_on_its_frame() {
        let mut own = Chart::new("value <x>", Some([-1.0, 1.0]), &["a", "b"]);
        for value in [0.0, f64::NAN, 1.0, 0.5] {
            own.push(&[value, f64::NAN]);
        }
        let own = own.tidied();
        assert_eq!(own.series.len(), 1);
        let svg = chart(&own, &[0, 1, 2, 3], 4, 3, &[2]);
        assert!(svg.contains("M0.00 50.00M666.67 4.00L1000.00 27.00"), "{svg}");
        assert!(svg.contains("x1=\"1000.00\"") && svg.contains("value &lt;x&gt;") && svg.contains("class=\"zero\""));
        assert!(svg.contains("<line class=\"fault\" x1=\"666.67\""));
    }

    #[test]
    fn long_games_are_sampled_with_both_ends() {
        assert_eq!(sampled(3, 10), [0, 1, 2]);
        assert_eq!(sampled(101, 5), [0, 25, 50, 75, 100]);
        assert_eq!(sampled(u64::MAX, 3).last(), Some(&(u64::MAX - 1)));
        assert!(sampled(0, 5).is_empty());
    }
}
