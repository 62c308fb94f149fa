//! The name of an asset -> its bytes, which lie in the program. Reads no file.

/// Chess pieces, each a symbol.
pub(crate) const PIECES: &str = include_str!("assets/pieces.svg");

/// What an asset is called, what it is, and what it says.
const ASSETS: [(&str, &str, &str); 3] = [
    ("view.css", "text/css; charset=utf-8", include_str!("assets/view.css")),
    ("view.js", "text/javascript; charset=utf-8", include_str!("assets/view.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// The type and text of an asset.
pub(crate) fn asset(name: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(own, ..)| *own == name).map(|(_, kind, text)| (*kind, *text))
}

/// Rules of the style sheet that a card for notebooks has, by the start of their line.
const OF_CARDS: [&str; 27] = [
    "small ",
    ".heard ",
    ".sheet ",
    ".facts ",
    ".picture ",
    ".panel ",
    ".moves ",
    ".values svg",
    ".fen ",
    ".flag ",
    ".board ",
    ".board,",
    ".body ",
    ".detail ",
    "use.",
    ".eye ",
    ".arrow ",
    ".tiles ",
    ".tile.",
    ".way",
    ".seen ",
    ".drawn ",
    ".charts ",
    ".chart ",
    ".key",
    ".line",
    ".bar ",
];

/// The style of a card: that of the pages by day, and of nothing outside of the card.
pub(crate) fn card_style() -> String {
    let sheet = ASSETS[0].2;
    let day = sheet.split_once(":root {").and_then(|(_, rest)| rest.split_once('}')).map_or("", |(day, _)| day);
    let mut out = format!(".gristmill-card{{{day}");
    out.push_str(
        "color-scheme:light;font:13px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);padding:1em;\
         border-radius:10px;max-width:60em;position:relative;",
    );
    out.push_str(
        "& .title{font-weight:600;margin:0 0 .6em}& svg{max-width:100%}& .frame{display:flex;flex-wrap:wrap;gap:1em}",
    );
    out.push_str("& .picture{flex:0 1 22em}& .panel{flex:1 1 18em}& .cursor,& .zero{stroke:var(--line)}& table td,& table th{background:none}");
    for rule in sheet.lines().filter(|line| line.ends_with('}') && OF_CARDS.iter().any(|own| line.starts_with(own))) {
        out.push_str("& ");
        out.push_str(&rule.replacen(", .", ", & .", 1));
    }
    out + "}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_colours_of_the_pages_and_touches_nothing_else() {
        let style = card_style();
        assert!(style.starts_with(".gristmill-card{") && style.matches('{').count() == style.matches('}').count());
        for rule in [".tile.t11", ".board .light", "use.white", ".line.s0", "--accent: #1f6f6b", ".chart svg"] {
            assert!(style.contains(rule), "{rule}");
        }
        assert!(!style.contains("@media") && !style.contains(":root") && style.len() < 12_000, "{}", style.len());
        assert!(
            OF_CARDS.iter().all(|own| ASSETS[0].2.lines().any(|line| line.starts_with(own) && line.ends_with('}')))
        );
    }

    #[test]
    fn all_assets_are_small_and_ask_nothing_of_a_network() {
        let texts = || ASSETS.iter().map(|(.., text)| *text).chain([PIECES]);
        assert!(texts().map(str::len).sum::<usize>() < 150_000);
        for text in texts() {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("//cdn"), "{text}");
        }
    }
}
