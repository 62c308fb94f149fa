//! Folders of generated games, and what a loader makes of them as hashes and provenance ids.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gristmill_engine::config::{
    ChunkUnpackerConfig, DataLoaderConfig, JoinPositionsConfig, QueueConfig, ShufflingChunkPoolConfig, StageConfig,
};
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::{Batch, DataLoader, Next};
use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::chess::{FrameMut, Version};
use gristmill_format::container::gzip;
use gristmill_format::source::Chunk;
use gristmill_generate::{ChessGenerator, ChessOptions};
use xxhash_rust::xxh3::xxh3_64;

/// Long enough for any batch of these tests on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn options(folder: &Path, games: u64) -> ChessOptions {
    ChessOptions {
        folder: folder.to_owned(),
        games,
        first: 1,
        seed: 7,
        plies_max: 40,
        version: Version::V6,
        games_per_tar: None,
    }
}

pub(crate) fn generate(options: ChessOptions) {
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

pub(crate) type Spoil = fn(usize, &mut FrameMut<'_>);

/// Rewrites the records of one `.gz` game.
pub(crate) fn spoil(path: &Path, how: Spoil) {
    let mut chunk = Chunk::default();
    gristmill_engine::open::open(path).unwrap().chunk(0, &mut chunk).unwrap();
    for (i, record) in chunk.bytes.chunks_exact_mut(V6_BYTES).enumerate() {
        how(i, &mut FrameMut::new(record).unwrap());
    }
    std::fs::write(path, gzip::compress(6, &chunk.bytes).unwrap()).unwrap();
}

/// A folder with 24 games as `.gz`, 12 of version 7 in a subfolder, and 20 in two tars; made once.
pub(crate) fn mixed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        generate(options(&folder, 24));
        generate(ChessOptions { first: 101, version: Version::V7, ..options(&folder.join("v7"), 12) });
        generate(ChessOptions { first: 201, games_per_tar: Some(10), ..options(&folder.join("tars"), 20) });
        folder
    })
}

/// A folder with 40 games of very different lengths, as `.gz` and in a tar; made once.
pub(crate) fn varied() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        for (i, plies_max) in [3, 6, 12, 20, 28, 36, 44, 60].into_iter().enumerate() {
            let games_per_tar = (i % 4 == 3).then_some(5);
            generate(ChessOptions { first: 1 + 5 * i as u64, plies_max, games_per_tar, ..options(&folder, 5) });
        }
        folder
    })
}

/// The usual options on a folder, small enough for tests, without watching and side index.
pub(crate) fn preset(folder: &Path) -> Lc0Preset {
    Lc0Preset {
        directories: vec![Weighted { directory: folder.to_owned(), weight: 1.0 }],
        pool: 40,
        reservoir: Some(150),
        batch_size: 16,
        sampling_rate: Some(0.25),
        watch: Some(false),
        seed: Some(11),
        threads: Some(2),
        tensors: ["planes:u8", "probs", "values", "ids"].map(String::from).to_vec(),
        index: Some("off".into()),
        ..Lc0Preset::default()
    }
}

pub(crate) fn loader(options: &Lc0Preset) -> DataLoader {
    DataLoader::new(lc0(options).unwrap()).unwrap()
}

/// A state as it was written before states had checksums.
pub(crate) fn without_checksum(state: &str) -> String {
    let mut state: serde_json::Value = serde_json::from_str(state).unwrap();
    for key in ["checksum", "of"] {
        state.as_object_mut().unwrap().remove(key).unwrap();
    }
    state["gristmill_state"] = 2.into();
    state.to_string()
}

/// A journal as it was written before its lines had checksums.
pub(crate) fn without_checksums(journal: &str) -> String {
    journal.lines().map(|line| format!("{}\n", &line[17..])).collect()
}

pub(crate) fn next(loader: &DataLoader, alias: &str) -> Option<Batch> {
    match loader.next(alias, Some(PATIENCE)).unwrap() {
        Next::Batch(batch) => Some(batch),
        Next::End => None,
        Next::Pending => panic!("no batch within {PATIENCE:?}: {:#?}", loader.metrics()),
    }
}

/// One number for all bytes of a batch.
pub(crate) fn hash(batch: &Batch) -> u64 {
    let columns = batch.columns.iter().map(|column| xxh3_64(column.bytes()));
    columns.fold(batch.number ^ (batch.rows as u64) << 32, |sum, column| sum.rotate_left(9) ^ column)
}

pub(crate) fn hashes(loader: &DataLoader, alias: &str, batches: usize) -> Vec<u64> {
    (0..batches).map_while(|_| next(loader, alias)).map(|batch| hash(&batch)).collect()
}

/// (source, chunk, frame) of every real row of a batch.
pub(crate) fn ids(batch: &Batch) -> Vec<(u64, u64, u64)> {
    let column = batch.column("ids").unwrap().bytes();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let row = |row: &[u8]| (number(&row[..8]), number(&row[8..16]), number(&row[16..]));
    column.chunks_exact(24).take(batch.rows).map(row).collect()
}

/// All rows of a stream that ends.
pub(crate) fn all_ids(loader: &DataLoader, alias: &str) -> Vec<(u64, u64, u64)> {
    std::iter::from_fn(|| next(loader, alias)).flat_map(|batch| ids(&batch)).collect()
}

/// A preset with its pools and unpackers changed.
pub(crate) fn changed(
    options: &Lc0Preset,
    change: impl Fn(&mut ShufflingChunkPoolConfig, &mut ChunkUnpackerConfig),
) -> DataLoaderConfig {
    let mut config = config(options);
    let mut pools: Vec<_> = config.stage.iter_mut().filter_map(|stage| stage.shuffling_chunk_pool.take()).collect();
    let mut pool = pools.iter_mut();
    for unpacker in config.stage.iter_mut().filter_map(|stage| stage.chunk_unpacker.as_mut()) {
        change(pool.next().unwrap(), unpacker);
    }
    let mut pool = pools.into_iter();
    for stage in config.stage.iter_mut().filter(|stage| stage.name.starts_with("pool")) {
        stage.shuffling_chunk_pool = pool.next();
    }
    config
}

/// One position of each draw, drawn by Hanse sampling; only where each row came from.
pub(crate) fn single(folder: &Path) -> Lc0Preset {
    let tensors = vec!["ids".to_owned()];
    Lc0Preset { sampling_rate: None, position_count: Some(1), reservoir: Some(0), tensors, ..preset(folder) }
}

/// As the trainer's graphs have it: the unpacker foresees positions, the pool caches them, a join brings both together.
pub(crate) fn with_cache(mut config: DataLoaderConfig, size: u64, prefetch: u32) -> DataLoaderConfig {
    let named = |name: &str| QueueConfig { name: name.to_owned(), ..QueueConfig::default() };
    let mut join = StageConfig { name: "both".into(), ..StageConfig::default() };
    for stage in &mut config.stage {
        if let Some(pool) = &mut stage.shuffling_chunk_pool {
            (pool.position_cache_size, pool.cachehit_output) = (Some(size), Some(named("hits")));
            stage.input.push("unpack.ahead".into());
        }
        if let Some(unpacker) = &mut stage.chunk_unpacker {
            (unpacker.prefetch_count, unpacker.prefetch_output) = (Some(prefetch), Some(named("ahead")));
        }
        stage.input.iter_mut().filter(|input| *input == "unpack").for_each(|input| *input = "both".into());
    }
    join.input = ["unpack", "pool.hits"].map(String::from).to_vec();
    join.join_positions = Some(JoinPositionsConfig::default());
    config.stage.push(join);
    config
}

/// Waits until nothing listens at an address any more: a socket lives a moment longer than the loader that had it.
pub(crate) fn nobody_listens(address: SocketAddr) {
    let start = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(start.elapsed() < PATIENCE, "{address} is still listened at");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A count or gauge of the pool.
pub(crate) fn of_pool(loader: &DataLoader, name: &str) -> u64 {
    let metrics = loader.metrics();
    let pool = metrics.of_kind("shuffling_chunk_pool").next().unwrap();
    pool.count(name).map(|count| count.total).or(pool.gauge(name).map(|gauge| gauge.value)).unwrap()
}

/// Chunks that were decoded so far.
pub(crate) fn decodes(loader: &DataLoader) -> u64 {
    loader.metrics().of_kind("chunk_unpacker").next().unwrap().count("chunks").unwrap().total
}

pub(crate) fn config(options: &Lc0Preset) -> DataLoaderConfig {
    lc0(options).unwrap()
}
