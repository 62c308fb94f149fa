//! A frame -> the position as White sees it: FEN, a drawing, and the legal moves as policy indices.
//! For showing and checking; the encoder never comes here.

use cozy_chess::{BoardBuilder, BoardBuilderError, CastleRights, File, Square, get_king_moves};
pub use cozy_chess::{Color, Piece};

use super::frame::Frame;
use super::policy::{self, Promotion};
use super::record::{InputFormat, PLANES, at};
use super::transform::{PolicyMapping, Transform, flip, mirror};
use gristmill_bytes::error::{Error, Kind, Result};

/// The files of the rooks that may castle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Castling {
    /// Kingside: file 0..8.
    pub short: Option<u8>,
    /// Queenside: file 0..8.
    pub long: Option<u8>,
}

/// The current position of a frame. Square `8 * rank + file`, a1 = 0, as White sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Board {
    /// What stands on each square.
    pub squares: [Option<(Color, Piece)>; 64],
    /// Whether black is to move.
    pub black_to_move: bool,
    /// Rights of White and of Black.
    pub castling: [Castling; 2],
    /// File of a pawn that can be captured in passing: it just moved two squares and an enemy pawn is beside it.
    pub en_passant: Option<u8>,
    /// Plies since the last capture or pawn move.
    pub rule50: u8,
    /// The transform that the stored planes and policy indices are under.
    pub transform: Transform,
    /// How policy indices follow that transform.
    pub mapping: PolicyMapping,
}

/// Rank 5 of the side to move: where an enemy pawn stands after two squares.
const FIFTH: u64 = 0xff << 32;

impl Board {
    /// The position of a frame: planes 0 to 11, castling rights, side and en passant, any canonical transform undone.
    ///
    /// Formats 1 and 2 store no en passant; there it is read from the step between the last two positions.
    /// Where the transform leaves the policy mapping open the one is taken that makes the frame's
    /// policy legal, that of today's lc0 where both do or neither.
    ///
    /// Errors: `OutOfRange` for an unknown input format, two pieces on one square, or a castling byte of several bits.
    pub fn from_frame(frame: &Frame<'_>) -> Result<Self> {
        let mut board = Board::under(frame, PolicyMapping::HalfTurn)?;
        if board.transform.transposes() && !board.allows(frame) {
            board.mapping = PolicyMapping::AsPlanes;
            if !board.allows(frame) {
                board.mapping = PolicyMapping::HalfTurn;
            }
        }
        Ok(board)
    }

    /// The position of a frame under a mapping of policy indices; looks at no probability.
    ///
    /// Errors: as [`Board::from_frame`].
    pub(super) fn under(frame: &Frame<'_>, mapping: PolicyMapping) -> Result<Self> {
        let format = frame.input_format()?;
        let transform =
            if format.is_canonical() { Transform::from_bits(frame.invariance_info()) } else { Transform::NONE };
        let black_to_move = match format.is_canonical() {
            true => frame.invariance_info() & 0x80 != 0,
            false => frame.side_to_move_or_enpassant() != 0,
        };
        let mut board = Board {
            squares: [None; 64],
            black_to_move,
            castling: castling(frame, format, black_to_move)?,
            en_passant: en_passant(frame, format, transform),
            rule50: frame.rule50_count(),
            transform,
            mapping,
        };
        board.place(frame)?;
        Ok(board)
    }

    fn place(&mut self, frame: &Frame<'_>) -> Result<()> {
        let colors = if self.black_to_move { [Color::Black, Color::White] } else { [Color::White, Color::Black] };
        let pieces = colors.into_iter().flat_map(|color| Piece::ALL.map(|piece| (color, piece)));
        for (plane, man) in pieces.enumerate() {
            let mut mask = current(frame, plane, self.transform);
            if self.black_to_move {
                mask = mirror(mask);
            }
            while mask != 0 {
                let square = mask.trailing_zeros() as usize;
                mask &= mask - 1;
                if self.squares[square].replace(man).is_some() {
                    let detail = format!("two pieces on {}; is this a chess position?", Square::index(square));
                    return Err(Error::new(Kind::OutOfRange, detail).at_byte((at::PLANES + 8 * plane) as u64));
                }
            }
        }
        Ok(())
    }

    /// Whether every move that the policy marks legal is legal here.
    fn allows(&self, frame: &Frame<'_>) -> bool {
        let Some(legal) = self.legal_indices() else { return true };
        let marked = (0u16..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0);
        marked.into_iter().all(|(i, _)| legal.binary_search(&i).is_ok())
    }

    /// The position in Forsyth-Edwards notation, its move number 1; rights of inner rooks as their files.
    pub fn fen(&self) -> String {
        let mut text = String::new();
        for rank in (0..8).rev() {
            let mut empty = 0;
            for man in &self.squares[8 * rank..8 * rank + 8] {
                let Some((color, piece)) = *man else {
                    empty += 1;
                    continue;
                };
                if empty > 0 {
                    text.push_str(&empty.to_string());
                    empty = 0;
                }
                text.push(letter(color, piece));
            }
            if empty > 0 {
                text.push_str(&empty.to_string());
            }
            text.push_str(if rank > 0 { "/" } else { " " });
        }
        text.push_str(if self.black_to_move { "b " } else { "w " });
        text.push_str(&self.castling_text());
        match (self.en_passant, self.black_to_move) {
            (Some(file), black) => text.push_str(&format!(" {}{}", file_letter(file), if black { 3 } else { 6 })),
            (None, _) => text.push_str(" -"),
        }
        text.push_str(&format!(" {} 1", self.rule50));
        text
    }

    fn castling_text(&self) -> String {
        let mut text = String::new();
        for (rights, white) in self.castling.iter().zip([true, false]) {
            for (file, corner, name) in [(rights.short, 7, 'k'), (rights.long, 0, 'q')] {
                let Some(file) = file else { continue };
                let name = if file == corner { name } else { file_letter(file) };
                text.push(if white { name.to_ascii_uppercase() } else { name });
            }
        }
        if text.is_empty() { "-".to_owned() } else { text }
    }

    /// A drawing of ten lines with chess symbols, White below, and who is to move.
    pub fn draw(&self) -> String {
        self.picture(|color, piece| match color {
            Color::White => ['♙', '♘', '♗', '♖', '♕', '♔'][piece as usize],
            Color::Black => ['♟', '♞', '♝', '♜', '♛', '♚'][piece as usize],
        })
    }

    /// The same drawing with letters, White's in capitals.
    pub fn draw_ascii(&self) -> String {
        self.picture(letter)
    }

    fn picture(&self, symbol: impl Fn(Color, Piece) -> char) -> String {
        let mut text = String::new();
        for rank in (0..8).rev() {
            text.push_str(&(rank + 1).to_string());
            for man in &self.squares[8 * rank..8 * rank + 8] {
                text.push(' ');
                text.push(man.map_or('.', |(color, piece)| symbol(color, piece)));
            }
            text.push('\n');
        }
        text.push_str("  a b c d e f g h\n");
        text.push_str(if self.black_to_move { "  black to move\n" } else { "  white to move\n" });
        text
    }

    /// The position for move generation; `None` when no game can reach it (no king, a side in check that just moved, ...).
    pub fn to_cozy(&self) -> Option<cozy_chess::Board> {
        build(&self.builder()).ok()
    }

    /// The position as the library takes it, whether it accepts it or not.
    pub(super) fn builder(&self) -> BoardBuilder {
        let mut builder = BoardBuilder::empty();
        builder.board = self.squares.map(|man| man.map(|(color, piece)| (piece, color)));
        builder.side_to_move = if self.black_to_move { Color::Black } else { Color::White };
        let file = |file: Option<u8>| file.map(|f| File::index(usize::from(f)));
        for (rights, to) in self.castling.iter().zip(&mut builder.castle_rights) {
            *to = CastleRights { short: file(rights.short), long: file(rights.long) };
        }
        let rank = if self.black_to_move { 2 } else { 5 };
        builder.en_passant = self.en_passant.map(|f| Square::index(8 * rank + usize::from(f)));
        builder.halfmove_clock = self.rule50.min(100);
        builder
    }

    /// The same position with the colours exchanged.
    pub fn color_swapped(&self) -> Self {
        let man = |square: usize| self.squares[square ^ 56].map(|(color, piece)| (!color, piece));
        let [white, black] = self.castling;
        Board {
            squares: std::array::from_fn(man),
            black_to_move: !self.black_to_move,
            castling: [black, white],
            ..self.clone()
        }
    }

    /// The policy indices of all legal moves, ascending; `None` when no game can reach the position.
    pub fn legal_indices(&self) -> Option<Vec<u16>> {
        let board = self.to_cozy()?;
        let mut indices = Vec::new();
        board.generate_moves(|moves| {
            indices.extend(moves.into_iter().filter_map(|m| self.index_of(m)));
            false
        });
        indices.sort_unstable();
        Some(indices)
    }

    /// The policy index under which this frame stores a move of White's view; castling is king takes rook.
    pub fn index_of(&self, played: cozy_chess::Move) -> Option<u16> {
        let promotion = match played.promotion {
            Some(Piece::Queen) => Some(Promotion::Queen),
            Some(Piece::Rook) => Some(Promotion::Rook),
            Some(Piece::Bishop) => Some(Promotion::Bishop),
            _ => None,
        };
        let seen = |square: Square| square as u8 ^ self.turn();
        self.transform.index(policy::Move { from: seen(played.from), to: seen(played.to), promotion }, self.mapping)
    }

    /// The move of a policy index as White sees it; castling is king takes rook (`e1h1`), as with Chess960.
    /// `None` from 1858 on.
    pub fn uci(&self, index: u16) -> Option<String> {
        let stored = policy::entry(index)?;
        let shown = |square| self.transform.undo_square(square, self.mapping) ^ self.turn();
        let shown = policy::Move { from: shown(stored.from), to: shown(stored.to), promotion: stored.promotion };
        let is_pawn = self.squares[usize::from(shown.from)].is_some_and(|(_, piece)| piece == Piece::Pawn);
        let knight = is_pawn && matches!(shown.to / 8, 0 | 7) && shown.promotion.is_none();
        Some(if knight { format!("{shown}n") } else { shown.to_string() })
    }

    /// What to exclusive-or a square with, between White's view and the side to move's.
    fn turn(&self) -> u8 {
        if self.black_to_move { 56 } else { 0 }
    }
}

/// The position of a builder.
///
/// Errors: what the library refuses, and kings side by side, which it takes.
pub(super) fn build(builder: &BoardBuilder) -> Result<cozy_chess::Board, BoardBuilderError> {
    let board = builder.build()?;
    if kings_touch(&board) { Err(BoardBuilderError::InvalidBoard) } else { Ok(board) }
}

/// Whether the kings stand side by side: no game can reach such a position, and the library would let one take the other.
pub(super) fn kings_touch(board: &cozy_chess::Board) -> bool {
    get_king_moves(board.king(Color::White)).has(board.king(Color::Black))
}

/// A stored plane as a mask in square order, the transform undone; still the side to move's view.
pub(super) fn current(frame: &Frame<'_>, plane: usize, transform: Transform) -> u64 {
    debug_assert!(plane < PLANES);
    transform.undo(flip(frame.plane(plane)))
}

/// The file of the rook that a castling byte, which lies at byte `offset`, tells of; where a format has no files, its corner.
///
/// Errors: `OutOfRange` for a byte of several bits.
pub(super) fn rook_file(byte: u8, corner: u8, format: InputFormat, offset: usize) -> Result<Option<u8>> {
    match (format.has_castling_masks(), byte.count_ones()) {
        (_, 0) => Ok(None),
        (false, _) => Ok(Some(corner)),
        (true, 1) => Ok(Some(byte.trailing_zeros() as u8)),
        (true, _) => {
            let detail = format!("castling byte {byte:#04x}; expected one rook file or none");
            Err(Error::new(Kind::OutOfRange, detail).at_byte(offset as u64))
        }
    }
}

fn castling(frame: &Frame<'_>, format: InputFormat, black_to_move: bool) -> Result<[Castling; 2]> {
    let us = Castling {
        short: rook_file(frame.castling_us_oo(), 7, format, at::CASTLING_US_OO)?,
        long: rook_file(frame.castling_us_ooo(), 0, format, at::CASTLING_US_OOO)?,
    };
    let them = Castling {
        short: rook_file(frame.castling_them_oo(), 7, format, at::CASTLING_THEM_OO)?,
        long: rook_file(frame.castling_them_ooo(), 0, format, at::CASTLING_THEM_OOO)?,
    };
    Ok(if black_to_move { [them, us] } else { [us, them] })
}

/// File of a pawn that can be captured in passing.
pub(super) fn en_passant(frame: &Frame<'_>, format: InputFormat, transform: Transform) -> Option<u8> {
    if format.is_canonical() {
        let stored = frame.side_to_move_or_enpassant();
        let files = if transform.flips() { stored.reverse_bits() } else { stored };
        return (files != 0).then_some(files.trailing_zeros() as u8);
    }
    let ours = current(frame, 0, Transform::NONE) & FIFTH;
    let beside = (ours << 1 | ours >> 1) & FIFTH;
    let pawn = double_step(frame) & beside;
    (pawn != 0).then_some((pawn.trailing_zeros() % 8) as u8)
}

/// The pawn that just moved two squares by the board before, from its home rank over squares that are empty now; as
/// formats 1 and 2 tell it.
pub(super) fn double_step(frame: &Frame<'_>) -> u64 {
    let men = |board: usize, plane: usize| current(frame, 13 * board + plane, Transform::NONE);
    let occupied = (0..12).fold(0, |all, plane| all | men(0, plane));
    let (before, after) = (men(1, 6), men(0, 6));
    let left = (before & !occupied) >> 16;
    after & !before & FIFTH & left & !(occupied >> 8)
}

fn letter(color: Color, piece: Piece) -> char {
    let letter = ['p', 'n', 'b', 'r', 'q', 'k'][piece as usize];
    if color == Color::White { letter.to_ascii_uppercase() } else { letter }
}

fn file_letter(file: u8) -> char {
    char::from(b'a' + file)
}
