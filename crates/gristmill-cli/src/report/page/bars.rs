//! Named amounts -> an SVG picture of bars that lie below each other, each with a part of it darker.
//! Colours of text are left to the page; never fails, whatever the numbers are.

use std::fmt::Write;

use super::escaped;

/// One bar.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// What it is of.
    pub(crate) label: String,
    /// How long it is.
    pub(crate) whole: f64,
    /// How much of it is darker, where there is such a part; it may be longer than the whole.
    pub(crate) part: Option<f64>,
    /// What stands beside it.
    pub(crate) says: String,
}

const WIDTH: f64 = 560.0;
const LABELS: f64 = 190.0;
const SAYS: f64 = 120.0;
const STEP: f64 = 26.0;

/// The picture; empty without a bar.
pub(crate) fn svg(bars: &[Bar]) -> String {
    let most = bars.iter().flat_map(|bar| [bar.whole, bar.part.unwrap_or(0.0)]).filter(|n| n.is_finite());
    let most = most.fold(0.0, f64::max);
    if bars.is_empty() || most <= 0.0 {
        return String::new();
    }
    let room = WIDTH - LABELS - SAYS;
    let long = |n: f64| if n.is_finite() { (n / most * room).clamp(0.0, room) } else { 0.0 };
    let tall = STEP * bars.len() as f64;
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {tall}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n");
    for (bar, i) in bars.iter().zip(0u32..) {
        let top = STEP * f64::from(i);
        let (label, says, middle) = (escaped(&bar.label), escaped(&bar.says), top + 17.0);
        let (whole, part) = (long(bar.whole), long(bar.part.unwrap_or(0.0)));
        let _ = writeln!(
            out,
            "<g><title>{label}: {says}</title><text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\" font-size=\"13\">{label}</text>\
             <rect x=\"{LABELS}\" y=\"{:.0}\" width=\"{whole:.1}\" height=\"16\" fill=\"#4a86c8\" fill-opacity=\"0.4\"/>\
             <rect x=\"{LABELS}\" y=\"{:.0}\" width=\"{part:.1}\" height=\"16\" fill=\"#4a86c8\"/>\
             <text x=\"{:.1}\" y=\"{middle:.0}\" font-size=\"13\">{says}</text></g>",
            LABELS - 8.0,
            top + 4.0,
            top + 4.0,
            LABELS + whole.max(part) + 6.0,
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, whole: f64, part: Option<f64>) -> Bar {
        Bar { label: label.into(), whole, part, says: format!("{whole}") }
    }

    #[test]
    fn bars_are_as_long_as_their_amounts_and_stay_inside() {
        let room = WIDTH - LABELS - SAYS;
        let text = svg(&[bar("a<b", 2.0, Some(1.0)), bar("c", 4.0, None)]);
        for width in [room / 2.0, room / 4.0, room, 0.0] {
            assert!(text.contains(&format!("width=\"{width:.1}\"")), "{width} in {text}");
        }
        assert!(text.contains("a&lt;b") && !text.contains("a<b"));
        assert!(svg(&[bar("a", f64::NAN, Some(f64::INFINITY)), bar("b", 1.0, Some(9.0))]).contains("</svg>"));
        assert_eq!((svg(&[]), svg(&[bar("a", 0.0, None)])), (String::new(), String::new()));
    }
}
