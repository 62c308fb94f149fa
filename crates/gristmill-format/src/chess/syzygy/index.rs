//! Squares of the men of a position -> its index in a Syzygy table.
//! Arithmetic over the groups that a table names; reads no table.

use super::material::{MAX_MEN, Material};
use super::squares::{
    BELOW, BINOMIAL, KING_PAIRS, KINGS, LEADING, LEADING_ON_FILE, TRIANGLE, above_diagonal, across_diagonal, lead,
    twist,
};

/// Placements of three different men, up to symmetry.
const TRIPLES: u64 = 31_332;

/// How the men of one part of a table are grouped, and the weight of each group in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Groups {
    /// The men in order of the groups: 1 to 6 for White's pawn to king, 9 to 14 for Black's.
    men: [u8; MAX_MEN],
    count: usize,
    /// At the start of each group: how many men it has; 0 elsewhere.
    sizes: [u8; MAX_MEN],
    /// At the start of each group: its weight.
    weights: [u64; MAX_MEN],
    /// Pawns of the side whose pawns lead, and of the other; zeros without pawns.
    pawns: [usize; 2],
    /// Whether the first group is the two kings.
    by_kings: bool,
    positions: u64,
}

/// What distinguishes the tables of one material.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) material: Material,
    /// As in [`Groups`].
    pub(super) pawns: [usize; 2],
    by_kings: bool,
}

impl Shape {
    pub(super) fn of(material: Material) -> Self {
        let [white, black] = material.pawns().map(usize::from);
        // The side with fewer pawns leads.
        let pawns = if black > 0 && (white == 0 || white > black) { [black, white] } else { [white, black] };
        let unique =
            |side| cozy_chess::Piece::ALL.into_iter().filter(move |p| material.of_piece(side, *p) == 1).count();
        Shape { material, pawns, by_kings: unique(0) + unique(1) == 2 }
    }

    /// The parts that one side's values have: one per file of the leading pawn.
    pub(super) fn files(&self) -> usize {
        if self.pawns[0] > 0 { 4 } else { 1 }
    }
}

impl Groups {
    /// Reads the groups of `men` with the places `order` of the leading group and of the other side's pawns (15: none),
    /// for leading pawns on `file`, counted from the edge. `None` when they cannot be those of `shape`.
    pub(super) fn new(shape: &Shape, men: &[u8], order: [u8; 2], file: usize) -> Option<Self> {
        let mut groups = Groups {
            men: [0; MAX_MEN],
            count: men.len(),
            sizes: [0; MAX_MEN],
            weights: [0; MAX_MEN],
            pawns: shape.pawns,
            by_kings: shape.by_kings,
            positions: 0,
        };
        groups.men[..men.len()].copy_from_slice(men);
        groups.find_sizes(shape)?;
        groups.find_weights(order, file)?;
        Some(groups)
    }

    fn find_sizes(&mut self, shape: &Shape) -> Option<()> {
        let men = &self.men[..self.count];
        for side in 0..2 {
            for (p, piece) in cozy_chess::Piece::ALL.into_iter().enumerate() {
                let man = 8 * side as u8 + p as u8 + 1;
                let here = men.iter().filter(|m| **m == man).count();
                if here != usize::from(shape.material.of_piece(side, piece)) {
                    return None;
                }
            }
        }
        let is_pawn = |m: &u8| m & 7 == 1;
        let mut next = match shape.pawns {
            [0, _] if self.by_kings => 2,
            [0, _] => 3,
            [leading, other] => {
                let ours = men[..leading].iter().all(|m| is_pawn(m) && *m == men[0]);
                let theirs = men[leading..leading + other].iter().all(|m| is_pawn(m) && *m != men[0]);
                if !ours || !theirs {
                    return None;
                }
                leading
            }
        };
        if shape.pawns[0] == 0 {
            let first = &men[..next];
            let alone = |m: &u8| men.iter().filter(|other| *other == m).count() == 1;
            let kings = first.iter().filter(|m| **m & 7 == 6).count() == 2;
            if !first.iter().all(alone) || self.by_kings && !kings {
                return None;
            }
        }
        self.sizes[0] = next as u8;
        if shape.pawns[1] > 0 {
            self.sizes[next] = shape.pawns[1] as u8;
            next += shape.pawns[1];
        }
        while next < self.count {
            let same = men[next..].iter().take_while(|m| **m == men[next]).count();
            if men[next + same..].contains(&men[next]) {
                return None;
            }
            self.sizes[next] = same as u8;
            next += same;
        }
        Some(())
    }

    fn find_weights(&mut self, order: [u8; 2], file: usize) -> Option<()> {
        let leading = usize::from(self.sizes[0]);
        let second = if self.pawns[1] > 0 { order[1] } else { 15 };
        let mut next = leading + self.pawns[1];
        let mut free = 64 - next as u64;
        let (mut positions, mut place) = (1u64, 0u8);
        let mut led = false;
        while next < self.count || place == order[0] || place == second {
            let (at, ways) = if place == order[0] {
                led = true;
                let ways = match self.pawns[0] {
                    0 if self.by_kings => KING_PAIRS as u64,
                    0 => TRIPLES,
                    pawns => LEADING_ON_FILE.get(pawns - 1)?[file],
                };
                (0, ways)
            } else if place == second {
                (leading, BINOMIAL[self.pawns[1]][48 - leading])
            } else {
                let (at, size) = (next, usize::from(self.sizes[next]));
                let ways = BINOMIAL[size][free as usize];
                free -= size as u64;
                next += size;
                (at, ways)
            };
            self.weights[at] = positions;
            positions = positions.checked_mul(ways)?;
            place += 1;
        }
        self.positions = positions;
        (led && (self.pawns[1] == 0 || place > second)).then_some(())
    }

    /// How many positions this part of the table has.
    pub(super) fn positions(&self) -> u64 {
        self.positions
    }

    /// The men in order, to find their squares.
    pub(super) fn men(&self) -> &[u8] {
        &self.men[..self.count]
    }

    /// How many pawns lead.
    pub(super) fn leading_pawns(&self) -> usize {
        self.pawns[0]
    }

    /// The index of a position whose men stand on `squares`, in order of [`Groups::men`]; leading pawns first, the one
    /// of least [`lead`] at their head. `None` for squares that no legal position has.
    pub(super) fn index(&self, squares: &mut [u8; MAX_MEN]) -> Option<u64> {
        let p = &mut squares[..self.count];
        if p[0] & 4 != 0 {
            p.iter_mut().for_each(|s| *s ^= 7);
        }
        let (mut index, mut next) = match self.pawns[0] {
            0 => (self.by_symmetry(p)?, usize::from(self.sizes[0])),
            leading => (self.by_pawns(p, leading)?, leading),
        };
        index *= self.weights[0];
        if self.pawns[1] > 0 {
            index += self.spread(p, next, self.pawns[1], 8)?;
            next += self.pawns[1];
        }
        while next < self.count {
            let size = usize::from(self.sizes[next]);
            index += self.spread(p, next, size, 0)?;
            next += size;
        }
        Some(index)
    }

    /// Place of the leading men after turning the board so that the first lies in the triangle.
    fn by_symmetry(&self, p: &mut [u8]) -> Option<u64> {
        if p[0] & 32 != 0 {
            p.iter_mut().for_each(|s| *s ^= 56);
        }
        let leading = usize::from(self.sizes[0]);
        let side = p[..leading].iter().map(|s| above_diagonal(*s)).find(|above| *above != 0);
        if side.is_some_and(|above| above > 0) {
            p.iter_mut().for_each(|s| *s = across_diagonal(*s));
        }
        if self.by_kings {
            let pair = KINGS.get(usize::from(TRIANGLE[usize::from(p[0])]))?[usize::from(p[1])];
            return (usize::from(pair) < KING_PAIRS).then_some(u64::from(pair));
        }
        let [a, b, c] = [p[0], p[1], p[2]];
        let on_diagonal = |s: u8| above_diagonal(s) == 0;
        // How much a later man's number shrinks by the squares that earlier ones take.
        let (b_skips, c_skips) = (u64::from(b > a), u64::from(c > a) + u64::from(c > b));
        let diagonal = |s: u8| u64::from(s / 8);
        let below = |s: u8| u64::from(BELOW[usize::from(s)]);
        Some(if !on_diagonal(a) {
            let triangle = u64::from(TRIANGLE[usize::from(a)]);
            (triangle * 63 + u64::from(b) - b_skips) * 62 + u64::from(c) - c_skips
        } else if !on_diagonal(b) {
            6 * 63 * 62 + (diagonal(a) * 28 + below(b)) * 62 + u64::from(c) - c_skips
        } else if !on_diagonal(c) {
            6 * 63 * 62 + 4 * 28 * 62 + (diagonal(a) * 7 + diagonal(b) - b_skips) * 28 + below(c)
        } else {
            let first = 6 * 63 * 62 + 4 * 28 * 62 + 4 * 7 * 28;
            first + (diagonal(a) * 7 + diagonal(b) - b_skips) * 6 + diagonal(c) - c_skips
        })
    }

    /// Place of the leading pawns.
    fn by_pawns(&self, p: &mut [u8], leading: usize) -> Option<u64> {
        if p[..leading + self.pawns[1]].iter().any(|s| !(8..56).contains(s)) {
            return None;
        }
        p[1..leading].sort_unstable_by_key(|s| std::cmp::Reverse(twist(*s)));
        let mut index = LEADING[leading - 1][usize::from(lead(p[0]))];
        for (i, square) in p[..leading].iter().enumerate().skip(1) {
            index += BINOMIAL[leading - i][usize::from(twist(*square))];
        }
        Some(index)
    }

    /// Weighted place of the `size` men from `start` on, among the squares from `lowest` on that no earlier man takes.
    fn spread(&self, p: &mut [u8], start: usize, size: usize, lowest: u8) -> Option<u64> {
        let (before, rest) = p.split_at_mut(start);
        let group = rest.get_mut(..size)?;
        if size > 1 {
            group.sort_unstable();
        }
        let mut sum = 0;
        for (i, square) in group.iter().enumerate() {
            let skips = before.iter().filter(|s| *s < square).count();
            let free = usize::from(square.checked_sub(lowest)?).checked_sub(skips)?;
            sum += BINOMIAL[i + 1][free];
        }
        Some(sum * self.weights[start])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors up to seven men, where no tables are at hand.
    const VECTORS: &str = include_str!("../../../tests/chess_syzygy/indices.txt");

    fn list(text: &str) -> Vec<u8> {
        text.split(',').map(|n| n.parse().unwrap()).collect()
    }

    #[test]
    fn indices_are_those_of_another_prober() {
        let mut count = 0;
        for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let shape = Shape::of(Material::parse(words[0]).unwrap());
            let (order, file) = ([words[1].parse().unwrap(), words[2].parse().unwrap()], words[3].parse().unwrap());
            let groups = Groups::new(&shape, &list(words[4]), order, file).unwrap_or_else(|| panic!("{line}"));
            let mut squares = [0; MAX_MEN];
            let here = list(words[5]);
            squares[..here.len()].copy_from_slice(&here);
            if shape.pawns[0] > 0 {
                let first = (0..shape.pawns[0]).min_by_key(|i| lead(squares[*i])).unwrap();
                squares.swap(0, first);
                assert_eq!(usize::from(lead(squares[0]) / 6), file, "{line}");
            }
            assert_eq!(groups.positions(), words[6].parse::<u64>().unwrap(), "{line}");
            assert_eq!(groups.index(&mut squares), Some(words[7].parse().unwrap()), "{line}");
            count += 1;
        }
        assert_eq!(count, 300);
    }

    #[test]
    fn groups_that_are_not_those_of_the_material_are_refused() {
        let shape = |name| Shape::of(Material::parse(name).unwrap());
        let read = |name, men: &[u8], order| Groups::new(&shape(name), men, order, 0).is_some();
        assert!(read("KQvKR", &[6, 5, 14, 12], [0, 15]));
        assert!(!read("KQvKR", &[6, 5, 14, 13], [0, 15]), "another man");
        assert!(!read("KQvKR", &[6, 5, 14, 12], [7, 15]), "a place that no group has");
        assert!(read("KPvKP", &[1, 9, 6, 14], [0, 1]));
        assert!(!read("KPvKP", &[1, 9, 6, 14], [0, 15]), "no place for the other pawns");
        assert!(!read("KPvKP", &[6, 1, 9, 14], [0, 1]), "pawns come first");
        assert!(!read("KNNvK", &[6, 2, 14, 2], [0, 15]), "men of one kind stand together");
        assert!(!read("KNNvK", &[2, 2, 6, 14], [0, 15]), "kings come first");
    }
}
