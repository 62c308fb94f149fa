//! Input formats: games written in every one of them are judged sound, and come back as they were.

use std::ops::ControlFlow;

use gristmill_format::chess::InputFormat;
use gristmill_format::chess::check::{Breach, Rules, check};
use gristmill_format::chess::rescore::{Compat, Quirk, Settings};
use gristmill_format::chess::transform::Transform;
use gristmill_format::source::Chunk;

use super::played::{START, chess960, chunk, frame, narrow, records, rescore};

/// Castling on both wings, en passant, promotions, repetitions, and endings under every transform.
pub const GAMES: [(&str, &str); 7] = [
    (START, "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1h1 g8f6 d2d3 d7d6 c1g5 d8e7 b1c3 c8g4 a2a3 e8a8 f1e1"),
    (START, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8 e2e4 d7d5 e4e5 f7f5 e5f6 e7f6 d2d4 f8d6"),
    ("8/P6k/8/8/8/8/6Kp/8 w - - 0 1", "a7a8n h2h1q g2f2 h1a8 f2g3 a8a1"),
    ("1k6/8/2K5/8/8/8/8/3Q4 w - - 10 1", "d1d7 b8a8 d7d6 a8a7 d6d7 a7a8 d7d6 a8a7 d6d7 a7a8"),
    ("8/8/8/3k4/8/8/2R5/K7 b - - 53 80", "d5d4 a1b2 d4d3 c2c8 d3d4 b2c2 d4e4 c2d2"),
    ("8/5k2/8/8/8/8/1p6/K2N4 w - - 3 70", "d1b2 f7e6 b2d3 e6d5 a1b2 d5d4 d3b4 d4c4"),
    ("8/8/8/8/1k6/8/1KB1N3/8 w - - 0 1", "c2d3 b4c5 e2c3 c5d4 b2c2 d4e3 c3d5 e3d4 d5c3 d4e3 c3d5 e3d4"),
];

fn convert(records: &[u8], format: InputFormat) -> Chunk {
    rescore(records, Settings { input_format: Some(format), ..narrow() }).unwrap().0
}

/// What the validator says.
pub fn breaches(chunk: &Chunk) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut note = |breach| {
        breaches.push(breach);
        ControlFlow::Continue(())
    };
    check(chunk, Rules::ALL, &mut note).unwrap();
    breaches
}

#[test]
fn the_validator_finds_every_format_sound() {
    for (fen, moves) in GAMES {
        let game = records(fen, moves);
        for format in InputFormat::ALL {
            let chunk = convert(&game, format);
            assert_eq!(frame(&chunk, 0).input_format().unwrap(), format);
            assert_eq!(breaches(&chunk), [], "{fen} in {format:?}");
        }
    }
}

#[test]
fn games_come_back_from_every_format_as_they_were() {
    for (fen, moves) in GAMES {
        let game = records(fen, moves);
        for format in InputFormat::ALL {
            let there = convert(&game, format);
            let back = convert(there.records(), InputFormat::Classical);
            let same = back.records() == game;
            // The canonical formats know no plies before the game; nor did these games have any.
            assert!(same, "{fen} by way of {format:?}");
            let again = convert(there.records(), format);
            assert_eq!(again.records(), there.records(), "converting twice is converting once");
        }
    }
}

#[test]
fn every_transform_is_seen_and_both_ways_to_index_it_are_read() {
    let mut seen = [false; 8];
    for (fen, moves) in GAMES {
        let game = records(fen, moves);
        let turned = convert(&game, InputFormat::Canonical);
        let compat = Compat::NONE.with(Quirk::AsPlanes);
        let settings = Settings { input_format: Some(InputFormat::Canonical), compat, ..narrow() };
        let planes = rescore(&game, settings).unwrap().0;
        for i in 0..planes.frames {
            let transform = Transform::from_bits(frame(&planes, i).invariance_info());
            seen[usize::from(transform.bits())] = true;
            let differ = frame(&planes, i).probability_bytes() != frame(&turned, i).probability_bytes();
            assert!(transform.transposes() || !differ, "{fen}, frame {i}");
        }
        let back = convert(planes.records(), InputFormat::Classical);
        assert!(back.records() == game, "{fen} as the planes are");
    }
    assert_eq!(seen, [true; 8]);
}

#[test]
fn the_next_moves_of_v7_follow_the_indices() {
    let (fen, moves) = GAMES[4];
    let wide = rescore(&records(fen, moves), Settings::default()).unwrap().0;
    let format = Some(InputFormat::CanonicalHectoplies);
    let (chunk, _) = rescore(wide.records(), Settings { input_format: format, ..Settings::default() }).unwrap();
    let first = rescore(&records(fen, moves), Settings { input_format: format, ..Settings::default() }).unwrap().0;
    assert_eq!(chunk.records(), first.records(), "converting before or after the step to V7");
    assert_eq!(frame(&chunk, 0).opp_played_idx(), frame(&chunk, 1).played_idx());
}

#[test]
fn chess960_games_survive_where_the_format_has_their_rights() {
    let fen = "1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w BGbg - 0 1";
    // Castling with the rook beside its goal, and with the king beside its own.
    let game = chess960(fen, "e1g1 e8b8 f2f4 g7g5 f4g5 a7a5");
    let f = chunk(&game);
    let f = frame(&f, 0);
    assert_eq!((f.castling_us_ooo(), f.castling_us_oo(), f.castling_them_ooo(), f.castling_them_oo()), (2, 64, 2, 64));
    for format in [InputFormat::Castling, InputFormat::Canonical, InputFormat::CanonicalV2] {
        let there = convert(&game, format);
        assert_eq!(breaches(&there), [], "{format:?}");
        assert!(convert(there.records(), InputFormat::Castling).records() == game, "by way of {format:?}");
    }
}
