//! A position in Forsyth-Edwards notation -> a board that a game can reach. Rights as `KQkq`, or as files of rooks.
//! What is left out behind the side to move stands for nothing: no rights, no capture in passing, no clocks.

use cozy_chess::{Board, BoardBuilder, BoardBuilderError, Color, File, Piece, Rank, Square};

use crate::chess::board::build;

/// The board of a text.
///
/// Errors: what is wrong with it.
pub fn read(text: &str) -> Result<Board, String> {
    let mut parts = text.split_ascii_whitespace();
    let mut builder = BoardBuilder::empty();
    place(parts.next().unwrap_or(""), &mut builder)?;
    builder.side_to_move = match parts.next() {
        Some("w") | None => Color::White,
        Some("b") => Color::Black,
        Some(side) => return Err(format!("`{side}` to move, expected w or b")),
    };
    for letter in parts.next().unwrap_or("-").chars().filter(|letter| *letter != '-') {
        right(letter, &mut builder)?;
    }
    builder.en_passant = match parts.next() {
        Some("-") | None => None,
        Some(square) => Some(square.parse().map_err(|_| format!("`{square}` is no square"))?),
    };
    let mut number = |name: &str, usual: u16| match parts.next() {
        Some("-") | None => Ok(usual),
        Some(digits) => digits.parse::<u16>().map_err(|_| format!("`{digits}` is no {name}")),
    };
    builder.halfmove_clock = number("fifty-move counter", 0)?.min(100) as u8;
    builder.fullmove_number = number("move number", 1)?.max(1);
    let board = build(&builder).map_err(|e| match e {
        BoardBuilderError::InvalidCastlingRights => "no king and rook stand as the castling rights say",
        BoardBuilderError::InvalidEnPassant => "no pawn can have moved two squares as the square in passing says",
        _ => UNREACHABLE,
    })?;
    if pawns_became_them(&board) { Ok(board) } else { Err(UNREACHABLE.to_owned()) }
}

const UNREACHABLE: &str = "no game can reach it: a king is missing, in reach, or in check while the other side is to move, or men are too many";

/// Whether each side can have its men: what it has beyond those of the start were pawns, of which it had eight.
fn pawns_became_them(board: &Board) -> bool {
    Color::ALL.into_iter().all(|color| {
        let count = |piece: Piece| board.colored_pieces(color, piece).len();
        let first = [(Piece::Knight, 2), (Piece::Bishop, 2), (Piece::Rook, 2), (Piece::Queen, 1)];
        let promoted: u32 = first.map(|(piece, first)| count(piece).saturating_sub(first)).iter().sum();
        count(Piece::Pawn) + promoted <= 8
    })
}

fn place(text: &str, builder: &mut BoardBuilder) -> Result<(), String> {
    let ranks: Vec<&str> = text.split('/').collect();
    if ranks.len() != 8 {
        return Err(format!("{} ranks, expected 8", ranks.len()));
    }
    for (row, rank) in ranks.into_iter().zip(Rank::ALL.into_iter().rev()) {
        let mut file = 0;
        for letter in row.chars() {
            if let Some(empty) = letter.to_digit(10) {
                file += empty as usize;
                continue;
            }
            let piece = piece(letter).ok_or_else(|| format!("`{}` is no man", letter.escape_debug()))?;
            let square = File::try_index(file).map(|file| Square::new(file, rank));
            let square = square.ok_or_else(|| "a rank of more than 8 squares".to_owned())?;
            let color = if letter.is_ascii_uppercase() { Color::White } else { Color::Black };
            *builder.square_mut(square) = Some((piece, color));
            file += 1;
        }
        if file != 8 {
            return Err(format!("a rank of {file} squares, expected 8"));
        }
    }
    Ok(())
}

fn piece(letter: char) -> Option<Piece> {
    Some(match letter.to_ascii_lowercase() {
        'p' => Piece::Pawn,
        'n' => Piece::Knight,
        'b' => Piece::Bishop,
        'r' => Piece::Rook,
        'q' => Piece::Queen,
        'k' => Piece::King,
        _ => return None,
    })
}

/// Adds a right: `K` and `Q` are of the outermost rook, a file is of the rook there.
fn right(letter: char, builder: &mut BoardBuilder) -> Result<(), String> {
    let color = if letter.is_ascii_uppercase() { Color::White } else { Color::Black };
    let home = Rank::First.relative_to(color);
    let stands = |file: File, piece: Piece| builder.square(Square::new(file, home)) == Some((piece, color));
    let bad = || format!("castling right `{}`, but no king and rook stand so", letter.escape_debug());
    let king = File::ALL.into_iter().find(|file| stands(*file, Piece::King)).ok_or_else(bad)?;
    let rook = match letter.to_ascii_lowercase() {
        'k' => File::ALL.into_iter().rev().find(|file| *file > king && stands(*file, Piece::Rook)),
        'q' => File::ALL.into_iter().find(|file| *file < king && stands(*file, Piece::Rook)),
        file @ 'a'..='h' => File::try_index(file as usize - 'a' as usize).filter(|file| stands(*file, Piece::Rook)),
        _ => None,
    };
    let rook = rook.ok_or_else(bad)?;
    let rights = builder.castle_rights_mut(color);
    let right = if rook > king { &mut rights.short } else { &mut rights.long };
    *right = Some(rook);
    Ok(())
}

/// Whether who may still castle has king and rooks where chess has them.
pub(super) fn is_classical(board: &Board) -> bool {
    Color::ALL.into_iter().all(|color| {
        let rights = board.castle_rights(color);
        let king = board.king(color) == Square::new(File::E, Rank::First.relative_to(color));
        let corners = rights.short.is_none_or(|file| file == File::H) && rights.long.is_none_or(|file| file == File::A);
        corners && (king || rights.short.is_none() && rights.long.is_none())
    })
}

/// The text of a board; rights as `KQkq` where kings and rooks stand as in chess, else as files of rooks. The square in passing is
/// told where a pawn has just moved two squares.
pub fn write(board: &Board) -> String {
    if is_classical(board) { board.to_string() } else { format!("{board:#}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_and_what_none_is_is_refused() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
        assert_eq!(read(&format!("{start} w KQkq - 0 1")).unwrap(), Board::default());
        assert_eq!(read(&format!("{start} w HAha - 0 1")).unwrap(), Board::default());
        assert!(read(start).unwrap().castle_rights(Color::White).short.is_none());
        let inner = read("1r2k1r1/8/8/8/8/8/8/1R2K1R1 b KQkq - 3 9").unwrap();
        assert_eq!(inner.castle_rights(Color::Black).short, Some(File::G));
        assert_eq!((inner.halfmove_clock(), inner.fullmove_number()), (3, 9));
        assert!(read("4k3/8/8/8/8/1QQ5/PPPPPPP1/RR2KNN1 w - - 0 1").is_ok(), "seven pawns, and one became a queen");
        for (bad, reason) in [
            ("", "ranks"),
            ("8/8/8/8/8/8/8/7", "7 squares"),
            ("9/8/8/8/8/8/8/8", "9 squares"),
            ("ppppppppp/8/8/8/8/8/8/8", "more than 8"),
            ("x7/8/8/8/8/8/8/8", "`x`"),
            ("8/8/8/8/8/8/8/8 w", "no game"),
            ("4k3/8/8/8/8/8/PPPPPPPP/RRR1K3 w - - 0 1", "no game"),
            ("qq2k3/pppppppp/8/8/8/8/8/4K3 w - - 0 1", "no game"),
            ("4k3/8/8/8/8/8/8/4K3 x", "to move"),
            ("4k3/8/8/8/8/8/8/4K3 w K", "castling"),
            ("4k3/8/8/8/8/8/8/4K3 w - e6", "in passing"),
            ("4k3/8/8/8/8/8/8/4K3 w - z9", "no square"),
            ("4k3/8/8/8/8/8/8/4K3 w - - x", "counter"),
        ] {
            assert!(read(bad).unwrap_err().contains(reason), "{bad}");
        }
    }
}
