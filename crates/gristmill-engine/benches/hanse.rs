//! One position of each game, and a small share of the positions: CPU per delivered position against the inflation that
//! it cannot do without, and against the same from a pack. `cargo bench --bench hanse [FOLDER]` takes a folder of `.gz` games; without one it generates some.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]
#![allow(unsafe_code, reason = "the peer that it is measured against is a C library")]

mod chess_games;
mod processor;

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{
    DataLoaderConfig, HanseSamplingConfig, IndexConfig, JoinPositionsConfig, PositionSamplingConfig, QueueConfig,
    StageConfig,
};
use gristmill_engine::pipeline::Metrics;
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::runtime::sheet::SheetPool;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{DataLoader, IndexLoader, Next};
use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::chess::{ChessEncoder, Outputs};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::container::salvage::inflate_prefix;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_jobs::pack::{PackOptions, pack};
use processor::cpu;

const ROUNDS: usize = 3;
const RECORD: usize = V6_BYTES;
const RATE: f32 = 0.03;
/// Positions of a batch, as loaders have it where nothing else is said, those of it that are encoded together, and batches that
/// are made ahead and counted with the delivered ones.
const BATCH: usize = 1024;
const TOGETHER: usize = 16;
const AHEAD: usize = 6;
/// Positions that the cache keeps of a game: seven draws in eight are hits once it is full.
const PREFETCH: u32 = 7;

fn best(mut measure: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// How a game of this many frames is inflated.
type Inflate<'a> = &'a mut dyn FnMut(&[u8], usize, &mut Vec<u8>);

/// The games by file name: stored bytes and frames.
struct Games(HashMap<String, (Vec<u8>, usize)>);

impl Games {
    fn read(folder: &Path) -> Self {
        let mut games = HashMap::new();
        let (mut inflater, mut out) = (Inflater::default(), Vec::new());
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("readable");
            if path.extension().is_some_and(|e| e == "gz") && inflater.inflate(&bytes, 1 << 26, &mut out).is_ok() {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                games.insert(name, (bytes, out.len() / RECORD));
            }
        }
        Games(games)
    }

    /// CPU seconds for a frame: inflating whole games at once, streaming them through the faster of stock zlib and what
    /// we salvage with, and inflating them as heads.
    fn costs(&self) -> [f64; 3] {
        let frames: usize = self.0.values().map(|(_, frames)| frames).sum();
        let (mut inflater, mut out) = (Inflater::default(), Vec::new());
        let mut timed = |inflate: Inflate<'_>| {
            best(|| {
                let start = cpu();
                self.0.values().for_each(|(bytes, frames)| inflate(bytes, *frames, &mut out));
                (cpu() - start) / frames as f64
            })
        };
        let whole = timed(&mut |bytes, _, out| _ = inflater.inflate(bytes, 1 << 26, out).expect("sound"));
        let salvaged = timed(&mut |bytes, frames, out| inflate_prefix(bytes, frames * RECORD, out).expect("sound"));
        let stock = timed(&mut |bytes, frames, out| zlib_prefix(bytes, frames * RECORD, out));
        let mut inflater = Inflater::default();
        let heads = timed(&mut |bytes, frames, out| {
            let want = frames.saturating_sub(1) * RECORD;
            _ = inflater.inflate_head(bytes, want, out).expect("memory");
        });
        [whole, salvaged.min(stock), heads]
    }
}

/// Streams the first `n` bytes of a gzip file with the C library.
fn zlib_prefix(game: &[u8], n: usize, out: &mut Vec<u8>) {
    out.resize(n, 0);
    let mut stream = MaybeUninit::<libz_sys::z_stream>::zeroed();
    let stream = stream.as_mut_ptr();
    // SAFETY: zlib wants a zeroed stream and fills it in; both buffers are valid for the lengths given and outlive
    // the calls; the stream is ended once.
    unsafe {
        (*stream).next_in = game.as_ptr().cast_mut();
        (*stream).avail_in = u32::try_from(game.len()).expect("small");
        (*stream).next_out = out.as_mut_ptr();
        (*stream).avail_out = u32::try_from(n).expect("small");
        let size = i32::try_from(size_of::<libz_sys::z_stream>()).expect("small");
        assert_eq!(libz_sys::inflateInit2_(stream, 15 + 16, libz_sys::zlibVersion(), size), libz_sys::Z_OK);
        libz_sys::inflate(stream, libz_sys::Z_SYNC_FLUSH);
        assert_eq!((*stream).avail_out, 0, "as long as it is known to be");
        libz_sys::inflateEnd(stream);
    }
}

fn preset(folder: &Path, index: &Path, tensors: &[&str]) -> Lc0Preset {
    Lc0Preset {
        directories: vec![Weighted { directory: folder.to_owned(), weight: 1.0 }],
        reservoir: Some(4096),
        watch: Some(false),
        seed: Some(1),
        threads: Some(1),
        tensors: tensors.iter().map(|name| (*name).to_owned()).collect(),
        index: Some(index.to_owned()),
        ..Lc0Preset::default()
    }
}

fn single(folder: &Path, index: &Path, tensors: &[&str]) -> DataLoaderConfig {
    let options = Lc0Preset { position_count: Some(1), ..preset(folder, index, tensors) };
    let mut config = lc0(&options).expect("a preset");
    for pool in config.stage.iter_mut().filter_map(|stage| stage.shuffling_chunk_pool.as_mut()) {
        pool.hanse_sampling_threshold = Some(1);
    }
    config
}

/// The same with a position cache for all games.
fn cached(folder: &Path, index: &Path, tensors: &[&str], games: u64) -> DataLoaderConfig {
    let mut config = single(folder, index, tensors);
    let named = |name: &str| Some(QueueConfig { name: name.to_owned(), ..QueueConfig::default() });
    for stage in &mut config.stage {
        if let Some(pool) = &mut stage.shuffling_chunk_pool {
            (pool.chunk_pool_size, pool.position_cache_size) = (games, Some(games * u64::from(PREFETCH)));
            pool.hanse_sampling_threshold = None;
            pool.cachehit_output = named("hits");
            stage.input.push("unpack.ahead".to_owned());
        }
        if let Some(unpacker) = &mut stage.chunk_unpacker {
            (unpacker.prefetch_count, unpacker.prefetch_output) = (Some(PREFETCH), named("ahead"));
        }
        stage.input.iter_mut().filter(|input| *input == "unpack").for_each(|input| *input = "both".to_owned());
    }
    let input = vec!["unpack".to_owned(), "pool.hits".to_owned()];
    let join_positions = Some(JoinPositionsConfig::default());
    config.stage.push(StageConfig { name: "both".to_owned(), input, join_positions, ..StageConfig::default() });
    config
}

fn share(folder: &Path, index: &Path, tensors: &[&str]) -> DataLoaderConfig {
    let options = Lc0Preset { sampling_rate: Some(RATE), ..preset(folder, index, tensors) };
    lc0(&options).expect("a preset")
}

/// CPU seconds per position, once all games were seen and the reservoir is full.
fn delivered(config: &DataLoaderConfig, positions: usize) -> f64 {
    looked_at(config, positions).0
}

/// The same, and which share of the draws the cache answered.
fn looked_at(config: &DataLoaderConfig, positions: usize) -> (f64, f64) {
    let loader = DataLoader::new(config.clone()).expect("a config");
    let next = || match loader.next("", None).expect("sound") {
        Next::Batch(batch) => batch.rows,
        _ => 0,
    };
    (0..12).for_each(|_| _ = next());
    let count = |name: &str| counted(&loader.metrics(), "shuffling_chunk_pool", name);
    let [hits, misses] = ["cache_hits", "cache_misses"].map(count);
    let (start, mut rows) = (cpu(), 0);
    while rows < positions {
        rows += next();
    }
    let spent = (cpu() - start) / rows as f64;
    let (hits, misses) = (count("cache_hits") - hits, count("cache_misses") - misses);
    (spent, hits / (hits + misses).max(1.0))
}

/// The positions of a stream, as file name and frame.
fn stream(config: &DataLoaderConfig, positions: usize) -> Vec<(String, usize)> {
    let loader = DataLoader::new(config.clone()).expect("a config");
    let mut found = Vec::new();
    while found.len() < positions {
        let Next::Batch(batch) = loader.next("", None).expect("sound") else { break };
        for row in batch.column("ids").expect("selected").bytes().chunks_exact(24).take(batch.rows) {
            let number = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("8 bytes"));
            found.push((loader.source_path(number(0)).expect("known"), number(16) as usize));
        }
    }
    found
}

/// What positions weigh, and the same for games of a stream: by difference focus.
fn focus() -> PositionSamplingConfig {
    PositionSamplingConfig { diff_focus_q_weight: Some(6.0), diff_focus_pol_scale: Some(3.0), ..Default::default() }
}

fn weighed(mut config: DataLoaderConfig) -> DataLoaderConfig {
    for stage in &mut config.stage {
        stage.shuffling_chunk_pool.iter_mut().for_each(|pool| pool.position_sampling = Some(focus()));
        stage.chunk_unpacker.iter_mut().for_each(|unpacker| unpacker.position_sampling = Some(focus()));
    }
    config
}

/// What a stage of this kind has counted.
fn counted(metrics: &Metrics, kind: &str, name: &str) -> f64 {
    let stage = metrics.of_kind(kind).next();
    stage.and_then(|stage| stage.count(name)).map_or(0.0, |count| count.total as f64)
}

/// CPU seconds for a position from the very start, nothing known; those that were made ahead count, too.
fn cold(config: &DataLoaderConfig, positions: usize) -> f64 {
    let loader = DataLoader::new(config.clone()).expect("a config");
    let (start, mut rows) = (cpu(), 0);
    while rows < positions {
        let Next::Batch(batch) = loader.next("", None).expect("sound") else { break };
        rows += batch.rows;
    }
    (cpu() - start) / counted(&loader.metrics(), "chunk_unpacker", "frames")
}

/// CPU seconds for a position drawn from a pack: opened for it, or with all sums known and warm.
fn drawn(folder: &Path, (sampling, tensors): (&HanseSamplingConfig, &[&str]), positions: usize, warm: bool) -> f64 {
    let start = cpu();
    let all = Selection::all(Arc::new(ChunkPack::open(folder, Residence::Mapped).expect("a pack")));
    let config = IndexConfig {
        tensors: tensors.iter().map(|name| (*name).to_owned()).collect(),
        sampling: Some(sampling.clone()),
        epochs: None,
        seed: Some(1),
        threads: Some(1),
        ..IndexConfig::default()
    };
    let loader = IndexLoader::new(all.input(), config).expect("a loader");
    let next = || match loader.next("", None).expect("sound") {
        Next::Batch(batch) => batch.rows,
        _ => 0,
    };
    let made = || counted(&loader.metrics(), "tensor_generator", "rows");
    let (start, before) = if warm {
        (0..12).for_each(|_| _ = next());
        (cpu(), made())
    } else {
        (start, 0.0)
    };
    let mut rows = 0;
    while rows < positions {
        rows += next();
    }
    (cpu() - start) / (made() - before)
}

/// CPU seconds of the tensors of a position alone, its record at hand: into memory that was written before, as a loader's is.
fn tensors_alone(folder: &Path, tensors: &[&str]) -> f64 {
    let all = Selection::all(Arc::new(ChunkPack::open(folder, Residence::Mapped).expect("a pack")));
    let records = all.take(&(0..TOGETHER as u64).collect::<Vec<_>>()).expect("positions");
    let names: Vec<String> = tensors.iter().map(|name| (*name).to_owned()).collect();
    let encoder = ChessEncoder::new(&Outputs::parse(&names).expect("names")).expect("an encoder");
    let rows: Vec<Row<'_>> = records
        .chunks_exact(all.layout().size())
        .map(|record| Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None })
        .collect();
    let row_bytes: Vec<usize> = encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
    let pool = SheetPool::new(BATCH, row_bytes, 1);
    best(|| {
        let start = cpu();
        for _ in 0..AHEAD {
            let sheet = pool.take().expect("memory");
            for first in (0..BATCH).step_by(TOGETHER) {
                sheet.write(first, TOGETHER, |columns| encoder.encode(&rows, columns)).expect("rows");
            }
            // What is let go of is written again.
            drop(pool.share(sheet));
        }
        (cpu() - start) / (AHEAD * BATCH) as f64
    })
}

/// Single positions by Hanse sampling, from a pack and from the `.gz` files that it was made of: once lengths and weights are
/// known, so that a stream over `.gz` rejects without inflating, too; and a first start over each, the files as they came, whose
/// games are inflated to be weighed, and the pack as `gristmill pack --weigh` leaves it, opened for this, its sums beside it.
fn from_a_pack(folder: &Path, games: usize) {
    let made = tempfile::tempdir().expect("a folder");
    pack(&PackOptions { weigh: vec![focus()], ..PackOptions::new(folder, made.path()) }, &mut |_| {}).expect("a pack");
    let positions = (4 * games).max(AHEAD * BATCH);
    println!("Hanse sampling, one position a draw: a pack against its .gz files; CPU microseconds a position");
    println!(
        "  goal: 100 x, the write of the tensors, which is the same for both, apart; a first start clears new memory, too"
    );
    for tensors in [["planes", "probs", "values"], ["planes:bits", "probs", "values"]] {
        let alone = tensors_alone(made.path(), &tensors);
        println!("  {}; written alone {:.2}", tensors.join(","), alone * 1e6);
        let by_weight = HanseSamplingConfig { position_sampling: Some(focus()), ..HanseSamplingConfig::default() };
        for (name, sampling, is_weighed) in
            [("equal weights", HanseSamplingConfig::default(), false), ("difference focus", by_weight, true)]
        {
            let index = tempfile::tempdir().expect("a folder");
            let of = |index: &Path| {
                let config = single(folder, index, &tensors);
                if is_weighed { weighed(config) } else { config }
            };
            let config = (&sampling, &tensors[..]);
            let first = best(|| cold(&of(Path::new("off")), positions));
            let fresh = best(|| drawn(made.path(), config, positions, false));
            // The first of these learns all lengths and weights, and leaves them in the side index.
            cold(&of(index.path()), positions);
            let later = best(|| delivered(&of(index.path()), 4000));
            let warm = best(|| drawn(made.path(), config, 40_000, true));
            for (what, gz, pack) in [("all known and warm", later, warm), ("first start", first, fresh)] {
                println!(
                    "    {name}, {what}: .gz {:7.2}, pack {:5.2}: {:5.1} x as delivered, {:5.1} x the tensors apart",
                    gz * 1e6,
                    pack * 1e6,
                    gz / pack,
                    (gz - alone) / (pack - alone)
                );
            }
        }
    }
}

fn main() {
    let own = tempfile::tempdir().expect("a folder");
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| chess_games::write(own.path(), 1500, 5));
    let games = Games::read(&folder);
    let frames: usize = games.0.values().map(|(_, frames)| frames).sum();
    let mean = frames as f64 / games.0.len() as f64;
    let [whole, streamed, heads] = games.costs();
    if std::env::args().any(|arg| arg == "--pack-only") {
        return from_a_pack(&folder, games.0.len());
    }
    println!("{} games of {mean:.1} frames; CPU microseconds, best of {ROUNDS}, one thread", games.0.len());
    let [a, b, c] = [whole, streamed, heads].map(|seconds| seconds * 1e6);
    println!("inflation of a frame: whole games {a:.2}, streaming {b:.2}, our heads {c:.2}");

    let index = tempfile::tempdir().expect("a folder");
    let taken = stream(&single(&folder, index.path(), &["ids"]), 20_000);
    let mean = |cost: &dyn Fn(f64, f64) -> f64| {
        let each = taken.iter().map(|(name, frame)| cost(games.0[name].1 as f64, *frame as f64 + 1.0));
        each.sum::<f64>() / taken.len() as f64
    };
    let bound = mean(&|frames, needed| (frames * whole).min(needed * streamed));
    let head = mean(&|frames, needed| (frames * whole).min(needed * heads));
    println!("Hanse sampling, one position of each game taken");
    println!("  pure inflation bound {:7.2} a position: whole or streamed, game by game", bound * 1e6);
    println!("  our heads alone      {:7.2} a position: what the river inflates", head * 1e6);
    for tensors in [&["planes", "probs", "values"][..], &["planes:u8", "probs", "values"], &["planes:bits"]] {
        let river = best(|| delivered(&single(&folder, index.path(), tensors), 12_000));
        println!(
            "  river, {:28} {:7.2} a position: {:3.0} % of the bound's speed (goal >= 90 %)",
            tensors.join(","),
            river * 1e6,
            100.0 * bound / river
        );
    }

    println!("Position cache, {PREFETCH} positions kept of each game, lengths known");
    for tensors in [&["planes", "probs", "values"][..], &["planes:bits"]] {
        let number = games.0.len() as u64;
        let mut plain = single(&folder, index.path(), tensors);
        for pool in plain.stage.iter_mut().filter_map(|stage| stage.shuffling_chunk_pool.as_mut()) {
            pool.hanse_sampling_threshold = None;
        }
        let without = best(|| delivered(&plain, 12_000));
        let mut share = 0.0;
        let with = best(|| {
            let (spent, hits) = looked_at(&cached(&folder, index.path(), tensors, number), 8 * 1500);
            share = hits;
            spent
        });
        println!(
            "  river, {:28} {:7.2} a position without, {:7.2} with {:.0} % of hits: a hit saves {:.0}",
            tensors.join(","),
            without * 1e6,
            with * 1e6,
            100.0 * share,
            1e6 * (without - with) / share
        );
    }

    let inflated = 1.0 / f64::from(RATE);
    println!("Sampling rate {RATE}, whole games inflated for {inflated:.1} frames a position");
    println!("  that inflation       {:7.2} a position", inflated * whole * 1e6);
    for (known, index) in [("nothing known", Path::new("off")), ("lengths known", index.path())] {
        for tensors in [&["planes", "probs", "values"][..], &["planes:u8", "probs", "values"], &["planes:bits"]] {
            let river = best(|| delivered(&share(&folder, index, tensors), 12_000));
            println!(
                "  river, {known}, {:20} {:7.2} a position: {:.2} x the inflation (goal <= 1.20)",
                tensors.join(","),
                river * 1e6,
                river / (inflated * whole)
            );
        }
    }
    from_a_pack(&folder, games.0.len());
}
