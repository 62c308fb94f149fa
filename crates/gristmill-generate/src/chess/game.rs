//! (seed, game number) -> one legal game, each ply with the player's thoughts about it, and how it ended.
//! Pure: the same numbers give the same game on every machine; knows no records and no files.

use cozy_chess::{Board, Color, Move, Piece};
use gristmill_format::chess::policy::{self, Promotion};
use gristmill_runtime::runtime::seed::Draws;

use super::player::{self, MATE, Scored};
use super::{repetition, smooth};

/// A value as the side to move sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    /// Expected result, -1..=1.
    pub(super) q: f32,
    /// Draw probability, 0..=1.
    pub(super) d: f32,
    /// Expected plies left.
    pub(super) m: f32,
}

/// One position in which a move was played.
#[derive(Debug, Clone)]
pub(super) struct Ply {
    pub(super) board: Board,
    /// Whether the position occurred before in this game.
    pub(super) repeated: bool,
    /// Policy index and visits of every legal move.
    pub(super) moves: Vec<(u16, u32)>,
    pub(super) visits: u32,
    pub(super) best_idx: u16,
    pub(super) played_idx: u16,
    /// Whether the best move mates.
    pub(super) proven: bool,
    pub(super) root: Value,
    pub(super) best: Value,
    pub(super) played: Value,
    /// What the player thought before searching; unknown now and then.
    pub(super) first_thought: Option<Value>,
    pub(super) divergence: f32,
}

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By mate; the winner.
    Mate(Color),
    /// By stalemate, repetition, the fifty-move rule or dead material.
    Draw,
    /// Cut at the maximum length; the winner if one side was far ahead.
    Cut(Option<Color>),
}

/// One game.
#[derive(Debug, Clone)]
pub(super) struct Game {
    pub(super) plies: Vec<Ply>,
    pub(super) ending: Ending,
}

/// A side this far ahead (centipawns) when the game is cut has won it.
const ADJUDGED: i32 = 500;

/// Plays one game of at most `plies_max` plies (at least 1).
pub(super) fn play(draws: &mut Draws, plies_max: usize) -> Game {
    let heat = [(); 2].map(|()| [12.0, 25.0, 50.0][draws.below(3) as usize]);
    let mut board = Board::startpos();
    let mut history: Vec<Board> = Vec::new();
    let mut plies: Vec<Ply> = Vec::new();
    let mut mind = Mind::default();
    loop {
        let earlier = seen(&history, &board);
        if let Some(ending) = ending(&board, earlier, plies.len(), plies_max) {
            return Game { plies, ending };
        }
        let color = board.side_to_move();
        let (ply, mv) = mind.ply(&board, &history, earlier > 0, heat[color as usize], plies_max - plies.len(), draws);
        plies.push(ply);
        history.push(board.clone());
        board.play_unchecked(mv);
        if board.halfmove_clock() == 0 {
            history.clear();
        }
    }
}

/// How often `board` occurred in `history` (positions since the last capture or pawn move).
fn seen(history: &[Board], board: &Board) -> usize {
    history.iter().rev().skip(1).step_by(2).filter(|b| repetition::same(b, board)).count()
}

fn ending(board: &Board, earlier: usize, played: usize, plies_max: usize) -> Option<Ending> {
    if !board.generate_moves(|_| true) {
        let mated = !board.checkers().is_empty();
        return Some(if mated { Ending::Mate(!board.side_to_move()) } else { Ending::Draw });
    }
    if earlier >= 2 || board.halfmove_clock() >= 100 || player::is_dead(board) {
        return Some(Ending::Draw);
    }
    if played < plies_max {
        return None;
    }
    let us = board.side_to_move();
    Some(Ending::Cut(match player::evaluate(board) {
        ADJUDGED.. => Some(us),
        score if score <= -ADJUDGED => Some(!us),
        _ => None,
    }))
}

/// The buffers with which positions are thought about.
#[derive(Debug, Default)]
struct Mind {
    scored: Vec<Scored>,
    shares: Vec<f64>,
    policy: Vec<f64>,
    counts: Vec<u32>,
}

impl Mind {
    fn ply(
        &mut self,
        board: &Board,
        history: &[Board],
        repeated: bool,
        heat: f64,
        left: usize,
        draws: &mut Draws,
    ) -> (Ply, Move) {
        // A position after our move has their move next, like those at the even distances counted from here.
        let came_up = |after: &Board| history.iter().rev().step_by(2).any(|b| repetition::same(b, after));
        player::consider(board, came_up, &mut self.scored);
        let scores = self.scored.iter().map(|s| s.score);
        smooth::shares(scores.clone(), heat, &mut self.shares);
        smooth::shares(scores, 2.0 * heat, &mut self.policy);
        let visits = 100 + draws.below(701) as u32;
        smooth::deal(&self.shares, visits, &mut self.counts);
        let best = (0..self.counts.len()).max_by_key(|&i| (self.counts[i], self.scored[i].score)).unwrap_or(0);
        let played = chosen(&self.counts, draws.below(u64::from(visits)) as u32);
        let first_score = player::evaluate(board);
        let unknown = draws.below(8) == 0;
        let left = expected_plies(board).min(left as f32);
        let value = |i: usize| value(self.scored[i].score, left);
        let sum = |of: fn(Value) -> f32| -> f32 {
            let parts = self.counts.iter().enumerate().map(|(i, &n)| f64::from(n) * f64::from(of(value(i))));
            (parts.sum::<f64>() / f64::from(visits)) as f32
        };
        let index = |i: usize| policy_index(board.side_to_move(), self.scored[i].mv);
        let ply = Ply {
            board: board.clone(),
            repeated,
            moves: (0..self.scored.len()).map(|i| (index(i), self.counts[i])).collect(),
            visits,
            best_idx: index(best),
            played_idx: index(played),
            proven: self.scored[best].score >= MATE,
            root: Value { q: sum(|v| v.q), d: sum(|v| v.d), m: sum(|v| v.m) },
            best: value(best),
            played: value(played),
            first_thought: (!unknown).then(|| self::value(first_score, left)),
            divergence: smooth::divergence(&self.counts, visits, &self.policy),
        };
        (ply, self.scored[played].mv)
    }
}

/// The first move at which the running sum of `counts` passes `at`.
fn chosen(counts: &[u32], mut at: u32) -> usize {
    for (i, &count) in counts.iter().enumerate() {
        if at < count {
            return i;
        }
        at -= count;
    }
    0
}

fn value(score: i32, left: f32) -> Value {
    if score >= MATE {
        return Value { q: 1.0, d: 0.0, m: 1.0 };
    }
    let (q, d) = smooth::squash(score);
    Value { q, d, m: left }
}

/// A guess of the plies left: long while there is much material, never below 1.
fn expected_plies(board: &Board) -> f32 {
    (4 * board.occupied().len()) as f32
}

/// The policy index of a legal move, as the side to move sees the board.
fn policy_index(color: Color, mv: Move) -> u16 {
    let square = |s: cozy_chess::Square| s.relative_to(color) as u8;
    let promotion = match mv.promotion {
        Some(Piece::Queen) => Some(Promotion::Queen),
        Some(Piece::Rook) => Some(Promotion::Rook),
        Some(Piece::Bishop) => Some(Promotion::Bishop),
        _ => None,
    };
    policy::index(square(mv.from), square(mv.to), promotion).expect("every legal move has a policy index")
}
