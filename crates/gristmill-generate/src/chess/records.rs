//! One game -> its records, back to back, as self-play writes them.
//! Classical input format only.

use cozy_chess::{Board, Color, Piece};
use gristmill_format::Result;
use gristmill_format::chess::{FrameMut, InputFormat, Version};

use super::game::{Ending, Game, Ply, Value};

/// Boards of history in a record.
const BOARDS: usize = 8;
/// Planes per board.
const PER_BOARD: usize = 13;
/// How much of the short-term value is what follows (1 - 1/6).
const FOLLOWING: f32 = 5.0 / 6.0;

/// Bits of `invariance_info`.
const PROVEN: u8 = 1 << 3;
const MAX_LENGTH: u8 = 1 << 4;
const ADJUDICATED: u8 = 1 << 5;

/// Writes the records of `game` into `out` (cleared first); `version` is V6 or V7.
pub(super) fn write(game: &Game, version: Version, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    out.resize(game.plies.len() * version.bytes(), 0);
    let last_m = game.plies.last().map_or(0.0, |ply| ply.best.m);
    for (k, record) in out.chunks_exact_mut(version.bytes()).enumerate() {
        let mut frame = FrameMut::blank(record, InputFormat::Classical)?;
        position(&mut frame, &game.plies[..=k]);
        thoughts(&mut frame, &game.plies[k]);
        outcome(&mut frame, game.ending, game.plies[k].board.side_to_move());
        frame.set_plies_left(last_m + (game.plies.len() - 1 - k) as f32);
    }
    if version == Version::V7 {
        short_term(game, out)?;
    }
    Ok(())
}

/// Planes, castling rights, side to move and fifty-move counter of the last of `plies`.
fn position(frame: &mut FrameMut<'_>, plies: &[Ply]) {
    let Some(now) = plies.last() else { return };
    let us = now.board.side_to_move();
    for (h, ply) in plies.iter().rev().take(BOARDS).enumerate() {
        let first = PER_BOARD * h;
        for (k, word) in men(&ply.board, us).into_iter().enumerate() {
            frame.set_plane(first + k, word);
        }
        frame.set_plane(first + 12, if ply.repeated { u64::MAX } else { 0 });
    }
    let rights = |color: Color| {
        let rights = now.board.castle_rights(color);
        (u8::from(rights.long.is_some()), u8::from(rights.short.is_some()))
    };
    let ((us_ooo, us_oo), (them_ooo, them_oo)) = (rights(us), rights(!us));
    frame.set_castling_us_ooo(us_ooo).set_castling_us_oo(us_oo);
    frame.set_castling_them_ooo(them_ooo).set_castling_them_oo(them_oo);
    frame.set_side_to_move_or_enpassant(u8::from(us == Color::Black)).set_rule50_count(now.board.halfmove_clock());
}

/// The twelve words of a board, as `us` sees it: square `s` is bit `s ^ 7`.
fn men(board: &Board, us: Color) -> [u64; 12] {
    let word = |color: Color, piece: Piece| {
        let mask = board.colored_pieces(color, piece).0;
        let seen = if us == Color::White { mask } else { mask.swap_bytes() };
        seen.reverse_bits().swap_bytes()
    };
    let mut words = [0; 12];
    for (k, piece) in Piece::ALL.into_iter().enumerate() {
        words[k] = word(us, piece);
        words[k + 6] = word(!us, piece);
    }
    words
}

/// Policy, values and visits.
fn thoughts(frame: &mut FrameMut<'_>, ply: &Ply) {
    for &(index, count) in &ply.moves {
        frame.set_probability(usize::from(index), count as f32 / ply.visits as f32);
    }
    frame.set_root_q(ply.root.q).set_root_d(ply.root.d).set_root_m(ply.root.m);
    frame.set_best_q(ply.best.q).set_best_d(ply.best.d).set_best_m(ply.best.m);
    frame.set_played_q(ply.played.q).set_played_d(ply.played.d).set_played_m(ply.played.m);
    if let Some(Value { q, d, m }) = ply.first_thought {
        frame.set_orig_q(q).set_orig_d(d).set_orig_m(m);
    }
    frame.set_visits(ply.visits).set_played_idx(ply.played_idx).set_best_idx(ply.best_idx);
    frame.set_policy_kld(ply.divergence);
    frame.set_invariance_info(if ply.proven { PROVEN } else { 0 });
}

/// Result as `us` sees it, and how it came about.
fn outcome(frame: &mut FrameMut<'_>, ending: Ending, us: Color) {
    let (winner, flags) = match ending {
        Ending::Mate(winner) => (Some(winner), 0),
        Ending::Draw => (None, 0),
        Ending::Cut(Some(winner)) => (Some(winner), ADJUDICATED),
        Ending::Cut(None) => (None, ADJUDICATED | MAX_LENGTH),
    };
    let q = winner.map_or(0.0, |winner| if winner == us { 1.0 } else { -1.0 });
    frame.set_result_q(q).set_result_d(f32::from(winner.is_none()));
    let flags = frame.as_frame().invariance_info() | flags;
    frame.set_invariance_info(flags);
}

/// The V7 fields: running averages of the values to come, and the next two moves.
fn short_term(game: &Game, out: &mut [u8]) -> Result<()> {
    let played = |k: usize| game.plies.get(k).map_or(u16::MAX, |ply| ply.played_idx);
    let (mut q, mut d) = game.plies.last().map_or((0.0, 0.0), |ply| (ply.root.q, ply.root.d));
    let records = out.chunks_exact_mut(Version::V7.bytes()).enumerate();
    for (k, record) in records.rev() {
        if k + 1 < game.plies.len() {
            let root = game.plies[k].root;
            (q, d) = (root.q + (-q - root.q) * FOLLOWING, root.d + (d - root.d) * FOLLOWING);
        }
        let mut frame = FrameMut::new(record)?;
        frame.set_q_st(q).set_short_term(d, played(k + 1), played(k + 2));
    }
    Ok(())
}
