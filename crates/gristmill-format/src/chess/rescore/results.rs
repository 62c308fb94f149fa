//! Results by what a tablebase says.
//! Changes `result_q` and `result_d` only.

use gristmill_bytes::error::Result;

use super::game::Game;
use super::tablebase::Probes;
use super::tally::{Count, Tally};

/// Gives the frames the results that best play leads to from the first position on that the tablebase knows.
///
/// Errors: `Refused` where a table is missing or damaged and may not be.
pub(super) fn run(game: &mut Game<'_>, probes: &Probes<'_>, tally: &mut Tally) -> Result<()> {
    if !probes.any() {
        return Ok(());
    }
    let at_zero = after_zeroing(game, probes, tally)?;
    let between = between_zeroing(game, probes, tally)?;
    tally.add(Count::Results, at_zero + between);
    Ok(())
}

/// Positions right after a capture or pawn move: their value holds for the whole stretch before them.
fn after_zeroing(game: &mut Game<'_>, probes: &Probes<'_>, tally: &mut Tally) -> Result<u64> {
    let (mut changed, mut first) = (0, 0);
    for i in 1..game.len() {
        let board = &game.plies[i].board;
        if board.halfmove_clock() != 0 || !probes.covers(board) {
            continue;
        }
        let Some(wdl) = probes.wdl(board, tally).map_err(|e| e.in_frame(i))? else { continue };
        let mut q = f32::from(wdl.score());
        let d = if q == 0.0 { 1.0 } else { 0.0 };
        for k in (first..=i).rev() {
            changed += u64::from(game.set_result(k, q, d));
            // 0 keeps its sign.
            q = if q == 0.0 { 0.0 } else { -q };
        }
        first = i + 1;
    }
    Ok(changed)
}

/// Positions between such moves: each by itself, as far as the fifty-move rule lets its value count.
fn between_zeroing(game: &mut Game<'_>, probes: &Probes<'_>, tally: &mut Tally) -> Result<u64> {
    let mut changed = 0;
    for i in 1..game.len() {
        let board = &game.plies[i].board;
        let rule50 = i32::from(board.halfmove_clock());
        if rule50 == 0 || !probes.covers(board) {
            continue;
        }
        let Some(wdl) = probes.wdl(board, tally).map_err(|e| e.in_frame(i))? else { continue };
        let (score, current) = (f32::from(wdl.score()), game.frame(i).result_q());
        let agrees = score == current;
        if score == 0.0 || agrees && current == 0.0 {
            if !agrees {
                changed += u64::from(game.set_result(i, 0.0, 1.0));
            }
            continue;
        }
        let dtz = probes.dtz(board, tally).map_err(|e| e.in_frame(i))?;
        let plies = dtz.map(|dtz| rule50 + dtz.abs());
        let in_time = plies.is_some_and(|plies| plies < 99) && !game.may_repeat(i);
        let too_late = plies.is_some_and(|plies| plies > 101);
        let q = match agrees {
            true if too_late => 0.0,
            true => current,
            false if in_time => score,
            false => 0.0,
        };
        if q != current {
            changed += u64::from(game.set_result(i, q, if q == 0.0 { 1.0 } else { 0.0 }));
        }
    }
    Ok(changed)
}
