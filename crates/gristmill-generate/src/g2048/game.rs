//! (seed, depth) -> one legal game of 2048: every position, what the player thought, and how it ended.
//! Pure; knows no text and no files.

use gristmill_format::g2048::moves::{empty_cells, score};
use gristmill_format::g2048::{Board, Move};
use gristmill_runtime::runtime::seed::{Draws, Key};

use super::search::{self, Thought};

/// One position in which a move was made.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) board: Board,
    pub(super) thought: Thought,
    /// A number of this step's own, for what a log adds to the facts.
    pub(super) noise: u64,
}

impl Step {
    pub(super) fn mv(&self) -> Move {
        self.thought.best
    }
}

/// One game.
#[derive(Debug, Clone)]
pub(super) struct Game {
    pub(super) seed: u64,
    pub(super) depth: u32,
    pub(super) steps: Vec<Step>,
    /// The board at the end, with the tile that appeared last.
    pub(super) end: Board,
    /// How many tiles appeared as 4.
    fours: u64,
}

impl Game {
    /// Plays until no move is legal, or `moves_max` moves.
    pub(super) fn play(seed: u64, depth: u32, moves_max: u64) -> Self {
        let mut draws = Key::new(seed, "generate 2048").at(0);
        let mut game = Game { seed, depth, steps: Vec::new(), end: Board::EMPTY, fours: 0 };
        game.spawn(&mut draws);
        game.spawn(&mut draws);
        while (game.steps.len() as u64) < moves_max
            && let Some(thought) = search::think(&game.end, depth)
        {
            let board = game.end;
            game.steps.push(Step { board, thought, noise: draws.bits() });
            game.end = search::after(&board, thought.best).unwrap_or(board);
            game.spawn(&mut draws);
        }
        game
    }

    /// Lets a tile appear: in any empty cell, a 4 once in ten times.
    fn spawn(&mut self, draws: &mut Draws) {
        let cells: Vec<usize> = empty_cells(&self.end).collect();
        let cell = cells[draws.below(cells.len() as u64) as usize];
        let four = draws.below(10) == 0;
        self.end = self.end.with(cell, if four { 2 } else { 1 });
        self.fours += u64::from(four);
    }

    /// The score at the end, as logs count it.
    pub(super) fn score(&self) -> u64 {
        score(&self.end, self.fours)
    }
}
