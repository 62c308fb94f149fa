//! Saving a state while the stream runs: its size, how long it takes, and how long the stream stands still for it.
//! `cargo bench --bench state [CHUNKS]`: a pool and a reservoir of CHUNKS, in 200 tars; 100 000 by default.
//! A million takes 9 GB of memory for the frames of the reservoir.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::{DataLoader, Next};
use gristmill_format::chess::{FrameMut, InputFormat, Version};
use gristmill_format::container::gzip;
use gristmill_format::container::tar::TarWriter;

const TARS: u64 = 200;

/// Tars of games of one frame each.
fn write(folder: &Path, chunks: u64) {
    let mut bytes = vec![0; Version::V6.bytes()];
    FrameMut::blank(&mut bytes, InputFormat::Classical).expect("a frame");
    let game = gzip::compress(6, &bytes).expect("compressed");
    for number in 0..TARS {
        let mut tar = TarWriter::new(Vec::new());
        for i in 0..chunks / TARS {
            tar.append(&format!("d/training.{number}.{i}.gz"), &game).expect("a member");
        }
        std::fs::write(folder.join(format!("training.{number}.tar")), tar.finish().expect("a tar")).expect("written");
    }
}

fn next(loader: &DataLoader) {
    match loader.next("", None).expect("a batch") {
        Next::Batch(_) => {}
        other => unreachable!("{other:?}"),
    }
}

/// The longest wait for a batch until `done`, and how many came.
fn longest_wait(loader: &DataLoader, done: &AtomicBool) -> (Duration, u64) {
    let (mut longest, mut batches) = (Duration::ZERO, 0);
    while !done.load(Ordering::Relaxed) {
        let start = Instant::now();
        next(loader);
        longest = longest.max(start.elapsed());
        batches += 1;
    }
    (longest, batches)
}

fn main() {
    let chunks: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), chunks);
    let preset = Lc0Preset {
        directories: vec![Weighted { directory: folder.path().to_owned(), weight: 1.0 }],
        pool: chunks,
        reservoir: Some(usize::try_from(chunks).expect("a size")),
        batch_size: 256,
        watch: Some(false),
        seed: Some(1),
        tensors: vec!["values".into()],
        index: Some("off".into()),
        ..Lc0Preset::default()
    };
    let loader = DataLoader::new(lc0(&preset).expect("a preset")).expect("a config");
    // Past the middle of the second pass, where no chunk's use tells another's.
    (0..chunks / 2 / 256).for_each(|_| next(&loader));
    let measured = |body: &dyn Fn()| {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| longest_wait(&loader, &done));
            let start = Instant::now();
            body();
            let took = start.elapsed();
            done.store(true, Ordering::Relaxed);
            (took, reader.join().expect("a reader"))
        })
    };
    let (_, (plain, _)) = measured(&|| std::thread::sleep(Duration::from_secs(2)));
    let path = folder.path().with_extension("state");
    for _ in 0..4 {
        let (took, (paused, batches)) = measured(&|| loader.save(&path).expect("saved"));
        let size = std::fs::metadata(&path).expect("a file").len();
        println!(
            "{chunks} chunks and rows in {TARS} tars: {:.2} MB ({:.2} bytes for each), saved in {:.0} ms; the longest wait for \
             a batch meanwhile {:.1} ms ({batches} came), in 2 s without a save {:.1} ms (goal for 1 000 000: < 16 MB, < 50 ms)",
            size as f64 / 1e6,
            size as f64 / chunks as f64,
            took.as_secs_f64() * 1e3,
            paused.as_secs_f64() * 1e3,
            plain.as_secs_f64() * 1e3,
        );
    }
    drop(loader);
    let start = Instant::now();
    let again = DataLoader::new(lc0(&preset).expect("a preset")).expect("a config");
    again.load(&path, gristmill_engine::Missing::Refuse).expect("loaded");
    next(&again);
    println!(
        "restored, the rows of the reservoir read again, first batch after {:.2} s",
        start.elapsed().as_secs_f64()
    );
    std::fs::remove_file(path).expect("removed");
}
