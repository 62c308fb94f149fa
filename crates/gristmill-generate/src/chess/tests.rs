//! Generated games, read back by the format's own board: legal, consistent, and the same for the same seed.

use std::fs;
use std::path::Path;

use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::chess::{Board, Frame};
use xxhash_rust::xxh3::xxh3_64;

use super::*;

const SEED: u64 = 7;

fn options(folder: &Path) -> ChessOptions {
    ChessOptions {
        folder: folder.to_owned(),
        games: 6,
        first: 1,
        seed: SEED,
        plies_max: 120,
        version: Version::V6,
        games_per_tar: None,
    }
}

/// The records of game `n`.
fn records(seed: u64, n: u64, plies_max: usize, version: Version) -> Vec<u8> {
    let mut generator =
        ChessGenerator::new(ChessOptions { seed, plies_max, version, ..options(Path::new("unused")) }).unwrap();
    generator.play(n).unwrap();
    generator.records
}

fn frames(records: &[u8], version: Version) -> Vec<Frame<'_>> {
    records.chunks_exact(version.bytes()).map(|r| Frame::new(r).unwrap()).collect()
}

/// All files of a folder by name, with their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn written(change: impl Fn(&mut ChessOptions)) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    change(&mut options);
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
    files(folder.path())
}

#[test]
fn every_policy_marks_exactly_the_legal_moves() {
    for n in 1..=40 {
        let records = records(SEED, n, 200, Version::V6);
        for (k, frame) in frames(&records, Version::V6).into_iter().enumerate() {
            let board = Board::from_frame(&frame).unwrap();
            let marked: Vec<u16> =
                (0u16..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0).map(|(i, _)| i).collect();
            assert_eq!(Some(marked), board.legal_indices(), "game {n}, ply {k}: {}", board.fen());
            assert!(frame.probabilities().all(|p| p == -1.0 || (0.0..=1.0).contains(&p)));
            let sum: f64 = frame.probabilities().filter(|p| *p >= 0.0).map(f64::from).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            assert!(frame.probability(usize::from(frame.played_idx())) > 0.0);
            let best = frame.probability(usize::from(frame.best_idx()));
            assert!(frame.probabilities().all(|p| p <= best));
        }
    }
}

#[test]
fn the_move_played_leads_to_the_next_position() {
    for n in 1..=20 {
        let records = records(SEED, n, 200, Version::V6);
        let frames = frames(&records, Version::V6);
        let mut board = Board::from_frame(&frames[0]).unwrap();
        assert_eq!(board.fen(), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        for pair in frames.windows(2) {
            let mut game = board.to_cozy().unwrap();
            game.play(board.uci(pair[0].played_idx()).unwrap().parse().unwrap());
            board = Board::from_frame(&pair[1]).unwrap();
            let now = board.to_cozy().unwrap();
            assert!(repetition::same(&game, &now), "game {n}: {} after {}: {game}", board.fen(), pair[0].played_idx());
            assert_eq!(game.halfmove_clock(), pair[1].rule50_count());
        }
    }
}

/// The plane of the side to move as seen by the other side: colours swapped, board turned upside down.
fn turned(frame: &Frame<'_>, board: usize, man: usize) -> u64 {
    frame.plane(13 * board + (man + 6) % 12).swap_bytes()
}

#[test]
fn history_planes_are_the_earlier_positions() {
    let mut repeated = 0;
    for n in 1..=30 {
        let records = records(SEED, n, 200, Version::V6);
        let frames = frames(&records, Version::V6);
        assert!((13..104).all(|plane| frames[0].plane(plane) == 0), "no history before the first ply");
        for pair in frames.windows(2) {
            for board in 0..7 {
                for man in 0..12 {
                    assert_eq!(pair[1].plane(13 * (board + 1) + man), turned(&pair[0], board, man));
                }
                assert_eq!(pair[1].plane(13 * (board + 1) + 12), pair[0].plane(13 * board + 12));
            }
        }
        for (k, frame) in frames.iter().enumerate() {
            let same = |earlier: &Frame<'_>| {
                let rights = |f: &Frame<'_>| {
                    (f.castling_us_oo(), f.castling_us_ooo(), f.castling_them_oo(), f.castling_them_ooo())
                };
                (0..12).all(|man| earlier.plane(man) == frame.plane(man)) && rights(earlier) == rights(frame)
            };
            let before = frames[..k].iter().rev().skip(1).step_by(2).any(same);
            // A right to take in passing can keep a second occurrence from being a repetition, never the reverse.
            assert!(before || frame.plane(12) == 0);
            assert!([0, u64::MAX].contains(&frame.plane(12)));
            repeated += usize::from(frame.plane(12) != 0);
        }
    }
    assert!(repeated > 0, "some position must have come up twice");
}

#[test]
fn results_and_values_fit_together() {
    let (mut decisive, mut drawn, mut cut, mut unknown) = (0, 0, 0, 0);
    for n in 1..=200 {
        let records = records(SEED, n, 120, Version::V6);
        let frames = frames(&records, Version::V6);
        let last = frames[frames.len() - 1];
        for (k, frame) in frames.iter().enumerate() {
            let black = k % 2 == 1;
            assert_eq!(frame.side_to_move_or_enpassant(), u8::from(black));
            let white = |f: &Frame<'_>, black: bool| if black { -f.result_q() } else { f.result_q() };
            assert_eq!(white(frame, black), white(&frames[0], false));
            assert_eq!(frame.result_d(), f32::from(frame.result_q() == 0.0));
            assert_eq!(frame.plies_left(), last.best_m() + (frames.len() - 1 - k) as f32);
            assert!(frame.visits() > 0 && frame.policy_kld() > 0.0);
            for (q, d, m) in [
                (frame.root_q(), frame.root_d(), frame.root_m()),
                (frame.best_q(), frame.best_d(), frame.best_m()),
                (frame.played_q(), frame.played_d(), frame.played_m()),
            ] {
                assert!(q.abs() + d <= 1.0 + 1e-6 && d >= 0.0 && m > 0.0);
            }
            unknown += usize::from(frame.orig_q().is_nan());
        }
        decisive += usize::from(last.result_q() != 0.0);
        drawn += usize::from(last.result_q() == 0.0);
        cut += usize::from(last.invariance_info() & 0x20 != 0);
    }
    assert!(decisive > 50 && drawn > 10 && cut > 10 && unknown > 100, "{decisive} {drawn} {cut} {unknown}");
}

#[test]
fn version_7_adds_what_follows_and_changes_nothing_else() {
    for n in 1..=5 {
        let (v6, v7) = (records(SEED, n, 60, Version::V6), records(SEED, n, 60, Version::V7));
        let (v6, v7) = (frames(&v6, Version::V6), frames(&v7, Version::V7));
        for (k, (old, new)) in v6.iter().zip(&v7).enumerate() {
            assert_eq!(old.bytes()[4..V6_BYTES - 4], new.bytes()[4..V6_BYTES - 4]);
            let played = |k: usize| v6.get(k).map_or(u16::MAX, Frame::played_idx);
            assert_eq!((new.opp_played_idx(), new.next_played_idx()), (played(k + 1), played(k + 2)));
            let next = v7.get(k + 1).map_or(old.root_q(), |f| old.root_q() + (-f.q_st() - old.root_q()) * (5.0 / 6.0));
            assert!((new.q_st() - next).abs() < 1e-6);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = written(|_| ());
    assert_eq!(first, written(|_| ()));
    assert_ne!(first, written(|o| o.seed = SEED + 1));
    let tars = |seed| written(|o| (o.games_per_tar, o.seed) = (Some(4), seed));
    assert_eq!(tars(SEED), tars(SEED));
    assert_eq!(tars(SEED).len(), 2);
    // A game depends on its number, not on where a run starts.
    let tail = written(|o| (o.first, o.games) = (4, 3));
    assert_eq!(first[3..], tail);
}

#[test]
fn generated_records_are_pinned() {
    let hash = |version| {
        let all: Vec<u8> = (1..=3).flat_map(|n| records(SEED, n, 80, version)).collect();
        xxh3_64(&all)
    };
    assert_eq!((hash(Version::V6), hash(Version::V7)), PINNED);
}

const PINNED: (u64, u64) = (8_652_213_237_749_348_359, 18_113_537_115_311_477_946);

#[test]
fn impossible_options_are_refused_by_name() {
    let refused = |change: &dyn Fn(&mut ChessOptions)| {
        let mut options = options(Path::new("unused"));
        change(&mut options);
        ChessGenerator::new(options).unwrap_err().to_string()
    };
    assert!(refused(&|o| o.plies_max = 0).contains("plies_max"));
    assert!(refused(&|o| o.games_per_tar = Some(0)).contains("games_per_tar"));
    assert!(refused(&|o| (o.games_per_tar, o.first) = (Some(10), 5)).contains("first"));
    assert!(refused(&|o| (o.first, o.games) = (u64::MAX, 2)).contains("first"));
    assert!(refused(&|o| o.version = Version::V5).contains("version"));
}
