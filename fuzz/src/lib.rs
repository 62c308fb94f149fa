//! Bodies of the fuzz targets: arbitrary bytes in; panics when a decoder breaks a promise, not only when it crashes.
//! Shared, as source, with the replay of the corpora on stable Rust; uses public functions of the format crate only.

use std::ops::ControlFlow;
#[path = "binpack.rs"]
mod binpacks;
#[path = "bullet.rs"]
mod bullets;
#[path = "demo.rs"]
mod demo;
#[path = "g2048.rs"]
mod g2048;
#[path = "gzips.rs"]
mod gzips;
#[path = "katago.rs"]
mod katago_rows;
#[path = "mended.rs"]
mod mended;
#[path = "packs.rs"]
mod packs;
#[path = "pgn.rs"]
mod pgns;
#[path = "pickle.rs"]
mod pickles;
#[path = "records.rs"]
mod records_of;
#[path = "rescore.rs"]
mod rescorer;
#[path = "syzygy.rs"]
mod syzygies;
#[path = "tally.rs"]
mod tallies;
#[path = "tars.rs"]
mod tars;

use gristmill_format::Kind;
use gristmill_format::chess::check::{self, Breach, Rule, Rules};
use gristmill_format::chess::game;
use gristmill_format::chess::record::{Version, layout_v6, layout_v7};
use gristmill_format::chess::{Board, FrameMut, InputFormat};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, Limits};

pub use binpacks::binpack;
pub use bullets::bullet;
pub use demo::{npz, shard};
pub use g2048::{log_line, rows, sidecar, tokenizer};
pub use gzips::gzip_chunk;
pub use katago_rows::katago;
pub use packs::{chunks, marks, packed, trajectory, weights};
pub use pgns::pgn;
pub use pickles::pickle;
pub use records_of::records;
pub use rescorer::rescore;
pub use syzygies::{MATERIALS, closure, compressed, constant, syzygy};
pub use tallies::tally;
pub use tars::tar;

const LIMITS: Limits = Limits { max_chunk_bytes: 1 << 20 };

/// The bytes as they are, and padded to one whole record so that short inputs get past the size check.
/// What parses has whole frames, and parses again to the same bytes.
pub fn record(data: &[u8]) {
    parse(data.to_vec());
    let Some(version) = data.first().and_then(|&number| Version::from_number(number.into())) else { return };
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(version.bytes()), 0);
    parse(padded);
}

fn parse(bytes: Vec<u8>) {
    let mut chunk = Chunk { bytes, ..Chunk::default() };
    if let Err(e) = game::parse(&mut chunk) {
        assert!(e.place().offset.is_some() || e.kind() == Kind::Empty, "{e}");
        return;
    }
    assert!(chunk.frames > 0);
    let mut again = Chunk { bytes: chunk.records().to_vec(), ..Chunk::default() };
    game::parse(&mut again).expect("what was parsed parses");
    assert_eq!((again.frames, &again.layout), (chunk.frames, &chunk.layout));
    assert_eq!(again.records(), chunk.records());
}

/// Three plies of a game with bytes overwritten: the first input byte chooses format and version, then each five are a
/// place and a value. Every breach lies in a frame, and no rule needs another to be heard.
pub fn check(data: &[u8]) {
    let Some((kind, edits)) = data.split_first() else { return };
    let format = InputFormat::ALL[usize::from(kind & 7) % 7];
    let layout = if kind & 8 == 0 { layout_v6() } else { layout_v7() };
    let mut chunk = Chunk { layout: Some(layout.clone()), frames: 3, ..Chunk::default() };
    chunk.bytes = opening(format, layout.size());
    if edits.is_empty() {
        let sound = breaches(&chunk, Rules::ALL);
        return assert!(sound.is_empty(), "{format:?}: {sound:?}");
    }
    for edit in edits.chunks_exact(5) {
        let at = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize % chunk.bytes.len();
        chunk.bytes[at] = edit[4];
    }
    let all = breaches(&chunk, Rules::ALL);
    assert!(all.iter().all(|b| b.frame < 3 && b.offset < layout.size() && !b.reason.is_empty()), "{all:?}");
    for rule in Rule::ALL {
        let own: Vec<_> = all.iter().filter(|breach| breach.rule == rule).cloned().collect();
        assert_eq!(breaches(&chunk, Rules::NONE.with(rule)), own);
    }
}

fn breaches(chunk: &Chunk, rules: Rules) -> Vec<Breach> {
    let mut found = Vec::new();
    let judged = check::check(chunk, rules, &mut |breach| {
        found.push(breach);
        ControlFlow::Continue(())
    });
    judged.expect("chess records");
    found
}

/// The start position, 1. e4 e5, and nothing wrong with it.
pub fn opening(format: InputFormat, size: usize) -> Vec<u8> {
    const E4: u64 = 0x00f7_0008_0000_0000;
    let top = |word: u64| word << 56;
    let start =
        [0xff00, 0x42, 0x24, 0x81, 0x10, 0x08, 0xff << 48, top(0x42), top(0x24), top(0x81), top(0x10), top(0x08)];
    let (mut one, mut two) = (start, start);
    one[6] = E4;
    (two[0], two[6]) = (E4.swap_bytes(), E4);
    let turned = |men: [u64; 12]| -> [u64; 12] { std::array::from_fn(|k| men[(k + 6) % 12].swap_bytes()) };
    let boards = [vec![start], vec![one, turned(start)], vec![two, turned(one), start]];
    let mut game = vec![0; 3 * size];
    let mut played = [322, 322, 0];
    for (ply, bytes) in game.chunks_exact_mut(size).enumerate() {
        let mut frame = FrameMut::blank(bytes, format).expect("a record");
        // Canonical formats leave out what cannot be repeated: here everything after a pawn move.
        let shown = if format.is_canonical() { 1 } else { boards[ply].len() };
        for (plane, word) in boards[ply][..shown].iter().enumerate().flat_map(|(h, men)| (13 * h..).zip(men)) {
            frame.set_plane(plane, *word);
        }
        let short = if format.has_castling_masks() { 1 << 7 } else { 1 };
        frame.set_castling_us_ooo(1).set_castling_us_oo(short).set_castling_them_ooo(1).set_castling_them_oo(short);
        match format.is_canonical() {
            true => frame.set_invariance_info(u8::from(ply == 1) << 7),
            false => frame.set_side_to_move_or_enpassant(u8::from(ply == 1)),
        };
        let legal = Board::from_frame(&frame.as_frame()).expect("a position").legal_indices().expect("a legal one");
        for i in &legal {
            frame.set_probability(usize::from(*i), 1.0 / legal.len() as f32);
        }
        played[2] = legal[0];
        frame.set_visits(100).set_played_idx(played[ply]).set_best_idx(legal[0]);
        frame.set_result_d(1.0).set_plies_left(30.0 - ply as f32);
    }
    if size == layout_v7().size() {
        let at = |ply: usize| played.get(ply).copied().unwrap_or(u16::MAX);
        for (ply, bytes) in game.chunks_exact_mut(size).enumerate() {
            FrameMut::new(bytes).expect("a record").set_short_term(0.0, at(ply + 1), at(ply + 2));
        }
    }
    game
}

/// What parses is written as text that parses to the same layout.
pub fn descr(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(layout) = Layout::parse_descr(&text) {
        let written = layout.to_descr();
        assert_eq!(Layout::parse_descr(&written).as_ref(), Ok(&layout), "{written}");
    }
}

/// A header that parses says no more bytes than there are, and when it is written again, it parses to the same.
pub fn npy(data: &[u8]) {
    let parsed = Header::parse(data);
    assert_eq!(Header::read(data).is_ok(), parsed.as_ref().is_ok_and(|header| fits(header, data)));
    let header = match parsed {
        Ok(header) => header,
        Err(e) => return assert!(e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}"),
    };
    for spelling in [Spelling::NumPy, Spelling::Reserved, Spelling::Spaced] {
        match Header::write(header.dtype(), header.shape(), spelling) {
            Ok(written) => {
                let again = Header::parse(&written).expect("what was written parses");
                assert_eq!((again.dtype(), again.shape()), (header.dtype(), header.shape()));
                assert_eq!((again.data_offset(), written.len() % 64), (written.len() as u64, 0));
            }
            Err(e) => assert!(spelling == Spelling::Reserved, "{e}"),
        }
    }
}

fn fits(header: &Header, data: &[u8]) -> bool {
    header.data_offset().checked_add(header.data_bytes()).is_some_and(|end| end <= data.len() as u64)
}
