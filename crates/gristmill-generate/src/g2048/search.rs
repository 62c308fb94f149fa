//! A board -> what each move is worth to an expectimax player that judges by the line heuristic (spec 10).
//! Exact integers, no randomness, no memory: the same board gives the same numbers on every machine.

use gristmill_format::g2048::heuristic::{board_eval, tile_score};
use gristmill_format::g2048::moves::{empty_cells, slide};
use gristmill_format::g2048::{Board, Move};

/// The order in which the player looks at moves: the first of equal ones is made.
const ORDER: [Move; 4] = [Move::Up, Move::Left, Move::Right, Move::Down];

/// The least that having no legal move costs.
const LOST: i64 = 131_072;

/// Share of the tiles that appear as 2.
const TWOS: f64 = 0.9;

/// What the player thinks of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thought {
    /// Score of up, down, left, right; none where it is illegal.
    pub(super) scores: [Option<i64>; 4],
    /// The best move: the first of the best ones in the player's order.
    pub(super) best: Move,
}

/// Thinks `depth` levels of chance deep; `None` where no move is legal.
pub(super) fn think(board: &Board, depth: u32) -> Option<Thought> {
    let root = eval(board);
    let search = Search {
        pass_below: if root >= 0 { 2 * tile_score(board.max_rank()) } else { i64::MIN },
        least_probability: 0.5f64.powi(depth as i32 + 4),
    };
    let mut scores = [None; 4];
    let mut best: Option<(Move, i64)> = None;
    for mv in ORDER {
        let Some(after) = after(board, mv) else { continue };
        let score = search.chance(&after, i64::from(depth) - 1, 1.0);
        scores[mv.index()] = Some(score);
        if best.is_none_or(|(_, most)| score > most) {
            best = Some((mv, score));
        }
    }
    best.map(|(best, _)| Thought { scores, best })
}

/// The board after a move; none where it is illegal.
pub(super) fn after(board: &Board, mv: Move) -> Option<Board> {
    slide(board, mv).expect("a played game stays far below the highest rank").map(|slid| slid.board)
}

fn eval(board: &Board) -> i64 {
    i64::from(board_eval(board).expect("a played game stays far below ranks that leave 32 bits"))
}

struct Search {
    /// A board below this value is not looked into.
    pass_below: i64,
    /// Nor is one that is reached less often.
    least_probability: f64,
}

impl Search {
    /// The value of a board where a tile is about to appear.
    fn chance(&self, board: &Board, levels_left: i64, probability: f64) -> i64 {
        let value = eval(board);
        if value < self.pass_below || levels_left < 0 || probability < self.least_probability {
            return value;
        }
        let (mut sum, mut empty) = (0, 0);
        let cells = empty_cells(board).count() as f64;
        for cell in empty_cells(board) {
            let two = self.best(&board.with(cell, 1), levels_left, probability * TWOS / cells);
            let four = self.best(&board.with(cell, 2), levels_left, probability * (1.0 - TWOS) / cells);
            sum += 9 * two + four;
            empty += 1;
        }
        // A move always leaves a cell empty: it slides away from one, or merges into one.
        sum / (10 * empty)
    }

    /// The value of a position to the player who moves best.
    fn best(&self, board: &Board, levels_left: i64, probability: f64) -> i64 {
        let values = ORDER.iter().filter_map(|mv| after(board, *mv));
        let best = values.map(|after| self.chance(&after, levels_left - 1, probability)).max();
        best.unwrap_or_else(|| -LOST.max(2 * tile_score(board.max_rank())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(rows: [u16; 4]) -> Board {
        Board::from_nibbles(rows.into_iter().fold(0, |all, row| all << 16 | u64::from(row)))
    }

    #[test]
    fn without_looking_ahead_a_move_is_worth_the_board_after_it() {
        let position = board([0x3210, 0x2100, 0x1000, 0x0001]);
        let thought = think(&position, 0).unwrap();
        for mv in Move::ALL {
            assert_eq!(thought.scores[mv.index()], after(&position, mv).map(|board| eval(&board)));
        }
        assert_eq!(thought.scores[thought.best.index()], thought.scores.into_iter().flatten().max());
    }

    #[test]
    fn one_level_is_the_mean_over_what_may_appear() {
        // The root's value is negative, so that every board is looked into.
        let position = board([0x1343, 0x2121, 0x3132, 0x1031]);
        let thought = think(&position, 1).unwrap();
        let best = |board: &Board| {
            let values = Move::ALL.iter().filter_map(|mv| after(board, *mv)).map(|after| eval(&after)).max();
            values.unwrap_or(-LOST)
        };
        for mv in Move::ALL {
            let Some(after) = after(&position, mv) else { continue };
            let cells: Vec<usize> = empty_cells(&after).collect();
            let sum: i64 = cells.iter().map(|&c| 9 * best(&after.with(c, 1)) + best(&after.with(c, 2))).sum();
            assert_eq!(thought.scores[mv.index()], Some(sum / (10 * cells.len() as i64)));
        }
    }

    #[test]
    fn equal_moves_are_decided_by_the_players_order_and_no_move_ends_the_game() {
        let thought = think(&board([0, 0x0110, 0x0110, 0]), 0).unwrap();
        let best = thought.scores[thought.best.index()];
        let first = ORDER.into_iter().find(|mv| thought.scores[mv.index()] == best);
        assert_eq!(Some(thought.best), first);
        assert_eq!(think(&board([0x1212, 0x2121, 0x1212, 0x2121]), 3), None);
    }

    #[test]
    fn looking_deeper_scores_more() {
        use super::super::game::Game;
        let score = |depth| (0..6).map(|seed| Game::play(seed, depth, 400).score()).sum::<u64>();
        assert!(score(1) > score(0), "{} {}", score(1), score(0));
    }
}
