//! A move in words (`Nbd7`, `exd8=Q+`, `O-O`, `e2e4`) <-> a legal move of a position.
//! What names no legal move, or several, is refused; nothing is guessed.

use cozy_chess::{BitBoard, Board, File, GameStatus, Move, Piece, Rank, Square};

/// Why a word is no move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not read like a move.
    NoMove,
    /// A move to pass, which the rules of chess do not have.
    Null,
    /// No legal move is like that.
    Illegal,
    /// Several legal moves are.
    Ambiguous,
    /// A pawn would reach the last rank, and the word does not say what it becomes.
    NoPromotion,
}

impl Fault {
    /// What is wrong, behind the word.
    pub fn reason(self) -> &'static str {
        match self {
            Fault::NoMove => "no move, result or number",
            Fault::Null => "a null move, which is no move of a game",
            Fault::Illegal => "no legal move is called so here",
            Fault::Ambiguous => "several legal moves are called so here",
            Fault::NoPromotion => "it does not say what the pawn becomes; expected such as e8=Q",
        }
    }
}

/// The parts of a word.
struct Named {
    /// None where a from square stands for it.
    piece: Option<Piece>,
    file: Option<File>,
    rank: Option<Rank>,
    to: Square,
    promotion: Option<Piece>,
}

/// The legal move that `word` names.
pub fn read(board: &Board, word: &[u8]) -> Result<Move, Fault> {
    let end = word.iter().rposition(|byte| !b"+#!?".contains(byte)).map_or(0, |last| last + 1);
    let word = &word[..end];
    match word {
        b"O-O" | b"0-0" | b"o-o" => return castling(board, true),
        b"O-O-O" | b"0-0-0" | b"o-o-o" => return castling(board, false),
        b"--" | b"Z0" | b"0000" | b"@@@@" | b"null" | b"pass" => return Err(Fault::Null),
        _ => {}
    }
    let named = parts(word).ok_or(Fault::NoMove)?;
    let us = board.side_to_move();
    let mut from = board.colors(us);
    if let Some(piece) = named.piece {
        from &= board.pieces(piece);
    }
    from &= named.file.map_or(BitBoard::FULL, File::bitboard) & named.rank.map_or(BitBoard::FULL, Rank::bitboard);
    if named.piece == Some(Piece::Pawn) && named.file.is_none() {
        from &= named.to.file().bitboard();
    }
    if named.piece.is_none() && from.has(board.king(us)) && castles_to(board, named.to) {
        return castling(board, named.to.file() > board.king(us).file());
    }
    let mut found = (0, None, false);
    if !board.colors(us).has(named.to) {
        board.generate_moves_for(from, |moves| {
            if moves.to.has(named.to) {
                found = (found.0 + 1, Some(moves.from), moves.piece == Piece::Pawn);
            }
            false
        });
    }
    let (count, from, pawn) = found;
    let from = from.ok_or(Fault::Illegal)?;
    if count > 1 {
        return Err(Fault::Ambiguous);
    }
    let last = pawn && named.to.rank() == Rank::Eighth.relative_to(us);
    match named.promotion {
        None if last => Err(Fault::NoPromotion),
        Some(_) if !last => Err(Fault::Illegal),
        promotion => Ok(Move { from, to: named.to, promotion }),
    }
}

/// Whether the king castles when it moves to this square, as UCI writes it: by two squares, or onto its rook.
fn castles_to(board: &Board, to: Square) -> bool {
    let us = board.side_to_move();
    let (king, home, rights) = (board.king(us), Rank::First.relative_to(us), board.castle_rights(us));
    let by_two = king == Square::new(File::E, home) && matches!(to.file(), File::C | File::G);
    let onto_rook = [rights.short, rights.long].contains(&Some(to.file()));
    to.rank() == home && (by_two && !board.colors(us).has(to) || onto_rook)
}

fn castling(board: &Board, short: bool) -> Result<Move, Fault> {
    let us = board.side_to_move();
    let rights = board.castle_rights(us);
    let file = if short { rights.short } else { rights.long }.ok_or(Fault::Illegal)?;
    let castle = Move { from: board.king(us), to: Square::new(file, Rank::First.relative_to(us)), promotion: None };
    if board.is_legal(castle) { Ok(castle) } else { Err(Fault::Illegal) }
}

fn parts(word: &[u8]) -> Option<Named> {
    let (piece, mut rest) = match word.split_first()? {
        (b'K', rest) => (Some(Piece::King), rest),
        (b'Q', rest) => (Some(Piece::Queen), rest),
        (b'R', rest) => (Some(Piece::Rook), rest),
        (b'B', rest) => (Some(Piece::Bishop), rest),
        (b'N', rest) => (Some(Piece::Knight), rest),
        (b'P', rest) => (Some(Piece::Pawn), rest),
        _ => (None, word),
    };
    let mut promotion = None;
    if let [before @ .., b'1' | b'8', letter] | [before @ .., b'1' | b'8', b'=' | b'/', letter] = rest {
        promotion = Some(promoted(*letter)?);
        rest = &rest[..=before.len()];
    }
    let [before @ .., file, rank] = rest else { return None };
    let to = Square::new(file_of(*file)?, rank_of(*rank)?);
    let before = match before {
        [before @ .., b'x' | b':' | b'-'] => before,
        before => before,
    };
    let (file, rank) = match before {
        [] => (None, None),
        [one] => (file_of(*one), rank_of(*one)),
        [file, rank] => (Some(file_of(*file)?), Some(rank_of(*rank)?)),
        _ => return None,
    };
    if before.len() == 1 && file.is_none() && rank.is_none() {
        return None;
    }
    let whole = before.len() == 2;
    Some(Named { piece: piece.or((!whole).then_some(Piece::Pawn)), file, rank, to, promotion })
}

fn promoted(letter: u8) -> Option<Piece> {
    Some(match letter.to_ascii_uppercase() {
        b'Q' => Piece::Queen,
        b'R' => Piece::Rook,
        b'B' => Piece::Bishop,
        b'N' => Piece::Knight,
        _ => return None,
    })
}

fn file_of(byte: u8) -> Option<File> {
    byte.checked_sub(b'a').and_then(|i| File::try_index(i.into()))
}

fn rank_of(byte: u8) -> Option<Rank> {
    byte.checked_sub(b'1').and_then(|i| Rank::try_index(i.into()))
}

/// Appends the word for a legal move.
pub fn write(board: &Board, played: Move, out: &mut String) {
    let us = board.side_to_move();
    let mut after = board.clone();
    after.play_unchecked(played);
    let piece = board.piece_on(played.from).unwrap_or(Piece::Pawn);
    if board.colors(us).has(played.to) {
        out.push_str(if played.to.file() > played.from.file() { "O-O" } else { "O-O-O" });
    } else {
        if piece != Piece::Pawn {
            out.push(letter(piece));
            rivals(board, played, piece, out);
        }
        let takes = board.colors(!us).has(played.to) || piece == Piece::Pawn && played.from.file() != played.to.file();
        if takes {
            if piece == Piece::Pawn {
                out.push_str(&played.from.file().to_string());
            }
            out.push('x');
        }
        out.push_str(&played.to.to_string());
        if let Some(promotion) = played.promotion {
            out.push('=');
            out.push(letter(promotion));
        }
    }
    if !after.checkers().is_empty() {
        out.push(if after.status() == GameStatus::Won { '#' } else { '+' });
    }
}

/// Appends what tells a move from those of other pieces of its sort to the same square.
fn rivals(board: &Board, played: Move, piece: Piece, out: &mut String) {
    let others = board.colored_pieces(board.side_to_move(), piece) ^ played.from.bitboard();
    let mut rivals = BitBoard::EMPTY;
    board.generate_moves_for(others, |moves| {
        if moves.to.has(played.to) {
            rivals |= moves.from.bitboard();
        }
        false
    });
    if rivals.is_empty() {
        return;
    }
    let alone_on_file = (rivals & played.from.file().bitboard()).is_empty();
    let alone_on_rank = (rivals & played.from.rank().bitboard()).is_empty();
    if alone_on_file || !alone_on_rank {
        out.push_str(&played.from.file().to_string());
    }
    if !alone_on_file {
        out.push_str(&played.from.rank().to_string());
    }
}

/// The letter of a piece.
fn letter(piece: Piece) -> char {
    ['P', 'N', 'B', 'R', 'Q', 'K'][piece as usize]
}
