//! Start on many small files, and how soon a new file is drawn from: seconds, measured on a warm cache.
//! `cargo bench --bench start [FILES]`; 100 000 files by default.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::DataLoader;
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};

fn options(folder: &Path, first: u64) -> ChessOptions {
    ChessOptions {
        folder: folder.to_owned(),
        games: 1,
        first,
        seed: 5,
        plies_max: 2,
        version: Version::V6,
        games_per_tar: None,
    }
}

fn main() {
    let files: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a folder");
    let mut generator = ChessGenerator::new(options(folder.path(), 1)).expect("options");
    let first = generator.write_next().expect("written").expect("a file").path;
    let game = std::fs::read(first).expect("readable");
    for n in 2..=files {
        std::fs::write(folder.path().join(format!("training.{n}.gz")), &game).expect("written");
    }
    let preset = Lc0Preset {
        directories: vec![Weighted { directory: folder.path().to_owned(), weight: 1.0 }],
        pool: files,
        reservoir: Some(4096),
        seed: Some(1),
        index: Some("off".into()),
        ..Lc0Preset::default()
    };
    for round in 0..4 {
        let start = Instant::now();
        let loader = DataLoader::new(lc0(&preset).expect("a preset")).expect("a config");
        loader.next("", None).expect("a batch");
        let first = start.elapsed();
        let total = |loader: &DataLoader| {
            let metrics = loader.metrics();
            metrics.of_kind("shuffling_chunk_pool").next().and_then(|p| p.gauge("chunks_total")).map_or(0, |g| g.value)
        };
        let before = total(&loader);
        let mut generator = ChessGenerator::new(options(folder.path(), 10_000_000 + round)).expect("options");
        generator.write_next().expect("written");
        let closed = Instant::now();
        while total(&loader) == before {
            std::thread::sleep(Duration::from_millis(1));
        }
        println!(
            "{files} files: first batch after {:.2} s (goal < 2), a new file in the pool after {:.3} s (goal < 1)",
            first.as_secs_f64(),
            closed.elapsed().as_secs_f64()
        );
    }
}
