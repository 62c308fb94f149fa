//! A board -> its value under the line heuristic whose results step rows store as `board_eval` (spec 3).
//! Exact integers: a value that leaves i32 is an error, never a wrapped number.

use std::sync::LazyLock;

use gristmill_bytes::error::{Error, Kind, Result};

use super::board::{Board, CELLS};

/// Score of every line of four ranks below 16, by its nibbles, the first the highest.
static LINES: LazyLock<Box<[i32]>> = LazyLock::new(|| {
    let score = |key: u16| line_score([key >> 12, key >> 8 & 15, key >> 4 & 15, key & 15].map(|rank| rank as u8));
    (0..=u16::MAX).map(|key| score(key) as i32).collect()
});

/// Score of a tile: r * 2^r.
pub fn tile_score(rank: u8) -> i64 {
    i64::from(rank) << rank
}

/// Score of a line of four ranks, the first being the one at the side that is rewarded.
pub fn line_score(ranks: [u8; 4]) -> i64 {
    let tiles = ranks.map(tile_score);
    let pairs = tiles.windows(2).map(|pair| match (pair[0], pair[1]) {
        (x, y) if x > y => x + y,
        (x, y) if x == y => 3 * x,
        (x, y) => 12 * (x - y),
    });
    tiles[0] + pairs.sum::<i64>()
}

/// The stored value: rows from left to right and columns from top to bottom.
///
/// Errors: `OutOfRange` when it leaves i32, which only ranks of 20 and more can do.
pub fn board_eval(board: &Board) -> Result<i32> {
    match board.nibbles() {
        Some(nibbles) => Ok(eval_nibbles(nibbles)),
        None => narrow(lines(board).map(|(row, column)| line_score(row) + line_score(column)).sum(), board),
    }
}

/// [`board_eval`] of a board whose ranks are all below 16; cannot leave i32.
pub fn eval_nibbles(board: u64) -> i32 {
    let table = &**LINES;
    let columns = transpose(board);
    let line = |lines: u64, i: usize| table[usize::from((lines >> (48 - 16 * i)) as u16)];
    (0..4).map(|i| line(board, i) + line(columns, i)).sum()
}

/// The value that the interactive player uses: rows in the better direction, columns in the better direction. Not stored.
///
/// Errors: as [`board_eval`].
pub fn board_eval_interactive(board: &Board) -> Result<i32> {
    let mut sums = [0i64; 4];
    for (row, column) in lines(board) {
        for (sum, line) in sums.iter_mut().zip([row, reversed(row), column, reversed(column)]) {
            *sum += line_score(line);
        }
    }
    narrow(sums[0].max(sums[1]) + sums[2].max(sums[3]), board)
}

/// [`board_eval`] of boards of sixteen ranks each, back to back.
///
/// Errors: `WrongSize` unless there are sixteen ranks for every value; with the index of the board as the frame,
/// `OutOfRange` for a rank above 31 or a value that leaves i32.
pub fn board_eval_all(ranks: &[u8], values: &mut [i32]) -> Result<()> {
    each(ranks, values, board_eval)
}

/// [`board_eval_interactive`] of boards of sixteen ranks each, back to back.
///
/// Errors: as [`board_eval_all`].
pub fn board_eval_interactive_all(ranks: &[u8], values: &mut [i32]) -> Result<()> {
    each(ranks, values, board_eval_interactive)
}

fn each(ranks: &[u8], values: &mut [i32], evaluate: impl Fn(&Board) -> Result<i32>) -> Result<()> {
    if ranks.len() != values.len() * CELLS {
        let detail = format!("{} ranks for {} values; expected 16 for each", ranks.len(), values.len());
        return Err(Error::new(Kind::WrongSize, detail));
    }
    for (i, (cells, value)) in ranks.as_chunks().0.iter().zip(values).enumerate() {
        *value = Board::new(*cells).and_then(|board| evaluate(&board)).map_err(|e| e.in_frame(i))?;
    }
    Ok(())
}

/// Row i and column i, for i from 0 to 3.
fn lines(board: &Board) -> impl Iterator<Item = ([u8; 4], [u8; 4])> {
    let ranks = board.ranks();
    (0..4).map(|i| ([0, 1, 2, 3].map(|j| ranks[4 * i + j]), [0, 1, 2, 3].map(|j| ranks[4 * j + i])))
}

fn reversed(mut line: [u8; 4]) -> [u8; 4] {
    line.reverse();
    line
}

/// Rows become columns, in nibbles.
pub(super) fn transpose(board: u64) -> u64 {
    // Swap across the diagonal within each 2x2 block, then the blocks.
    let inner =
        (board & 0xf0f0_0f0f_f0f0_0f0f) | (board & 0x0000_f0f0_0000_f0f0) << 12 | (board & 0x0f0f_0000_0f0f_0000) >> 12;
    (inner & 0xff00_ff00_00ff_00ff) | (inner & 0x0000_0000_ff00_ff00) << 24 | (inner & 0x00ff_00ff_0000_0000) >> 24
}

fn narrow(value: i64, board: &Board) -> Result<i32> {
    i32::try_from(value).map_err(|_| {
        let detail = format!("the heuristic gives {value}, beyond 32 bits; is rank {} real?", board.max_rank());
        Error::new(Kind::OutOfRange, detail)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(ranks: [u8; 16]) -> (i32, i32) {
        let board = Board::new(ranks).unwrap();
        (board_eval(&board).unwrap(), board_eval_interactive(&board).unwrap())
    }

    #[test]
    fn tiles_and_lines_score_as_published() {
        let tiles = [
            0, 2, 8, 24, 64, 160, 384, 896, 2048, 4608, 10240, 22528, 49152, 106_496, 229_376, 491_520, 1_048_576,
            2_228_224,
        ];
        assert_eq!((0..=17).map(tile_score).collect::<Vec<_>>(), tiles);
        for (line, score) in [
            ([0, 0, 0, 0], 0),
            ([1, 0, 0, 0], 4),
            ([0, 1, 0, 0], -22),
            ([0, 0, 0, 1], -24),
            ([1, 1, 0, 0], 10),
            ([1, 1, 1, 1], 20),
            ([2, 1, 0, 0], 20),
            ([1, 2, 0, 0], -62),
            ([3, 2, 1, 0], 68),
            ([0, 1, 2, 3], -288),
            ([15, 14, 13, 12], 1_703_936),
            ([16, 15, 15, 1], 4_554_754),
            ([16, 16, 0, 16], -7_340_032),
            ([11, 11, 5, 5], 113_280),
        ] {
            assert_eq!(line_score(line), score, "{line:?}");
        }
    }

    #[test]
    fn small_boards_score_as_published() {
        let mut descending = [0; 16];
        let mut ascending = [0; 16];
        for i in 0..16u8 {
            descending[usize::from(i)] = 15 - i;
            ascending[usize::from(i)] = i;
        }
        assert_eq!(value([0; 16]), (0, 0));
        assert_eq!(value(descending), (3_618_726, 3_618_726));
        assert_eq!(value(ascending), (-16_031_270, 3_618_726));
        assert_eq!(value([2, 2, 1, 1, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]), (-33_140, 13_076));
        assert_eq!(board_eval(&Board::EMPTY.with(0, 1)).unwrap(), 8);
        assert_eq!(board_eval(&Board::EMPTY.with(0, 1).with(1, 1)).unwrap(), 18);
        assert_eq!(value([0, 1, 2, 3, 4, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]).0, -39_035_046);
    }

    #[test]
    fn what_leaves_32_bits_is_an_error() {
        let full = |rank| board_eval(&Board::new([rank; 16]).unwrap());
        assert!(full(19).is_ok());
        let e = full(25).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains("rank 25"), "{e}");
        assert_eq!(board_eval_all(&[25; 16], &mut [0]).unwrap_err().place().frame, Some(0));
        assert_eq!(board_eval_all(&[0; 17], &mut [0]).unwrap_err().kind(), Kind::WrongSize);
    }

    proptest! {
        #[test]
        fn tables_and_formula_agree(ranks in prop::array::uniform16(0u8..=15)) {
            let board = Board::new(ranks).unwrap();
            let by_formula: i64 = lines(&board).map(|(row, column)| line_score(row) + line_score(column)).sum();
            prop_assert_eq!(i64::from(board_eval(&board).unwrap()), by_formula);
        }

        #[test]
        fn transposing_twice_is_nothing(nibbles: u64) {
            prop_assert_eq!(transpose(transpose(nibbles)), nibbles);
            for i in 0..16 {
                let from = |board: u64, cell: usize| board >> (60 - 4 * cell) & 15;
                prop_assert_eq!(from(transpose(nibbles), i), from(nibbles, i % 4 * 4 + i / 4));
            }
        }
    }
}
