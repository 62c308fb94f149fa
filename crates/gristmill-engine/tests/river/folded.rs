//! Large reservoirs hold frames folded: rows come out as those of small ones, in little memory, whatever the records hold.

use std::collections::HashMap;
use std::path::Path;

use gristmill_engine::config::MemorySize;
use gristmill_engine::pipeline::promise;
use gristmill_engine::preset::{Lc0Preset, lc0};
use gristmill_engine::{Batch, DataLoader, Next};
use xxhash_rust::xxh3::xxh3_64;

use super::games::{config, generate, ids, loader, mixed, next, options, preset, spoil};

/// Source, chunk and frame of each row of a batch, and one number for its tensors.
fn rows(batch: &Batch) -> Vec<((u64, u64, u64), u64)> {
    let hash = |i: usize| {
        let tensors = batch.columns.iter().filter(|column| column.name() != "ids");
        let row = tensors.flat_map(|column| {
            let bytes = column.bytes();
            bytes[i * (bytes.len() / batch.rows)..][..bytes.len() / batch.rows].iter().copied()
        });
        xxh3_64(&row.collect::<Vec<u8>>())
    };
    ids(batch).into_iter().enumerate().map(|(i, id)| (id, hash(i))).collect()
}

/// The rows of the first batches.
fn taken(loader: &DataLoader, batches: usize) -> Vec<((u64, u64, u64), u64)> {
    (0..batches).flat_map(|_| rows(&next(loader, "").unwrap())).collect()
}

fn whole_games(folder: &Path, reservoir: usize) -> Lc0Preset {
    Lc0Preset { reservoir: Some(reservoir), sampling_rate: Some(1.0), batch_size: 64, ..preset(folder) }
}

#[test]
fn rows_of_a_folded_reservoir_are_those_of_their_games() {
    let plain: HashMap<_, _> = taken(&loader(&whole_games(mixed(), 0)), 60).into_iter().collect();
    assert!(plain.len() > 500, "{}", plain.len());
    let folded = taken(&loader(&whole_games(mixed(), 3000)), 60);
    let compared = folded.iter().filter(|(id, hash)| plain.get(id).is_some_and(|plain| *plain == *hash)).count();
    assert_eq!(compared, folded.iter().filter(|(id, _)| plain.contains_key(id)).count());
    assert!(compared > 1000, "{compared} of {}", folded.len());
}

#[test]
fn a_state_of_a_folded_reservoir_goes_on() {
    let run = whole_games(mixed(), 2500);
    let original = loader(&run);
    taken(&original, 5);
    let state = original.state().unwrap();
    let rest = taken(&original, 30);
    let restored = loader(&run);
    restored.restore(&state).unwrap();
    assert_eq!(taken(&restored, 30), rest);
}

#[test]
fn a_million_positions_are_promised_within_two_and_a_half_gigabytes() {
    let bytes =
        |reservoir| promise(&config(&Lc0Preset { threads: Some(2), ..whole_games(mixed(), reservoir) })).unwrap();
    let million = bytes(1_000_000) - bytes(0);
    assert!(million < 2_500_000_000, "{million} bytes");
}

#[test]
fn frames_that_do_not_fold_are_held_whole_or_refused_by_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 40));
    for game in 1..41 {
        spoil(&folder.path().join(format!("training.{game}.gz")), |frame, record| {
            for i in 0..1858 {
                record.set_probability(i, (i + frame) as f32);
            }
        });
    }
    let plain: HashMap<_, _> = taken(&loader(&whole_games(folder.path(), 0)), 60).into_iter().collect();
    let run = whole_games(folder.path(), 12_000);
    let folded = taken(&loader(&run), 40);
    assert!(folded.iter().all(|(id, hash)| plain.get(id).is_none_or(|plain| plain == hash)));
    assert!(folded.iter().filter(|(id, _)| plain.contains_key(id)).count() > 500);
    let within = |bound: u64| lc0(&Lc0Preset { memory: Some(MemorySize(bound)), ..run.clone() });
    let bound = (0..).map(|step| step << 22).find(|bound| within(*bound).is_ok()).unwrap();
    let bounded = DataLoader::new(within(bound).unwrap()).unwrap();
    let error = loop {
        match bounded.next("", None) {
            Ok(Next::Batch(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("raise the bound"), "{error}");
    let enough = DataLoader::new(within(bound + (12_000 + 1024) * 8448).unwrap()).unwrap();
    assert_eq!(taken(&enough, 40), folded);
}
