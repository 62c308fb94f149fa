//! How a column is spread -> a histogram, each bar a link to its games. Counts nothing.

use std::fmt::Write;

use crate::database::Spread;
use crate::html::{escape, grouped, number};
use crate::url::query;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 120.0;

/// Numbers that are listed one by one where there are no more.
pub(crate) const FEW: usize = 6;

/// A histogram of numbers in their order, or a list of values with a bar for each. `page` is where links lead.
pub(crate) fn spread(spread: &Spread, page: &str, condition: &str) -> String {
    if spread.bars.is_empty() {
        return "<p class=\"none\">no values</p>".to_owned();
    }
    let most = spread.bars.iter().map(|bar| bar.games).max().unwrap_or(1).max(1) as f64;
    let link = |own: &str| {
        let both = if condition.trim().is_empty() { own.to_owned() } else { format!("({condition}) AND {own}") };
        escape(&format!("{page}{}", query(&[("where", &both)])))
    };
    let mut out = String::new();
    let few = spread.bars.len() <= FEW && spread.others == 0;
    let Some([least, greatest, mean]) = spread.range.filter(|_| !few) else {
        if spread.others > 0 && spread.bars.iter().all(|bar| bar.games == 1) {
            return "<p class=\"none\">a value of its own for each game</p>".to_owned();
        }
        out.push_str("<ul class=\"values\">");
        for bar in &spread.bars {
            let share = bar.games as f64 / most * 100.0;
            let _ = write!(
                out,
                "<li><a href=\"{}\"><span class=\"name\">{}</span>\
                 <svg viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
                 <rect class=\"bar\" width=\"{share:.2}\" height=\"8\" rx=\"1\"/></svg>\
                 <span class=\"count\">{}</span></a></li>",
                link(&bar.condition),
                crate::html::cut(if bar.label.is_empty() { "(empty)" } else { &bar.label }),
                grouped(bar.games)
            );
        }
        return out + "</ul>";
    };
    let step = WIDTH / spread.bars.len().max(8) as f64;
    let _ = write!(out, "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {}\" role=\"group\">", HEIGHT + 2.0);
    for (i, bar) in spread.bars.iter().enumerate() {
        let (x, label) = (step * i as f64, escape(&format!("{}: {} games", bar.label, grouped(bar.games))));
        let tall = if bar.games == 0 { 0.0 } else { (bar.games as f64 / most * HEIGHT).max(1.5) };
        let _ = write!(
            out,
            "<a href=\"{}\"{} aria-label=\"{label}\"><title>{label}</title>\
             <rect class=\"room\" x=\"{x:.2}\" width=\"{step:.2}\" height=\"{HEIGHT}\"/>\
             <rect class=\"bar\" x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{tall:.2}\" rx=\"1.5\"/></a>",
            link(&bar.condition),
            bar.range.map_or_else(String::new, |[from, to]| format!(" data-from=\"{from}\" data-to=\"{to}\"")),
            x + 1.0,
            HEIGHT - tall,
            (step - 2.0).max(0.5)
        );
    }
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{0}\" y2=\"{0}\"/></svg><p class=\"scale\"><span>{1}</span>\
         <span>mean {2}</span><span>{3}</span></p>",
        HEIGHT + 0.5,
        number(least),
        number(mean),
        number(greatest)
    );
    out
}
