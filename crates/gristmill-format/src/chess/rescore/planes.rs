//! A replayed game and an input format -> the planes of a position: its own men and those of the plies before.
//! Looks at no record; of what lies before the first one only a pawn's double step can be known, else it stays empty.

use cozy_chess::{Board, Color, Piece, Rank};

use super::game::Ply;
use crate::chess::record::{InputFormat, PLANES};
use crate::chess::transform::{Transform, flip, mirror};

/// Boards in a record.
const BOARDS: usize = 8;
/// Planes of a board.
const PER_BOARD: usize = 13;

/// The stored planes of the last of `plies`, and the transform that they are under.
pub(super) fn write(plies: &[Ply], format: InputFormat) -> ([u64; PLANES], Transform) {
    let mut planes = [0; PLANES];
    let Some(now) = plies.last() else { return (planes, Transform::NONE) };
    let us = now.board.side_to_move();
    let own = seen(men(&now.board), us);
    let transform = match format.is_canonical() {
        true => Transform::of_position(&own, may_castle(&now.board)),
        false => Transform::NONE,
    };
    let shown = history(plies, format);
    let depth = shown.iter().flatten().count();
    if let (Some(to), Some(before)) = (planes.chunks_exact_mut(PER_BOARD).nth(depth), before(plies, depth, format)) {
        for (mask, plane) in seen(before, us).into_iter().zip(to.iter_mut()) {
            *plane = flip(mask);
        }
    }
    for (ply, to) in shown.into_iter().flatten().zip(planes.chunks_exact_mut(PER_BOARD)) {
        for (mask, plane) in seen(men(&ply.board), us).into_iter().zip(to.iter_mut()) {
            *plane = flip(transform.apply(mask));
        }
        to[PER_BOARD - 1] = if ply.repetitions > 0 { u64::MAX } else { 0 };
    }
    (planes, transform)
}

/// The positions that go into the slots of a record, the current one first.
fn history(plies: &[Ply], format: InputFormat) -> [Option<&Ply>; BOARDS] {
    let mut slots = [None; BOARDS];
    let mut free = slots.iter_mut();
    let repeats_only = matches!(format, InputFormat::CanonicalV2 | InputFormat::CanonicalV2Armageddon);
    let mut newer: Option<&Ply> = None;
    for ply in plies.iter().rev() {
        if let Some(newer) = newer.filter(|_| format.is_canonical()) {
            let over = newer.board.halfmove_clock() == 0
                || rights(&newer.board) != rights(&ply.board)
                || ply.en_passant.is_some();
            if over {
                break;
            }
        }
        if newer.is_none() || !repeats_only || ply.repetitions > 0 {
            match free.next() {
                Some(slot) => *slot = Some(ply),
                None => break,
            }
        }
        newer = Some(ply);
    }
    slots
}

/// The board before the first position, where formats 1 and 2 need it to tell that a pawn can be taken in passing, and
/// `depth` boards are shown: the pawn is back where it came from.
fn before(plies: &[Ply], depth: usize, format: InputFormat) -> Option<[u64; 12]> {
    let first = plies.first().filter(|_| !format.is_canonical() && depth == plies.len())?;
    let (file, them) = (first.en_passant?, !first.board.side_to_move());
    let at = |rank: Rank| 1 << (8 * rank.relative_to(them) as u32 + file as u32);
    let mut men = men(&first.board);
    men[6 * them as usize] ^= at(Rank::Second) | at(Rank::Fourth);
    Some(men)
}

/// The twelve masks of a board: White's pawns to king, then Black's.
fn men(board: &Board) -> [u64; 12] {
    std::array::from_fn(|i| board.colored_pieces(Color::ALL[i / 6], Piece::ALL[i % 6]).0)
}

/// The masks in plane order, as `us` sees them.
fn seen(men: [u64; 12], us: Color) -> [u64; 12] {
    match us {
        Color::White => men,
        Color::Black => std::array::from_fn(|i| mirror(men[(i + 6) % 12])),
    }
}

/// Files of the rooks that may castle: queenside and kingside of White, then of Black.
fn rights(board: &Board) -> [Option<cozy_chess::File>; 4] {
    let [white, black] = [Color::White, Color::Black].map(|color| *board.castle_rights(color));
    [white.long, white.short, black.long, black.short]
}

/// Whether anybody may still castle.
fn may_castle(board: &Board) -> bool {
    rights(board).iter().any(Option::is_some)
}
