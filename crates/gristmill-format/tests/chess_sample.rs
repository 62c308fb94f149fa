//! The real sample of the spec (A.7): hashes, results, start positions, and legal moves against a chess library.
//! Found through `GRISTMILL_SHARED`, else in `shared` beside the repository; without it the test says that it skipped.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;

use gristmill_format::chess::check::{self, Rules};
use gristmill_format::chess::game::parse;
use gristmill_format::chess::pack::{PackedGame, Packer, Position, Wanted};
use gristmill_format::chess::{Board, ChessEncoder, Frame, Output, Version, layout_v6, layout_v7};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::layout::Conform;
use gristmill_format::source::Chunk;
use sha2::{Digest, Sha256};

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The games of the sample by member name; `None` where the sample is not at hand.
#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn games() -> Option<Vec<(String, Chunk)>> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("data/lc0/lc0-data-sample.tar");
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("skipped: no sample at {}; set GRISTMILL_SHARED", path.display());
        return None;
    };
    let mut games = Vec::new();
    for entry in tar::Archive::new(&bytes[..]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("training.") {
            continue;
        }
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        entry.read_to_end(&mut stored).unwrap();
        flate2::read::MultiGzDecoder::new(&stored[..]).read_to_end(&mut chunk.bytes).unwrap();
        let inflated = hash(&chunk.bytes);
        parse(&mut chunk).unwrap();
        games.push((format!("{name} {} {} {}", stored.len(), chunk.frames, &inflated[..16]), chunk));
    }
    Some(games)
}

#[test]
fn the_real_games_have_the_published_hashes_and_facts() {
    let Some(games) = games() else { return };
    let expected = [
        ("training.1387366601.gz 5644 26 ba7e3dce2b572732", 1.0, true, "153.3709"),
        ("training.1387366590.gz 18521 89 cfe2401d8af4bf65", 0.0, false, "150.902"),
        ("training.1387368810.gz 16774 76 2525474bf61f59c0", 1.0, true, "79.5183"),
        ("training.1387357298.gz 26248 133 9927d8b3796597f7", 0.0, false, "93.2359"),
    ];
    assert_eq!(games.len(), expected.len());
    for (facts, white_result, black_last, plies_left) in expected {
        let (_, chunk) = games.iter().find(|(name, _)| name == facts).unwrap_or_else(|| panic!("{facts}"));
        let first = Frame::new(chunk.record(0)).unwrap();
        let last = Frame::new(chunk.record(chunk.frames - 1)).unwrap();
        assert_eq!(first.result_q(), white_result, "{facts}");
        assert_eq!(last.side_to_move_or_enpassant() != 0, black_last, "{facts}");
        let digits = plies_left.split('.').nth(1).unwrap().len();
        assert_eq!(format!("{:.digits$}", last.plies_left()), plies_left, "{facts}");
        assert!((0..chunk.frames).all(|i| Frame::new(chunk.record(i)).unwrap().invariance_info() == 0x20));
    }
    let (_, chunk) = games.iter().find(|(name, _)| name.starts_with("training.1387366601")).unwrap();
    assert_eq!(hash(chunk.record(0)), "a26926a4e7b83395f97b76f44be0a9a783e75eacc1bfb131d9d35cea5cae9ce6");
    let frame = Frame::new(chunk.record(0)).unwrap();
    assert_eq!((frame.played_idx(), frame.best_idx(), frame.visits()), (293, 293, 322));
    assert_eq!(frame.plies_left(), 178.370_91);
}

#[test]
fn every_game_starts_at_the_start_position() {
    let Some(games) = games() else { return };
    let widen = Conform::new(layout_v6(), layout_v7()).unwrap();
    let encoder = ChessEncoder::new(&[Output::PlanesFlat]).unwrap();
    for (name, chunk) in &games {
        let mut record = vec![0; layout_v7().size()];
        widen.record(chunk.record(0), &mut record);
        let mut planes = vec![0; 112 * 64 * 4];
        encoder
            .encode(
                &[Row { record: &record, provenance: Provenance::default(), bits: Default::default(), sparse: None }],
                &mut [&mut planes],
            )
            .unwrap();
        assert_eq!(hash(&planes), "c33ae28cfa8081c3ff247f2ee36881e28520e4be8d585df726b8728b7dac22b6", "{name}");
        let start = Board::from_frame(&Frame::new(&record).unwrap()).unwrap();
        assert_eq!(start.fen(), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "{name}");
    }
}

#[test]
fn the_legal_moves_are_those_of_a_chess_library_in_324_of_324_frames() {
    let Some(games) = games() else { return };
    let mut agree = 0;
    for (name, chunk) in &games {
        for i in 0..chunk.frames {
            let frame = Frame::new(chunk.record(i)).unwrap();
            let board = Board::from_frame(&frame).unwrap();
            let marked: Vec<u16> =
                (0..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0).map(|(i, _)| i).collect();
            assert_eq!(board.legal_indices().as_ref(), Some(&marked), "{name} frame {i}: {}", board.fen());
            agree += 1;
        }
    }
    assert_eq!(agree, 324);
}

#[test]
fn the_move_played_leads_to_the_next_frame() {
    let Some(games) = games() else { return };
    for (name, chunk) in &games {
        let board = |i| Board::from_frame(&Frame::new(chunk.record(i)).unwrap()).unwrap();
        for i in 1..chunk.frames {
            let (before, after) = (board(i - 1), board(i).to_cozy().unwrap());
            let played = before.uci(Frame::new(chunk.record(i - 1)).unwrap().played_idx()).unwrap();
            let mut next = before.to_cozy().unwrap();
            next.play(played.parse().unwrap());
            assert!(next.same_position(&after), "{name} frame {i}: {played} from {}", before.fen());
            assert_eq!(next.halfmove_clock(), after.halfmove_clock(), "{name} frame {i}");
        }
    }
}

#[test]
fn the_games_break_no_rule() {
    for (name, chunk) in games().unwrap_or_default() {
        let mut breaches = Vec::new();
        check::check(&chunk, Rules::ALL, &mut |breach| {
            breaches.push(breach);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(breaches.is_empty(), "{name}: {breaches:?}");
    }
}

#[test]
fn real_games_are_packed_into_few_bytes_and_come_back_to_the_bit() {
    let Some(games) = games() else { return };
    let (mut packer, mut position) = (Packer::default(), Position::default());
    let (mut frames, mut bytes) = (0, 0);
    for (name, chunk) in games {
        let (mut packed, mut back) = (Vec::new(), Vec::new());
        packer.pack(Version::V6, chunk.records(), &mut packed).unwrap();
        let game = PackedGame::new(&packed).unwrap();
        game.records(1 << 23, &mut position, &mut back).unwrap();
        assert!(back == chunk.records(), "{name}");
        for k in 0..chunk.frames {
            game.position(k, Wanted::Whole, &mut position).unwrap();
            assert!(position.policy().is_some(), "{name}: frame {k} is not as records of self-play are");
        }
        frames += chunk.frames;
        bytes += packed.len();
    }
    // 67 187 bytes of .gz.
    assert!((frames, bytes) > (323, 0) && bytes < 25_000, "{bytes} bytes for {frames} frames");
}
