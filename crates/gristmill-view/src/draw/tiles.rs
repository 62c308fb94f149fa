//! The ranks of a 2048 board and what each move is worth -> a board of tiles, and in words. Plays nothing.

use std::fmt::Write;

/// What a move is worth, as the pages know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    /// `up`, `down`, `left` or `right`.
    pub(crate) name: &'a str,
    /// Its expected value; none for a move that is not legal.
    pub(crate) ev: Option<f32>,
    /// Whether it was made.
    pub(crate) made: bool,
}

/// The number on a tile.
fn tile(rank: u8) -> String {
    match rank {
        0 => String::new(),
        rank @ 1..=19 => (1u32 << rank).to_string(),
        rank => format!("2^{rank}"),
    }
}

/// The board in words, row by row.
pub(crate) fn words(ranks: &[u8; 16]) -> String {
    let row = |(i, row): (usize, &[u8])| {
        let tiles = row.iter().map(|rank| if *rank == 0 { "empty".to_owned() } else { tile(*rank) });
        format!("row {}: {}", i + 1, tiles.collect::<Vec<_>>().join(", "))
    };
    ranks.chunks(4).enumerate().map(row).collect::<Vec<_>>().join("; ")
}

/// A board of tiles with a mark at each side: the move that was made, those that are legal, those that are not.
pub(crate) fn svg(ranks: &[u8; 16], ways: &[Way<'_>], label: &str) -> String {
    let label = crate::html::escape(label);
    let mut out = format!(
        "<svg class=\"tiles\" viewBox=\"-0.6 -0.6 5.2 5.2\" role=\"img\" aria-label=\"{label}\">\
         <rect class=\"frame\" x=\"-0.06\" y=\"-0.06\" width=\"4.12\" height=\"4.12\" rx=\"0.14\"/>"
    );
    for (i, rank) in ranks.iter().enumerate() {
        let ((x, y), text) = ((i % 4, i / 4), tile(*rank));
        let _ = write!(
            out,
            "<rect class=\"tile t{}\" x=\"{x}.05\" y=\"{y}.05\" width=\"0.9\" height=\"0.9\" rx=\"0.09\"/>",
            rank.min(&18)
        );
        if *rank > 0 {
            let _ = write!(
                out,
                "<text class=\"t{} n{}\" x=\"{x}.5\" y=\"{y}.5\">{text}</text>",
                rank.min(&18),
                text.len().clamp(1, 6)
            );
        }
    }
    for way in ways {
        let points = match way.name {
            "up" => "1.7,-0.2 2.3,-0.2 2,-0.5",
            "down" => "1.7,4.2 2.3,4.2 2,4.5",
            "left" => "-0.2,1.7 -0.2,2.3 -0.5,2",
            "right" => "4.2,1.7 4.2,2.3 4.5,2",
            _ => continue,
        };
        let class = match (way.made, way.ev) {
            (true, _) => "way made",
            (_, Some(_)) => "way",
            _ => "way illegal",
        };
        let _ = write!(out, "<polygon class=\"{class}\" points=\"{points}\"><title>{}</title></polygon>", way.name);
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_show_their_numbers_and_ways_their_state() {
        let mut ranks = [0; 16];
        (ranks[0], ranks[5], ranks[15]) = (1, 11, 255);
        let ways = [("up", Some(1.0), true), ("left", None, false), ("sideways", None, false)];
        let ways = ways.map(|(name, ev, made)| Way { name, ev, made });
        let drawn = svg(&ranks, &ways, "\"x\"");
        assert!(drawn.contains(">2</text>") && drawn.contains(">2048</text>") && drawn.contains(">2^255</text>"));
        assert!(drawn.contains("way made") && drawn.contains("way illegal") && !drawn.contains("sideways"));
        assert!(words(&ranks).starts_with("row 1: 2, empty, empty, empty; row 2: empty, 2048"));
    }
}
