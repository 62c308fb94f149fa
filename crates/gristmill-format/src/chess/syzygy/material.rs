//! Which men stand on a board, as tables are named by it: `KQPvKR`.
//! Counts only; no squares.

use std::fmt;

use cozy_chess::{Board, Color, Piece};

/// The pieces that tables count, in the order of their names. Each side has one king besides.
const COUNTED: [Piece; 5] = [Piece::Queen, Piece::Rook, Piece::Bishop, Piece::Knight, Piece::Pawn];

/// The letters of [`COUNTED`].
const LETTERS: [char; 5] = ['Q', 'R', 'B', 'N', 'P'];

/// The most men that a Syzygy table has.
pub const MAX_MEN: usize = 7;

/// How many queens, rooks, bishops, knights and pawns two sides have; both have a king.
///
/// Packed: four bits a count, the first side in the lower half.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Material(u64);

impl Material {
    /// Two bare kings.
    pub const BARE: Material = Material(0);

    /// The men of `board`, White first. Counts above 15 come out as 15.
    pub fn of(board: &Board) -> Self {
        let mut packed = 0;
        for (c, color) in [Color::White, Color::Black].into_iter().enumerate() {
            let men = board.colors(color);
            for (i, piece) in COUNTED.into_iter().enumerate() {
                let mut these = (men & board.pieces(piece)).0;
                let mut count = 0;
                // Tables have few men: taking them one by one is faster than counting bits without the instruction.
                while these != 0 && count < 15 {
                    these &= these - 1;
                    count += 1;
                }
                packed |= count << shift(c, i);
            }
        }
        Material(packed)
    }

    /// Reads `KQPvKR`; `None` for anything else, and for more than seven men.
    pub fn parse(name: &str) -> Option<Self> {
        let (first, second) = name.split_once('v')?;
        let mut material = Material::BARE;
        for (c, side) in [first, second].into_iter().enumerate() {
            let mut least = 0;
            for letter in side.strip_prefix('K')?.chars() {
                let i = LETTERS.iter().position(|known| *known == letter)?;
                if i < least || material.men() == MAX_MEN {
                    return None;
                }
                least = i;
                material = material.with(c, i);
            }
        }
        Some(material)
    }

    fn count(self, side: usize, i: usize) -> u8 {
        (self.0 >> shift(side, i) & 15) as u8
    }

    fn with(self, side: usize, i: usize) -> Self {
        Material(self.0 + (1 << shift(side, i)))
    }

    fn without(self, side: usize, i: usize) -> Self {
        Material(self.0 - (1 << shift(side, i)))
    }

    /// How many of a piece the first (0) or the second side (1) has.
    pub fn of_piece(self, side: usize, piece: Piece) -> u8 {
        COUNTED.iter().position(|p| *p == piece).map_or(1, |i| self.count(side, i))
    }

    /// How many men there are, kings included.
    pub fn men(self) -> usize {
        2 + (0..10).map(|n| (self.0 >> (4 * n) & 15) as usize).sum::<usize>()
    }

    /// How many pawns the two sides have.
    pub fn pawns(self) -> [u8; 2] {
        [0, 1].map(|side| self.of_piece(side, Piece::Pawn))
    }

    /// The same with the sides exchanged.
    #[must_use]
    pub fn swapped(self) -> Self {
        Material(self.0 >> 20 | (self.0 & 0xf_ffff) << 20)
    }

    /// Whether both sides have the same.
    pub fn is_symmetric(self) -> bool {
        self == self.swapped()
    }

    /// This or [`Material::swapped`], whichever has the stronger side first: more men, then the higher ones.
    #[must_use]
    pub fn ordered(self) -> Self {
        let rank = |side: usize| {
            let counts: [u8; 5] = std::array::from_fn(|i| self.count(side, i));
            (counts.iter().sum::<u8>(), counts)
        };
        if rank(1) > rank(0) { self.swapped() } else { self }
    }

    /// What one capture, one promotion or both at once may leave, in order of names.
    pub fn after_one_move(self) -> Vec<Material> {
        let mut left = Vec::new();
        for (us, them) in [(0, 1), (1, 0)] {
            let captures = (0..5).filter(|i| self.count(them, *i) > 0).map(|i| self.without(them, i));
            let boards: Vec<_> = std::iter::once(self).chain(captures).collect();
            left.extend(&boards[1..]);
            if self.count(us, 4) > 0 {
                left.extend(boards.iter().flat_map(|m| (0..4).map(|i| m.without(us, 4).with(us, i))));
            }
        }
        left.sort_unstable();
        left.dedup();
        left
    }

    /// Every material of three to `men` men, the stronger side first: what a complete set has tables of.
    pub fn all_up_to(men: usize) -> Vec<Material> {
        let mut all = vec![Material::BARE];
        let mut newest = all.clone();
        for _ in 2..men.min(MAX_MEN) {
            let more = newest.iter().flat_map(|m| (0..10).map(|n| m.with(n / 5, n % 5).ordered()));
            newest = more.collect();
            newest.sort_unstable();
            newest.dedup();
            all.extend(&newest);
        }
        all.split_off(1)
    }
}

fn shift(side: usize, i: usize) -> usize {
    4 * (5 * side + i)
}

impl fmt::Display for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for side in 0..2 {
            f.write_str(["K", "vK"][side])?;
            for (i, letter) in LETTERS.iter().enumerate() {
                (0..self.count(side, i)).try_for_each(|_| write!(f, "{letter}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_boards_agree() {
        for name in ["KvK", "KQvK", "KQRBNPvK", "KPvKP", "KBNvKR", "KRRvKRB"] {
            let material = Material::parse(name).unwrap();
            assert_eq!(material.to_string(), name);
            assert_eq!(material.ordered(), material, "{name}");
            assert_eq!(material.swapped().swapped(), material);
        }
        for name in ["", "KQ", "QvK", "KQvKx", "KPQvK", "KQQQQQQvK", "kQvk"] {
            assert_eq!(Material::parse(name), None, "{name}");
        }
        let board: Board = "8/8/4k3/8/8/3NB3/4K2p/8 b - - 0 1".parse().unwrap();
        assert_eq!(Material::of(&board).to_string(), "KBNvKP");
        assert_eq!(Material::of(&board).men(), 5);
    }

    #[test]
    fn complete_sets_have_the_published_sizes() {
        for (men, count) in [(2, 0), (3, 5), (4, 35), (5, 145), (6, 510), (7, 1511)] {
            assert_eq!(Material::all_up_to(men).len(), count, "{men}");
        }
    }

    #[test]
    fn one_move_leaves_fewer_men_or_fewer_pawns() {
        let names = |text: &str| -> Vec<String> {
            let left = Material::parse(text).unwrap().after_one_move();
            let mut names: Vec<_> = left.iter().map(|m| m.ordered().to_string()).collect();
            names.sort();
            names.dedup();
            names
        };
        assert_eq!(names("KRvKN"), ["KNvK", "KRvK"]);
        assert_eq!(names("KPvKR"), ["KBvK", "KNvK", "KPvK", "KQvK", "KQvKR", "KRvK", "KRvKB", "KRvKN", "KRvKR"]);
        assert!(names("KvK").is_empty());
    }
}
