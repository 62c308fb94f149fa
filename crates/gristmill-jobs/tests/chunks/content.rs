//! The identity of games: copies, re-recordings and colour mirrors are found, marked, and on one side of a split by
//! content.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::pack_table::{Content, PackTable};
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_format::chess::record::{V6_BYTES, at};
use gristmill_format::chess::{Board, Frame, Version};
use gristmill_format::container::gzip::compress;
use gristmill_jobs::content::{contents, split_keys};
use gristmill_jobs::dedup::{Relation, dedup};
use gristmill_jobs::mark::MarkOptions;

use crate::fixture::{games, packed, records};

/// The records of a game of format 1 with colours exchanged: the side to move sees the same board, and is the other one.
fn mirrored(game: &[u8]) -> Vec<u8> {
    let mut mirror = game.to_vec();
    for (record, was) in mirror.chunks_exact_mut(V6_BYTES).zip(game.chunks_exact(V6_BYTES)) {
        record[at::SIDE_TO_MOVE_OR_ENPASSANT] ^= 1;
        let board = |record: &[u8]| Board::from_frame(&Frame::new(record).unwrap()).unwrap();
        assert_eq!(board(record), board(was).color_swapped());
    }
    mirror
}

/// The same game, searched otherwise.
fn recorded_again(game: &[u8]) -> Vec<u8> {
    let mut again = game.to_vec();
    for record in again.chunks_exact_mut(V6_BYTES) {
        record[at::BEST_Q..at::BEST_Q + 4].copy_from_slice(&0.125f32.to_le_bytes());
        record[at::RESULT_D..at::RESULT_D + 4].copy_from_slice(&1f32.to_le_bytes());
    }
    again
}

fn open(folder: &Path) -> (Selection, Arc<dyn PackTable>) {
    let pack = Arc::new(ChunkPack::open(folder, Residence::Mapped).unwrap());
    (Selection::all(pack.clone()), pack)
}

fn all(pack: &Arc<dyn PackTable>, workers: usize) -> Vec<Content> {
    contents(pack, workers, &Arc::default(), &mut |_, _| {}).unwrap()
}

#[test]
fn games_that_are_the_same_are_found_marked_and_kept_together() {
    let (input, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(input.path(), 1, 40, Version::V6, None);
    let originals = records(input.path(), &[".gz"]);
    let add = |name: &str, game: &[u8]| fs::write(input.path().join(name), compress(6, game).unwrap()).unwrap();
    add("z1.gz", &originals[2]);
    add("z2.gz", &mirrored(&originals[3]));
    add("z3.gz", &recorded_again(&originals[3]));
    add("z4.gz", &mirrored(&recorded_again(&originals[2])));
    (0..20).for_each(|i| add(&format!("zz{i:02}.gz"), &mirrored(&originals[10 + i])));
    let folder = out.path().join("pack");
    packed(input.path(), &folder, |_| {}).unwrap();
    let (selection, pack) = open(&folder);

    let found = dedup(&pack, &MarkOptions::new("again"), &mut |_, _| {}).unwrap();
    assert_eq!((found.games, found.different), (64, 40));
    assert_eq!((found.exact, found.same, found.mirrored), (1, 1, 22));
    let group = |id: u64| {
        let group = found.groups.iter().find(|group| group.games[0].id == id).unwrap();
        group.games.iter().map(|game| (game.id, game.relation)).collect::<Vec<_>>()
    };
    assert_eq!(group(2), [(2, Relation::First), (40, Relation::Exact), (43, Relation::Mirrored)]);
    assert_eq!(group(3), [(3, Relation::First), (41, Relation::Mirrored), (42, Relation::Same)]);
    assert_eq!(found.groups[0].games[1].source.as_deref(), Some("z1.gz"));
    let different = selection.without("again").unwrap();
    let frames: usize = originals.iter().map(|game| game.len() / V6_BYTES).sum();
    assert_eq!(different.rows().len() as usize, frames);
    assert_eq!(found.frames, selection.rows().len() - frames as u64);

    // Keys that the database lacks are computed from the games, by any number of threads.
    let told = all(&pack, 1);
    let old = rusqlite::Connection::open(folder.join("metadata.db")).unwrap();
    old.execute_batch("ALTER TABLE games DROP COLUMN key_xxh3; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(old);
    for workers in [1, 3] {
        assert!(all(&pack, workers) == told);
    }

    let keys = split_keys(&pack, &Arc::default(), &mut |_, _| {}).unwrap();
    let mut apart = 0;
    for seed in 0..12 {
        let (train, val) = selection.split_by_keys(0.4, seed, &keys).unwrap();
        assert_eq!(train.games().len() + val.games().len(), 64);
        let side: HashMap<u64, bool> = train
            .games()
            .iter()
            .map(|game| (*game, false))
            .chain(val.games().iter().map(|game| (*game, true)))
            .collect();
        for group in &found.groups {
            assert!(group.games.iter().all(|game| side[&game.id] == side[&group.games[0].id]), "seed {seed}");
        }
        let (_, val) = selection.split(0.4, seed).unwrap();
        apart += found
            .groups
            .iter()
            .filter(|group| {
                group.games.iter().any(|game| val.games().contains(&game.id))
                    && !group.games.iter().all(|game| val.games().contains(&game.id))
            })
            .count();
    }
    assert!(apart > 0, "by records, mirrored games are strangers");
}
