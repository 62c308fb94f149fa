//! What may be deleted: files older than the oldest that a state may need, and no state misses them.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{DataLoader, Missing, OldestNeeded};
use gristmill_generate::ChessOptions;

use super::games::{config, generate, hashes, loader, next, of_pool, options, preset};

/// Deletes what is older; how many files.
fn delete(folder: &Path, oldest: &OldestNeeded) -> usize {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let old: Vec<String> = names.filter(|name| oldest.may_delete(name)).collect();
    old.iter().for_each(|name| std::fs::remove_file(folder.join(name)).unwrap());
    old.len()
}

fn live(folder: &Path) -> Lc0Preset {
    let one = Lc0Preset { sampling_rate: None, position_count: Some(1), ..preset(folder) };
    Lc0Preset { watch: Some(true), pool: 12, reservoir: Some(40), ..one }
}

/// Adds games until the window has seen that many, and takes batches meanwhile.
fn grow(loader: &DataLoader, folder: &Path, first: u64, total: u64) {
    generate(ChessOptions { first, ..options(folder, 6) });
    while of_pool(loader, "chunks_total") < total {
        next(loader, "");
    }
}

#[test]
fn what_is_older_than_the_oldest_needed_can_be_deleted() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let state = notes.path().join("state");
    generate(options(folder.path(), 30));
    let original = loader(&live(folder.path()));
    assert_eq!(original.oldest_needed(), BTreeMap::new(), "before the start nothing is known");
    next(&original, "");
    let first = original.oldest_needed()["load"].clone();
    assert_eq!(
        (first.name.as_str(), first.key.as_str()),
        ("training.19.gz", "training.19.gz"),
        "the window has 12 of 30"
    );
    assert_eq!(delete(folder.path(), &first), 18);
    original.save(&state).unwrap();
    for round in 1..=6 {
        grow(&original, folder.path(), 100 * round, 30 + 6 * round - 18);
        hashes(&original, "", 5);
    }
    // Draws are made again from a copy of the window that is up to two thousand of them old.
    hashes(&original, "", 260);
    let held = original.oldest_needed()["load"].clone();
    assert_eq!(held, first, "the state on disk still needs what it needed");
    original.save(&state).unwrap();
    hashes(&original, "", 3);
    original.save(&state).unwrap();
    let oldest = original.oldest_needed()["load"].clone();
    assert!(first.may_delete("training.1.gz") && oldest.may_delete(&first.name), "{oldest:?}");
    let saved: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
    let told = &saved["oldest_needed"]["load"];
    assert_eq!(told["key_order"], "natural");
    assert!(!oldest.may_delete(told["name"].as_str().unwrap()), "{told}");
    let texts = |name: &str| {
        let stage = original.status(0).stages.into_iter().find(|stage| stage.name == "load").unwrap();
        stage.texts.into_iter().find(|text| text.name == name).map(|text| text.value)
    };
    assert_eq!(texts("oldest_needed"), Some(oldest.name.clone()));
    let metrics = original.metrics();
    let row = metrics.stages.iter().find(|stage| stage.name == "load").unwrap();
    let needed = row.gauge("files_needed").unwrap().value;
    assert!(row.oldest_needed.as_ref() == Some(&oldest.name) && (12..48).contains(&needed), "{needed}");
    assert!(metrics.prometheus().contains("gristmill_files_needed{stage=\"load\""));
    assert!(delete(folder.path(), &oldest) > 5);
    let expected = hashes(&original, "", 30);
    original.stop();
    for threads in [1, 8] {
        let restored = loader(&Lc0Preset { threads: Some(threads), ..live(folder.path()) });
        restored.load(&state, Missing::Refuse).unwrap();
        assert_eq!(hashes(&restored, "", 30), expected);
        assert_eq!(restored.oldest_needed()["load"], oldest, "it resumed from a state that needs it");
    }
}

#[test]
fn every_directory_and_all_ranks_have_an_oldest() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(one.path(), 40));
    generate(ChessOptions { first: 201, games_per_tar: Some(10), ..options(other.path(), 40) });
    let weighted = |folder: &tempfile::TempDir| Weighted { directory: folder.path().to_owned(), weight: 1.0 };
    let directories = vec![weighted(&one), weighted(&other)];
    let options = Lc0Preset { directories, pool: 16, reservoir: Some(24), batch_size: 8, ..preset(one.path()) };
    let rank = |rank, world| {
        let (rank, world_size) = (Some(rank), Some(world));
        DataLoader::new(DataLoaderConfig { lanes: Some(2), rank, world_size, ..config(&options) }).unwrap()
    };
    let ranks = [rank(0, 2), rank(1, 2)];
    let mut parts = Vec::new();
    let mut oldest: BTreeMap<String, OldestNeeded> = BTreeMap::new();
    for rank in &ranks {
        next(rank, "").unwrap();
        parts.push(rank.state().unwrap());
        for (loader, own) in rank.oldest_needed() {
            let known = oldest.entry(loader).or_insert_with(|| own.clone());
            if known.may_delete(&own.name) {
                *known = own;
            }
        }
    }
    assert_eq!(oldest.keys().collect::<Vec<_>>(), ["load", "load_2"]);
    let whole = rank(0, 1);
    whole.restore(&format!("[{}]", parts.join(","))).unwrap();
    next(&whole, "").unwrap();
    assert_eq!(whole.oldest_needed(), oldest);
    assert!(delete(one.path(), &oldest["load"]) > 10);
    assert!(delete(other.path(), &oldest["load_2"]) > 0);
    let again = rank(0, 1);
    again.restore(&format!("[{}]", parts.join(","))).unwrap();
    next(&again, "").unwrap();
    assert_eq!(hashes(&again, "", 10), hashes(&whole, "", 10));
}
