//! A seed -> random games, filtered here and there, as sfbinpack has them.
//! Plays legal moves only; takes nothing from a clock.

use cozy_chess::{Board, Color, GameStatus, Move, Piece, Square};
use sfbinpack::TrainingDataEntry as Entry;
use sfbinpack::chess::color::Color as TheirColor;
use sfbinpack::chess::coords::Square as TheirSquare;
use sfbinpack::chess::r#move::Move as TheirMove;
use sfbinpack::chess::piece::Piece as TheirPiece;
use sfbinpack::chess::piecetype::PieceType;
use sfbinpack::chess::position::Position;

/// Numbers that follow from a seed.
pub struct Draw(pub u64);

impl Draw {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Where games begin: the usual place, and some where rare moves are near.
const STARTS: [&str; 8] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w Kq - 11 40",
    "8/PPP4k/8/8/8/8/4Kppp/8 w - - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "k7/pppp4/8/2P1P1P1/2p1p1p1/8/PPPP4/K7 b - - 0 1",
    "3rk3/3p1p2/8/K1P1P2r/k7/8/8/8 b - - 0 1",
];

fn square(at: Square) -> TheirSquare {
    TheirSquare::new(at as u32)
}

/// A move as they have it.
fn told(board: &Board, played: Move) -> TheirMove {
    let (from, to) = (square(played.from), square(played.to));
    let color = if board.side_to_move() == Color::White { TheirColor::White } else { TheirColor::Black };
    let pawn = board.piece_on(played.from) == Some(Piece::Pawn);
    if let Some(piece) = played.promotion {
        let sort = match piece {
            Piece::Knight => PieceType::Knight,
            Piece::Bishop => PieceType::Bishop,
            Piece::Rook => PieceType::Rook,
            _ => PieceType::Queen,
        };
        return TheirMove::promotion(from, to, TheirPiece::new(sort, color));
    }
    if board.color_on(played.to) == Some(board.side_to_move()) {
        return TheirMove::castle(from, to);
    }
    if pawn && played.from.file() != played.to.file() && board.piece_on(played.to).is_none() {
        return TheirMove::en_passant(from, to);
    }
    TheirMove::normal(from, to)
}

/// Positions of `games` games. Some positions are left out, as filters do.
pub fn games(seed: u64, games: usize) -> Vec<Entry> {
    let (mut draw, mut all) = (Draw(2 * seed + 1), Vec::new());
    for _ in 0..games {
        let fen = STARTS[draw.below(STARTS.len() as u64) as usize];
        let Ok(mut board) = Board::from_fen(fen, false) else { continue };
        let Ok(mut position) = Position::from_fen(fen) else { continue };
        let mut result = draw.below(3) as i16 - 1;
        let (most, leaves) = (20 + draw.below(300), draw.below(4));
        let mut score = draw.below(200) as i16 - 100;
        position.set_ply(draw.below(40) as u16);
        for _ in 0..most {
            let mut moves = Vec::new();
            board.generate_moves(|some| {
                moves.extend(some);
                false
            });
            if moves.is_empty() || board.status() != GameStatus::Ongoing {
                break;
            }
            let played = moves[draw.below(moves.len() as u64) as usize];
            let theirs = told(&board, played);
            score = match draw.below(40) {
                0 => 32002,
                1 => draw.below(65536) as u16 as i16,
                _ => (score.wrapping_neg()).clamp(-3000, 3000) + draw.below(60) as i16 - 30,
            };
            if leaves == 0 || draw.below(20) > leaves {
                all.push(Entry { pos: position, mv: theirs, score, ply: position.ply(), result });
            }
            position = position.after_move(theirs);
            board.play_unchecked(played);
            result = -result;
        }
    }
    all
}
