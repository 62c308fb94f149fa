//! A position -> its line in Forsyth-Edwards notation; rights of rooks that do not stand in corners as their files.
//! Writes only what the record has; the ply gives the number of the move.

use std::fmt::Write;

use super::record::Position;

/// The letters of the sorts.
const LETTERS: &[u8; 6] = b"pnbrqk";

impl Position {
    /// The letter of each square, a1 first: White's men in capitals, a dot where nobody stands.
    pub fn letters(&self) -> [u8; 64] {
        let mut letters = [b'.'; 64];
        for (square, sort, white) in self.board().placed() {
            let letter = LETTERS[sort as usize];
            letters[usize::from(square)] = if white { letter.to_ascii_uppercase() } else { letter };
        }
        letters
    }

    /// Its line.
    pub fn fen(&self) -> String {
        let (board, letters, mut line) = (self.board(), self.letters(), String::new());
        for rank in letters.chunks(8).rev() {
            let mut empty = 0;
            for letter in rank {
                if *letter == b'.' {
                    empty += 1;
                    continue;
                }
                if empty > 0 {
                    line.push(char::from(b'0' + empty));
                }
                empty = 0;
                line.push(char::from(*letter));
            }
            if empty > 0 {
                line.push(char::from(b'0' + empty));
            }
            line.push('/');
        }
        line.pop();
        line.push_str(if board.black() { " b " } else { " w " });
        let before = line.len();
        for (letter, home) in [(b'A', 0), (b'a', 56)] {
            let king = letters[home..home + 8].iter().position(|one| one.eq_ignore_ascii_case(&b'k'));
            for file in (0..8u8).rev().filter(|file| board.rights() >> home >> file & 1 == 1) {
                let right = king.is_some_and(|king| king < usize::from(file));
                let name = match file {
                    7 if right => b'K',
                    0 if !right => b'Q',
                    file => b'A' + file,
                };
                line.push(char::from(if letter == b'a' { name.to_ascii_lowercase() } else { name }));
            }
        }
        if line.len() == before {
            line.push('-');
        }
        let passing = board.passing().map(|at| format!("{}{}", char::from(b'a' + at % 8), at / 8 + 1));
        let told = self.told();
        // Writing to a string does not fail.
        let _ = write!(line, " {} {} {}", passing.as_deref().unwrap_or("-"), told.rule50, told.ply / 2 + 1);
        line
    }
}
