//! The records of a game -> the game, as far as they tell it: positions, moves, the result. Who played is not in them.

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::game::{Game, Outcome, Ply, RESULT};
use crate::chess::frame::Frame;
use crate::chess::rescore::replayed;

/// The game of some records, with the tags that their file said of them. A last move that no index tells is left out.
///
/// Errors: `Unsupported` for records that are not of chess; `Refused` where no game leads from one record to the next, and as
/// [`RESULT`] for a result between win, draw and loss.
pub fn told(chunk: &Chunk) -> Result<Game> {
    let positions = replayed(chunk)?;
    let (Some((first, _)), Some((last, played))) = (positions.first(), positions.last()) else {
        return Err(Error::new(Kind::Empty, "the game has no frames"));
    };
    let frame = Frame::new(chunk.record(0))?;
    let us = first.side_to_move();
    let outcome = match (frame.result_q(), frame.result_d()) {
        (1.0, 0.0) => Outcome::Won(us),
        (-1.0, 0.0) => Outcome::Won(!us),
        (0.0, 1.0) => Outcome::Drawn,
        (q, d) => {
            let detail =
                format!("result_q {q} and result_d {d} are neither a win nor a draw nor a loss, as PGN has them");
            return Err(Error::new(Kind::Refused(RESULT), detail).in_frame(0));
        }
    };
    let mut end = last.clone();
    if let Some(played) = played {
        end.play_unchecked(*played);
    }
    let on_board = !end.generate_moves(|_| true);
    let ply = |(board, played)| {
        Some(Ply { board, played: played?, eval: None, clock: None, nag: None, comment: String::new() })
    };
    let mut plies: Vec<Ply> = positions.into_iter().filter_map(ply).collect();
    // Records count no moves.
    for i in 1..plies.len() {
        let before = &plies[i - 1];
        let mut board = before.board.clone();
        board.play_unchecked(before.played);
        plies[i].board = board;
    }
    Ok(Game { tags: chunk.said.clone(), plies, last: end, outcome, on_board })
}
