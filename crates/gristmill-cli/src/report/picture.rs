//! A picture as text: two pixels in each character cell, in 24-bit colours. Prints nothing.

use std::fmt::Write;

use gristmill_format::demo::strip::Picture;

/// The upper half of a cell, in the colour of the letter; the lower half has that of the ground.
const HALF: char = '▀';

/// The lines of a picture of at most as many columns as it has pixels in a row.
pub(crate) fn text(picture: &Picture) -> String {
    let mut out = String::new();
    let pixel = |x: usize, y: usize| {
        let at = (y * picture.width + x) * 3;
        picture.rgb.get(at..at + 3).map_or([0; 3], |rgb| [rgb[0], rgb[1], rgb[2]])
    };
    for y in (0..picture.height).step_by(2) {
        let mut before = None;
        for x in 0..picture.width {
            let (upper, lower) = (pixel(x, y), (y + 1 < picture.height).then(|| pixel(x, y + 1)));
            if before != Some((upper, lower)) {
                let [r, g, b] = upper;
                let _ = write!(out, "\x1b[38;2;{r};{g};{b}m");
                let _ = match lower {
                    Some([r, g, b]) => write!(out, "\x1b[48;2;{r};{g};{b}m"),
                    None => write!(out, "\x1b[49m"),
                };
                before = Some((upper, lower));
            }
            out.push(HALF);
        }
        out.push_str("\x1b[0m\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_are_a_line_and_colours_are_said_once() {
        let picture = Picture { width: 2, height: 3, rgb: vec![9; 18] };
        let lines = "\x1b[38;2;9;9;9m\x1b[48;2;9;9;9m▀▀\x1b[0m\n\x1b[38;2;9;9;9m\x1b[49m▀▀\x1b[0m\n";
        assert_eq!(text(&picture), lines);
    }
}
