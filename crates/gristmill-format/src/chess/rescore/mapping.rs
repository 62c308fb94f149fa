//! Positions and records of a game -> how each record's policy indices are to be read (docs/format/policy.md).
//! Looks at what policies mark as legal, then at the move played, then at the neighbours.

use super::game::Ply;
use super::replay::index_of;
use crate::chess::check::policy::{Indices, each_marked};
use crate::chess::frame::Frame;
use crate::chess::transform::PolicyMapping;

/// The mappings, that of today's lc0 first.
const BOTH: [PolicyMapping; 2] = [PolicyMapping::HalfTurn, PolicyMapping::AsPlanes];

/// The mappings under which the policy of `frame`, the record of `ply`, marks nothing but legal moves. Both where there
/// is no such mapping, so that the policy decides nothing.
pub(super) fn fitting(ply: &Ply, frame: Frame<'_>) -> Vec<PolicyMapping> {
    if !ply.transform.transposes() {
        return vec![ply.mapping];
    }
    let legal = BOTH.map(|mapping| {
        let mut indices = Indices::NONE;
        ply.board.generate_moves(|moves| {
            let here = moves.into_iter().filter_map(|m| index_of(ply, m, mapping));
            here.for_each(|index| indices.add(index.into()));
            false
        });
        indices
    });
    let (mut marked, mut positive) = ([true; 2], [true; 2]);
    each_marked(frame, |i, p| {
        for (k, legal) in legal.iter().enumerate() {
            if p >= 0.0 && !legal.has(i) {
                marked[k] = false;
                // Data of the first versions has 0 for illegal moves.
                positive[k] &= p == 0.0;
            }
        }
    });
    let fits = [marked, positive].into_iter().find(|fits| fits.contains(&true)).unwrap_or([true; 2]);
    BOTH.into_iter().zip(fits).filter(|(_, fits)| *fits).map(|(mapping, _)| mapping).collect()
}

/// Gives the plies whose records fit both mappings that of the nearest record which fits one, the earlier of two as
/// near, and `otherwise` where no record of the game fits one only. `open` says, ascending, which plies fit both.
pub(super) fn settle(plies: &mut [Ply], open: &[usize], otherwise: PolicyMapping) {
    let known: Vec<(usize, PolicyMapping)> = (0..plies.len())
        .filter(|i| plies[*i].transform.transposes() && open.binary_search(i).is_err())
        .map(|i| (i, plies[i].mapping))
        .collect();
    for i in open {
        let nearest = known.iter().min_by_key(|(at, _)| (at.abs_diff(*i), *at));
        plies[*i].mapping = nearest.map_or(otherwise, |(_, mapping)| *mapping);
    }
}
