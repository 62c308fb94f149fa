//! Texts and parts of pages -> HTML. Every text of data passes `escape`, which leaves nothing that a browser would run.

use std::fmt::Write;

/// Longest text of a cell.
const MOST: usize = 240;

/// Text for the inside of an element or of an attribute in quotes. What steers a terminal or turns the direction of text is shown
/// as a mark.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text that is cut where it is long.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", escape(&text[..at])),
        None => escape(text),
    }
}

/// A whole number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// A number with as many digits as help.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        return format!("{value:.0}").replace('-', "−");
    }
    let text = match size {
        s if !(1e-4..1e6).contains(&s) => format!("{value:.3e}"),
        s if s >= 100.0 => format!("{value:.1}"),
        s if s >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    };
    text.replace('-', "−")
}

/// A number of bytes, such as `3.2 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let (mut value, mut unit) = (count as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") }
}

/// What surrounds a page.
pub(crate) struct Frame<'a> {
    /// Where the site begins, such as `/` or `/TOKEN/`.
    pub(crate) root: &'a str,
    /// The title.
    pub(crate) title: &'a str,
    /// The way to this page: names and addresses.
    pub(crate) way: &'a [(String, String)],
    /// Seconds after which the page loads itself again where no script renews it.
    pub(crate) again: Option<u32>,
}

/// A whole page.
pub(crate) fn page(frame: &Frame<'_>, body: &str) -> String {
    let (root, title) = (frame.root, escape(frame.title));
    let mut way = String::new();
    for (i, (name, address)) in frame.way.iter().enumerate() {
        let (name, here) = (escape(name), if i + 1 == frame.way.len() { " aria-current=\"page\"" } else { "" });
        let _ = write!(way, "<li><a href=\"{}\"{here}>{name}</a></li>", escape(address));
    }
    let again = frame.again.map_or_else(String::new, |seconds| {
        format!("<noscript><meta http-equiv=\"refresh\" content=\"{seconds}\"></noscript>\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} · gristmill</title>\n\
         <link rel=\"icon\" href=\"{root}assets/icon.svg\">\n<link rel=\"stylesheet\" href=\"{root}assets/view.css\">\n\
         <script type=\"module\" src=\"{root}assets/view.js\"></script>\n{again}</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the content</a>\n<header class=\"top\">\
         <a class=\"brand\" href=\"{root}\"><img src=\"{root}assets/icon.svg\" alt=\"\" width=\"28\" height=\"28\">\
         <span>gristmill</span></a><nav aria-label=\"You are here\"><ol>{way}</ol></nav></header>\n\
         <main id=\"main\">\n{body}\n</main>\n</body>\n</html>\n"
    )
}

/// Names and values, side by side. Values are HTML.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let mut out = String::from("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{}</dt><dd>{value}</dd></div>", escape(name));
    }
    out + "</dl>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_run() {
        assert_eq!(
            escape("<script>alert('x')</script>&\""),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"
        );
        assert_eq!(escape("a\u{1b}[1mb\u{202e}c\u{0}"), "a\u{fffd}[1mb\u{fffd}c\u{fffd}");
        assert_eq!(cut(&"<".repeat(300)), "&lt;".repeat(240) + "…");
    }

    #[test]
    fn numbers_are_read_easily() {
        let told = [0, 1023, 1024, (1 << 20) - 1, 3 << 30].map(bytes);
        assert_eq!(told, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "3.0 GiB"]);
        assert_eq!(grouped(1_234_567), "1\u{2009}234\u{2009}567");
        assert_eq!(["0", "999"], [grouped(0), grouped(999)].map(|text| text).each_ref().map(String::as_str));
        for (value, text) in [(0.0, "0"), (-12.0, "−12"), (0.12345, "0.1235"), (1234.56, "1234.6"), (f64::NAN, "–")]
        {
            assert_eq!(number(value), text);
        }
    }
}
