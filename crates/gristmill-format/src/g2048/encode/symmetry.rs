//! The eight symmetries of the square, on packed boards, branch values, legality bits and directions.
//! All by bit operations and small constant tables; never computes the value of a board.

use crate::g2048::heuristic::transpose;

/// One symmetry: a transposition, then a left-right mirror, then an up-down mirror, each done or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symmetry(u8);

const TRANSPOSE: u8 = 1;
const LEFT_RIGHT: u8 = 2;
const UP_DOWN: u8 = 4;

/// Clockwise quarter turns 0..=3 in these terms.
const TURNS: [u8; 4] = [0, TRANSPOSE | LEFT_RIGHT, LEFT_RIGHT | UP_DOWN, TRANSPOSE | UP_DOWN];

/// Mirrors: none, left-right, up-down.
const AXES: [u8; 3] = [0, LEFT_RIGHT, UP_DOWN];

/// Per symmetry, where each direction (up, down, left, right) goes.
const DIRECTIONS: [[u8; 4]; 8] = directions();

/// Per symmetry, the direction whose branch comes to stand at each place: the inverse of [`DIRECTIONS`].
const BRANCHES: [[u8; 4]; 8] = branches();

/// Per symmetry and set of directions as bits, the set they become.
const SETS: [[u8; 16]; 8] = sets();

const fn directions() -> [[u8; 4]; 8] {
    let mut table = [[0; 4]; 8];
    let mut symmetry = 0u8;
    while symmetry < 8 {
        let mut old = 0u8;
        while old < 4 {
            let mut new = old;
            if symmetry & TRANSPOSE != 0 {
                new ^= 2;
            }
            let mirrored = if new >= 2 { LEFT_RIGHT } else { UP_DOWN };
            if symmetry & mirrored != 0 {
                new ^= 1;
            }
            table[symmetry as usize][old as usize] = new;
            old += 1;
        }
        symmetry += 1;
    }
    table
}

const fn branches() -> [[u8; 4]; 8] {
    let mut table = [[0; 4]; 8];
    let mut i = 0;
    while i < 32 {
        table[i / 4][DIRECTIONS[i / 4][i % 4] as usize] = (i % 4) as u8;
        i += 1;
    }
    table
}

const fn sets() -> [[u8; 16]; 8] {
    let mut table = [[0; 16]; 8];
    let mut i = 0;
    while i < 8 * 16 * 4 {
        let (symmetry, set, old) = (i / 64, i / 4 % 16, i % 4);
        if set >> old & 1 != 0 {
            table[symmetry][set] |= 1 << DIRECTIONS[symmetry][old];
        }
        i += 1;
    }
    table
}

impl Symmetry {
    /// Nothing moves.
    pub const IDENTITY: Symmetry = Symmetry(0);

    /// All eight: bit 0 of the number transposes, bit 1 mirrors left and right, bit 2 up and down.
    pub const ALL: [Symmetry; 8] = {
        let mut all = [Symmetry(0); 8];
        let mut i = 0;
        while i < 8 {
            all[i] = Symmetry(i as u8);
            i += 1;
        }
        all
    };

    /// `turns` clockwise quarter turns (0..=3), then a mirror: 0 none, 1 left-right, 2 up-down.
    pub fn new(turns: u8, axis: u8) -> Self {
        Symmetry(TURNS[usize::from(turns & 3)] ^ AXES[usize::from(axis.min(2))])
    }

    /// Whether nothing moves.
    pub fn is_identity(self) -> bool {
        self.0 == 0
    }

    /// All ones where `part` is done, else 0.
    fn done(self, part: u8) -> u64 {
        u64::from(self.0 & part != 0).wrapping_neg()
    }

    /// A board of 16 nibbles, cell 0 the uppermost.
    pub fn board(self, board: u64) -> u64 {
        let board = choose(self.done(TRANSPOSE), transpose(board), board);
        let board = choose(self.done(LEFT_RIGHT), mirror_rows(board), board);
        choose(self.done(UP_DOWN), mirror_columns(board), board)
    }

    /// A set of cells, bit i for cell i.
    pub fn cells(self, cells: u16) -> u16 {
        if cells == 0 || self.is_identity() {
            return cells;
        }
        let spread = (0..16).fold(0u64, |board, i| board | u64::from(cells >> i & 1) << (60 - 4 * i));
        let moved = self.board(spread);
        (0..16).fold(0, |set, i| set | ((moved >> (60 - 4 * i) & 1) as u16) << i)
    }

    /// Values of the four directions, in the order up, down, left, right.
    pub fn branches<T: Copy>(self, values: [T; 4]) -> [T; 4] {
        BRANCHES[usize::from(self.0 & 7)].map(|old| values[usize::from(old & 3)])
    }

    /// A set of directions as bits, up first; bits above the fourth are dropped.
    pub fn directions(self, set: u8) -> u8 {
        SETS[usize::from(self.0 & 7)][usize::from(set & 15)]
    }

    /// One direction, 0..=3.
    pub fn direction(self, direction: u8) -> u8 {
        DIRECTIONS[usize::from(self.0 & 7)][usize::from(direction & 3)]
    }
}

fn choose(mask: u64, yes: u64, no: u64) -> u64 {
    no ^ (mask & (yes ^ no))
}

/// Each row from right to left.
fn mirror_rows(board: u64) -> u64 {
    let pairs = (board & 0x0F0F_0F0F_0F0F_0F0F) << 4 | board >> 4 & 0x0F0F_0F0F_0F0F_0F0F;
    (pairs & 0x00FF_00FF_00FF_00FF) << 8 | pairs >> 8 & 0x00FF_00FF_00FF_00FF
}

/// The rows from bottom to top.
fn mirror_columns(board: u64) -> u64 {
    let pairs = (board & 0x0000_FFFF_0000_FFFF) << 16 | board >> 16 & 0x0000_FFFF_0000_FFFF;
    pairs.rotate_left(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cell i holds i.
    const NUMBERED: u64 = 0x0123_4567_89AB_CDEF;

    fn cells(board: u64) -> [u8; 16] {
        std::array::from_fn(|i| (board >> (60 - 4 * i) & 15) as u8)
    }

    /// The maps that `docs/format/g2048-tensors.md` lists.
    #[test]
    fn boards_follow_the_published_maps() {
        let expected: [(u8, u8, [u8; 16]); 6] = [
            (0, 0, std::array::from_fn(|i| i as u8)),
            (1, 0, [12, 8, 4, 0, 13, 9, 5, 1, 14, 10, 6, 2, 15, 11, 7, 3]),
            (2, 0, std::array::from_fn(|i| 15 - i as u8)),
            (3, 0, [3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9, 13, 0, 4, 8, 12]),
            (0, 1, [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]),
            (0, 2, [12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]),
        ];
        for (turns, axis, map) in expected {
            let symmetry = Symmetry::new(turns, axis);
            assert_eq!(cells(symmetry.board(NUMBERED)), map, "{turns} turns, axis {axis}");
            for (new, &old) in map.iter().enumerate() {
                assert_eq!(symmetry.cells(1 << old), 1 << new);
            }
        }
    }

    #[test]
    fn branches_moves_and_legality_follow_the_published_maps() {
        let expected: [(u8, u8, [u8; 4], [u8; 4]); 6] = [
            (0, 0, [0, 1, 2, 3], [0, 1, 2, 3]),
            (1, 0, [2, 3, 1, 0], [3, 2, 0, 1]),
            (2, 0, [1, 0, 3, 2], [1, 0, 3, 2]),
            (3, 0, [3, 2, 0, 1], [2, 3, 1, 0]),
            (0, 1, [0, 1, 3, 2], [0, 1, 3, 2]),
            (0, 2, [1, 0, 2, 3], [1, 0, 2, 3]),
        ];
        for (turns, axis, branches, moves) in expected {
            let symmetry = Symmetry::new(turns, axis);
            assert_eq!(symmetry.branches([0, 1, 2, 3]), branches);
            assert_eq!([0, 1, 2, 3].map(|d| symmetry.direction(d)), moves);
            for (new, old) in branches.into_iter().enumerate() {
                assert_eq!(symmetry.directions(1 << old), 1 << new);
            }
        }
    }

    #[test]
    fn a_turn_then_a_mirror_is_one_symmetry() {
        for (turns, axis) in (0..4).flat_map(|turns| (0..3).map(move |axis| (turns, axis))) {
            let (turn, mirror) = (Symmetry::new(turns, 0), Symmetry::new(0, axis));
            let both = Symmetry::new(turns, axis);
            assert_eq!(both.board(NUMBERED), mirror.board(turn.board(NUMBERED)));
            assert_eq!(both.branches([9, 8, 7, 6]), mirror.branches(turn.branches([9, 8, 7, 6])));
            for set in 0..16 {
                assert_eq!(both.directions(set), mirror.directions(turn.directions(set)));
            }
        }
    }
}
