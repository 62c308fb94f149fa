//! The board heuristic (spec 3) of packed boards, by a table of lines.
//! Exact integers; a cell with the 65536 mask is rank 16.

use std::sync::LazyLock;

fn tile(rank: u8) -> i32 {
    i32::from(rank) << rank
}

fn line(ranks: [u8; 4]) -> i32 {
    let scores = ranks.map(tile);
    let pair = |x: i32, y: i32| match x.cmp(&y) {
        std::cmp::Ordering::Greater => x + y,
        std::cmp::Ordering::Equal => 3 * x,
        std::cmp::Ordering::Less => 12 * (x - y),
    };
    scores[0] + scores.windows(2).map(|two| pair(two[0], two[1])).sum::<i32>()
}

static LINES: LazyLock<Vec<i32>> = LazyLock::new(|| {
    (0..=u16::MAX).map(|row| line([row >> 12, row >> 8 & 15, row >> 4 & 15, row & 15].map(|rank| rank as u8))).collect()
});

/// The heuristic's value of a packed board.
pub fn board_eval_packed(board: u64, mask: u16) -> i32 {
    if mask == 0 {
        let lines = &*LINES;
        let sum = |board: u64| [48, 32, 16, 0].iter().map(|by| lines[(board >> by & 0xFFFF) as usize]).sum::<i32>();
        return sum(board) + sum(super::encode::transpose(board));
    }
    let cells = super::encode::exponents(board, mask);
    let rows = (0..4).map(|r| line(std::array::from_fn(|c| cells[4 * r + c])));
    let columns = (0..4).map(|c| line(std::array::from_fn(|r| cells[4 * r + c])));
    rows.chain(columns).sum()
}
