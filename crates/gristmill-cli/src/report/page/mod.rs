//! Distributions of any game, and other figures -> one HTML page with plots that needs nothing beside it: no script, no font, no
//! network.
//! A function of its arguments; writes no file.

pub(crate) mod bars;
pub(crate) mod curve;
mod plot;

use std::fmt::Write;

use super::distribution::{Distribution, amount};

/// What a page says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page<'a> {
    /// Its title.
    pub(crate) title: &'a str,
    /// Names and values on top, such as `games` and `12`.
    pub(crate) facts: Vec<(String, String)>,
    /// What stands in words below them.
    pub(crate) tables: Vec<Table>,
    /// Pictures with the numbers that they show, in order.
    pub(crate) figures: Vec<Figure>,
    /// What is plotted, in order; those with nothing to show are left out.
    pub(crate) distributions: Vec<Distribution>,
}

/// A picture, and its numbers as a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figure {
    /// Its title.
    pub(crate) title: String,
    /// Lines below it.
    pub(crate) lines: Vec<String>,
    /// The picture, as SVG; may be empty.
    pub(crate) svg: String,
    /// The names of the columns of its numbers.
    pub(crate) head: Vec<String>,
    /// Its numbers.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A title, some lines, and what belongs to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// Its title.
    pub(crate) title: String,
    /// Lines below it.
    pub(crate) lines: Vec<String>,
    /// Its rows.
    pub(crate) rows: Vec<String>,
}

/// Colours and widths; the page follows the reader's choice of light or dark.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2733;--paper:#fff;--faint:#6b7785;--line:#d8dee6}
@media(prefers-color-scheme:dark){:root{--ink:#dde3ea;--paper:#151a20;--faint:#93a0ae;--line:#333d48}}
body{font:16px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1180px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{color:var(--faint)}dd{margin:0}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:1.5rem}
section{border:1px solid var(--line);border-radius:6px;padding:1rem;min-width:0}
section p{margin:.1rem 0;color:var(--faint);font-size:.9rem}
.words{margin-bottom:1rem}li{overflow-wrap:anywhere;font-size:.9rem}
svg{width:100%;height:auto}svg text{fill:var(--ink);opacity:1}
summary{cursor:pointer;color:var(--faint);font-size:.9rem}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
td,th{padding:.1rem .7rem .1rem 0;text-align:right;border-bottom:1px solid var(--line)}
";

/// The whole page.
pub(crate) fn html(page: &Page<'_>) -> String {
    let title = escaped(page.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<dl>\n"
    );
    for (name, value) in &page.facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value));
    }
    out.push_str("</dl>\n");
    page.tables.iter().for_each(|table| words(&mut out, table));
    out.push_str("<main>\n");
    page.figures.iter().for_each(|figure| drawn(&mut out, figure));
    page.distributions.iter().filter(|d| !d.is_empty()).for_each(|d| section(&mut out, d));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn words(out: &mut String, table: &Table) {
    let _ = writeln!(out, "<section class=\"words\">\n<h2>{}</h2>", escaped(&table.title));
    table.lines.iter().for_each(|line| _ = writeln!(out, "<p>{}</p>", escaped(line)));
    out.push_str("<ul>\n");
    table.rows.iter().for_each(|row| _ = writeln!(out, "<li>{}</li>", escaped(row)));
    out.push_str("</ul>\n</section>\n");
}

fn drawn(out: &mut String, figure: &Figure) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escaped(&figure.title));
    figure.lines.iter().for_each(|line| _ = writeln!(out, "<p>{}</p>", escaped(line)));
    out.push_str(&figure.svg);
    out.push_str("<details><summary>numbers</summary><table>");
    let row = |out: &mut String, tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    };
    row(out, "th", &figure.head);
    figure.rows.iter().for_each(|cells| row(out, "td", cells));
    out.push_str("</table></details>\n</section>\n");
}

fn section(out: &mut String, distribution: &Distribution) {
    let (title, unit) = (escaped(&distribution.title), escaped(distribution.unit));
    let _ = writeln!(out, "<section>\n<h2>{title}</h2>");
    distribution.summary.iter().for_each(|line| _ = writeln!(out, "<p>{}</p>", escaped(line)));
    out.push_str(&plot::svg(distribution));
    let _ = writeln!(
        out,
        "<details><summary>numbers</summary><table><tr><th>{title}</th><th>{unit}</th><th>share</th></tr>"
    );
    let sum = distribution.sum();
    for (label, n) in &distribution.bars {
        let share = n / sum * 100.0;
        let _ = writeln!(out, "<tr><td>{}</td><td>{}</td><td>{share:.2} %</td></tr>", escaped(label), amount(*n));
    }
    out.push_str("</table></details>\n</section>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str, distributions: Vec<Distribution>) -> String {
        html(&Page { title, facts: vec![("files".into(), "<2>".into())], distributions, ..Page::default() })
    }

    #[test]
    fn a_page_needs_nothing_beside_it_and_holds_every_number() {
        let results = Distribution::of_counts("result", "games", [("white", 3u64), ("draw", 0), ("black & co", 1)]);
        let text = page("games <1>", vec![results]);
        for part in ["<svg", "games &lt;1&gt;", "&lt;2&gt;", "black &amp; co", "<td>75.00 %</td>", "</html>"] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
        assert!(!text.contains("<1>"));
        for stranger in ["<script", "@import", "url(", "<link", "src=", "href="] {
            assert!(!text.contains(stranger), "`{stranger}` in {text}");
        }
        assert!(text.replace("http://www.w3.org/2000/svg", "").find("http").is_none(), "{text}");
        assert_eq!(text.matches("<rect").count(), 2, "a bar for each count above 0\n{text}");
    }

    #[test]
    fn what_is_empty_is_left_out_and_what_is_odd_does_not_break() {
        let none = Distribution::of_counts("none", "games", [("a", 0u64)]);
        let text = page("", vec![none]);
        assert!(!text.contains("<svg") && !text.contains("none"));
        let many = Distribution::of_counts("many", "games", (0..500u64).map(|i| (i, i)));
        let one = Distribution::of_counts("one", "games", [("only", u64::MAX)]);
        let shares = Distribution { bars: vec![("e2e4".into(), 0.25), ("d2d4".into(), 1e-9)], ..one.clone() };
        assert_eq!(page("", vec![many, one, shares]).matches("<svg").count(), 3);
    }
}
