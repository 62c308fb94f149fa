//! Records in another input format: planes from the replayed game, indices under the new transform.
//! Changes planes, probabilities' places, indices, the bytes after the planes and their bits; no value.

use cozy_chess::{Color, Move};
use gristmill_bytes::error::Result;

use super::game::{Game, Ply, refused};
use super::planes;
use super::replay::index_of;
use super::settings::Compat;
use super::tally::{Count, Tally};
use super::widen::next_moves;
use crate::chess::check::Rule;
use crate::chess::check::policy::each_marked;
use crate::chess::record::{InputFormat, POLICY, V7_BYTES, Version, at};

/// Bits of `invariance_info` that stay: proven, maximum length, adjudicated, flagged.
const KEPT_BITS: u8 = 0b0111_1000;

/// Bit of `invariance_info`: black is to move, in canonical formats.
const BLACK: u8 = 1 << 7;

/// Converts every record.
///
/// Errors: `Refused` where the policy of a frame gives more than 0 to a move that is none, and so would not sum to what
/// it did.
pub(super) fn run(game: &mut Game<'_>, format: InputFormat, compat: Compat, tally: &mut Tally) -> Result<()> {
    let mapping = compat.mapping();
    let plies = game.plies;
    for i in 0..game.len() {
        let before = game.frame(i).bytes().to_vec();
        let (words, transform) = planes::write(&plies[..=i], format);
        let mut frame = game.frame_mut(i);
        for (plane, word) in words.into_iter().enumerate() {
            frame.set_plane(plane, word);
        }
        let (was, now) = (&plies[i], Ply { transform, mapping, ..plies[i].clone() });
        if was.transform != transform || was.mapping != mapping && transform.transposes() {
            move_indices(game, i, was, &now)?;
        }
        write_bytes(game, i, &now, format);
        tally.add(Count::Converted, u64::from(game.frame(i).bytes() != before));
    }
    // The next moves of V7 are the new indices of the frames that follow.
    for i in 0..game.len() {
        let wide = game.size == V7_BYTES && game.frame(i).version() == Version::V7.number();
        if wide {
            let ([next, next_but_one], d_st) = (next_moves(game.records, game.size, i), game.frame(i).d_st());
            game.frame_mut(i).set_short_term(d_st, next, next_but_one);
        }
    }
    Ok(())
}

/// Puts probabilities and indices of legal moves where the new transform has them; other entries become -1.
fn move_indices(game: &mut Game<'_>, i: usize, was: &Ply, now: &Ply) -> Result<()> {
    let mut moves: Vec<Move> = Vec::new();
    was.board.generate_moves(|list| {
        moves.extend(list);
        false
    });
    let places = moves.into_iter().filter_map(|m| {
        let (from, to) = (index_of(was, m, was.mapping)?, index_of(now, m, now.mapping)?);
        Some((from, to))
    });
    let places: Vec<(u16, u16)> = places.collect();
    let frame = game.frame(i);
    let mut lost = None;
    each_marked(frame, |index, p| {
        if p > 0.0 && !places.iter().any(|(from, _)| usize::from(*from) == index) {
            lost = lost.or(Some((index, p)));
        }
    });
    if let Some((index, p)) = lost {
        let text = format!(
            "probability {index} is {p}, but the move is illegal: in another input format there is no place for it, and \
             the policy would not sum to what it does"
        );
        return Err(refused(Rule::PolicyMoves, i, game.size, at::PROBABILITIES + 4 * index, text));
    }
    let values: Vec<f32> = places.iter().map(|(from, _)| frame.probability((*from).into())).collect();
    // Data of old versions has no visits, and 0 where later ones have the index of a move.
    let is_move = |index: u16| index != 0 || frame.visits() > 0;
    let to = |index: u16| places.iter().find(|(from, _)| *from == index).map_or(index, |(_, to)| *to);
    let moved = |index: u16| if is_move(index) { to(index) } else { index };
    let (played, best) = (moved(frame.played_idx()), moved(frame.best_idx()));
    let mut frame = game.frame_mut(i);
    (0..POLICY).for_each(|index| {
        frame.set_probability(index, -1.0);
    });
    for ((_, to), value) in places.iter().zip(values) {
        frame.set_probability((*to).into(), value);
    }
    frame.set_played_idx(played).set_best_idx(best);
    Ok(())
}

/// Writes format, rights, side or en passant, and the bits that belong to the format.
pub(super) fn write_bytes(game: &mut Game<'_>, i: usize, now: &Ply, format: InputFormat) {
    let board = &now.board;
    let us = board.side_to_move();
    let right = |file: Option<cozy_chess::File>| match (file, format.has_castling_masks()) {
        (None, _) => 0,
        (Some(_), false) => 1,
        (Some(file), true) => 1u8 << file as u8,
    };
    let [ours, theirs] = [us, !us].map(|color| *board.castle_rights(color));
    let black = us == Color::Black;
    let mut info = game.frame(i).invariance_info() & KEPT_BITS;
    let side = if format.is_canonical() {
        info |= now.transform.bits() | if black { BLACK } else { 0 };
        let mask = now.en_passant.map_or(0, |file| 1u8 << file as u8);
        if now.transform.flips() { mask.reverse_bits() } else { mask }
    } else {
        u8::from(black)
    };
    let mut frame = game.frame_mut(i);
    frame.set_input_format_value(format.value());
    frame.set_castling_us_ooo(right(ours.long)).set_castling_us_oo(right(ours.short));
    frame.set_castling_them_ooo(right(theirs.long)).set_castling_them_oo(right(theirs.short));
    frame.set_side_to_move_or_enpassant(side).set_invariance_info(info);
}
