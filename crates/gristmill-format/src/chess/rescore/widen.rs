//! V6 -> V7: short-term values from the search values to come, and the next two moves (spec lc0 §7.10).
//! Adds the V7 fields and `q_st`; touches nothing else but the version.

use super::game::Game;
use super::tally::{Count, Tally};
use crate::chess::record::{V6_BYTES, V7_BYTES, Version};

/// No next move.
pub(super) const NO_MOVE: u16 = u16::MAX;

/// Copies V6 records into `wide`, each with a tail of zeros.
pub(super) fn lengthen(records: &[u8], wide: &mut Vec<u8>) {
    wide.clear();
    wide.reserve(records.len() / V6_BYTES * V7_BYTES);
    for record in records.chunks_exact(V6_BYTES) {
        wide.extend_from_slice(record);
        wide.extend_from_slice(&[0; V7_BYTES - V6_BYTES]);
    }
}

/// Fills the V7 fields of a game whose records have room for them and say that they are V6.
pub(super) fn fill(game: &mut Game<'_>, theta: f32, tally: &mut Tally) {
    let last = game.len() - 1;
    let (mut value, mut draw) = (0.0f32, 0.0f32);
    for k in (0..=last).rev() {
        let frame = game.frame(k);
        // The sums are kept as the side sees them that moved first.
        let sign = if k % 2 == 1 { -1.0 } else { 1.0 };
        let (now, d) = (frame.root_q() * sign, frame.root_d());
        if k == last {
            (value, draw) = (now, d);
        } else {
            (value, draw) = (theta * value + (1.0 - theta) * now, theta * draw + (1.0 - theta) * d);
        }
        let [next, next_but_one] = next_moves(game, k);
        let mut frame = game.frame_mut(k);
        frame.set_q_st(value * sign).set_short_term(draw.max(0.0), next, next_but_one);
        frame.set_version(Version::V7.number());
    }
    tally.add(Count::Widened, game.len() as u64);
}

/// What the next frame and the one after it played.
pub(super) fn next_moves(game: &Game<'_>, k: usize) -> [u16; 2] {
    [k + 1, k + 2].map(|i| if i < game.len() { game.frame(i).played_idx() } else { NO_MOVE })
}
