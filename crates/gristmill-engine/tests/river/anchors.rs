//! Chunk anchors: set, reset and read at any time, counted over files that were there and files that come.

use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{ControlRequest, DataLoader};
use gristmill_generate::ChessOptions;

use super::games::{config, generate, hashes, loader, next, of_pool, options, preset};

fn live(folder: &Path) -> Lc0Preset {
    Lc0Preset { watch: Some(true), pool: 20, ..preset(folder) }
}

/// Anchor and count of the only pool.
fn ask(loader: &DataLoader, request: ControlRequest) -> (String, u64) {
    let replies = loader.control(&request).unwrap();
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0].stage, "pool");
    (replies[0].chunk_anchor.clone(), replies[0].chunks_since_anchor)
}

fn query(loader: &DataLoader) -> (String, u64) {
    ask(loader, ControlRequest::QueryChunkAnchor)
}

fn wait_for(what: &str, loader: &DataLoader, since: u64) {
    let start = Instant::now();
    while query(loader).1 != since {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:?}", query(loader));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn files_of_the_first_scan_count_beyond_the_anchor_and_later_ones_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    let loader = loader(&live(folder.path()));
    assert_eq!(query(&loader), (String::new(), 0), "before the start");
    ask(&loader, ControlRequest::SetChunkAnchor("training.9.gz".into()));
    next(&loader, "");
    assert_eq!(query(&loader), ("training.9.gz".into(), 3), "10, 11 and 12: names compare as numbers");
    generate(ChessOptions { first: 100, ..options(folder.path(), 4) });
    wait_for("arrivals", &loader, 7);
    assert_eq!(of_pool(&loader, "chunks_since_anchor"), 7);
    let latest = |loader: &DataLoader| loader.metrics().of_kind("shuffling_chunk_pool").next().unwrap().latest.clone();
    assert_eq!(latest(&loader).as_deref(), Some("training.9.gz"));
    let newest = |key: &str| key.starts_with("training.10") && key.ends_with(".gz");
    let (key, before) = ask(&loader, ControlRequest::ResetChunkAnchor);
    assert!(newest(&key) && before == 7, "{key} {before}");
    assert_eq!(query(&loader), (key, 0));
    ask(&loader, ControlRequest::SetChunkAnchor("training.201.gz".into()));
    generate(ChessOptions { first: 200, ..options(folder.path(), 1) });
    wait_for("one more", &loader, 1);
    generate(ChessOptions { first: 201, ..options(folder.path(), 1) });
    wait_for("the anchor itself", &loader, 0);
    loader.stop();
    assert_eq!(query(&loader).0, "training.201.gz", "and after the stop");
}

#[test]
fn a_state_has_the_anchor_and_its_count_once() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 10));
    let original = loader(&live(folder.path()));
    ask(&original, ControlRequest::SetChunkAnchor("training.6.gz".into()));
    hashes(&original, "", 4);
    generate(ChessOptions { first: 100, ..options(folder.path(), 3) });
    wait_for("arrivals", &original, 7);
    let state = original.state().unwrap();
    let expected = hashes(&original, "", 40);
    let restored = loader(&live(folder.path()));
    restored.restore(&state).unwrap();
    assert_eq!(query(&restored), ("training.6.gz".into(), 7), "at once");
    assert_eq!(hashes(&restored, "", 40), expected);
    assert_eq!(query(&restored).1, 7, "admissions that are made again are not counted again");
    let (key, before) = ask(&restored, ControlRequest::ResetChunkAnchor);
    assert!(key.starts_with("training.10") && before == 7, "{key} {before}");
}

#[test]
fn anchors_of_lanes_are_in_the_state_after_any_batch_and_for_any_ranks() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 40));
    let run = Lc0Preset { pool: 40, reservoir: Some(48), batch_size: 12, ..live(folder.path()) };
    let rank = |rank: u32, world: u32| {
        let (rank, world_size) = (Some(rank), Some(world));
        DataLoader::new(DataLoaderConfig { lanes: Some(4), rank, world_size, ..config(&run) }).unwrap()
    };
    let original = rank(0, 1);
    ask(&original, ControlRequest::SetChunkAnchor("training.30.gz".into()));
    hashes(&original, "", 2);
    generate(ChessOptions { first: 100, ..options(folder.path(), 3) });
    wait_for("arrivals of all lanes", &original, 13);
    let states: Vec<String> = (0..4).map(|_| (original.state().unwrap(), hashes(&original, "", 1)).0).collect();
    let rest = hashes(&original, "", 20);
    for (after, state) in states.iter().enumerate() {
        let restored = rank(0, 1);
        restored.restore(state).unwrap();
        assert_eq!(query(&restored), ("training.30.gz".into(), 13), "at once");
        hashes(&restored, "", states.len() - after);
        assert_eq!(hashes(&restored, "", 20), rest);
        assert_eq!(query(&restored).1, 13, "after batch {after}");
        let half = rank(1, 2);
        half.restore(state).unwrap();
        hashes(&half, "", 10);
        assert_eq!(query(&half), ("training.30.gz".into(), 13), "of rank 1 of 2, which counts for all lanes");
    }
}

#[test]
fn a_replay_counts_what_its_journal_brings() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 10));
    let run = Lc0Preset { journal: Some(notes.path().join("journal")), ..live(folder.path()) };
    let original = loader(&run);
    hashes(&original, "", 4);
    generate(ChessOptions { first: 100, ..options(folder.path(), 3) });
    wait_for("arrivals", &original, 13);
    let seen = hashes(&original, "", 60);
    assert_eq!(seen.len(), 60);
    original.stop();
    let replay = loader(&Lc0Preset { replay: true, ..run });
    hashes(&replay, "", 64);
    assert_eq!(query(&replay).1, 13);
}

#[test]
fn a_run_that_resumes_counts_what_came_after_its_state() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 10));
    let run = Lc0Preset { journal: Some(notes.path().join("journal")), ..live(folder.path()) };
    let original = loader(&run);
    hashes(&original, "", 4);
    let state = original.state().unwrap();
    generate(ChessOptions { first: 100, ..options(folder.path(), 3) });
    wait_for("arrivals", &original, 13);
    let seen = hashes(&original, "", 60);
    original.stop();
    let restored = loader(&run);
    restored.restore(&state).unwrap();
    assert_eq!((query(&restored).1, hashes(&restored, "", 60)), (10, seen));
    assert_eq!(query(&restored).1, 13);
}

#[test]
fn every_pool_of_a_split_answers() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 10));
    let split = vec![("train".to_string(), 1), ("test".to_string(), 1)];
    let loader = loader(&Lc0Preset { split, ..preset(folder.path()) });
    ["train", "test"].iter().for_each(|alias| drop(next(&loader, alias)));
    let replies = loader.control(&ControlRequest::QueryChunkAnchor).unwrap();
    assert_eq!(replies.iter().map(|reply| reply.stage.as_str()).collect::<Vec<_>>(), ["pool_test", "pool_train"]);
    assert_eq!(replies.iter().map(|reply| reply.chunks_since_anchor).sum::<u64>(), 10);
}
