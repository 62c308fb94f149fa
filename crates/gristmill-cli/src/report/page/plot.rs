//! One distribution -> an SVG picture of its bars.
//! Colours of text are left to the page; never fails, whatever the numbers are.

use plotters::prelude::*;

use super::super::distribution::{Distribution, amount};

/// Width and height in points; the page scales it.
const SIZE: (u32, u32) = (560, 300);

/// Colour of the bars, which stands out on light and on dark.
const BARS: RGBColor = RGBColor(74, 134, 200);
const FAINT: RGBColor = RGBColor(128, 138, 150);

/// Most labels below the axis.
const LABELS: usize = 13;

/// The picture; empty if it cannot be drawn.
pub(super) fn svg(distribution: &Distribution) -> String {
    let mut out = String::new();
    match draw(distribution, &mut out) {
        Ok(()) => out,
        Err(_) => String::new(),
    }
}

fn draw(distribution: &Distribution, out: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let bars = &distribution.bars;
    let most = bars.iter().map(|(_, n)| *n).fold(0.0, f64::max);
    let slanted = bars.iter().any(|(label, _)| label.len() * bars.len().min(LABELS) > 60);
    let area = SVGBackend::with_string(out, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .set_label_area_size(LabelAreaPosition::Left, 64)
        .set_label_area_size(LabelAreaPosition::Bottom, if slanted { 74 } else { 34 })
        .build_cartesian_2d((0..bars.len()).into_segmented(), 0.0..most * 1.05)?;
    let label = |at: &SegmentValue<usize>| match at {
        SegmentValue::CenterOf(i) => bars.get(*i).map_or(String::new(), |(label, _)| label.clone()),
        _ => String::new(),
    };
    let style = ("sans-serif", 13).into_font();
    let across = if slanted { style.transform(FontTransform::Rotate90) } else { style };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT.mix(0.35))
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .x_labels(bars.len().min(LABELS))
        .x_label_formatter(&label)
        .x_label_style(across)
        .y_label_style(("sans-serif", 13))
        .y_label_formatter(&|n| amount(*n))
        .y_desc(distribution.unit)
        .axis_desc_style(("sans-serif", 13))
        .draw()?;
    chart.draw_series(bars.iter().enumerate().filter(|(_, (_, n))| *n > 0.0).map(|(i, (_, n))| {
        let corners = [(SegmentValue::Exact(i), 0.0), (SegmentValue::Exact(i + 1), *n)];
        let mut bar = Rectangle::new(corners, BARS.filled());
        bar.set_margin(0, 0, 1, 1);
        bar
    }))?;
    area.present()?;
    Ok(())
}
