//! A game -> its lines and its sidecar, byte for byte as the producer of real logs writes them (spec 1).
//! What real games take from exhaustive tables is made up here: a chance that follows the search.

use std::fmt::Write;

use gristmill_format::g2048::Move;

use super::game::{Game, Step};

/// The order of branches in a line.
const BRANCHES: [Move; 4] = [Move::Up, Move::Left, Move::Right, Move::Down];

/// Entries of a table are multiples of one over this.
const TABLE_UNITS: u64 = 16_000;

/// From this rank on the tables answer now and then.
const TABLE_RANK: u8 = 6;

/// The lines of a game. Games of even number write illegal branches of table rows as 0, as older logs do.
pub(super) fn lines(game: &Game, n: u64) -> String {
    let mut text = String::with_capacity(game.steps.len() * 256);
    let illegal = if n.is_multiple_of(2) { "0.000000" } else { "null" };
    for (i, step) in game.steps.iter().enumerate() {
        let table = table_of(step);
        let (name, value) = match table {
            None => ("search", search_ev(step, step.mv())),
            Some(name) => (name, Some(millionths(chance(step, step.mv()) * 1_000_000 / TABLE_UNITS))),
        };
        let ev = |mv: Move| match table {
            None => search_ev(step, mv).unwrap_or_else(|| "null".to_owned()),
            Some(_) => table_ev(step, mv).unwrap_or_else(|| illegal.to_owned()),
        };
        let ranks = step.board.ranks().map(|rank| rank.to_string()).join(",");
        let _ = write!(
            text,
            "{{\"seed\":{},\"step_index\":{i},\"max_rank\":{},\"move\":\"{}\",\"valuation_type\":\"{name}\",\
             \"valuation\":{},\"board\":[{ranks}],\"branch_evs\":{{",
            game.seed,
            step.board.max_rank(),
            step.mv().name(),
            value.unwrap_or_default(),
        );
        let branches = BRANCHES.map(|mv| format!("\"{}\":{}", mv.name(), ev(mv)));
        let _ = writeln!(text, "{}}}}}", branches.join(","));
    }
    text
}

/// The sidecar of game `n`, whose lines are in `steps_file`.
pub(super) fn sidecar(game: &Game, n: u64, steps_file: &str) -> String {
    let max_rank = game.end.max_rank();
    format!(
        "{{\"seed\": {}, \"depth\": {}, \"game_index\": {n}, \"steps_file\": \"{steps_file}\", \"num_moves\": {}, \
         \"score\": {}, \"max_tile\": {}, \"max_rank\": {max_rank}, \"sum_tile\": {}}}",
        game.seed,
        game.depth,
        game.steps.len(),
        game.score(),
        1u64 << max_rank,
        game.end.sum_tile(),
    )
}

/// Which table answers for a step, if one does: for about every other step once tiles are large.
fn table_of(step: &Step) -> Option<&'static str> {
    if step.board.max_rank() < TABLE_RANK {
        return None;
    }
    match step.noise % 16 {
        0..9 => None,
        9..13 => Some("tuple11"),
        _ => Some("tuple10"),
    }
}

/// The search's score in thousandths, which is exact.
fn search_ev(step: &Step, mv: Move) -> Option<String> {
    let score = step.thought.scores[mv.index()]?;
    let sign = if score < 0 { "-" } else { "" };
    Some(format!("{sign}{}.{:03}000", score.unsigned_abs() / 1000, score.unsigned_abs() % 1000))
}

/// The entry of a table for a legal move, in [`TABLE_UNITS`]: near certainty for the best, less for worse ones.
fn chance(step: &Step, mv: Move) -> u64 {
    let scores = step.thought.scores;
    let best = scores[step.mv().index()].unwrap_or_default();
    let behind = best.saturating_sub(scores[mv.index()].unwrap_or(best)).unsigned_abs();
    let top = TABLE_UNITS - (step.noise >> 8) % 2000;
    top * 1000 / (1000 + behind.min(1 << 40))
}

/// A branch of a table row: close to the entry, since it is a mean over several of them.
fn table_ev(step: &Step, mv: Move) -> Option<String> {
    step.thought.scores[mv.index()]?;
    let off = (step.noise >> (20 + 8 * mv.index())) % 100;
    Some(millionths((chance(step, mv) * 1_000_000 / TABLE_UNITS + off).min(1_000_000)))
}

fn millionths(n: u64) -> String {
    format!("{}.{:06}", n / 1_000_000, n % 1_000_000)
}
