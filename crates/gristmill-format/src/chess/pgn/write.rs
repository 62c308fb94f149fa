//! A game -> its text in PGN: tags, moves in SAN, the result, in lines of at most 80 bytes.
//! What is read back is the same game.

use cozy_chess::{Board, Color};

use super::game::{Game, Ply};
use super::{fen, san};

/// Bytes of a line of moves.
const WIDTH: usize = 80;

/// The tags that every game has, in order, and what they say where nobody knows.
const ROSTER: [(&str, &str); 6] =
    [("Event", "?"), ("Site", "?"), ("Date", "????.??.??"), ("Round", "?"), ("White", "?"), ("Black", "?")];

/// Tags that the game itself decides.
const OWN: [&str; 4] = ["Result", "SetUp", "FEN", "Variant"];

/// Appends a game, and an empty line after it.
pub fn write(game: &Game, out: &mut String) {
    for (name, unknown) in ROSTER {
        tag(name, game.tag(name).unwrap_or(unknown), out);
    }
    tag("Result", game.outcome.word(), out);
    let first = game.plies.first().map_or(&game.last, |ply| &ply.board);
    if *first != Board::default() {
        if !fen::is_classical(first) {
            tag("Variant", "Chess960", out);
        }
        tag("SetUp", "1", out);
        tag("FEN", &fen::write(first), out);
    }
    let listed = |name: &str| OWN.contains(&name) || ROSTER.iter().any(|(own, _)| *own == name);
    for (name, value) in game.tags.iter().filter(|(name, _)| !listed(name)) {
        tag(name, value, out);
    }
    out.push('\n');
    let mut line = 0;
    let mut word = String::new();
    for (i, ply) in game.plies.iter().enumerate() {
        word.clear();
        number(ply, i == 0, &mut word);
        san::write(&ply.board, ply.played, &mut word);
        put(&word, &mut line, out);
    }
    put(game.outcome.word(), &mut line, out);
    out.push_str("\n\n");
}

/// The number of a move before White's moves, and before the first of all.
fn number(ply: &Ply, first: bool, out: &mut String) {
    let white = ply.board.side_to_move() == Color::White;
    if white || first {
        out.push_str(&ply.board.fullmove_number().to_string());
        out.push_str(if white { ". " } else { "... " });
    }
}

fn put(word: &str, line: &mut usize, out: &mut String) {
    if *line > 0 && *line + 1 + word.len() > WIDTH {
        out.push('\n');
        *line = 0;
    } else if *line > 0 {
        out.push(' ');
        *line += 1;
    }
    out.push_str(word);
    *line += word.len();
}

fn tag(name: &str, value: &str, out: &mut String) {
    out.push('[');
    out.push_str(name);
    out.push_str(" \"");
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        // A line ends a tag.
        out.push(if c.is_control() { ' ' } else { c });
    }
    out.push_str("\"]\n");
}
