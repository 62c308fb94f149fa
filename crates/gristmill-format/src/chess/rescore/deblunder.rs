//! Targets that do not punish a position for a blunder made from it.
//! Changes `result_q`, `result_d` and `plies_left` only.

use super::game::Game;
use super::settings::{Compat, Deblunder, Quirk};
use super::tablebase::Probes;
use super::tally::{Count, Tally};
use crate::chess::frame::Frame;

/// Bit of `invariance_info`: the value of the best move is proven.
const PROVEN: u8 = 1 << 3;

/// What a frame is trained on: value, chance of a draw, plies left.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Target {
    q: f32,
    d: f32,
    plies: f32,
}

impl Target {
    /// The same as the side sees it that moved one ply before.
    fn one_ply_before(self) -> Self {
        Target { q: -self.q, plies: self.plies + 1.0, ..self }
    }

    /// Moved towards `other` by `ratio`.
    fn towards(self, other: Target, ratio: f32) -> Self {
        let mix = |mine: f32, its: f32| (1.0 - ratio) * mine + ratio * its;
        Target { q: mix(self.q, other.q), d: mix(self.d, other.d), plies: mix(self.plies, other.plies) }
    }
}

/// Walks backward from the last position that no tablebase judged, with the result as target; where a much better move
/// was seen than the one played, the target moves towards what that move was worth. Tablebases judge what moves lead to:
/// the first position is none of these.
pub(super) fn run(game: &mut Game<'_>, by: Deblunder, compat: Compat, probes: &Probes<'_>, tally: &mut Tally) {
    let last = game.len() - 1;
    if game.frame(last).visits() == 0 {
        return;
    }
    let judged = |i: usize| i > 0 && probes.any() && probes.covers(&game.plies[i].board);
    let start = (0..=last).rev().find(|i| !judged(*i)).unwrap_or(0);
    let frame = game.frame(last);
    let mut target = Target { q: frame.result_q(), d: frame.result_d(), plies: frame.plies_left() };
    if !compat.has(Quirk::DeblunderStart) {
        target = (start..last).fold(target, |target, _| target.one_ply_before());
    }
    let mut started = false;
    for i in (0..=start).rev() {
        let frame = game.frame(i);
        if let Some(ratio) = blunder(frame, by) {
            let best = Target { q: frame.best_q(), d: frame.best_d(), plies: frame.best_m() };
            target = target.towards(best, ratio);
            started = true;
            tally.add(Count::Blunders, 1);
        }
        if started {
            let changed = game.set_result(i, target.q, target.d) | game.set_plies_left(i, target.plies);
            tally.add(Count::Deblundered, u64::from(changed));
        }
        target = target.one_ply_before();
    }
}

/// How much the move played from `frame` is a blunder: from 0 (not included) to 1.
fn blunder(frame: Frame<'_>, by: Deblunder) -> Option<f32> {
    let (best, played) = (frame.best_q(), frame.played_q());
    let proven = best == 1.0 && frame.invariance_info() & PROVEN != 0;
    let terminal = best > -1.0 && played < 1.0 && (proven || played == -1.0);
    let loss = best - played;
    let counts = loss > by.threshold - by.width / 2.0;
    match (terminal, counts) {
        (false, false) => None,
        (false, true) if by.width > 0.0 => Some(((loss - by.threshold) / by.width + 0.5).clamp(0.0, 1.0)),
        _ => Some(1.0),
    }
}
