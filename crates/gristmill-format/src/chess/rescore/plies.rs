//! Plies left: filled in where old data has none, and by tablebase in the simplest endings.
//! Changes `plies_left` only. Gaviota tables, which know more, are not supported.

use cozy_chess::Piece;
use gristmill_bytes::error::Result;

use super::game::Game;
use super::tablebase::Probes;
use super::tally::{Count, Tally};
use crate::chess::syzygy::Wdl;

/// Frames whose plies left are exactly 0 get the number of frames that follow, and one.
pub(super) fn fill(game: &mut Game<'_>, tally: &mut Tally) {
    for i in 0..game.len() {
        if game.frame(i).plies_left() == 0.0 {
            let plies = (game.len() - i) as f32;
            tally.add(Count::PliesFilled, u64::from(game.set_plies_left(i, plies)));
        }
    }
}

/// Maximum number of men of an ending where the way to the next capture is the way to mate.
const MEN: u32 = 3;

/// Endings of three men without pawns: plies to mate, and counted back from there where the ending begins.
///
/// Errors: `Refused` where a table is missing or damaged and may not be.
pub(super) fn by_tablebase(game: &mut Game<'_>, probes: &Probes<'_>, tally: &mut Tally) -> Result<()> {
    if !probes.any() || game.is_drawn() {
        return Ok(());
    }
    for i in 1..game.len() {
        let board = &game.plies[i].board;
        let simple = board.occupied().len() <= MEN && board.pieces(Piece::Pawn).is_empty();
        if !simple || !probes.covers(board) || game.may_repeat(i) {
            continue;
        }
        let wdl = probes.wdl(board, tally).map_err(|e| e.in_frame(i))?;
        if !matches!(wdl, Some(Wdl::Win | Wdl::Loss)) {
            continue;
        }
        let Some(dtz) = probes.dtz(board, tally).map_err(|e| e.in_frame(i))? else { continue };
        let (rule50, plies) = (i32::from(board.halfmove_clock()), dtz.abs());
        if rule50 + plies >= 99 {
            continue;
        }
        let first = if rule50 == 0 { 0 } else { i };
        for k in first..=i {
            let left = plies as f32 + (i - k) as f32;
            tally.add(Count::Plies, u64::from(game.set_plies_left(k, left)));
        }
    }
    Ok(())
}
