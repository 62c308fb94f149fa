//! The canonical transform of the board: masks, squares and policy indices, there and back.
//! Pure bit moves on masks where bit `s` is square `s`; the choice of a transform is the writer's.

use super::policy::{self, Move};

/// Flip, mirror and transpose, in that order of application; bits 0, 1 and 2 of `invariance_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Transform(u8);

/// How the writer mapped moves to policy indices under a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyMapping {
    /// Squares moved as the planes did: lc0 up to March 2025.
    AsPlanes,
    /// With the transpose bit, squares turned by half a circle instead: lc0 since then.
    HalfTurn,
}

/// Reverses the bits in each byte: file `f` becomes `7 - f`; also a mask in square order <-> a stored word.
pub const fn flip(mask: u64) -> u64 {
    mask.reverse_bits().swap_bytes()
}

/// Reverses the bytes: rank `r` becomes `7 - r`.
pub const fn mirror(mask: u64) -> u64 {
    mask.swap_bytes()
}

/// Reflects over the h1-a8 diagonal: (rank `r`, file `f`) becomes (`7 - f`, `7 - r`).
pub const fn transpose(mask: u64) -> u64 {
    const fn exchange(mask: u64, by: u32, keep: u64) -> u64 {
        let t = (mask ^ (mask >> by)) & keep;
        mask ^ t ^ (t << by)
    }
    let mask = exchange(mask, 9, 0x0055_0055_0055_0055);
    let mask = exchange(mask, 18, 0x0000_3333_0000_3333);
    exchange(mask, 36, 0x0000_0000_0f0f_0f0f)
}

impl Transform {
    /// The board as it is.
    pub const NONE: Transform = Transform(0);

    /// The transform of `invariance_info`; the other bits are ignored.
    pub const fn from_bits(invariance_info: u8) -> Self {
        Transform(invariance_info & 7)
    }

    /// Its three bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The transform that canonical formats store a position under, by its twelve masks in plane order,
    /// side to move first and as it sees the board, and whether anybody may still castle.
    pub fn of_position(men: &[u64; 12], may_castle: bool) -> Self {
        const LEFT: u64 = 0x0f0f_0f0f_0f0f_0f0f;
        const TOP: u64 = 0xffff_ffff_0000_0000;
        const TRIANGLE: u64 = 0xe0c0_8000;
        const DIAGONAL: u64 = 0x1020_4080;
        let mut bits = 0;
        if may_castle {
            return Transform(bits);
        }
        let king = men[5];
        bits |= u8::from(king & LEFT != 0);
        if men[0] | men[6] != 0 {
            return Transform(bits);
        }
        bits |= u8::from(king & TOP != 0) << 1;
        let so_far = Transform(bits);
        let king = so_far.apply(king);
        let all = |planes: &[usize]| so_far.apply(planes.iter().fold(0, |mask, plane| mask | men[*plane]));
        let ours: &[usize] = &[0, 1, 2, 3, 4, 5];
        let order = [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], ours, &[5, 11], &[4, 10], &[3, 9], &[1, 7], &[2, 8]];
        let smaller = || {
            let mut pairs = order.iter().map(|planes| all(planes)).map(|mask| (mask, transpose(mask)));
            pairs.find(|(mask, turned)| mask != turned).is_some_and(|(mask, turned)| turned < mask)
        };
        if king & TRIANGLE != 0 || king & DIAGONAL != 0 && smaller() {
            bits |= 4;
        }
        Transform(bits)
    }

    /// Whether files are reversed.
    pub const fn flips(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether ranks are reversed.
    pub const fn mirrors(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether the board is reflected over its h1-a8 diagonal.
    pub const fn transposes(self) -> bool {
        self.0 & 4 != 0
    }

    /// The mask as it is stored: flip, then mirror, then transpose.
    pub const fn apply(self, mut mask: u64) -> u64 {
        if self.flips() {
            mask = flip(mask);
        }
        if self.mirrors() {
            mask = mirror(mask);
        }
        if self.transposes() {
            mask = transpose(mask);
        }
        mask
    }

    /// The mask as it was: transpose, then mirror, then flip.
    pub const fn undo(self, mut mask: u64) -> u64 {
        if self.transposes() {
            mask = transpose(mask);
        }
        if self.mirrors() {
            mask = mirror(mask);
        }
        if self.flips() {
            mask = flip(mask);
        }
        mask
    }

    /// The square (0..64) that policy indices use for `square`.
    pub const fn square(self, square: u8, mapping: PolicyMapping) -> u8 {
        if self.transposes() && matches!(mapping, PolicyMapping::HalfTurn) {
            return 63 - square;
        }
        self.apply(1 << square).trailing_zeros() as u8
    }

    /// The square whose policy square is `square`.
    pub const fn undo_square(self, square: u8, mapping: PolicyMapping) -> u8 {
        if self.transposes() && matches!(mapping, PolicyMapping::HalfTurn) {
            return 63 - square;
        }
        self.undo(1 << square).trailing_zeros() as u8
    }

    /// The policy index under which `played` (side to move's view) is stored; `None` if there is none.
    pub fn index(self, played: Move, mapping: PolicyMapping) -> Option<u16> {
        if self == Transform::NONE {
            return policy::index(played.from, played.to, played.promotion);
        }
        policy::index(self.square(played.from, mapping), self.square(played.to, mapping), played.promotion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PolicyMapping::{AsPlanes, HalfTurn};

    #[test]
    fn published_masks() {
        for (mask, flipped, mirrored, transposed, all) in [
            (0x1, 0x80, 0x0100000000000000, 0x8000000000000000, 0x1),
            (0x80, 0x1, 0x8000000000000000, 0x80, 0x0100000000000000),
            (0x1000, 0x0800, 0x0010000000000000, 0x40000000, 0x0000000200000000),
            (0xf0, 0x0f, 0xf000000000000000, 0x80808080, 0x0101010100000000),
            (0x1010, 0x0808, 0x1010000000000000, 0xc0000000, 0x0000000300000000),
        ] {
            assert_eq!((flip(mask), mirror(mask), transpose(mask)), (flipped, mirrored, transposed), "{mask:x}");
            assert_eq!(Transform::from_bits(0xff).apply(mask), all);
            assert_eq!(Transform::from_bits(7).undo(all), mask);
        }
    }

    #[test]
    fn published_policy_indices() {
        for (from, to, as_planes, half_turn) in [
            (27, 35, [761, 796, 995, 1030, 1036, 790, 1001, 755], 1030),
            (10, 20, [261, 344, 1447, 1530, 1333, 618, 1173, 458], 1530),
            (0, 63, [22, 192, 1599, 1769, 1769, 192, 1599, 22], 1769),
        ] {
            let played = Move { from, to, promotion: None };
            for bits in 0..8u8 {
                let transform = Transform::from_bits(bits);
                let old = as_planes[usize::from(bits)];
                let new = if bits < 4 { old } else { half_turn };
                assert_eq!(transform.index(played, AsPlanes), Some(old));
                assert_eq!(transform.index(played, HalfTurn), Some(new));
            }
        }
    }

    #[test]
    fn undo_is_the_inverse_for_every_square() {
        for bits in 0..8 {
            let t = Transform::from_bits(bits);
            for square in 0..64 {
                assert_eq!(t.undo(t.apply(1 << square)), 1 << square);
                for mapping in [AsPlanes, HalfTurn] {
                    assert_eq!(t.undo_square(t.square(square, mapping), mapping), square);
                }
            }
        }
    }
}
