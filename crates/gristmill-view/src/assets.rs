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

#[cfg(test)]
mod tests {
    use super::*;

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
