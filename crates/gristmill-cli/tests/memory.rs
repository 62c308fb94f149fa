//! The memory that a loader promises is what the whole process keeps, measured at its peak.

use std::fs;
use std::path::Path;

use gristmill_format::container::gzip::{Inflater, compress};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::container::zstd;
use gristmill_format::layout::{DType, Order, Scalar};

use crate::command::{Ran, generate, run, text};

const FRAME: u64 = 8448;
const BATCH: u64 = 1024 * 36_176;

/// A folder of games that fill each reservoir below.
fn many_games() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "300", &[]);
    folder
}

/// Peak resident bytes of a run that fills its reservoir and goes on for a while.
fn peak(games: &Path, more: &[&str]) -> u64 {
    let words = ["feed", text(games), "--seed", "1", "--batches", "60", "--json"];
    run(&[&words[..], more].concat()).ok().json()["peak_rss"].as_u64().unwrap()
}

#[test]
fn a_memory_bound_is_kept() {
    let games = many_games();
    for mib in [350, 600] {
        let found = peak(games.path(), &["--memory", &format!("{mib}MiB")]);
        assert!(found <= mib << 20, "{} MiB of {mib}", found >> 20);
        // The size of the reservoir is chosen for whole frames, since frames may not fold; these do, to a quarter.
        assert!(found >= (mib << 20) / 4, "{} MiB of {mib}: the bound is made use of", found >> 20);
    }
}

#[test]
fn without_a_bound_it_is_the_reservoir_four_batches_and_a_hundred_megabytes() {
    let frames = 20_000;
    let found = peak(many_games().path(), &["--reservoir", &frames.to_string()]);
    assert!(found <= frames * FRAME + 4 * BATCH + 100_000_000, "{} MiB", found >> 20);
}

#[test]
fn a_bound_that_cannot_be_kept_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "2", &[]);
    let refused = run(&["feed", text(folder.path()), "--memory", "64MiB", "--batches", "1"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("MiB are needed"), "{}", refused.err);
}

/// Games almost as large as a chunk may be, of the frames of ordinary ones: packed, then plain.
fn large_games(folder: &Path, packed: usize, plain: usize) {
    let small = tempfile::tempdir().unwrap();
    generate(small.path(), "60", &[]);
    let (mut frames, mut game) = (Vec::new(), Vec::new());
    for file in fs::read_dir(small.path()).unwrap() {
        Inflater::default().inflate(&fs::read(file.unwrap().path()).unwrap(), 1 << 30, &mut game).unwrap();
        frames.extend_from_slice(&game);
    }
    let frames = frames.repeat(1 + (12 << 20) / frames.len());
    for i in 0..packed + plain {
        let (from, size) = (8356 * 7 * i, 8356 * ((8 << 20) / 8356 - 7 * (i % 10)));
        let game = &frames[from..from + size];
        let game = if i < packed { &compress(1, game).unwrap()[..] } else { game };
        fs::write(folder.join(format!("training.{i}.gz")), game).unwrap();
    }
}

const STREAM: &str = r#"
output = ["tensors"]

[[stage]]
name = "files"
file_path_provider = { directory = "DIRECTORY", watch = false }

[[stage]]
name = "load"
input = ["files"]
chunk_source_loader = {}

[[stage]]
name = "pool"
input = ["load"]
shuffling_chunk_pool = { chunk_pool_size = 1000 }

[[stage]]
name = "unpack"
input = ["pool"]
chunk_unpacker = { position_count = 16 }

[[stage]]
name = "tensors"
input = ["unpack"]
tensor_generator = { batch_size = 64, output = { queue_capacity = 2 } }
"#;

/// The peak of a stream of such games within the least bound that is taken, and that bound, in bytes.
fn peak_within_the_least_bound(games: &Path, threads: &str) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("stream.toml");
    fs::write(&config, STREAM.replace("DIRECTORY", text(games))).unwrap();
    let feed = |bound: u64| -> Ran {
        let (bound, words) = (format!("{bound}MiB"), ["feed", text(&config), "--threads", threads, "--memory"]);
        run(&[&words[..], &[&bound, "--seed", "1", "--batches", "24", "--index", "off", "--json"]].concat())
    };
    let refused = feed(1);
    let words: Vec<&str> = refused.err.split(' ').collect();
    let needed = words.windows(4).find(|words| words[1..] == ["MiB", "are", "needed,"]).expect(&refused.err)[0];
    let least: u64 = needed.parse().unwrap();
    let fed = feed(least).ok().json();
    assert_eq!((fed["batches"].as_u64(), fed["bad_chunks"].as_u64()), (Some(24), Some(0)), "{fed}");
    (fed["peak_rss"].as_u64().unwrap(), least << 20)
}

#[test]
fn the_least_bound_is_kept_with_the_largest_games_and_any_number_of_threads() {
    for (packed, plain, threads) in [(40, 0, &["1", "16", "64"][..]), (0, 40, &["1", "64"])] {
        let games = tempfile::tempdir().unwrap();
        large_games(games.path(), packed, plain);
        for threads in threads {
            let (found, least) = peak_within_the_least_bound(games.path(), threads);
            let of = format!("{packed} packed and {plain} plain games, {threads} threads");
            assert!(found <= least, "{of}: {} MiB of {}", found >> 20, least >> 20);
        }
    }
}

/// Bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut made = Vec::with_capacity(bytes + 4);
    while made.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        made.extend_from_slice(&((state >> 32) as u32).to_le_bytes());
    }
    made.truncate(bytes);
    made
}

/// An `.npz` of trajectories of a thousand steps, whose records have twice the bytes of its observations.
fn arrays(trajectories: usize) -> Vec<u8> {
    let steps = 1000 * trajectories;
    let obs = noise(trajectories as u64, (steps + trajectories) * 1024);
    let ends: Vec<u8> = (1..trajectories as i64).flat_map(|i| (1000 * i).to_le_bytes()).collect();
    let mut npz = NpzWriter::new(Vec::new(), 0);
    let mut array = |name: &str, scalar: Scalar, shape: &[u64], bytes: &[u8]| {
        npz.array(name, &DType::Scalar(scalar, Order::Little), shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    };
    array("obs", Scalar::U8, &[(steps + trajectories) as u64, 1024], &obs);
    array("acts", Scalar::U8, &[steps as u64], &vec![0; steps]);
    array("indices", Scalar::I64, &[trajectories as u64 - 1], &ends);
    array("terminal", Scalar::Bool, &[trajectories as u64], &vec![1; trajectories]);
    npz.finish().unwrap()
}

/// A packed shard of `steps` steps.
fn shard(steps: usize) -> Vec<u8> {
    let header =
        |scalar, shape: &[u64]| Header::write(&DType::Scalar(scalar, Order::Little), shape, Spelling::NumPy).unwrap();
    let (obs, flag, values) = (header(Scalar::U8, &[1024]), header(Scalar::Bool, &[]), noise(7, 1024 * steps));
    let mut tar = TarWriter::new(Vec::new());
    for (step, values) in values.chunks_exact(1024).enumerate() {
        tar.append(&format!("{step:06}.dones.npy"), &[&flag[..], &[u8::from(step % 1000 == 999)]].concat()).unwrap();
        tar.append(&format!("{step:06}.obs.npy"), &[&obs[..], values].concat()).unwrap();
    }
    zstd::compress(1, &tar.finish().unwrap()).unwrap()
}

#[test]
fn files_that_are_read_whole_stay_within_ten_times_their_bound() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("in");
    fs::create_dir(&games).unwrap();
    for i in 0..6 {
        fs::write(games.join(format!("{i}.npz")), arrays(15 - i % 3)).unwrap();
        fs::write(games.join(format!("{i}.tar.zst")), shard(10_000 + 100 * i)).unwrap();
    }
    let config = folder.path().join("stream.toml");
    let fields = r#"{ encoder = "fields", tensors = ["obs:u8[1024]"], "#;
    let stream = STREAM
        .replace("DIRECTORY", text(&games))
        .replace("tensor_generator = { ", &format!("tensor_generator = {fields}"));
    fs::write(&config, format!("max_solid_bytes = \"32MiB\"\n{stream}")).unwrap();
    let feed = |bound: &str| {
        let words = ["feed", text(&config), "--threads", "1", "--memory", bound, "--seed", "1", "--batches", "24"];
        run(&[&words[..], &["--index", "off", "--json"]].concat())
    };
    let refused = feed("1MiB");
    let words: Vec<&str> = refused.err.split(' ').collect();
    let needed = words.windows(4).find(|words| words[1..] == ["MiB", "are", "needed,"]).expect(&refused.err)[0];
    let fed = feed(&format!("{needed}MiB")).ok().json();
    assert_eq!((fed["batches"].as_u64(), fed["bad_chunks"].as_u64()), (Some(24), Some(0)), "{fed}");
    let (found, least) = (fed["peak_rss"].as_u64().unwrap() >> 20, needed.parse::<u64>().unwrap());
    assert!(found <= least && found > 160, "{found} MiB of {least}");
}
