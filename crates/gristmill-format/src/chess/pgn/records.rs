//! A game -> V6 records of its positions, as supervised training takes them: the move played, and how the game ended.
//! What nobody searched is said in the terms of the record: no visits, unknown values of a network.

use gristmill_bytes::error::Result;

use super::fen::is_classical;
use super::game::{Game, Outcome};
use crate::chess::frame::FrameMut;
use crate::chess::record::{InputFormat, V6_BYTES};
use crate::chess::rescore::Played;

/// Bit of `invariance_info`: the result was agreed, claimed or forfeited, and is not that of the last board.
const ADJUDICATED: u8 = 1 << 5;

/// The input format of a game where the caller names none: the classical one, or where its rooks or kings stand elsewhere, the one
/// for Chess960.
pub fn usual_format(game: &Game) -> InputFormat {
    match game.plies.first().is_none_or(|ply| is_classical(&ply.board)) {
        true => InputFormat::Classical,
        false => InputFormat::Castling,
    }
}

/// Appends the V6 records of a game.
///
/// Errors: as [`Played::write`].
pub fn write(game: &Game, format: InputFormat, played: &mut Played, out: &mut Vec<u8>) -> Result<()> {
    let first = out.len();
    played.write(game.plies.iter().map(|ply| (&ply.board, ply.played)), format, out)?;
    let plies = game.plies.len();
    for (i, record) in out[first..].chunks_exact_mut(V6_BYTES).enumerate() {
        let (q, d) = match game.outcome {
            Outcome::Drawn => (0.0, 1.0),
            Outcome::Won(color) if color == game.plies[i].board.side_to_move() => (1.0, 0.0),
            Outcome::Won(_) => (-1.0, 0.0),
        };
        let left = (plies - i) as f32;
        let mut frame = FrameMut::new(record)?;
        frame.set_result_q(q).set_result_d(d).set_plies_left(left);
        frame.set_root_q(q).set_root_d(d).set_root_m(left);
        frame.set_best_q(q).set_best_d(d).set_best_m(left);
        frame.set_played_q(q).set_played_d(d).set_played_m(left);
        frame.set_q_st(q);
        let flags = frame.as_frame().invariance_info() | if game.on_board { 0 } else { ADJUDICATED };
        frame.set_invariance_info(flags);
    }
    Ok(())
}
