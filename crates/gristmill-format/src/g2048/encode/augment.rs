//! A row's random bits -> the symmetry it is shown in: a rotation, then a flip.
//! The bits come from the engine, keyed by seed, row and epoch, so that no worker can change what a row looks like.

use gristmill_bytes::encode::RandomBits;

use super::symmetry::Symmetry;

/// Words of a row of `symmetry_draws`, as i32 with the same bits: two words of the key and two of the number, the lower half first; how many
/// words the host draws before; and `turns + 3 * mirrors`, where each is 0 (never), 1 (any) or 2 (changed).
pub const DRAWS: usize = 6;

/// How one kind of change is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draw {
    /// Never changed.
    #[default]
    Off,
    /// Uniform over all choices, no change among them.
    Any,
    /// Uniform over the choices that change something.
    Changed,
}

/// Which symmetries rows are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Augment {
    /// Quarter turns, 0 to 3.
    pub rotate: Draw,
    /// Mirrors: none, left-right, up-down.
    pub flip: Draw,
}

impl Augment {
    /// Whether random bits matter.
    pub fn draws(self) -> bool {
        self != Augment::default()
    }

    /// Both draws as one number, as [`Augment::write`] has it.
    fn number(self) -> u32 {
        self.rotate as u32 + 3 * self.flip as u32
    }

    /// Writes what a device needs to draw the symmetry of these bits: a row of [`DRAWS`] words.
    pub(super) fn write(self, bits: RandomBits, row: &mut [u8]) {
        let (origin, how) = row.split_at_mut(4 * (DRAWS - 1));
        origin.copy_from_slice(bits.origin().map(u32::to_le_bytes).as_flattened());
        how.copy_from_slice(&self.number().to_le_bytes());
    }

    /// The symmetry that belongs to a row's bits: turns from the lower half, mirror from the upper.
    pub fn symmetry(self, bits: u64) -> Symmetry {
        let below = |half: u64, n: u64| (((half & 0xFFFF_FFFF) * n) >> 32) as u8;
        let turns = match self.rotate {
            Draw::Off => 0,
            Draw::Any => below(bits, 4),
            Draw::Changed => 1 + below(bits, 3),
        };
        let axis = match self.flip {
            Draw::Off => 0,
            Draw::Any => below(bits >> 32, 3),
            Draw::Changed => 1 + below(bits >> 32, 2),
        };
        Symmetry::new(turns, axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(augment: Augment) -> Vec<(u8, usize)> {
        let mut found = std::collections::BTreeMap::new();
        for i in 0..12_000u64 {
            let bits = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let symmetry = augment.symmetry(bits ^ bits >> 29);
            *found.entry(symmetry.board(0x0123_4567_89AB_CDEF)).or_insert(0usize) += 1;
        }
        found.into_iter().map(|(board, count)| ((board >> 60) as u8, count)).collect()
    }

    #[test]
    fn choices_are_uniform_and_can_leave_out_the_one_that_changes_nothing() {
        let quarter = |n: usize| (2_800..3_200).contains(&n);
        let turned = shares(Augment { rotate: Draw::Any, flip: Draw::Off });
        assert!(turned.len() == 4 && turned.iter().all(|(_, n)| quarter(*n)), "{turned:?}");
        let changed = shares(Augment { rotate: Draw::Changed, flip: Draw::Off });
        assert!(changed.len() == 3 && changed.iter().all(|(corner, _)| *corner != 0), "{changed:?}");
        let mirrored = shares(Augment { rotate: Draw::Off, flip: Draw::Changed });
        assert!(mirrored.len() == 2 && mirrored.iter().all(|(corner, _)| [3, 12].contains(corner)), "{mirrored:?}");
        assert_eq!(shares(Augment { rotate: Draw::Any, flip: Draw::Any }).len(), 8);
        assert!(!Augment::default().draws());
        assert!(Augment::default().symmetry(u64::MAX).is_identity());
    }
}
