//! Policies with another temperature, with rare moves pruned, and with more for moves that win fast.
//! Changes the probabilities of legal moves only; their sum becomes 1.

use gristmill_bytes::error::Result;

use super::game::Game;
use super::rank::fastest_wins;
use super::replay::index_of;
use super::settings::{Quirk, Settings};
use super::tablebase::Probes;
use super::tally::{Count, Tally};
use crate::chess::record::POLICY;

/// Reshapes the policy of every frame.
///
/// Errors: `Refused` where a table is missing or damaged and may not be.
pub(super) fn run(game: &mut Game<'_>, settings: &Settings, probes: &Probes<'_>, tally: &mut Tally) -> Result<()> {
    let mut legal: Vec<(usize, f32)> = Vec::new();
    let mut boosted: Vec<usize> = Vec::new();
    for i in 0..game.len() {
        let ply = &game.plies[i];
        boosted.clear();
        if settings.boost != 0.0 && probes.covers(&ply.board) {
            let moves = fastest_wins(&ply.board, probes, tally).map_err(|e| e.in_frame(i))?;
            boosted.extend(moves.iter().filter_map(|m| index_of(ply, *m, ply.mapping)).map(usize::from));
        }
        legal.clear();
        let probabilities = game.frame(i).probabilities();
        legal.extend((0..POLICY).zip(probabilities).filter(|(_, p)| *p >= 0.0));
        let each = settings.boost / boosted.len().max(1) as f32;
        for (index, p) in &mut legal {
            let more = if boosted.contains(index) { each } else { 0.0 };
            *p = (*p + settings.offset + more).max(0.0);
        }
        if !sharpen(&mut legal, settings) {
            // Everything was pruned: there is nothing to share out.
            continue;
        }
        let mut changed = false;
        for (index, p) in &legal {
            if game.frame(i).probability(*index) != *p {
                game.frame_mut(i).set_probability(*index, *p);
                changed = true;
            }
        }
        tally.add(Count::Reshaped, u64::from(changed));
        tally.add(Count::Boosted, u64::from(changed && !boosted.is_empty()));
    }
    Ok(())
}

/// Raises the probabilities to the power of 1 / temperature and makes their sum 1; `false` where all are 0.
fn sharpen(legal: &mut [(usize, f32)], settings: &Settings) -> bool {
    let exponent = 1.0 / settings.temperature;
    let power = |p: f32| libm::powf(p, exponent);
    let mut sum: f32 = legal.iter().map(|(_, p)| power(*p)).sum();
    let mut of = 1.0;
    let can_divide = sum > 0.0 && sum.is_finite();
    if !can_divide && !settings.compat.has(Quirk::ZeroSum) {
        // A low temperature may lead out of the range of f32: then shares of the greatest are raised.
        of = legal.iter().map(|(_, p)| *p).fold(0.0, f32::max);
        sum = legal.iter().map(|(_, p)| power(*p / of)).sum();
    }
    legal.iter_mut().for_each(|(_, p)| *p = power(*p / of) / sum);
    of > 0.0
}
