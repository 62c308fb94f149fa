//! A position in FEN, its moves and their shares -> a board with pieces and arrows, and in words. A text that is no position gives
//! an empty board.

use std::fmt::Write;

/// Arrows that are drawn at most, and the least share of one.
const ARROWS: usize = 5;
const LEAST: f32 = 0.02;

/// Pieces as letters, and their names.
const NAMES: [(char, &str); 6] =
    [('k', "king"), ('q', "queen"), ('r', "rook"), ('b', "bishop"), ('n', "knight"), ('p', "pawn")];

/// A square, from a1 to h8, by file and rank.
type Square = (u8, u8);

/// A position as a board shows it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pieces: Vec<(Square, char)>,
}

impl Position {
    /// The pieces of a position.
    pub(crate) fn of(fen: &str) -> Self {
        let mut pieces = Vec::new();
        for (row, rank) in fen.split(' ').next().unwrap_or_default().split('/').take(8).zip((0..8u8).rev()) {
            let mut file = 0;
            for c in row.chars().filter(|_| row.is_ascii()) {
                if let Some(empty) = c.to_digit(9) {
                    file = (file + empty as u8).min(8);
                } else if NAMES.iter().any(|(letter, _)| *letter == c.to_ascii_lowercase()) && file < 8 {
                    pieces.push(((file, rank), c));
                    file += 1;
                }
            }
        }
        Position { pieces }
    }

    /// The pieces in words, White's first.
    pub(crate) fn words(&self) -> String {
        let side = |white: bool| {
            let named = NAMES.iter().filter_map(|(letter, name)| {
                let own = |c: &char| c.eq_ignore_ascii_case(letter) && c.is_ascii_uppercase() == white;
                let squares: Vec<String> =
                    self.pieces.iter().filter(|(_, c)| own(c)).map(|(square, _)| square_name(*square)).collect();
                (!squares.is_empty()).then(|| format!("{name} {}", squares.join(" ")))
            });
            named.collect::<Vec<_>>().join(", ")
        };
        format!("White: {}. Black: {}.", side(true), side(false))
    }
}

fn square_name((file, rank): Square) -> String {
    format!("{}{}", char::from(b'a' + file), rank + 1)
}

/// The squares of a move such as `e2e4`.
fn squares(uci: &str) -> Option<[Square; 2]> {
    let at = |i: usize| {
        let (file, rank) = (*uci.as_bytes().get(i)?, *uci.as_bytes().get(i + 1)?);
        ((b'a'..=b'h').contains(&file) && (b'1'..=b'8').contains(&rank)).then(|| (file - b'a', rank - b'1'))
    };
    Some([at(0)?, at(2)?])
}

/// A board: squares, the move played, pieces, and an arrow for each of the moves that share most, given in that order.
pub(crate) fn svg(position: &Position, played: Option<&str>, moves: &[(&str, f32)], label: &str) -> String {
    let label = crate::html::escape(label);
    let mut out = format!("<svg class=\"board\" viewBox=\"-0.32 -0.06 8.38 8.4\" role=\"img\" aria-label=\"{label}\">");
    let marked = played.and_then(squares).unwrap_or([(8, 8); 2]);
    for rank in 0..8u8 {
        for file in 0..8u8 {
            let shade = if (file + rank) % 2 == 0 { "dark" } else { "light" };
            let played = if marked.contains(&(file, rank)) { " played" } else { "" };
            let _ = write!(
                out,
                "<rect class=\"{shade}{played}\" x=\"{file}\" y=\"{}\" width=\"1\" height=\"1\"/>",
                7 - rank
            );
        }
    }
    for i in 0..8u8 {
        let _ = write!(
            out,
            "<text class=\"mark\" x=\"-0.17\" y=\"{}.58\">{}</text><text class=\"mark\" x=\"{i}.5\" y=\"8.26\">{}</text>",
            7 - i,
            i + 1,
            char::from(b'a' + i)
        );
    }
    for ((file, rank), piece) in &position.pieces {
        let side = if piece.is_ascii_uppercase() { "white" } else { "black" };
        let _ = write!(
            out,
            "<g transform=\"translate({file} {})\"><use class=\"{side}\" href=\"#piece-{}\" width=\"1\" height=\"1\"/></g>",
            7 - rank,
            piece.to_ascii_lowercase()
        );
    }
    let best = moves.first().map_or(1.0, |(_, share)| share.max(LEAST));
    let drawn = moves.iter().take(ARROWS).filter(|(_, share)| *share >= LEAST);
    // The weakest first: the strongest lies on top.
    for (uci, share) in drawn.collect::<Vec<_>>().into_iter().rev() {
        if let Some([from, to]) = squares(uci) {
            out.push_str(&arrow(from, to, share / best, &format!("{uci}: {:.1} %", share * 100.0)));
        }
    }
    out + "</svg>"
}

/// An arrow from the middle of one square to that of another; `weight` is 1 for the strongest.
fn arrow(from: Square, to: Square, weight: f32, title: &str) -> String {
    let middle = |(file, rank): Square| (f32::from(file) + 0.5, 7.5 - f32::from(rank));
    let ((x, y), (to_x, to_y)) = (middle(from), middle(to));
    let (along_x, along_y) = (to_x - x, to_y - y);
    // Not `hypot`: of newer C libraries it has a version that wheels do not promise.
    let length = (along_x * along_x + along_y * along_y).sqrt().max(0.1);
    let (unit_x, unit_y) = (along_x / length, along_y / length);
    let (half, head) = (0.035 + 0.065 * weight, 0.16 + 0.12 * weight);
    let at = |along: f32, across: f32| {
        format!("{:.3},{:.3}", x + unit_x * along - unit_y * across, y + unit_y * along + unit_x * across)
    };
    let (start, neck, tip) = (0.28f32.min(length / 3.0), length - head * 1.3, length - 0.04);
    let points = [
        at(start, half),
        at(neck, half),
        at(neck, head),
        at(tip, 0.0),
        at(neck, -head),
        at(neck, -half),
        at(start, -half),
    ];
    format!(
        "<polygon class=\"arrow\" opacity=\"{:.2}\" points=\"{}\"><title>{}</title></polygon>",
        0.3 + 0.5 * weight,
        points.join(" "),
        crate::html::escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_where_the_position_says() {
        let position = Position::of("4k3/8/8/3pP3/8/8/8/R3K2R w KQ d6 0 1");
        assert_eq!(position.words(), "White: king e1, rook a1 h1, pawn e5. Black: king e8, pawn d5.");
        let drawn = svg(&position, Some("e5d6"), &[("e1g1", 0.6), ("e5d6", 0.3), ("a1a2", 0.01)], "a <board>");
        assert!(
            drawn.contains("translate(4 0)\"><use class=\"black\" href=\"#piece-k\"")
                && drawn.contains("aria-label=\"a &lt;board&gt;\"")
        );
        assert_eq!((drawn.matches("<polygon").count(), drawn.matches(" played\"").count()), (2, 2));
    }

    #[test]
    fn what_is_no_position_is_an_empty_board() {
        for fen in ["", "999999999/x", "<script>", "pppppppppppp/8", "é4k3/8"] {
            let drawn = svg(&Position::of(fen), Some("zz"), &[("", 1.0), ("e2", 0.5), ("é2é4", 0.5)], "");
            assert!(!drawn.contains("script") && !drawn.contains("<polygon"), "{fen}: {drawn}");
        }
    }
}
