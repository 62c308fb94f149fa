//! A fixed seed -> random legal positions of three and four men; all positions of three; as each prober wants them.
//! Knows no tables.

use cozy_chess::{Board, BoardBuilder, Color, Piece, Square};
use shakmaty::fen::Fen;
use shakmaty::{CastlingMode, Chess};

/// One position in two libraries.
pub struct Position {
    pub board: Board,
    pub chess: Chess,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n as u64) as usize
    }
}

/// `count` positions; in one of eight a pawn may be taken in passing, as far as chance allows.
pub fn random(count: usize) -> Vec<Position> {
    let mut random = Random(7);
    let mut list = Vec::with_capacity(count);
    while list.len() < count {
        let men = [3, 4, 4, 4][random.below(4)];
        let mut builder = BoardBuilder::empty();
        let mut put = |random: &mut Random, piece, color| {
            let free: Vec<Square> = Square::ALL.into_iter().filter(|s| builder.square(*s).is_none()).collect();
            *builder.square_mut(free[random.below(free.len())]) = Some((piece, color));
        };
        put(&mut random, Piece::King, Color::White);
        put(&mut random, Piece::King, Color::Black);
        for _ in 2..men {
            let piece =
                [Piece::Pawn, Piece::Pawn, Piece::Knight, Piece::Bishop, Piece::Rook, Piece::Queen][random.below(6)];
            let color = [Color::White, Color::Black][random.below(2)];
            put(&mut random, piece, color);
        }
        builder.side_to_move = [Color::White, Color::Black][random.below(2)];
        if random.below(8) == 0 {
            let rank = if builder.side_to_move == Color::White { 40 } else { 16 };
            builder.en_passant = Some(Square::index(rank + random.below(8)));
        }
        if builder.build().is_err() {
            builder.en_passant = None;
        }
        list.extend(position(&builder));
    }
    list
}

/// A position that both libraries take.
fn position(builder: &BoardBuilder) -> Option<Position> {
    let board = builder.build().ok()?;
    let fen: Fen = board.to_string().parse().expect("a position");
    let chess = fen.into_position(CastlingMode::Standard).ok()?;
    Some(Position { board, chess })
}

/// Every legal position of three men.
pub fn three_men() -> impl Iterator<Item = Position> {
    let sides = [Color::White, Color::Black];
    let third = sides.into_iter().flat_map(|side| Piece::ALL.map(|piece| (piece, side)));
    let third =
        third.filter(|(piece, _)| *piece != Piece::King).flat_map(move |man| sides.map(|to_move| (man, to_move)));
    let squares = || Square::ALL.into_iter();
    let placed = move || squares().flat_map(move |a| squares().flat_map(move |b| squares().map(move |c| [a, b, c])));
    third.flat_map(move |(man, to_move)| {
        placed().filter(|[a, b, c]| a != b && a != c && b != c).filter_map(move |[white, black, other]| {
            let mut builder = BoardBuilder::empty();
            *builder.square_mut(white) = Some((Piece::King, Color::White));
            *builder.square_mut(black) = Some((Piece::King, Color::Black));
            *builder.square_mut(other) = Some(man);
            builder.side_to_move = to_move;
            position(&builder)
        })
    })
}
