//! How a game ended, as its frames tell it one after another: result, plies left, flags, the next moves.
//! Takes the changes that a rescorer may make, and no others.

use super::field::ROUNDING;
use super::view::View;
use super::{Rule, Tell};
use crate::chess::frame::Frame;
use crate::chess::record::{V7_BYTES, Version, at};

/// Bits of `invariance_info`.
const PROVEN: u8 = 1 << 3;
const MAX_LENGTH: u8 = 1 << 4;
const ADJUDICATED: u8 = 1 << 5;

/// No next move.
const NO_MOVE: u16 = u16::MAX;

/// Tells what is wrong with frame `i` of the game, seen beside those that follow it.
pub(super) fn judge(frames: &[Frame<'_>], i: usize, tell: &mut Tell<'_>) {
    let now = frames[i];
    whole(now, tell);
    next_moves(frames, i, tell);
    let Some(&next) = frames.get(i + 1) else { return };
    same_to_the_end(now, next, tell);
    let (q, d) = (now.result_q(), now.result_d());
    let (next_q, next_d) = (-next.result_q(), next.result_d());
    let mut deblundered = false;
    if far(q, next_q) || far(d, next_d) {
        deblundered = is_deblundered(now, next_q);
        if !deblundered && !tablebase(now, next) {
            tell.breach(Rule::Result, at::RESULT_Q, || {
                format!(
                    "result_q {q} and result_d {d}, but {} and {next_d} in the next frame: one game has one result",
                    next.result_q()
                )
            });
        }
    }
    let (left, next_left) = (now.plies_left(), next.plies_left());
    if next_left > left + ROUNDING && !tablebase(now, next) {
        let between = now.best_m().min(next_left + 1.0)..=now.best_m().max(next_left + 1.0);
        if !(deblundered && between.contains(&left)) {
            tell.breach(Rule::PliesLeft, at::PLIES_LEFT, || {
                format!("plies_left is {left}, but {next_left} one ply later; expected it to fall")
            });
        }
    }
}

fn far(a: f32, b: f32) -> bool {
    (a - b).abs() > ROUNDING
}

/// A win, a draw or a loss; a rescorer's fractions are in range, which is another rule's matter.
fn whole(frame: Frame<'_>, tell: &mut Tell<'_>) {
    let (q, d) = (frame.result_q(), frame.result_d());
    let whole = [-1.0, 0.0, 1.0].contains(&q) && [0.0, 1.0].contains(&d);
    if whole && (q == 0.0) != (d == 1.0) {
        tell.breach(Rule::Result, at::RESULT_D, || format!("result_q {q} and result_d {d} contradict each other"));
    }
}

/// Whether the result may change here because a better move was found than the one played: it then lies
/// between what follows and the value of that move.
fn is_deblundered(now: Frame<'_>, next_q: f32) -> bool {
    let (best, played, q) = (now.best_q(), now.played_q(), now.result_q());
    let terminal = best == 1.0 && now.invariance_info() & PROVEN != 0 || played == -1.0;
    let between = best.min(next_q) - ROUNDING..=best.max(next_q) + ROUNDING;
    let fraction = ![-1.0, 0.0, 1.0].contains(&q);
    best > played && between.contains(&q) && (fraction || terminal || q == best)
}

/// Whether a tablebase may have had its say between the two frames.
fn tablebase(now: Frame<'_>, next: Frame<'_>) -> bool {
    [now, next].into_iter().filter_map(|frame| View::new(frame).ok()).any(|view| view.is_tablebase())
}

fn same_to_the_end(now: Frame<'_>, next: Frame<'_>, tell: &mut Tell<'_>) {
    let ended = |frame: Frame<'_>| frame.invariance_info() & (MAX_LENGTH | ADJUDICATED);
    if ended(now) != ended(next) {
        tell.breach(Rule::Flags, at::INVARIANCE_INFO, || {
            format!(
                "invariance_info {:#04x}, but {:#04x} in the next frame: bits 4 and 5 say how the game ended",
                now.invariance_info(),
                next.invariance_info()
            )
        });
    }
    if (now.visits() == 0) != (next.visits() == 0) {
        let (visits, next) = (now.visits(), next.visits());
        tell.breach(Rule::Visits, at::VISITS, || format!("{visits} visits, but {next} in the next frame"));
    }
}

fn next_moves(frames: &[Frame<'_>], i: usize, tell: &mut Tell<'_>) {
    let now = frames[i];
    // A widened V6 record has no next moves.
    if now.version() != Version::V7.number() || now.bytes().len() != V7_BYTES {
        return;
    }
    for (name, offset, stored, plies) in [
        ("opp_played_idx", at::OPP_PLAYED_IDX, now.opp_played_idx(), 1),
        ("next_played_idx", at::NEXT_PLAYED_IDX, now.next_played_idx(), 2),
    ] {
        let played = frames.get(i + plies).map_or(NO_MOVE, Frame::played_idx);
        if stored != played {
            tell.breach(Rule::NextMoves, offset, || {
                format!("{name} is {stored}; the frame {plies} later played {played} (65535: there is none)")
            });
        }
    }
}
