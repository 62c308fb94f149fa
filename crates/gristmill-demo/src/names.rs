//! Names that come from files -> what messages show of them. Names themselves stay as they are.

use std::borrow::Cow;

/// A name with its control characters escaped: a terminal that shows it does nothing else. What turns the direction of writing
/// is one of them.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    let plain = |c: char| {
        !(c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    if name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    let escaped = |c: char| if plain(c) { c.to_string() } else { c.escape_default().to_string() };
    Cow::Owned(name.chars().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown("frame_000.obs.npy"), "frame_000.obs.npy");
        assert_eq!(shown("a\u{1b}[31mb\n\u{202e}c\u{7f}é"), "a\\u{1b}[31mb\\n\\u{202e}c\\u{7f}é");
    }
}
