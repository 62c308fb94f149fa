//! Windows that grow by a law, and draws that wait for new games.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::config::{DataLoaderConfig, RateLimitConfig, WindowLawConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};
use gristmill_generate::ChessOptions;

use super::games::{changed, generate, hash, hashes, ids, next, options, preset};

const LINE: WindowLawConfig = WindowLawConfig { least: 4, slope: 0.5, power: 1.0 };

fn limit(samples_per_insert: f64, min_size_to_sample: u64, min_diff: f64, max_diff: Option<f64>) -> RateLimitConfig {
    RateLimitConfig { samples_per_insert, min_size_to_sample, min_diff, max_diff }
}

/// Whole games as they are drawn, four rows a batch.
fn live(folder: &Path) -> Lc0Preset {
    Lc0Preset {
        watch: Some(true),
        pool: 100,
        reservoir: Some(0),
        batch_size: 4,
        sampling_rate: None,
        position_count: Some(1),
        ..preset(folder)
    }
}

fn growing(run: &Lc0Preset, law: WindowLawConfig) -> DataLoaderConfig {
    changed(run, |pool, _| pool.window_law = Some(law))
}

fn limited(run: &Lc0Preset, limit: RateLimitConfig) -> DataLoaderConfig {
    changed(run, |pool, _| pool.rate_limit = Some(limit))
}

fn new(config: &DataLoaderConfig) -> DataLoader {
    DataLoader::new(config.clone()).unwrap()
}

fn gauge(loader: &DataLoader, name: &str) -> u64 {
    let metrics = loader.metrics();
    metrics.of_kind("shuffling_chunk_pool").next().and_then(|pool| pool.gauge(name)).map_or(0, |gauge| gauge.value)
}

fn wait_for(what: &str, loader: &DataLoader, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:#?}", loader.metrics());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Rows until no batch comes for a while.
fn until_it_waits(loader: &DataLoader) -> usize {
    let mut batches = 0;
    loop {
        match loader.next("", Some(Duration::from_millis(300))).unwrap() {
            Next::Batch(_) => batches += 1,
            Next::Pending => return 4 * batches,
            Next::End => panic!("a stream that is watched has no end"),
        }
    }
}

#[test]
fn a_window_grows_with_what_came_and_counts_what_was_there_before_it() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 20));
    let config = growing(&live(folder.path()), LINE);
    let loader = new(&config);
    let drawn = |batches: usize| -> BTreeSet<u64> {
        (0..batches).flat_map(|_| ids(&next(&loader, "").unwrap())).map(|id| id.0).collect()
    };
    // 4 + (20 - 4) / 2 games, the newest.
    assert_eq!(drawn(24), (8..20).collect());
    assert_eq!((gauge(&loader, "chunks_current"), gauge(&loader, "chunks_total")), (12, 20));
    generate(ChessOptions { first: 500, ..options(folder.path(), 10) });
    wait_for("ten more games", &loader, || gauge(&loader, "chunks_total") == 30);
    assert_eq!(gauge(&loader, "chunks_current"), 17);
    drawn(30);
    assert_eq!(drawn(60), (13..30).collect());
    let state = loader.state().unwrap();
    let expected: Vec<u64> = (0..20).map(|_| hash(&next(&loader, "").unwrap())).collect();
    let restored = new(&config);
    restored.restore(&state).unwrap();
    assert_eq!(hashes(&restored, "", 20), expected);
    let other = new(&growing(&live(folder.path()), WindowLawConfig { slope: 0.4, ..LINE }));
    let refused = other.restore(&state).unwrap_err().to_string();
    assert!(refused.contains("window_law"), "{refused}");
}

#[test]
fn lanes_share_a_window_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 60));
    let run = Lc0Preset { pool: 40, ..live(folder.path()) };
    let config = DataLoaderConfig { lanes: Some(2), ..growing(&run, WindowLawConfig { least: 10, ..LINE }) };
    let loader = new(&config);
    next(&loader, "");
    let current = gauge(&loader, "chunks_current");
    assert_eq!(gauge(&loader, "chunks_total"), 60);
    assert!((33..=35).contains(&current), "10 + 50 / 2 games of both lanes, rounded down in each: {current}");
}

#[test]
fn draws_wait_for_games_and_the_wait_has_a_name() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 6));
    let journal = Some(notes.path().join("run.journal"));
    let run = Lc0Preset { journal, seed: None, ..live(folder.path()) };
    let config = limited(&run, limit(2.0, 8, 0.0, None));
    let original = new(&config);
    assert_eq!(until_it_waits(&original), 0, "8 games must have come");
    let mut seen = Vec::new();
    generate(ChessOptions { first: 100, ..options(folder.path(), 2) });
    seen.extend(hashes(&original, "", 4));
    assert_eq!(until_it_waits(&original), 0, "two draws for each of 8 games");
    assert_eq!(original.metrics().waits.limited_by, "arrivals");
    assert!(original.metrics().explain(2).contains("samples_per_insert"));
    assert_eq!((gauge(&original, "draws_total"), gauge(&original, "reuse_permille")), (16, 2000));
    generate(ChessOptions { first: 200, ..options(folder.path(), 4) });
    seen.extend(hashes(&original, "", 2));
    assert_eq!(until_it_waits(&original), 0);
    let state = original.state().unwrap();
    original.stop();
    let restored = new(&config);
    restored.restore(&state).unwrap();
    assert_eq!(until_it_waits(&restored), 0, "a state keeps what was drawn");
    restored.stop();
    let replay = Lc0Preset { replay: true, threads: Some(8), ..run };
    let replayed = new(&limited(&replay, limit(2.0, 8, 0.0, None)));
    assert_eq!(hashes(&replayed, "", seen.len()), seen);
}

#[test]
fn files_wait_for_draws() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 4));
    let loader = new(&limited(&live(folder.path()), limit(4.0, 1, 0.0, Some(32.0))));
    next(&loader, "");
    generate(ChessOptions { first: 100, ..options(folder.path(), 30) });
    wait_for("all to be found", &loader, || {
        loader
            .metrics()
            .of_kind("chunk_source_loader")
            .any(|files| files.gauge("files").is_some_and(|files| files.value == 34))
    });
    assert!(gauge(&loader, "chunks_total") < 34, "all are found, and most of them wait");
    for _ in 0..30 {
        let (came, draws) = (gauge(&loader, "chunks_total"), gauge(&loader, "draws_total"));
        assert!(4 * came <= draws + 32 + 4, "{came} games, {draws} draws");
        next(&loader, "");
    }
    assert_eq!(until_it_waits(&loader), 4 * 34 - 124, "in the end all came, with four draws for each");
}

#[test]
fn a_limit_that_can_never_be_met_again_ends_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 6));
    let run = Lc0Preset { watch: Some(false), ..live(folder.path()) };
    let loader = new(&limited(&run, limit(2.0, 1, 0.0, None)));
    hashes(&loader, "", 3);
    match loader.next("", None) {
        Err(Error::Stage { stage, message }) => {
            assert_eq!(stage, "pool");
            assert!(
                message.contains("12 were made of 6 chunks") && message.contains("samples_per_insert"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn laws_and_limits_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = live(folder.path());
    let two = |config| DataLoaderConfig { lanes: Some(2), ..config };
    for (config, text) in [
        (growing(&run, WindowLawConfig { least: 101, ..LINE }), "window_law.least"),
        (growing(&run, WindowLawConfig { power: 1.5, ..LINE }), "window_law.power"),
        (limited(&run, limit(-1.0, 1, 0.0, None)), "rate_limit.samples_per_insert"),
        (two(limited(&run, limit(4.0, 1, 0.0, Some(9.0)))), "rate_limit.max_diff"),
    ] {
        let error = DataLoader::new(config).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("pool"), "{error}");
    }
}
