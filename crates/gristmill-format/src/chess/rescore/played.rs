//! A game that was played on a board <-> records of its positions in any input format, with the move played as their policy.
//! Writes no value: what a position is worth is for the caller to say.

use cozy_chess::{Board, Move};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::convert::write_bytes;
use super::game::{Game, Ply};
use super::replay::{Replay, en_passant, index_of, named};
use super::settings::Compat;
use super::{planes, record_size};
use crate::chess::frame::{Frame, FrameMut};
use crate::chess::record::{InputFormat, V6_BYTES};
use crate::chess::transform::{PolicyMapping, Transform};

/// Writes positions; keeps its buffers from one game to the next.
#[derive(Debug, Default)]
pub struct Played(Replay);

impl Played {
    /// Appends a V6 record for each position and the legal move that was played there: planes with their history, rights, side,
    /// counter and bits; legal moves with probability 0, the one played with 1; no visits, and nothing that was searched.
    ///
    /// Errors: `OutOfRange` with the frame, for a move without a policy index.
    pub fn write<'a>(
        &mut self,
        moves: impl Iterator<Item = (&'a Board, Move)>,
        format: InputFormat,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let replay = &mut self.0;
        replay.begin();
        for (board, played) in moves {
            let (board, en_passant) = (board.clone(), en_passant(board));
            let (transform, mapping) = (Transform::NONE, PolicyMapping::HalfTurn);
            replay.push(Ply { board, en_passant, repetitions: 0, transform, mapping, played: Some(played) });
        }
        let (first, plies) = (out.len(), &mut replay.plies);
        out.reserve_exact(plies.len() * V6_BYTES);
        out.resize(first + plies.len() * V6_BYTES, 0);
        let records = &mut out[first..];
        for i in 0..plies.len() {
            let (words, transform) = planes::write(&plies[..=i], format);
            plies[i].transform = transform;
            let mut frame = FrameMut::blank(&mut records[i * V6_BYTES..(i + 1) * V6_BYTES], format)?;
            for (plane, word) in words.into_iter().enumerate() {
                frame.set_plane(plane, word);
            }
            frame.set_rule50_count(plies[i].board.halfmove_clock());
            policy(&mut frame, &plies[i]).map_err(|e| e.in_frame(i))?;
            let mut game = Game { records, size: V6_BYTES, plies };
            write_bytes(&mut game, i, &plies[i], format);
        }
        Ok(())
    }
}

/// The positions of records, and the move that was played in each: of the last one what its index says, none where it says
/// nothing.
///
/// Errors: `Unsupported` for records that are not of chess; `Refused` by the rule that the first bad frame breaks.
pub fn replayed(chunk: &Chunk) -> Result<Vec<(Board, Option<Move>)>> {
    let size = record_size(chunk)?;
    let mut replay = Replay::default();
    replay.read(chunk.records(), size, Compat::NONE)?;
    if let Some(last) = replay.plies.last_mut() {
        let frame = Frame::new(chunk.record(chunk.frames - 1))?;
        // Data of old versions has no visits, and 0 where later ones have the index of a move.
        let told = frame.visits() > 0 || frame.played_idx() != 0 || frame.probability(0) > 0.0;
        last.played = named(last, frame.played_idx(), last.mapping).filter(|mv| told && last.board.is_legal(*mv));
    }
    Ok(replay.plies.into_iter().map(|ply| (ply.board, ply.played)).collect())
}

/// Legal moves, and the one that was played.
fn policy(frame: &mut FrameMut<'_>, ply: &Ply) -> Result<()> {
    ply.board.generate_moves(|moves| {
        for index in moves.into_iter().filter_map(|legal| index_of(ply, legal, ply.mapping)) {
            frame.set_probability(index.into(), 0.0);
        }
        false
    });
    let index = ply.played.and_then(|played| index_of(ply, played, ply.mapping));
    let index = index.ok_or_else(|| Error::new(Kind::OutOfRange, "a move without a policy index"))?;
    frame.set_probability(index.into(), 1.0).set_played_idx(index).set_best_idx(index);
    Ok(())
}
