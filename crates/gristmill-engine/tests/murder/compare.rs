//! What every life of a killed run gave, against the same run without an end to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::{DataLoader, Next};

use super::{PATIENCE, Run, rows};

/// A batch as one process gave it.
struct Given {
    life: u64,
    rank: usize,
    world: usize,
    rows: Vec<u64>,
}

/// Every batch of every life against the same run without an end to it.
pub(crate) fn compare(run: &Run, kills: u64, worlds: &[u32], all: &Path) {
    let mut given: BTreeMap<u64, Vec<Given>> = BTreeMap::new();
    for life in 0..=kills {
        let world = worlds[life as usize % worlds.len()];
        for rank in 0..world {
            for line in run.lines(life, rank).iter().filter(|line| line.starts_with("batch ")) {
                let numbers: Vec<u64> = line.split(' ').skip(1).map(|text| text.parse().unwrap()).collect();
                let one = Given { life, rank: rank as usize, world: world as usize, rows: numbers[1..].to_vec() };
                given.entry(numbers[0]).or_default().push(one);
            }
        }
    }
    // Every game that a journal tells of, where it was when it was first seen.
    let named = run.at("named");
    for name in run.told() {
        let place = named.join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::hard_link(all.join(place.file_name().unwrap()), place).unwrap();
    }
    let config = DataLoaderConfig { replay: true, spill: None, ..run.config(&named, 0, 1) };
    let whole = DataLoader::new(config).unwrap();
    let last = *given.keys().last().unwrap();
    assert!(given.keys().copied().eq(0..=last), "no batch is left out");
    let mut again = 0;
    for (number, batches) in given {
        let Next::Batch(batch) = whole.next("", Some(PATIENCE)).unwrap() else { panic!("batch {number}") };
        let expected = rows(&batch);
        assert_eq!(batch.number, number);
        again += batches.len() - 1;
        for Given { life, rank, world, rows } in batches {
            let own: Vec<u64> = expected.iter().copied().skip(rank).step_by(world).collect();
            assert_eq!(rows, own, "batch {number} in life {life}, rank {rank} of {world}");
        }
    }
    assert!(again > 0, "some batches were given again");
}

/// The rows of every life against the same run without an end to it, in which no game is ever lost: only rows of games that
/// are may be left out.
pub(crate) fn compare_without(run: &Run, kills: u64, all: &Path, lost: &BTreeSet<String>) {
    let mut config = DataLoaderConfig { replay: true, ..run.config(all, 0, 1) };
    config
        .stage
        .iter_mut()
        .filter_map(|stage| stage.tensor_generator.as_mut())
        .for_each(|t| t.tensors.push("ids".into()));
    let whole = DataLoader::new(config).unwrap();
    // Hash of a row, and its game.
    let mut rows_of_whole: Vec<(u64, String)> = Vec::new();
    let mut expected = |at: usize| {
        while rows_of_whole.len() <= at {
            let Next::Batch(batch) = whole.next("", Some(PATIENCE)).unwrap() else { panic!("row {at}") };
            let ids = batch.column("ids").unwrap().bytes().to_vec();
            let source = |i: usize| u64::from_le_bytes(ids[24 * i..][..8].try_into().unwrap());
            let row = |(i, hash): (usize, u64)| (hash, whole.source_path(source(i)).unwrap());
            rows_of_whole.extend(rows(&batch).into_iter().enumerate().map(row));
        }
        rows_of_whole[at].clone()
    };
    // By number of batches: the next row of the uninterrupted run. The latest life that gave those batches decides.
    let mut after = BTreeMap::from([(0, 0)]);
    let mut left_out = 0;
    for life in 0..=kills {
        for line in run.lines(life, 0).iter().filter(|line| line.starts_with("batch ")) {
            let numbers: Vec<u64> = line.split(' ').skip(1).map(|text| text.parse().unwrap()).collect();
            let mut at = after[&numbers[0]];
            for row in &numbers[1..] {
                loop {
                    let (hash, game) = expected(at);
                    if hash == *row {
                        break;
                    }
                    assert!(lost.contains(&game), "batch {} in life {life} lacks row {at}, of {game}", numbers[0]);
                    (at, left_out) = (at + 1, left_out + 1);
                }
                at += 1;
            }
            after.insert(numbers[0] + 1, at);
        }
    }
    assert!(left_out > 0, "rows of games that are gone are left out");
}
