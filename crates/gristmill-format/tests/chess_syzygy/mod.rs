//! Real Syzygy tables of three and four men: values and plies as another prober has them, and tables that were damaged.
//! Tables come from `scripts/fetch_tables.py`; without them these tests say so and pass.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use cozy_chess::Board;
use gristmill_format::chess::syzygy::{Material, Table, TableKind, Tables, Unprobed};
use proptest::prelude::*;

/// Positions with their value and their plies to the next capture or pawn move.
const PROBES: &str = include_str!("probes.txt");

/// The folder of tables: `$GRISTMILL_SYZYGY`, else where `make tables` puts them.
#[allow(clippy::print_stdout, reason = "a skipped test must be seen")]
fn folder() -> Option<PathBuf> {
    let fetched = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/syzygy");
    let folder = std::env::var_os("GRISTMILL_SYZYGY").map_or(fetched, PathBuf::from);
    if folder.join("KQvK.rtbw").exists() {
        return Some(folder);
    }
    println!("skipped: no tables in {}; run `make tables` or set GRISTMILL_SYZYGY", folder.display());
    None
}

fn files() -> Option<Vec<(Material, TableKind, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder()?).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_owned();
        let Some(kind) = TableKind::ALL.into_iter().find(|kind| kind.extension() == extension) else { continue };
        let material = Material::parse(path.file_stem().unwrap().to_str().unwrap()).unwrap();
        files.push((material, kind, fs::read(path).unwrap()));
    }
    Some(files)
}

fn tables() -> Option<Tables<Vec<u8>>> {
    let read = |(material, kind, bytes)| Table::read(kind, material, bytes).unwrap();
    Some(Tables::new(files()?.into_iter().map(read)))
}

/// The positions with their value and plies.
fn probes() -> impl Iterator<Item = (Board, i32, i32)> {
    PROBES.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [board, wdl, dtz] = line.split(';').collect::<Vec<_>>().try_into().unwrap();
        (board.parse().unwrap(), wdl.parse().unwrap(), dtz.parse().unwrap())
    })
}

#[test]
fn values_and_plies_are_those_of_another_prober() {
    let Some(tables) = tables() else { return };
    assert_eq!(tables.coverage().to_string(), "35 WDL and 35 DTZ tables of up to 4 men");
    for (board, wdl, dtz) in probes() {
        assert_eq!(tables.wdl(&board).unwrap().number(), wdl, "{board}");
        assert_eq!(tables.dtz(&board).unwrap(), dtz, "{board}");
    }
    assert!(probes().count() > 200);
}

/// What is missing, by the name of its file.
fn missing<T>(name: &str) -> Result<T, Unprobed> {
    let (material, extension) = name.split_once('.').unwrap();
    let kind = TableKind::ALL.into_iter().find(|kind| kind.extension() == extension).unwrap();
    Err(Unprobed::Missing(Material::parse(material).unwrap(), kind))
}

#[test]
fn a_position_needs_the_tables_that_its_answer_rests_on_and_no_others() {
    let Some(files) = files() else { return };
    let read = |(material, kind, bytes)| Table::read(kind, material, bytes).unwrap();
    let without = |names: &'static [&'static str]| {
        let kept = files.clone().into_iter().filter(|(m, ..)| !names.contains(&m.to_string().as_str()));
        Tables::new(kept.map(read))
    };
    let tables = without(&["KNvK", "KRvK"]);
    let wdl = |fen: &str| tables.wdl(&fen.parse().unwrap()).map(|wdl| wdl.number());
    assert_eq!(wdl("8/8/4k3/8/8/3N4/8/K7 w - - 0 1"), missing("KNvK.rtbw"));
    assert_eq!(wdl("8/3P4/3K4/8/8/8/8/k7 w - - 0 1"), Ok(2), "a pawn may become what has no table");
    assert_eq!(wdl("8/8/8/8/3k4/3P4/8/7K b - - 0 1"), Ok(0));
    assert_eq!(wdl("8/8/8/8/4k3/3QN3/8/K7 b - - 0 1"), missing("KNvK.rtbw"), "the queen may be taken");
    assert_eq!(wdl("8/8/4k3/8/8/3QN3/8/K7 w - - 0 1"), Ok(2));
    assert_eq!(tables.coverage().missing.len(), 4);
    let no_dtz = Tables::new(files.clone().into_iter().filter(|(_, kind, _)| *kind == TableKind::Wdl).map(read));
    let board: Board = "8/8/4k3/8/8/3Q4/8/K7 w - - 0 1".parse().unwrap();
    assert!(no_dtz.wdl(&board).is_ok());
    assert_eq!(no_dtz.dtz(&board), missing("KQvK.rtbz"));
}

#[test]
fn what_partial_sets_answer_is_what_the_whole_set_does() {
    let Some(files) = files() else { return };
    let read = |(material, kind, bytes): (_, _, Vec<u8>)| Table::read(kind, material, bytes).unwrap();
    let men = |names: &[&str], m: &Material| names.contains(&m.to_string().as_str());
    for names in [&["KQvK"][..], &["KPvK"], &["KRvK", "KNvK"], &["KQvKR", "KQvKP"], &["KRvK", "KQvK", "KBvK", "KNvK"]] {
        let tables = Tables::new(files.clone().into_iter().filter(|(m, ..)| !men(names, m)).map(read));
        let (mut answered, mut refused) = (0, 0);
        for (board, wdl, dtz) in probes() {
            let of = |kind| Err(Unprobed::Missing(Material::of(&board).ordered(), kind));
            match tables.wdl(&board) {
                Ok(found) => {
                    assert_eq!(found.number(), wdl, "{board} without {names:?}");
                    answered += 1;
                }
                found @ Err(Unprobed::Missing(..)) => {
                    // A table that is there is silenced by captures only, never by what a promotion may lead to.
                    let passing = board.en_passant().is_some();
                    let captures = passing
                        || board.generate_moves(|mut moves| {
                            moves.to &= board.colors(!board.side_to_move());
                            !moves.is_empty()
                        });
                    assert!(found == of(TableKind::Wdl) || captures, "{board} without {names:?}");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
            match tables.dtz(&board) {
                Ok(found) => assert_eq!(found, dtz, "{board} without {names:?}"),
                Err(unprobed) => assert!(matches!(unprobed, Unprobed::Missing(..)), "{unprobed}"),
            }
        }
        assert!(answered > 100 && refused > 0, "{names:?}: {answered}, {refused}");
    }
}

#[test]
fn threads_share_a_set_without_a_lock() {
    let Some(tables) = tables() else { return };
    let boards: Vec<Board> = probes().map(|(board, ..)| board).collect();
    let all = || boards.iter().map(|board| tables.dtz(board).unwrap()).collect::<Vec<_>>();
    let alone = all();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..4).map(|_| scope.spawn(all)).collect();
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), alone));
    });
}

/// Whether captures and promotions can lead from one material to the other, or they are the same.
fn leads(from: Material, to: Material) -> bool {
    from.ordered() == to.ordered() || from.after_one_move().into_iter().any(|next| leads(next, to))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn damage_never_panics_and_stays_where_it_is(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near_the_head in any::<bool>(),
    ) {
        let Some(mut files) = files() else { return Ok(()) };
        let at = which.index(files.len());
        let (damaged, _, bytes) = &mut files[at];
        let reach = if near_the_head { bytes.len().min(600) } else { bytes.len() };
        for (index, value) in damage {
            bytes[index.index(reach)] = value;
        }
        let damaged = *damaged;
        let read = |(material, kind, bytes)| Table::read(kind, material, bytes).ok();
        let tables = Tables::new(files.into_iter().filter_map(read));
        for (board, wdl, dtz) in probes() {
            let (found_wdl, found_dtz) = (tables.wdl(&board), tables.dtz(&board));
            if !leads(Material::of(&board), damaged) {
                prop_assert_eq!(found_wdl.unwrap().number(), wdl);
                prop_assert_eq!(found_dtz.unwrap(), dtz);
            }
        }
    }
}
