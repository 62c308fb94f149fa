//! Rates of the last seconds -> a small curve over them, and a share -> a bar. Names nothing.

use std::fmt::Write;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;

/// A curve over what lies below it, from zero to the greatest; `seconds` is its whole width, of which the newest end is at the right.
pub(crate) fn spark(values: &[f64], seconds: usize) -> String {
    let shown = &values[values.len().saturating_sub(seconds)..];
    let most = shown.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let mut out = format!(
        "<svg class=\"spark\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
    );
    if shown.len() > 1 {
        let x = |i: usize| WIDTH * (1.0 - (shown.len() - 1 - i) as f64 / (seconds.max(2) - 1) as f64);
        let y = |value: f64| {
            let share = if most > 0.0 && value.is_finite() { value / most } else { 0.0 };
            HEIGHT - 1.0 - share * (HEIGHT - 3.0)
        };
        let mut line = String::new();
        for (i, value) in shown.iter().enumerate() {
            let _ = write!(line, "{}{:.1} {:.1}", if i == 0 { "M" } else { "L" }, x(i), y(*value));
        }
        let (from, to) = (x(0), x(shown.len() - 1));
        let _ = write!(
            out,
            "<path class=\"below\" d=\"{line}L{to:.1} {HEIGHT}L{from:.1} {HEIGHT}Z\"/><path class=\"line s0\" d=\"{line}\"/>"
        );
    }
    out + "</svg>"
}

/// A bar that is filled by a share, in one of the colours of series.
pub(crate) fn bar(share: f64, color: usize) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) * 100.0 } else { 0.0 };
    format!(
        "<svg class=\"filled\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"room\" width=\"100\" height=\"8\" rx=\"1\"/><rect class=\"bar b{color}\" width=\"{share:.2}\" height=\"8\" rx=\"1\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_rate_stands_at_the_right_and_zero_below() {
        let drawn = spark(&[9.0, 0.0, 10.0, 5.0], 3);
        assert!(drawn.contains("d=\"M0.0 23.0L60.0 2.0L120.0 12.5\""), "{drawn}");
        let short = spark(&[1.0, 1.0], 61);
        assert!(short.contains("d=\"M118.0 2.0L120.0 2.0\""), "{short}");
        assert!(!spark(&[1.0], 61).contains("path") && spark(&[f64::NAN, 0.0], 61).contains("L120.0 23.0"));
        assert!(bar(0.25, 1).contains("b1\" width=\"25.00\"") && bar(f64::NAN, 0).contains("width=\"0.00\""));
    }
}
