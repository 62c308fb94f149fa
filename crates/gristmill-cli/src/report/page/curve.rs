//! Amounts by a number -> an SVG picture of a curve, beside the line on which amounts would grow as the number does.
//! Colours of text are left to the page; never fails, whatever the numbers are.

use std::fmt::Write;

use super::super::distribution::amount;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 90.0;
const BELOW: f64 = 30.0;
const ABOVE: f64 = 24.0;

/// The picture of points in ascending order; empty without one above 0.
pub(crate) fn svg(points: &[(f64, f64)]) -> String {
    let points: Vec<(f64, f64)> =
        points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite() && *x > 0.0 && *y >= 0.0).collect();
    let (Some(&(first, at_first)), Some(&(last, _))) = (points.first(), points.last()) else { return String::new() };
    let ideal = at_first / first * last;
    let most = points.iter().map(|(_, y)| *y).fold(ideal, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let x = |n: f64| LEFT + n / last * (WIDTH - LEFT - 30.0);
    let y = |n: f64| ABOVE + (1.0 - n / most) * (HEIGHT - ABOVE - BELOW);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n");
    let (zero, floor) = (x(0.0), y(0.0));
    let _ = writeln!(
        out,
        "<path d=\"M{zero:.1} {:.1}V{floor:.1}H{:.1}\" fill=\"none\" stroke=\"#808a96\"/>\
         <path d=\"M{zero:.1} {floor:.1}L{:.1} {:.1}\" fill=\"none\" stroke=\"#808a96\" stroke-dasharray=\"5 4\"/>",
        y(most),
        x(last),
        x(last),
        y(ideal),
    );
    let line: Vec<String> = points.iter().map(|&(n, of)| format!("{:.1} {:.1}", x(n), y(of))).collect();
    let _ = writeln!(out, "<path d=\"M{}\" fill=\"none\" stroke=\"#4a86c8\" stroke-width=\"2\"/>", line.join("L"));
    for &(n, of) in &points {
        let (number, of_number, right, up) = (amount(n), amount(of.round()), x(n), y(of));
        let _ = writeln!(
            out,
            "<g><title>{number}: {of_number}</title><circle cx=\"{right:.1}\" cy=\"{up:.1}\" r=\"4\" fill=\"#4a86c8\"/>\
             <text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"13\">{of_number}</text>\
             <text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"13\">{number}</text></g>",
            (up - 9.0).max(12.0),
            HEIGHT - 10.0,
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_point_of_a_perfect_run_is_on_the_dashed_line() {
        let text = svg(&[(1.0, 100.0), (2.0, 200.0)]);
        assert_eq!(text.matches(&format!("{:.1} {ABOVE:.1}", WIDTH - 30.0)).count(), 2, "{text}");
        let slow = svg(&[(1.0, 100.0), (2.0, 100.0)]);
        assert_eq!(slow.matches(&format!("{:.1} {ABOVE:.1}", WIDTH - 30.0)).count(), 1, "{slow}");
        assert_eq!(slow.matches("<circle").count(), 2);
    }

    #[test]
    fn what_is_no_point_is_left_out() {
        for points in [&[][..], &[(0.0, 1.0)], &[(1.0, f64::NAN)], &[(1.0, 0.0)]] {
            assert_eq!(svg(points), "", "{points:?}");
        }
        assert_eq!(svg(&[(1.0, 5.0), (2.0, f64::INFINITY)]).matches("<circle").count(), 1);
    }
}
