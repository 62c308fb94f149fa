//! Whether two positions are the same by the rules of chess: same men, side, castling rights and captures in passing.
//! The chess library's own answer takes a bishop that may go to the skipped square for a pawn that may take there.

use cozy_chess::{Board, Color, File, Move, Piece, Rank, Square, get_pawn_attacks};

/// Whether `a` and `b` are the same position.
pub(super) fn same(a: &Board, b: &Board) -> bool {
    a.hash_without_ep() == b.hash_without_ep()
        && a.side_to_move() == b.side_to_move()
        && Piece::ALL.into_iter().all(|piece| a.pieces(piece) == b.pieces(piece))
        && Color::ALL.into_iter().all(|color| a.colors(color) == b.colors(color))
        && Color::ALL.into_iter().all(|color| a.castle_rights(color) == b.castle_rights(color))
        && capture_in_passing(a) == capture_in_passing(b)
}

/// The file on which a pawn can be taken in passing right now.
fn capture_in_passing(board: &Board) -> Option<File> {
    let file = board.en_passant()?;
    let us = board.side_to_move();
    let to = Square::new(file, Rank::Sixth.relative_to(us));
    let takers = get_pawn_attacks(to, !us) & board.colored_pieces(us, Piece::Pawn);
    takers.into_iter().any(|from| board.is_legal(Move { from, to, promotion: None })).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_fens(a: &str, b: &str) -> bool {
        same(&a.parse().unwrap(), &b.parse().unwrap())
    }

    #[test]
    fn only_a_pawn_that_may_take_makes_a_difference() {
        // A bishop on h4 may go to g3, and takes nothing there.
        assert!(same_fens("4k3/8/8/8/6Pb/8/8/K7 b - g3 0 1", "4k3/8/8/8/6Pb/8/8/K7 b - - 0 1"));
        assert!(!same_fens("4k3/8/8/8/6Pp/8/8/K7 b - g3 0 1", "4k3/8/8/8/6Pp/8/8/K7 b - - 0 1"));
        // Here the pawn may take but for a pin.
        assert!(same_fens("6k1/8/8/8/5Pp1/8/8/4K1R1 b - f3 0 1", "6k1/8/8/8/5Pp1/8/8/4K1R1 b - - 0 1"));
    }

    #[test]
    fn clocks_make_none_and_rights_and_sides_do() {
        assert!(same_fens("r3k3/8/8/8/8/8/8/4K3 w q - 0 1", "r3k3/8/8/8/8/8/8/4K3 w q - 9 30"));
        assert!(!same_fens("r3k3/8/8/8/8/8/8/4K3 w q - 0 1", "r3k3/8/8/8/8/8/8/4K3 w - - 0 1"));
        assert!(!same_fens("r3k3/8/8/8/8/8/8/4K3 w q - 0 1", "r3k3/8/8/8/8/8/8/4K3 b q - 0 1"));
    }
}
