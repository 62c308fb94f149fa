//! Body of the `rescore` fuzz target: edits of a sound game through the rescorer; panics when a promise breaks.
//! Shared, as source, with the replay of its corpus on stable Rust.

use std::collections::BTreeSet;
use std::sync::Arc;

use gristmill_format::chess::check::Rules;
use gristmill_format::chess::rescore::{Compat, Deblunder, Rescorer, Settings, Tablebase};
use gristmill_format::chess::syzygy::{Material, Table, TableKind, Tables};
use gristmill_format::chess::transform::flip;
use gristmill_format::chess::{Board, Frame, FrameMut, InputFormat, layout_v6, layout_v7};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};

use super::{breaches, closure, constant};

/// The first four bytes choose the game's format, passes, the new format and what tables say; then each five are a place
/// and a value. A refusal says where; what comes out is whole, and sound to the rescorer itself; a game that the
/// validator passes is one that the rescorer takes, but for values that rounding took out of range.
pub fn rescore(data: &[u8]) {
    let Some((&[format, passes, to, value], edits)) = data.split_first_chunk() else { return };
    let bit = |n: u8| passes >> n & 1 != 0;
    let mut chunk = game(InputFormat::ALL[usize::from(format) % 7], bit(0));
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % chunk.bytes.len();
        chunk.bytes[at] = edit[4];
    }
    let settings = Settings {
        temperature: if bit(1) { 1.3 } else { 1.0 },
        offset: if bit(1) { -0.001 } else { 0.0 },
        boost: if bit(2) && bit(3) { 0.5 } else { 0.0 },
        input_format: (to < 7).then(|| InputFormat::ALL[usize::from(to)]),
        deblunder: bit(4).then_some(Deblunder { threshold: 0.1, width: 0.06 }),
        keep_v6: bit(5),
        drop_flagged: bit(6),
        compat: if bit(7) { Compat::parse(&["all"]).expect("quirks") } else { Compat::NONE },
        allow_missing_tables: value & 128 == 0,
        ..Settings::default()
    };
    let tables = bit(3).then(|| tables(value % 5));
    let sound = breaches(&chunk, Rules::ALL).is_empty();
    let rescorer = Rescorer::new(settings.clone(), tables).expect("settings in range");
    match rescorer.run(&mut chunk) {
        Ok(_) => judge(&chunk, &settings),
        Err(e) => {
            // Tables that know one value only contradict themselves.
            let by_table = e.kind() == Kind::Refused("corrupt_table");
            assert!(!edits.is_empty() || by_table, "a sound game is refused: {e}");
            assert!(e.kind() == Kind::Empty || e.place().frame.is_some_and(|i| i < 4), "{e}");
            assert!(
                !sound || by_table || is_rounding(&e) || e.kind() == Kind::Empty,
                "the validator passes what is refused: {e}"
            );
        }
    }
}

fn is_rounding(e: &Error) -> bool {
    matches!(e.kind(), Kind::Refused("values" | "policy_values"))
}

/// Whole records with values in range, which can be rescored again to the same.
fn judge(chunk: &Chunk, settings: &Settings) {
    let size = chunk.layout.as_ref().expect("a layout").size();
    assert_eq!((chunk.bytes.len(), chunk.records().len()), (chunk.frames * size, chunk.frames * size));
    for frame in chunk.records().chunks_exact(size).map(|record| Frame::new(record).expect("a record")) {
        assert!(frame.result_q().abs() <= 1.0 && frame.result_d() >= 0.0 && frame.plies_left() >= 0.0);
    }
    // Frames left out leave gaps, and quirks may make games that no reader takes.
    if settings.drop_flagged || settings.compat != Compat::NONE {
        return;
    }
    let mut again = Chunk { bytes: chunk.records().to_vec(), frames: chunk.frames, ..Chunk::default() };
    again.layout = chunk.layout.clone();
    let plain = Settings { input_format: settings.input_format, keep_v6: true, ..Settings::default() };
    let tally = Rescorer::new(plain, None).expect("settings in range").run(&mut again).expect("a game rescored before");
    assert!(!tally.changed() && again.records() == chunk.records(), "a second run changes something");
}

/// Sound tables of all that the game can come to, every position of which has one value.
fn tables(value: u8) -> Arc<dyn Tablebase> {
    let most = Material::parse("KRvKP").expect("a material").ordered();
    let mut materials = BTreeSet::from([most]);
    closure(most, &mut materials);
    let read = |m: Material, kind| Table::read(kind, m, constant(m, kind, value)).expect("a sound table");
    Arc::new(Tables::new(materials.into_iter().flat_map(|m| TableKind::ALL.map(|kind| read(m, kind)))))
}

/// King takes pawn, king, rook: four plies of an ending in records of V6, or V6 widened to V7.
fn game(format: InputFormat, wide: bool) -> Chunk {
    let size = layout_v6().size();
    // White's king and rook, Black's king and pawn, as masks; the fifty-move counter; and the move that was played.
    let plies = [
        ([1 << 20, 1 << 4, 1 << 42, 1 << 27], 4, "e3d4"),
        ([1 << 27, 1 << 4, 1 << 42, 0], 0, "c6d6"),
        ([1 << 27, 1 << 4, 1 << 43, 0], 1, "e1e5"),
        ([1 << 27, 1 << 36, 1 << 43, 0], 2, "d6c6"),
    ];
    let mut chunk = Chunk { bytes: vec![0; 4 * size], frames: 4, ..Chunk::default() };
    chunk.layout = Some(layout_v6().clone());
    for (ply, record) in chunk.bytes.chunks_exact_mut(size).enumerate() {
        let mut frame = FrameMut::blank(record, InputFormat::Classical).expect("a record");
        let black = ply % 2 == 1;
        for (board, (men, ..)) in plies[..=ply].iter().rev().enumerate() {
            let [king, rook, their_king, pawn] =
                men.map(|mask: u64| flip(if black { mask.swap_bytes() } else { mask }));
            let (white, other) = if black { (6, 0) } else { (0, 6) };
            let first = 13 * board;
            frame.set_plane(first + white + 5, king).set_plane(first + white + 3, rook);
            frame.set_plane(first + other + 5, their_king).set_plane(first + other, pawn);
        }
        frame.set_side_to_move_or_enpassant(u8::from(black)).set_rule50_count(plies[ply].1);
        let board = Board::from_frame(&frame.as_frame()).expect("a position");
        let legal = board.legal_indices().expect("a legal one");
        legal.iter().for_each(|i| _ = frame.set_probability(usize::from(*i), 1.0 / legal.len() as f32));
        let named = |i: &&u16| board.uci(**i).as_deref() == Some(plies[ply].2);
        let played = *legal.iter().find(named).expect("a legal move");
        frame.set_visits(100).set_played_idx(played).set_best_idx(legal[0]);
        frame.set_best_q(0.4).set_played_q(0.2).set_best_d(0.3).set_best_m(20.0);
        frame.set_result_d(1.0).set_plies_left(30.0 - ply as f32);
    }
    let settings = Settings { input_format: Some(format), keep_v6: true, ..Settings::default() };
    Rescorer::new(settings, None).expect("settings in range").run(&mut chunk).expect("a sound game");
    if wide {
        let tail = layout_v7().size() - size;
        chunk.bytes = chunk.bytes.chunks_exact(size).flat_map(|r| [r, &vec![0; tail]].concat()).collect();
        chunk.layout = Some(layout_v7().clone());
    }
    chunk
}
