//! Games made of moves, as records in the classical format; what a test does not set is plain and sound.

use cozy_chess::{Board, Color, Move, Piece};
use gristmill_format::chess::policy::{self, Promotion};
use gristmill_format::chess::rescore::{Rescorer, Settings, Tablebase, Tally};
use gristmill_format::chess::transform::flip;
use gristmill_format::chess::{Frame, FrameMut, InputFormat, Version, game};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Result};
use std::sync::Arc;

/// The start position.
pub const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// Plays `moves` (`e2e4`, castling as king takes rook) from `fen`; a frame for each position, the last one included.
pub fn records(fen: &str, moves: &str) -> Vec<u8> {
    written(fen.parse().unwrap(), moves, InputFormat::Classical)
}

/// The same for Chess960, from a FEN with the files of the rooks that may castle, in the format that can tell them.
pub fn chess960(fen: &str, moves: &str) -> Vec<u8> {
    written(Board::from_fen(fen, true).unwrap(), moves, InputFormat::Castling)
}

fn written(start: Board, moves: &str, format: InputFormat) -> Vec<u8> {
    let mut boards = vec![start];
    let mut played: Vec<Option<Move>> = Vec::new();
    for word in moves.split_whitespace() {
        let m: Move = word.parse().unwrap();
        let mut next = boards.last().unwrap().clone();
        next.try_play(m).unwrap_or_else(|_| panic!("{word} is illegal in {next}"));
        played.push(Some(m));
        boards.push(next);
    }
    played.push(None);
    let mut bytes = vec![0; boards.len() * Version::V6.bytes()];
    for (k, record) in bytes.chunks_exact_mut(Version::V6.bytes()).enumerate() {
        let mut frame = FrameMut::blank(record, format).unwrap();
        position(&mut frame, &boards[..=k], format);
        policy_of(&mut frame, &boards[k], played[k]);
        frame.set_visits(100).set_result_d(1.0).set_plies_left((boards.len() - k) as f32);
    }
    bytes
}

fn position(frame: &mut FrameMut<'_>, boards: &[Board], format: InputFormat) {
    let now = boards.last().unwrap();
    let us = now.side_to_move();
    for (h, board) in boards.iter().rev().take(8).enumerate() {
        for (k, (color, piece)) in
            [us, !us].into_iter().flat_map(|color| Piece::ALL.map(|piece| (color, piece))).enumerate()
        {
            let mask = board.colored_pieces(color, piece).0;
            frame.set_plane(13 * h + k, flip(if us == Color::White { mask } else { mask.swap_bytes() }));
        }
        let before = &boards[..boards.len() - 1 - h];
        let repeated = before.iter().any(|other| other.same_position(board));
        frame.set_plane(13 * h + 12, if repeated { u64::MAX } else { 0 });
    }
    let right = |color, long: bool| {
        let rights = now.castle_rights(color);
        let file = if long { rights.long } else { rights.short };
        file.map_or(0, |file| if format == InputFormat::Classical { 1 } else { 1 << file as u8 })
    };
    frame.set_castling_us_ooo(right(us, true)).set_castling_us_oo(right(us, false));
    frame.set_castling_them_ooo(right(!us, true)).set_castling_them_oo(right(!us, false));
    frame.set_side_to_move_or_enpassant(u8::from(us == Color::Black)).set_rule50_count(now.halfmove_clock());
}

/// All legal moves alike; the move played is the best one too.
fn policy_of(frame: &mut FrameMut<'_>, board: &Board, played: Option<Move>) {
    let mut legal = Vec::new();
    board.generate_moves(|moves| {
        legal.extend(moves);
        false
    });
    let turn = if board.side_to_move() == Color::Black { 56 } else { 0 };
    let index = |m: Move| {
        let promotion = match m.promotion {
            Some(Piece::Queen) => Some(Promotion::Queen),
            Some(Piece::Rook) => Some(Promotion::Rook),
            Some(Piece::Bishop) => Some(Promotion::Bishop),
            _ => None,
        };
        policy::index(m.from as u8 ^ turn, m.to as u8 ^ turn, promotion).unwrap()
    };
    for m in &legal {
        frame.set_probability(index(*m).into(), 1.0 / legal.len() as f32);
    }
    let played = index(played.unwrap_or(legal[0]));
    frame.set_played_idx(played).set_best_idx(played);
}

/// The same with frame `i` changed.
pub fn edit(records: &mut [u8], i: usize, change: impl FnOnce(&mut FrameMut<'_>)) {
    let size = Version::V6.bytes();
    change(&mut FrameMut::new(&mut records[i * size..(i + 1) * size]).unwrap());
}

/// The records as a chunk, as they come out of a file.
pub fn chunk(records: &[u8]) -> Chunk {
    let mut chunk = Chunk { bytes: records.to_vec(), ..Chunk::default() };
    game::parse(&mut chunk).unwrap();
    chunk
}

/// Frame `i` of a chunk.
pub fn frame(chunk: &Chunk, i: usize) -> Frame<'_> {
    Frame::new(chunk.record(i)).unwrap()
}

/// Rescores records without tables; the chunk and the counts.
pub fn rescore(records: &[u8], settings: Settings) -> Result<(Chunk, Tally), Error> {
    rescore_with(records, settings, None)
}

/// Rescores records with tables.
pub fn rescore_with(
    records: &[u8],
    settings: Settings,
    tables: Option<Arc<dyn Tablebase>>,
) -> Result<(Chunk, Tally), Error> {
    let mut chunk = chunk(records);
    let tally = Rescorer::new(settings, tables).unwrap().run(&mut chunk)?;
    Ok((chunk, tally))
}

/// Settings that leave V6 records V6.
pub fn narrow() -> Settings {
    Settings { keep_v6: true, ..Settings::default() }
}
