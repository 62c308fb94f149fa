//! Stop returns within a second, whatever the graph is made of and whatever it is doing: every stage is in one of the
//! graphs, and every graph is stopped while it waits, while it is full, while it is read, while all games are bad, and
//! while a stage of it refuses or rejects all of them.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use gristmill_engine::config::{ChunkRescorerConfig, ChunkValidatorConfig, DataLoaderConfig, HanseForm, StageConfig};
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{DataLoader, Error};

use super::arrivals::wait_for;
use super::dedup::windowed;
use super::games::{changed, config, generate, nobody_listens, of_pool, options, preset, single, spoil, with_cache};

fn watched(folder: &Path) -> Lc0Preset {
    Lc0Preset { watch: Some(true), ..preset(folder) }
}

fn hanse(options: &Lc0Preset, threshold: u64) -> DataLoaderConfig {
    changed(options, |pool, _| {
        (pool.hanse_sampling_threshold, pool.hanse_sampling_form) = (Some(threshold), HanseForm::Length);
    })
}

/// A stage that reads and gives chunks, right before the unpacker.
fn before_unpacker(mut config: DataLoaderConfig, pass: StageConfig) -> DataLoaderConfig {
    let unpacker = config.stage.iter_mut().find(|stage| stage.name == "unpack").unwrap();
    let input = std::mem::replace(&mut unpacker.input, vec![pass.name.clone()]);
    config.stage.push(StageConfig { input, ..pass });
    config
}

fn validated(config: DataLoaderConfig) -> DataLoaderConfig {
    let chunk_validator = Some(ChunkValidatorConfig::default());
    before_unpacker(config, StageConfig { name: "judge".into(), chunk_validator, ..StageConfig::default() })
}

fn rescored(config: DataLoaderConfig) -> DataLoaderConfig {
    let chunk_rescorer = Some(ChunkRescorerConfig { dist_temp: 1.3, ..ChunkRescorerConfig::default() });
    before_unpacker(config, StageConfig { name: "rescore".into(), chunk_rescorer, ..StageConfig::default() })
}

/// Graphs in which a stage may refuse games that can be read.
fn judging(folder: &Path) -> Vec<(&'static str, DataLoaderConfig)> {
    let alone = Lc0Preset { watch: Some(true), ..single(folder) };
    vec![
        ("validator", validated(config(&watched(folder)))),
        ("rescorer", rescored(config(&watched(folder)))),
        ("validator, rescorer and cache", rescored(validated(with_cache(hanse(&alone, 50), 60, 5)))),
    ]
}

/// A graph over the games of a folder, for each way that stages can stand.
fn graphs(folder: &Path) -> Vec<(&'static str, DataLoaderConfig)> {
    let base = watched(folder);
    let alone = Lc0Preset { watch: Some(true), ..single(folder) };
    let split = vec![("train".to_string(), 1), ("test".to_string(), 1)];
    let twice = vec![Weighted { directory: folder.to_owned(), weight: 1.0 }; 2];
    let mut graphs = vec![
        ("pool and sampler", config(&base)),
        ("pool alone", config(&Lc0Preset { reservoir: Some(0), ..base.clone() })),
        ("extractor", config(&Lc0Preset { epochs: Some(1000), ..base.clone() })),
        ("splitter", config(&Lc0Preset { split, ..base.clone() })),
        ("window", windowed(config(&base), 3, false)),
        ("join", config(&Lc0Preset { directories: twice, ..base })),
        ("hanse", hanse(&alone, 50)),
        ("cache", with_cache(hanse(&alone, 50), 60, 5)),
    ];
    graphs.extend(judging(folder));
    graphs
}

#[test]
fn every_kind_of_stage_is_in_a_graph() {
    let graphs = graphs(good());
    let kind = |stage: &StageConfig| stage.kind().unwrap().name();
    let kinds: BTreeSet<_> = graphs.iter().flat_map(|(_, config)| config.stage.iter().map(kind)).collect();
    let refused = DataLoaderConfig::from_json(r#"{"stage": [{"zz": 1}]}"#).unwrap_err().to_string();
    let listed = refused.split("expected").nth(1).unwrap().split('`').skip(1).step_by(2);
    let known: BTreeSet<_> = listed.filter(|field| !["name", "input"].contains(field)).collect();
    assert_eq!(kinds, known);
}

fn good() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            generate(options(folder.path(), 12));
            folder
        })
        .path()
}

/// A stop waits for its threads for less than a second and names those that did not end by then: there are none.
fn stops(what: &str, loader: &DataLoader) {
    let left = loader.stop();
    assert!(left.is_empty(), "{what}: still running after a second: {left:?}");
    assert!(matches!(loader.next(&loader.outputs()[0].alias, None), Err(Error::Stopped)), "{what}");
}

fn waiting_batches(loader: &DataLoader) -> Vec<(u64, u64)> {
    let metrics = loader.metrics();
    let queues = metrics.of_kind("tensor_generator").filter_map(|stage| stage.queue.as_ref());
    queues.map(|queue| (queue.waiting, queue.capacity)).collect()
}

#[test]
fn while_it_waits_for_the_first_game() {
    let empty = tempfile::tempdir().unwrap();
    for (what, config) in graphs(empty.path()) {
        let loader = DataLoader::new(config).unwrap();
        let alias = loader.outputs()[0].alias.clone();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| loader.next(&alias, None));
            wait_for(what, &loader, || !loader.metrics().stages.is_empty());
            stops(what, &loader);
            let found = waiting.join().unwrap();
            let ended = what == "extractor" && !matches!(found, Err(Error::Stopped));
            assert!(ended || matches!(found, Err(Error::Stopped)), "{what}: a waiting call gets an error: {found:?}");
        });
    }
}

#[test]
fn while_it_is_full() {
    for (what, config) in graphs(good()) {
        let loader = DataLoader::new(config).unwrap();
        loader.start().unwrap();
        wait_for(what, &loader, || waiting_batches(&loader).iter().all(|(waiting, capacity)| waiting == capacity));
        stops(what, &loader);
    }
}

#[test]
fn while_it_is_read() {
    for (what, config) in graphs(good()) {
        let loader = DataLoader::new(config).unwrap();
        let aliases: Vec<String> = loader.outputs().iter().map(|output| output.alias.clone()).collect();
        std::thread::scope(|scope| {
            for alias in &aliases {
                let read = || loader.next(alias, None);
                scope.spawn(move || while read().is_ok() {});
            }
            let batches = || -> u64 {
                let metrics = loader.metrics();
                metrics.of_kind("tensor_generator").filter_map(|stage| stage.count("batches")).map(|n| n.total).sum()
            };
            wait_for(what, &loader, || batches() >= 20);
            stops(what, &loader);
        });
    }
}

#[test]
fn while_every_game_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    (0..12).for_each(|n| std::fs::write(folder.path().join(format!("training.{n}.gz")), b"\x1f\x8bnonsense").unwrap());
    graphs(folder.path()).iter().for_each(nothing_is_good);
}

/// All twelve games of the graph's folder are found bad; it is stopped then, with and without a reader.
fn nothing_is_good((what, config): &(&str, DataLoaderConfig)) {
    for reads in [false, true] {
        let loader = DataLoader::new(config.clone()).unwrap();
        loader.start().unwrap();
        let alias = &loader.outputs()[0].alias;
        if reads {
            assert!(loader.next(alias, None).is_err(), "{what}: it is said");
            let _ = loader.next(alias, Some(Duration::from_millis(20)));
        }
        wait_for(what, &loader, || loader.metrics().bad_chunks.chunks >= 12);
        stops(what, &loader);
    }
}

#[test]
fn while_a_stage_refuses_every_game() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    for n in 1..=12 {
        // No side may be without its king.
        spoil(&folder.path().join(format!("training.{n}.gz")), |_, frame| _ = frame.set_plane(5, 0));
    }
    judging(folder.path()).iter().for_each(nothing_is_good);
}

#[test]
fn while_every_draw_is_rejected() {
    let alone = Lc0Preset { watch: Some(true), ..single(good()) };
    let never = hanse(&alone, u64::MAX);
    let cached = with_cache(never.clone(), 60, 5);
    for (what, config) in [
        ("hanse", never.clone()),
        ("validator", validated(never)),
        ("cache", cached.clone()),
        ("rescorer", rescored(cached)),
    ] {
        let loader = DataLoader::new(config).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| loader.next("", None));
            wait_for(what, &loader, || {
                !loader.metrics().stages.is_empty() && of_pool(&loader, "hanse_rejected") > 20_000
            });
            stops(what, &loader);
            assert!(waiting.join().unwrap().is_err(), "{what}");
        });
    }
}

#[test]
fn when_it_is_dropped() {
    for (what, config) in graphs(good()) {
        let loader = DataLoader::new(config).unwrap();
        let address = loader.serve_metrics("127.0.0.1:0", None).unwrap();
        wait_for(what, &loader, || waiting_batches(&loader).iter().any(|(waiting, _)| *waiting > 0));
        assert!(TcpStream::connect(address).is_ok(), "{what}");
        drop(loader);
        nobody_listens(address);
    }
}

#[test]
fn while_a_state_is_put_back() {
    for (what, config) in graphs(good()) {
        let original = DataLoader::new(config.clone()).unwrap();
        let alias = original.outputs()[0].alias.clone();
        (0..5).for_each(|_| drop(original.next(&alias, None).unwrap()));
        let state = original.state().unwrap();
        let restored = DataLoader::new(config).unwrap();
        restored.restore(&state).unwrap();
        restored.start().unwrap();
        stops(what, &restored);
    }
}
