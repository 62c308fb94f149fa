//! One distribution -> an SVG picture of its bars.
//! Colours of text are left to the page; never fails, whatever the numbers are.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

use super::super::distribution::{Distribution, amount};

/// Width and height in points; the page scales it.
const SIZE: (u32, u32) = (560, 300);

/// Points for the labels of the upward axis.
const LEFT: u32 = 64;

/// Points that a letter of a label takes, and the gap between two labels.
const LETTER: usize = 7;
const GAP: usize = 10;

/// Colour of the bars, which stands out on light and on dark.
const BARS: RGBColor = RGBColor(74, 134, 200);
const FAINT: RGBColor = RGBColor(128, 138, 150);

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
    let area = SVGBackend::with_string(out, SIZE).into_drawing_area();
    let across = Across { bars: bars.len() as f64, labelled: labelled(distribution) };
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .set_label_area_size(LabelAreaPosition::Left, LEFT)
        .set_label_area_size(LabelAreaPosition::Bottom, 34)
        .build_cartesian_2d(across, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT.mix(0.35))
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .label_style(("sans-serif", 13))
        .x_label_formatter(&|x| bars.get(*x as usize).map_or(String::new(), |(label, _)| label.clone()))
        .y_label_formatter(&|n| amount(*n))
        .y_desc(distribution.unit)
        .draw()?;
    chart.draw_series(bars.iter().zip(0u32..).filter(|((_, n), _)| *n > 0.0).map(|((_, n), i)| {
        let mut bar = Rectangle::new([(i.into(), 0.0), (f64::from(i) + 1.0, *n)], BARS.filled());
        bar.set_margin(0, 0, 1, 1);
        bar
    }))?;
    area.present()?;
    Ok(())
}

/// The axis below: bar i stands from i to i + 1.
struct Across {
    bars: f64,
    labelled: Vec<f64>,
}

impl Ranged for Across {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (value / self.bars * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.labelled.clone()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.bars
    }
}

/// The middles of the bars that get a label: as many as there is room for.
fn labelled(distribution: &Distribution) -> Vec<f64> {
    let bars = &distribution.bars;
    let widest = bars.iter().map(|(label, _)| label.chars().count()).max().unwrap_or_default();
    let room = ((SIZE.0 - LEFT) as usize / (widest * LETTER + GAP)).max(1);
    (0u32..).zip(bars).step_by(bars.len().div_ceil(room).max(1)).map(|(i, _)| f64::from(i) + 0.5).collect()
}
