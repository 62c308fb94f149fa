//! Ranges of the frames of a game by name -> a band for each name, on the axis of the curves. Draws no more ranges than it is given.

use std::fmt::Write;

use crate::draw::curves::{HEIGHT, WIDTH, place};
use crate::html::{escape, grouped};

/// A name, and the ranges of frames that it is of: the first, and the one after the last.
pub(crate) type Band = (String, Vec<(u64, u64)>);

/// The bands of a game with so much as one range among them.
pub(crate) fn bands(title: &str, bands: &[Band], frames: u64, frame: u64) -> String {
    let mut out = format!("<figure class=\"chart bands\"><figcaption><strong>{}</strong></figcaption>", escape(title));
    let half = if frames > 1 { WIDTH / (frames - 1) as f64 / 2.0 } else { WIDTH / 2.0 };
    let cursor = place(frame, frames);
    for (name, ranges) in bands {
        let all: u64 = ranges.iter().map(|(first, end)| end - first).sum();
        let label = escape(&format!("{name}: {} of {} frames", grouped(all), grouped(frames)));
        let _ = write!(
            out,
            "<div class=\"band\"><span class=\"name\">{}</span><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
             role=\"img\" aria-label=\"{label}\" data-chart><rect class=\"empty\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>",
            escape(name)
        );
        for (first, end) in ranges {
            let (from, to) = (place(*first, frames) - half, place(end - 1, frames) + half);
            let (from, to) = (from.max(0.0), to.min(WIDTH));
            let _ = write!(out, "<rect class=\"bar\" x=\"{from:.2}\" width=\"{:.2}\" height=\"{HEIGHT}\"/>", to - from);
        }
        let _ = write!(
            out,
            "<line class=\"cursor\" x1=\"{cursor:.2}\" x2=\"{cursor:.2}\" y1=\"0\" y2=\"{HEIGHT}\"/></svg><span \
             class=\"count\">{}</span></div>",
            grouped(all)
        );
    }
    out + "</figure>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_where_their_frames_do() {
        let own = [("<late>".to_owned(), vec![(0, 1), (8, 11)]), ("none".to_owned(), Vec::new())];
        let drawn = bands("Marks", &own, 11, 10);
        assert!(
            drawn.contains("x=\"0.00\" width=\"50.00\"") && drawn.contains("x=\"750.00\" width=\"250.00\""),
            "{drawn}"
        );
        assert!(
            drawn.contains("&lt;late&gt;: 4 of 11 frames")
                && drawn.contains("x1=\"1000.00\"")
                && !drawn.contains("<late>")
        );
        assert!(bands("Marks", &[("all".to_owned(), vec![(0, 1)])], 1, 0).contains("x=\"0.00\" width=\"1000.00\""));
    }
}
