//! Generated logs, read back by the format's own parser: legal games, in the producer's form, the same for the same seed.

use std::fs;
use std::path::Path;

use gristmill_format::container::gzip::Inflater;
use gristmill_format::g2048::log::{KNOWN_VALUATIONS, Sidecar, parse_fixed, parse_game};
use gristmill_format::g2048::moves::{legal, score, slide, spawned};
use gristmill_format::g2048::{Move, StepRow};
use gristmill_format::source::Limits;

use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn options(folder: &Path) -> G2048Options {
    G2048Options {
        folder: folder.to_owned(),
        games: 5,
        first: 0,
        seed: 7,
        depth: 0,
        moves_max: 300,
        level: 6,
        threads: 1,
    }
}

fn generate(options: G2048Options) -> Vec<Generated> {
    let mut all = Vec::new();
    G2048Generator::new(options).unwrap().run(&mut |one| all.push(one.clone())).unwrap();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// All files of a folder by name, with their bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn inflated(path: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    Inflater::default().inflate(&fs::read(path).unwrap(), 1 << 30, &mut out).unwrap();
    out
}

/// Sidecar, text and rows of game `n`.
fn read(options: &G2048Options, n: u64) -> (Sidecar, Vec<u8>, Vec<StepRow>) {
    let [lines, sidecar] = G2048Generator::new(options.clone()).unwrap().paths(n);
    let sidecar = Sidecar::parse(&inflated(&sidecar)).unwrap();
    let (text, mut rows) = (inflated(&lines), Vec::new());
    let summary = parse_game(&sidecar, &text, &Limits::default(), &mut rows).unwrap();
    assert_eq!(summary.remarks, []);
    assert_eq!(summary.valuations.names(), KNOWN_VALUATIONS);
    (sidecar, text, rows.as_chunks().0.iter().map(StepRow::from_aligned).collect())
}

#[test]
fn every_game_is_legal_and_agrees_with_its_sidecar() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    let written = generate(options.clone());
    assert_eq!(written.len(), 5);
    for (n, generated) in written.iter().enumerate() {
        let (sidecar, _, rows) = read(&options, n as u64);
        assert_eq!((sidecar.num_moves, sidecar.seed), (generated.frames, 7 + n as u64));
        assert_eq!(rows.len() as u64, generated.frames);
        let mut fours = rows[0].decoded_board().ranks().iter().filter(|rank| **rank == 2).count() as u64;
        for (i, row) in rows.iter().enumerate() {
            let board = row.decoded_board();
            assert_eq!((row.step_index as usize, u64::from(row.seed)), (i, sidecar.seed));
            assert_eq!(row.max_rank, board.max_rank());
            let slid = slide(&board, Move::from_index(row.move_dir).unwrap()).unwrap().unwrap();
            let zeros = row.valuation_type != 0 && n % 2 == 0;
            assert_eq!(row.ev_legal, if zeros { 15 } else { legal(&board) });
            if row.valuation_type != 0 {
                assert!(row.branch_evs.iter().all(|ev| (0.0..=1.0).contains(ev)));
            }
            if let Some(next) = rows.get(i + 1) {
                let (_, rank) = spawned(&slid.board, &next.decoded_board()).unwrap();
                fours += u64::from(rank == 2);
            }
        }
        let last = rows.last().unwrap();
        let after = slide(&last.decoded_board(), Move::from_index(last.move_dir).unwrap()).unwrap().unwrap().board;
        // The tile that appeared last is in no row, and does not count.
        assert_eq!(sidecar.score, score(&after, fours));
        assert!(sidecar.max_tile >= 1 << after.max_rank());
    }
}

#[test]
fn lines_are_in_the_producers_form_and_both_spellings_and_valuations_occur() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path());
    generate(options.clone());
    let mut seen = [0; 3];
    for n in 0..5 {
        let (_, text, rows) = read(&options, n);
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (_, used) = parse_fixed(rest).expect("the producer's form");
            rest = &rest[used..];
        }
        rows.iter().for_each(|row| seen[usize::from(row.valuation_type)] += 1);
        if n % 2 == 1 {
            assert!(text.windows(6).any(|w| w == b":null,"));
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    let names: Vec<String> = files(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"depth00_worker00_seed0000000007_game000000.meta.json".to_owned()));
    assert!(names.contains(&"depth00_worker00_seed0000000010_game000003.meta.json.gz".to_owned()));
    assert_eq!(names.len(), 10);
}

#[test]
fn threads_and_order_change_no_byte_and_seeds_do() {
    let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let made = |i: usize, threads, seed| {
        generate(G2048Options { threads, seed, depth: 1, moves_max: 40, ..options(folders[i].path()) });
        files(folders[i].path())
    };
    let one = made(0, 1, 7);
    assert_eq!(made(1, 4, 7), one);
    assert_ne!(made(2, 1, 8), one);
    let later = G2048Options { first: 3, games: 2, depth: 1, moves_max: 40, ..options(folders[3].path()) };
    generate(later);
    assert!(files(folders[3].path()).iter().all(|file| one.contains(file)), "a game depends on its seed alone");
}

#[test]
fn what_exists_is_kept_and_the_first_game_at_fault_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = G2048Options { threads: 3, moves_max: 20, ..options(folder.path()) };
    generate(options.clone());
    let before = files(folder.path());
    let e = G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap_err();
    assert!(e.to_string().contains("_game00000"), "{e}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn generated_games_are_pinned() {
    let game = Game::play(7, 1, 200);
    assert_eq!((game.steps.len(), game.end.max_rank(), game.score()), (200, 8, 2376));
    assert_eq!(xxh3_64(log::lines(&game, 1).as_bytes()), 15088031476328267265);
}

#[test]
fn options_that_make_no_sense_are_named() {
    let good = options(Path::new("unused"));
    for (bad, field) in [
        (G2048Options { depth: 8, ..good.clone() }, "depth"),
        (G2048Options { moves_max: 0, ..good.clone() }, "moves_max"),
        (G2048Options { level: 13, ..good.clone() }, "level"),
        (G2048Options { threads: 0, ..good.clone() }, "threads"),
        (G2048Options { seed: u64::MAX, ..good.clone() }, "first"),
    ] {
        assert!(G2048Generator::new(bad).unwrap_err().to_string().contains(field));
    }
}
