//! The steps of a run -> a key that the same run has, and each of its eight images under the symmetries of the square.
//! Looks at boards and moves, nothing else: no score, no values, no seed.
//!
//! The key is `docs/format/content.md`'s; which key a run has is a promise.

use xxhash_rust::xxh3::Xxh3;

use super::encode::Symmetry;
use super::form::NO_MOVE;

/// Finds the identity of one run, step by step, in constant memory.
pub struct RunIdentity {
    hash: Xxh3,
    /// Symmetries whose images of all steps so far are the least there are, a bit each.
    least: u8,
}

/// Who a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// XXH3-128 of the steps of the image that is first in order.
    pub key: u128,
    /// The first symmetry (0..8) that makes that image of the run: runs of one key and one image are the same.
    pub image: u8,
}

impl Default for RunIdentity {
    fn default() -> Self {
        RunIdentity { hash: Xxh3::new(), least: u8::MAX }
    }
}

impl RunIdentity {
    /// Takes the next step: the board of 16 nibbles, the cells of rank 16, and the move (0..=3, or [`NO_MOVE`]).
    pub fn step(&mut self, board: u64, mask: u16, direction: u8) {
        let mut best = None;
        let mut least = 0;
        for i in (0..8).filter(|i| self.least >> i & 1 != 0) {
            let symmetry = Symmetry::ALL[i];
            let to = if direction == NO_MOVE { NO_MOVE } else { symmetry.direction(direction) };
            let image = (symmetry.board(board), symmetry.cells(mask), to);
            if best.is_none_or(|best| image < best) {
                (best, least) = (Some(image), 0);
            }
            least |= u8::from(best == Some(image)) << i;
        }
        self.least = least;
        if let Some((board, mask, to)) = best {
            let mut bytes = [0; 11];
            bytes[..8].copy_from_slice(&board.to_le_bytes());
            bytes[8..10].copy_from_slice(&mask.to_le_bytes());
            bytes[10] = to;
            self.hash.update(&bytes);
        }
    }

    /// The identity of the steps so far.
    pub fn finish(&self) -> Identity {
        Identity { key: self.hash.digest128(), image: self.least.trailing_zeros() as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(steps: &[(u64, u16, u8)]) -> Identity {
        let mut run = RunIdentity::default();
        steps.iter().for_each(|(board, mask, direction)| run.step(*board, *mask, *direction));
        run.finish()
    }

    fn image(steps: &[(u64, u16, u8)], symmetry: Symmetry) -> Vec<(u64, u16, u8)> {
        let turned = |(board, mask, direction): &(u64, u16, u8)| {
            let to = if *direction == NO_MOVE { NO_MOVE } else { symmetry.direction(*direction) };
            (symmetry.board(*board), symmetry.cells(*mask), to)
        };
        steps.iter().map(turned).collect()
    }

    #[test]
    fn the_key_is_the_published_one() {
        let found = of(&[(0x1000_0000_0000_0002, 0, 1), (0x0001_0000_0000_0211, 0x8000, NO_MOVE)]);
        assert_eq!(format!("{:032x}", found.key), GOLDEN);
    }

    const GOLDEN: &str = "d140bb46db4947428d6427b9eec4833a";

    proptest! {
        #[test]
        fn the_eight_images_of_a_run_have_its_key(
            steps in prop::collection::vec((prop::sample::select(vec![0u64, 0x1000_0000_0000_0001, 0x1230_0000_0000_0009, u64::MAX]),
                                            prop::sample::select(vec![0u16, 1, 0x8421]), prop::sample::select(vec![0u8, 1, 2, 3, NO_MOVE])), 0..6),
            at in 0usize..6,
        ) {
            let one = of(&steps);
            for symmetry in Symmetry::ALL {
                let turned = image(&steps, symmetry);
                let found = of(&turned);
                prop_assert_eq!(found.key, one.key);
                prop_assert_eq!(found.image == one.image, turned == steps);
            }
            if let Some(step) = steps.get(at) {
                let mut other = steps.clone();
                other[at].0 = step.0 ^ 0x0500;
                let is_image = Symmetry::ALL.iter().any(|symmetry| image(&other, *symmetry) == steps);
                prop_assert_eq!(of(&other).key == one.key, is_image);
            }
        }
    }
}
