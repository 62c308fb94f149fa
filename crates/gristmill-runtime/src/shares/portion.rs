//! The bytes of all inputs, one after another, and a share -> which of them are its own: those whose middle falls into its even part.
//! For jobs that cut inputs as well: each piece is in one share. Reads nothing.

use super::plan::Unit;
use super::share::Share;

/// What of a job a process does.
#[derive(Debug, Clone, Copy)]
pub enum Portion {
    /// All of it.
    Whole,
    /// A share of inputs that have `total` bytes.
    Share {
        /// Which.
        share: Share,
        /// The bytes of all inputs.
        total: u128,
    },
}

impl Portion {
    /// One of the inputs of a job.
    pub fn of(units: &[Unit], share: Share) -> Self {
        Portion::Share { share, total: units.iter().map(Unit::weight).sum() }
    }

    /// Whether it is a share.
    pub fn is_share(self) -> bool {
        matches!(self, Portion::Share { .. })
    }

    /// Whether a piece of `bytes` bytes that begins at byte `at` of all is its own.
    pub fn has(self, at: u128, bytes: u128) -> bool {
        self.is_at(2 * at + bytes)
    }

    /// Whether byte `at` of all is its own.
    pub fn begins(self, at: u128) -> bool {
        self.is_at(2 * at)
    }

    /// Whether a piece of an input of `bytes` bytes that begins at byte `at` of all may be its own.
    pub fn touches(self, at: u128, bytes: u128) -> bool {
        let Portion::Share { share, total } = self else { return true };
        let number = u128::from(share.number() - 1);
        (number_of(2 * at, share, total)..=number_of(2 * (at + bytes), share, total)).contains(&number)
    }

    /// Whether the place at half of `doubled` is its own.
    fn is_at(self, doubled: u128) -> bool {
        match self {
            Portion::Whole => true,
            Portion::Share { share, total } => number_of(doubled, share, total) == u128::from(share.number() - 1),
        }
    }
}

/// The number, from 0 on, of the share in which half of `doubled` lies; what lies at the end is in the last.
pub(super) fn number_of(doubled: u128, share: Share, total: u128) -> u128 {
    let of = u128::from(share.of());
    (doubled * of / (2 * total).max(1)).min(of - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_in_one_share_that_touches_its_input() {
        let units: Vec<Unit> =
            [10, 0, 90, 900].into_iter().map(|bytes| Unit { name: bytes.to_string(), bytes, inputs: 1 }).collect();
        for of in [1, 2, 7, 2000] {
            let mut at = 0;
            for unit in &units {
                for piece in 0..unit.bytes.max(1) {
                    let at = at + u128::from(piece);
                    let mine = |number: u32| Portion::of(&units, Share::new(number, of).unwrap());
                    let owners: Vec<u32> = (1..=of).filter(|number| mine(*number).has(at, 1)).collect();
                    assert_eq!(owners.len(), 1, "{of}: {owners:?}");
                    let begins = at - u128::from(piece);
                    assert!(mine(owners[0]).touches(begins, unit.weight()));
                    assert_eq!((1..=of).filter(|number| mine(*number).begins(at)).count(), 1);
                }
                at += unit.weight();
            }
        }
        assert!(Portion::Whole.has(7, 9) && Portion::Whole.touches(0, 0) && Portion::Whole.begins(3));
    }
}
