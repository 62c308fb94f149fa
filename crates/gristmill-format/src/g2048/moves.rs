//! The rules: a board and a move -> the board after it and what it gained; which moves are legal, what may appear, the score.
//! Exact for every rank: lines of four nibbles go through tables, anything larger through the rule itself.

use std::sync::LazyLock;

use gristmill_bytes::error::{Error, Kind, Result};

use super::board::{Board, CELLS, MAX_PACKED_RANK, MAX_RANK};
use super::heuristic::transpose;

/// A move, numbered as rows store it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Move {
    /// 0.
    Up,
    /// 1.
    Down,
    /// 2.
    Left,
    /// 3.
    Right,
}

impl Move {
    /// All four, in the order in which rows store EVs.
    pub const ALL: [Move; 4] = [Move::Up, Move::Down, Move::Left, Move::Right];

    /// The number that rows store.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The move of a stored number.
    pub fn from_index(index: u8) -> Option<Self> {
        Move::ALL.get(usize::from(index)).copied()
    }

    /// The name that logs use: lower case.
    pub fn name(self) -> &'static str {
        match self {
            Move::Up => "up",
            Move::Down => "down",
            Move::Left => "left",
            Move::Right => "right",
        }
    }

    /// The move that logs call `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Move::ALL.into_iter().find(|m| m.name() == name)
    }

    fn vertical(self) -> bool {
        matches!(self, Move::Up | Move::Down)
    }

    /// Whether tiles slide away from the first cell of their line.
    fn backwards(self) -> bool {
        matches!(self, Move::Down | Move::Right)
    }
}

/// What a move did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slid {
    /// The board before a tile appears.
    pub board: Board,
    /// Sum of the tiles that were made.
    pub gain: u64,
}

/// What becomes of a line of four nibbles.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    forwards: u16,
    backwards: u16,
    /// The same in both directions; [`BEYOND`] where a merge makes rank 16.
    gain: u32,
}

const BEYOND: u32 = u32::MAX;

static LINES: LazyLock<Box<[Line]>> = LazyLock::new(|| {
    let line = |key: u16| {
        let ranks = [key >> 12, key >> 8 & 15, key >> 4 & 15, key & 15].map(|rank| rank as u8);
        let ((forwards, gain), (backwards, _)) = (slide_line(ranks), slide_line(reversed(ranks)));
        match u32::try_from(gain) {
            Ok(gain) if forwards.iter().all(|&rank| rank < 16) => {
                Line { forwards: nibbles(forwards), backwards: nibbles(reversed(backwards)), gain }
            }
            _ => Line { gain: BEYOND, ..Line::default() },
        }
    };
    (0..=u16::MAX).map(line).collect()
});

fn nibbles(ranks: [u8; 4]) -> u16 {
    ranks.into_iter().fold(0, |key, rank| key << 4 | u16::from(rank))
}

fn reversed(mut ranks: [u8; 4]) -> [u8; 4] {
    ranks.reverse();
    ranks
}

/// Slides a line towards its first cell: equal neighbours merge, each tile once, from the first on. Also the gain.
pub fn slide_line(ranks: [u8; 4]) -> ([u8; 4], u64) {
    let mut out = [0; 4];
    let (mut filled, mut gain, mut open) = (0, 0, false);
    for rank in ranks.into_iter().filter(|&rank| rank > 0) {
        if open && out[filled - 1] == rank {
            out[filled - 1] += 1;
            gain += 1 << (rank + 1);
            open = false;
        } else {
            out[filled] = rank;
            filled += 1;
            open = true;
        }
    }
    (out, gain)
}

/// Makes a move; `None` when it changes nothing, which makes it illegal.
///
/// Errors: `OutOfRange` when two tiles of the highest rank merge.
pub fn slide(board: &Board, mv: Move) -> Result<Option<Slid>> {
    match board.nibbles().and_then(|nibbles| slide_nibbles(nibbles, mv)) {
        Some((after, gain)) => {
            let after = Board::from_nibbles(after);
            Ok((after != *board).then_some(Slid { board: after, gain: u64::from(gain) }))
        }
        None => slide_ranks(board, mv),
    }
}

/// Makes a move on sixteen nibbles, legal or not; `None` when a merge makes rank 16.
pub fn slide_nibbles(board: u64, mv: Move) -> Option<(u64, u32)> {
    let table = &**LINES;
    let lines = if mv.vertical() { transpose(board) } else { board };
    let (mut out, mut gain) = (0, 0u32);
    for shift in [48, 32, 16, 0] {
        let line = &table[usize::from((lines >> shift) as u16)];
        if line.gain == BEYOND {
            return None;
        }
        out |= u64::from(if mv.backwards() { line.backwards } else { line.forwards }) << shift;
        gain += line.gain;
    }
    Some((if mv.vertical() { transpose(out) } else { out }, gain))
}

fn slide_ranks(board: &Board, mv: Move) -> Result<Option<Slid>> {
    let mut ranks = *board.ranks();
    let mut gain = 0;
    for i in 0..4 {
        let cells = [0, 1, 2, 3].map(|j| if mv.vertical() { 4 * j + i } else { 4 * i + j });
        let line = cells.map(|cell| ranks[cell]);
        let (slid, more) = slide_line(if mv.backwards() { reversed(line) } else { line });
        let slid = if mv.backwards() { reversed(slid) } else { slid };
        gain += more;
        for (cell, rank) in cells.into_iter().zip(slid) {
            ranks[cell] = rank;
        }
    }
    let after = Board::new(ranks).map_err(|_| {
        Error::new(Kind::OutOfRange, format!("two tiles of rank {MAX_RANK} merge; no real game gets there"))
    })?;
    Ok((after != *board).then_some(Slid { board: after, gain }))
}

/// The legal moves: bit i is set when move i (up, down, left, right) changes the board.
pub fn legal(board: &Board) -> u8 {
    let changes = |mv: &Move| match slide(board, *mv) {
        Ok(slid) => slid.is_some(),
        Err(_) => true,
    };
    Move::ALL.iter().filter(|mv| changes(mv)).fold(0, |bits, mv| bits | 1 << mv.index())
}

/// The empty cells, where a tile may appear, in order.
pub fn empty_cells(board: &Board) -> impl Iterator<Item = usize> {
    let ranks = *board.ranks();
    (0..CELLS).filter(move |&cell| ranks[cell] == 0)
}

/// Where and which tile appeared between the board after a move and the next position: the cell, and rank 1 or 2.
/// `None` when the positions differ by anything else. Ranks of 16 and more count as equal, since packs do not keep
/// them apart.
pub fn spawned(after: &Board, next: &Board) -> Option<(usize, u8)> {
    let kept = |rank: u8| rank.min(MAX_PACKED_RANK);
    let mut differing = (0..CELLS).filter(|&cell| kept(after.ranks()[cell]) != kept(next.ranks()[cell]));
    let cell = differing.next()?;
    let (was, is) = (after.ranks()[cell], next.ranks()[cell]);
    (was == 0 && (is == 1 || is == 2) && differing.next().is_none()).then_some((cell, is))
}

/// The score of a game that stands at `board` after `fours` tiles appeared as 4: what logs call `score` (spec 10).
pub fn score(board: &Board, fours: u64) -> u64 {
    let made: u64 = board.ranks().iter().filter(|rank| **rank > 1).map(|&rank| u64::from(rank - 1) << rank).sum();
    made.saturating_sub(4 * fours)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(board: u64, mv: Move) -> u64 {
        slide(&Board::from_nibbles(board), mv).unwrap().unwrap().board.nibbles().unwrap()
    }

    #[test]
    fn lines_and_boards_slide_as_published() {
        for (line, slid) in [([1, 3, 3, 2], [1, 4, 2, 0]), ([1, 0, 0, 2], [1, 2, 0, 0]), ([2, 0, 2, 0], [3, 0, 0, 0])] {
            assert_eq!(slide_line(line).0, slid);
        }
        assert_eq!(slide_line([1, 1, 1, 1]), ([2, 2, 0, 0], 8));
        assert_eq!(slide_line([2, 1, 1, 0]), ([2, 2, 0, 0], 4));
        assert_eq!(after(0x1234_1332_2002_1002, Move::Left), 0x1234_1420_3000_1200);
        assert_eq!(after(0x1234_1332_2002_1002, Move::Right), 0x1234_0142_0003_0012);
        assert_eq!(after(0x1121_2300_3300_4222, Move::Up), 0x1131_2402_3200_4000);
        assert_eq!(after(0x1121_2300_3300_4222, Move::Down), 0x1000_2100_3401_4232);
    }

    #[test]
    fn tiles_beyond_the_nibbles_merge_too() {
        let board = Board::EMPTY.with(0, 15).with(3, 15).with(12, 16).with(13, 16);
        let left = slide(&board, Move::Left).unwrap().unwrap();
        assert_eq!((left.board, left.gain), (Board::EMPTY.with(0, 16).with(12, 17), 65536 + 131_072));
        let right = slide(&Board::EMPTY.with(0, 15).with(3, 15), Move::Right).unwrap().unwrap();
        assert_eq!((right.board, right.gain), (Board::EMPTY.with(3, 16), 65536));
        let stuck = Board::EMPTY.with(0, 31).with(1, 31);
        assert_eq!(slide(&stuck, Move::Left).unwrap_err().kind(), Kind::OutOfRange);
        assert_eq!(legal(&stuck), 0b1110);
    }

    #[test]
    fn what_changes_the_board_is_legal() {
        assert_eq!(legal(&Board::EMPTY), 0);
        assert_eq!(legal(&Board::EMPTY.with(0, 1)), 0b1010);
        assert_eq!(legal(&Board::from_nibbles(0x1212_2121_1212_2121)), 0);
        assert_eq!(
            Move::ALL.map(|m| (Move::from_name(m.name()), Move::from_index(m as u8))),
            Move::ALL.map(|m| (Some(m), Some(m)))
        );
        assert!(Move::from_name("Up").is_none() && Move::from_index(4).is_none());
    }

    #[test]
    fn one_new_tile_and_nothing_else_may_appear() {
        let after = Board::EMPTY.with(0, 17).with(5, 3);
        assert_eq!(spawned(&after, &Board::EMPTY.with(0, 16).with(5, 3).with(9, 2)), Some((9, 2)));
        assert_eq!(spawned(&after, &after), None);
        assert_eq!(spawned(&after, &after.with(9, 3)), None);
        assert_eq!(spawned(&after, &after.with(9, 1).with(10, 1)), None);
        assert_eq!(spawned(&after, &after.with(5, 1)), None);
        assert_eq!(empty_cells(&after).count(), 14);
    }

    #[test]
    fn the_score_is_what_the_moves_gained() {
        let board = Board::EMPTY.with(0, 2).with(1, 2);
        let slid = slide(&board, Move::Left).unwrap().unwrap();
        assert_eq!(score(&slid.board, 0) - score(&board, 0), slid.gain);
        assert_eq!(score(&board, 2), 0);
        assert_eq!(score(&Board::EMPTY.with(3, 11), 3), 10 * 2048 - 12);
    }

    proptest! {
        #[test]
        fn tables_and_rule_agree(ranks in prop::array::uniform16(0u8..=15)) {
            let board = Board::new(ranks).unwrap();
            for mv in Move::ALL {
                prop_assert_eq!(slide(&board, mv), slide_ranks(&board, mv));
            }
        }

        #[test]
        fn a_move_keeps_the_sum_of_the_tiles(ranks in prop::array::uniform16(0u8..=17)) {
            let board = Board::new(ranks).unwrap();
            for slid in Move::ALL.into_iter().filter_map(|mv| slide(&board, mv).unwrap()) {
                prop_assert_eq!(slid.board.sum_tile(), board.sum_tile());
            }
        }
    }
}
