//! A position -> a score for each legal move: the simple player whose games `generate` writes.
//! Looks one ply ahead in whole numbers; knows no files, no records and no chance.

use cozy_chess::{
    BitBoard, Board, Color, Move, Piece, Square, get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks,
    get_rook_moves,
};

/// Score of a mate, in centipawns.
pub(super) const MATE: i32 = 10_000;

/// Worth of each piece, in centipawns, in the order of [`Piece::ALL`].
const WORTH: [i32; 6] = [100, 310, 325, 500, 930, 0];

/// A side this far ahead drives the enemy king to the edge.
const WINNING: i32 = 300;

/// A legal move and what the player thinks of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scored {
    pub(super) mv: Move,
    /// Centipawns for the side that moves; [`MATE`] when it mates.
    pub(super) score: i32,
}

/// Distance of a square from the centre, 0..=6.
fn eccentricity(square: Square) -> i32 {
    let off = |n: usize| (2 * n as i32 - 7).abs() / 2;
    off(square.file() as usize) + off(square.rank() as usize)
}

fn king_distance(a: Square, b: Square) -> i32 {
    let off = |x: usize, y: usize| (x as i32 - y as i32).abs();
    off(a.file() as usize, b.file() as usize).max(off(a.rank() as usize, b.rank() as usize))
}

/// What the place of a piece adds to its worth; `square` as its owner sees the board.
fn place(piece: Piece, square: Square, endgame: bool) -> i32 {
    let rank = square.rank() as i32;
    let centre = 6 - 2 * eccentricity(square);
    match piece {
        Piece::Pawn if endgame => 8 * rank,
        Piece::Pawn => 4 * rank + centre,
        Piece::Knight => 4 * centre,
        Piece::Bishop => 2 * centre,
        Piece::Rook => 15 * i32::from(rank == 6),
        Piece::Queen => centre,
        Piece::King if endgame => 4 * centre,
        Piece::King => -3 * centre - 12 * rank,
    }
}

/// Material and place of one side, and its material alone.
fn side(board: &Board, color: Color, endgame: bool) -> (i32, i32) {
    let (mut total, mut material) = (0, 0);
    for piece in Piece::ALL {
        for square in board.colored_pieces(color, piece) {
            total += place(piece, square.relative_to(color), endgame);
            material += WORTH[piece as usize];
        }
    }
    (total + material, material)
}

/// Value of a position for the side to move, in centipawns, without looking ahead.
pub(super) fn evaluate(board: &Board) -> i32 {
    let heavy = board.pieces(Piece::Queen).len() * 2 + board.pieces(Piece::Rook).len();
    let endgame = heavy <= 2;
    let us = board.side_to_move();
    let ((ours, our_material), (theirs, their_material)) = (side(board, us, endgame), side(board, !us, endgame));
    let drive = |chased: Color| {
        let (prey, hunter) = (board.king(chased), board.king(!chased));
        25 * eccentricity(prey) - 8 * king_distance(prey, hunter)
    };
    let ahead = our_material - their_material;
    let hunt = match ahead {
        WINNING.. => drive(!us),
        _ if ahead <= -WINNING => -drive(us),
        _ => 0,
    };
    ours - theirs + hunt
}

fn attackers(board: &Board, square: Square, by: Color) -> BitBoard {
    let occupied = board.occupied();
    let queens = board.pieces(Piece::Queen);
    let all = (get_pawn_attacks(square, !by) & board.pieces(Piece::Pawn))
        | (get_knight_moves(square) & board.pieces(Piece::Knight))
        | (get_king_moves(square) & board.pieces(Piece::King))
        | (get_bishop_moves(square, occupied) & (board.pieces(Piece::Bishop) | queens))
        | (get_rook_moves(square, occupied) & (board.pieces(Piece::Rook) | queens));
    all & board.colors(by)
}

/// What the side to move wins by taking the piece on `square` with its cheapest man.
fn hanging(board: &Board, square: Square) -> i32 {
    let Some(prize) = board.piece_on(square) else { return 0 };
    let them = board.side_to_move();
    let takers = attackers(board, square, them);
    let cheapest = Piece::ALL.into_iter().find(|p| !(board.pieces(*p) & takers).is_empty());
    let Some(cheapest) = cheapest else { return 0 };
    let guarded = !attackers(board, square, !them).is_empty();
    match (guarded, cheapest) {
        (true, Piece::King) => 0,
        (true, taker) => (WORTH[prize as usize] - WORTH[taker as usize]).max(0),
        (false, _) => WORTH[prize as usize],
    }
}

/// All legal moves of `board`, each with its score, into `out`. `seen` says whether a position came up before.
pub(super) fn consider(board: &Board, seen: impl Fn(&Board) -> bool, out: &mut Vec<Scored>) {
    out.clear();
    board.generate_moves(|moves| {
        out.extend(moves.into_iter().map(|mv| Scored { mv, score: 0 }));
        false
    });
    for scored in out.iter_mut() {
        let mut after = board.clone();
        after.play_unchecked(scored.mv);
        let replies = after.generate_moves(|_| true);
        scored.score = match (replies, after.checkers().is_empty()) {
            (false, false) => MATE,
            (false, true) => 0,
            _ if seen(&after) => 0,
            _ => -evaluate(&after) - hanging(&after, scored.mv.to),
        };
    }
}

/// Whether neither side can ever mate: bare kings, one minor piece, or bishops of one colour only.
pub(super) fn is_dead(board: &Board) -> bool {
    let mating = board.pieces(Piece::Pawn) | board.pieces(Piece::Rook) | board.pieces(Piece::Queen);
    if !mating.is_empty() {
        return false;
    }
    let bishops = board.pieces(Piece::Bishop);
    let minors = board.pieces(Piece::Knight).len() + bishops.len();
    let one_colour = bishops.is_subset(BitBoard::DARK_SQUARES) || bishops.is_subset(BitBoard::LIGHT_SQUARES);
    minors <= 1 || (board.pieces(Piece::Knight).is_empty() && one_colour)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(fen: &str) -> Board {
        fen.parse().unwrap()
    }

    fn best(fen: &str) -> (String, i32) {
        let mut moves = Vec::new();
        consider(&board(fen), |_| false, &mut moves);
        let best = moves.iter().max_by_key(|m| m.score).unwrap();
        (best.mv.to_string(), best.score)
    }

    #[test]
    fn finds_mates_and_takes_what_hangs() {
        assert_eq!(best("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1"), ("a1a8".into(), MATE));
        assert_eq!(best("4k3/8/8/3q4/8/8/8/3RK3 w - - 0 1").0, "d1d5");
    }

    #[test]
    fn the_two_sides_see_a_position_alike() {
        let white = board("r3k2r/pp1n1ppp/2p5/4p3/4P3/2N5/PP3PPP/R3K2R w KQkq - 0 1");
        let black = board("r3k2r/pp3ppp/2n5/4p3/4P3/2P5/PP1N1PPP/R3K2R b KQkq - 0 1");
        assert_eq!(evaluate(&white), evaluate(&black));
        assert_eq!(evaluate(&Board::startpos()), 0);
    }

    #[test]
    fn dead_positions() {
        for (fen, dead) in [
            ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", true),
            ("4k3/8/8/8/8/8/8/4KN2 w - - 0 1", true),
            ("4kb2/8/8/8/8/8/8/2B1K3 w - - 0 1", true),
            ("4kb2/8/8/8/8/8/8/4KB2 w - - 0 1", false),
            ("4k3/8/8/8/8/8/8/3NKN2 w - - 0 1", false),
            ("4k3/8/8/8/8/8/P7/4K3 w - - 0 1", false),
        ] {
            assert_eq!(is_dead(&board(fen)), dead, "{fen}");
        }
    }
}
