//! How texts read: turns of phrase that stay out of help, errors, pages and comments, each with the plain words for it.
//! Binds every file of text; a word that only looks like one of them is written otherwise.

use crate::repository::{files, report};

/// A turn of phrase, its words parted by `_` so that this file has none of them; and what to write.
const TURNS: [(&str, &str); 24] = [
    ("is_told", "`learns`, `is given`, `reads`"),
    ("are_told", "`learn`, `are given`, `read`"),
    ("told_of", "`reported`"),
    ("gone_on_with", "`resumed`"),
    ("goes_on_with", "`resumes`"),
    ("go_on_with", "`resume`"),
    ("which_there_must_be", "`required`"),
    ("looked_at", "`read`, `checked`, `shown`"),
    ("is_asked", "who asks comes first: `the caller asks`"),
    ("are_asked", "who asks comes first: `callers ask`"),
    ("so_many", "`N`, `at most N`, `this number of`"),
    ("gone_on_from", "`resumed from`"),
    ("goes_on_from", "`resumes from`"),
    ("go_on_from", "`resume from`"),
    (concat!("an", "ew"), "`again`, or the verb that says it: `rewritten`, `renumbered`, `starts again`"),
    ("behind_the_last", "`after the last`"),
    ("behind_the_end", "`after the end`, `past the end`"),
    ("behind_it", "`after it`"),
    ("drawn_and_told", "`random, and printed`"),
    (concat!("who", "ever"), "the one who acts: `a reader`, `the next job`"),
    ("spec_lc0", "the page in docs/ that says it: the document is not here"),
    ("spec_demos", "the page in docs/ that says it: the document is not here"),
    ("the_specification", "the page in docs/ that says it: the document is not here"),
    ("2048_data_specification", "the page in docs/ that says it: the document is not here"),
];

#[test]
fn texts_have_no_turns_of_a_dialect() {
    let turns = TURNS.map(|(turn, instead)| (turn.replace('_', " "), instead));
    let endings = ["rs", "py", "pyi", "md", "sh", "toml", "Makefile"];
    let mut breaches = Vec::new();
    // The changelog says what was said when a version came out.
    let bound = |path: &str| path != "CHANGELOG.md" && endings.iter().any(|ending| path.ends_with(ending));
    for file in files().iter().filter(|file| bound(&file.path)) {
        for (i, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for (turn, instead) in &turns {
                let whole = |at: usize| {
                    let (before, after) = (line[..at].chars().next_back(), line[at + turn.len()..].chars().next());
                    ![before, after].into_iter().flatten().any(|c| c.is_alphanumeric() || c == '_')
                };
                if line.match_indices(turn.as_str()).any(|(at, _)| whole(at)) {
                    breaches.push(format!("{}:{}: `{turn}`: write {instead}", file.path, i + 1));
                }
            }
        }
    }
    report("Texts are plain: the one who acts comes first, in the words of the field.", breaches);
}
