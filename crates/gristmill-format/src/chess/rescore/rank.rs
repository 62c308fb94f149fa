//! A position and a tablebase -> the legal moves that win fastest (ranking of root moves).
//! Judges moves by plies to the next capture or pawn move; knows no game.

use cozy_chess::{Board, Move};
use gristmill_bytes::error::Result;

use super::tablebase::Probes;
use super::tally::Tally;
use crate::chess::syzygy::Wdl;

/// The moves of highest rank under the assumption of repeated positions, so that only progress counts; none unless they
/// win. None either where a table is missing and may be.
///
/// Errors: `Refused` where a table is missing or damaged and may not be.
pub(super) fn fastest_wins(board: &Board, probes: &Probes<'_>, tally: &mut Tally) -> Result<Vec<Move>> {
    let mut moves = Vec::new();
    board.generate_moves(|list| {
        moves.extend(list);
        false
    });
    let (mut best, mut kept) = (1, Vec::new());
    for played in moves {
        let Some(plies) = plies(board, played, probes, tally)? else { return Ok(Vec::new()) };
        let rank = rank(plies, i32::from(board.halfmove_clock()), true);
        if rank > best {
            best = rank;
            kept.clear();
        }
        if rank == best {
            kept.push(played);
        }
    }
    Ok(kept)
}

/// Plies to the next capture or pawn move by way of `played`, which counts as one.
fn plies(board: &Board, played: Move, probes: &Probes<'_>, tally: &mut Tally) -> Result<Option<i32>> {
    let mut next = board.clone();
    next.play_unchecked(played);
    if !next.checkers().is_empty() && !next.generate_moves(|_| true) {
        return Ok(Some(1));
    }
    if next.halfmove_clock() == 0 {
        return Ok(probes.wdl(&next, tally)?.map(|wdl| match -wdl {
            Wdl::Win => 1,
            Wdl::CursedWin => 101,
            Wdl::Draw => 0,
            Wdl::BlessedLoss => -101,
            Wdl::Loss => -1,
        }));
    }
    Ok(probes.dtz(&next, tally)?.map(|dtz| -dtz - dtz.signum()))
}

/// The rank of a move: wins above 0, losses below.
fn rank(plies: i32, rule50: i32, repeated: bool) -> i32 {
    match plies {
        1.. if plies + rule50 <= 99 && !repeated => 1000,
        1.. => 1000 - (plies + rule50),
        0 => 0,
        _ if -2 * plies + rule50 < 100 => -1000,
        _ => -1000 + (-plies + rule50),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wins_rank_by_speed_once_a_position_was_repeated() {
        assert_eq!((rank(3, 10, true), rank(5, 10, true), rank(5, 10, false)), (987, 985, 1000));
        assert_eq!((rank(90, 20, false), rank(0, 50, true)), (890, 0));
        assert_eq!((rank(-3, 10, true), rank(-60, 10, true)), (-1000, -930));
    }
}
