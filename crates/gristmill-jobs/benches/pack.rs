//! Packing and merging 2048 games: rows/s of CPU time beside zlib and serde_json on the same files, two workers beside
//! one, and merging beside copying. Best of interleaved rounds. `GAMES=DIR` packs raw games that are there already;
//! `-- merge` merges only.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../gristmill-format/benches/played/mod.rs"]
mod played;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use gristmill_format::container::gzip::compress;
use gristmill_format::g2048::RowForm;
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::{Existing, PackOptions, pack};
use played::{Peer, game};

const ROUNDS: usize = 5;
const GAMES: u64 = 24;
const ROWS: usize = 28_000;

/// Rows of the one long game.
const LONG: usize = 400_000;

/// Times that the packs to be merged hold the games: what a merge does once must not count.
const FOLD: usize = 6;

fn main() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let many = std::env::var_os("GAMES").map_or_else(|| drop_of(at("many"), GAMES, ROWS), PathBuf::from);
    if std::env::args().any(|word| word == "merge") {
        return merging(&many, &at);
    }
    let long = drop_of(at("long"), 1, LONG);
    for (name, drop) in [("games", &many), ("one long game", &long)] {
        let (mut peer, mut one, mut two) = (Best::default(), Best::default(), Best::default());
        let mut ceiling: f64 = 0.0;
        for _ in 0..ROUNDS {
            peer.take(baseline(drop, &at("peer.npy")));
            one.take(packed(drop, &at("one"), 1));
            two.take(packed(drop, &at("two"), 2));
            ceiling = ceiling.max(scaling(drop));
        }
        println!("{name}: {} rows", one.rows);
        println!("  zlib + serde_json  {:6.2} M rows/s of CPU time", peer.per_cpu());
        println!(
            "  pack, one worker   {:6.2}   {:.2} x the peer (goal >= 1.3 M rows/s)",
            one.per_cpu(),
            peer.cpu / one.cpu
        );
        println!("  pack, two workers  {:6.2}", two.per_cpu());
        println!(
            "  two workers over one, by the clock: {:.2} x (goal >= 1.8; two threads of the peer alone: {ceiling:.2} x)",
            one.wall / two.wall
        );
    }
    merging(&many, &at);
}

/// Writes raw games.
fn drop_of(folder: PathBuf, games: u64, rows: usize) -> PathBuf {
    fs::create_dir(&folder).unwrap();
    for seed in 0..games {
        let sidecar = format!("{{\"seed\":{seed},\"num_moves\":{rows},\"score\":1,\"max_tile\":32768,\"depth\":6}}");
        fs::write(folder.join(format!("game{seed:06}.meta.json")), sidecar).unwrap();
        let stored = compress(6, game(seed, rows).as_bytes()).unwrap();
        fs::write(folder.join(format!("game{seed:06}.jsonl.gz")), stored).unwrap();
    }
    folder
}

/// What a run took.
#[derive(Clone, Copy)]
struct Took {
    rows: u64,
    cpu: f64,
    wall: f64,
}

/// The best of some runs.
#[derive(Clone, Copy)]
struct Best {
    rows: u64,
    cpu: f64,
    wall: f64,
}

impl Default for Best {
    fn default() -> Self {
        Best { rows: 0, cpu: f64::INFINITY, wall: f64::INFINITY }
    }
}

impl Best {
    fn take(&mut self, took: Took) {
        self.rows = took.rows;
        self.cpu = self.cpu.min(took.cpu);
        self.wall = self.wall.min(took.wall);
    }

    fn per_cpu(&self) -> f64 {
        self.rows as f64 / self.cpu / 1e6
    }
}

fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measured(work: impl FnOnce() -> u64) -> Took {
    let (cpu, wall) = (cpu_time(), Instant::now());
    let rows = work();
    Took { rows, cpu: cpu_time() - cpu, wall: wall.elapsed().as_secs_f64() }
}

fn logs(drop: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(drop).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_str().unwrap().ends_with(".jsonl.gz"));
    found.sort();
    found
}

/// The same files read and their rows written, one thread, as one would do it first.
fn baseline(drop: &Path, to: &Path) -> Took {
    measured(|| {
        let (mut peer, mut rows, mut file) = (Peer::default(), 0, File::create(to).unwrap());
        for log in logs(drop) {
            rows += peer.rows(&fs::read(log).unwrap()) as u64;
            file.write_all(&peer.out).unwrap();
        }
        rows
    })
}

fn packed(drop: &Path, to: &Path, workers: usize) -> Took {
    let options = PackOptions {
        workers,
        layout: Some(RowForm::Packed),
        existing: Existing::Overwrite,
        ..PackOptions::new(drop, to)
    };
    measured(|| pack(&options, &mut |_| {}).unwrap().rows)
}

/// How much two threads of the peer, which share nothing, gain over one: the ceiling of any scaling, now.
fn scaling(drop: &Path) -> f64 {
    let stored = fs::read(&logs(drop)[0]).unwrap();
    let wall = |threads: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| Peer::default().rows(&stored));
            }
        });
        start.elapsed().as_secs_f64() / threads as f64
    };
    wall(1) / wall(2)
}

/// Merges packs of either form, beside copying their files; both make what they write durable.
fn merging(drop: &Path, at: &dyn Fn(&str) -> PathBuf) {
    for (name, form) in [("left", RowForm::Packed), ("right", RowForm::Aligned)] {
        let packs: Vec<PathBuf> = (0..FOLD).map(|i| at(&format!("{name}{i}"))).collect();
        for to in &packs {
            let options = PackOptions { layout: Some(form), ..PackOptions::new(drop, to) };
            pack(&options, &mut |_| {}).unwrap();
        }
        let options = MergeOptions { layout: form, delete_inputs: true, ..MergeOptions::new(packs, at(name)) };
        merge(&options, &mut |_, _| {}).unwrap();
    }
    for (name, inputs) in [("48 + 48 -> 48", ["right", "twin"]), ("46 + 48 -> 48", ["left", "right"])] {
        let _ = fs::create_dir(at("twin"));
        for entry in fs::read_dir(at("right")).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, at("twin").join(path.file_name().unwrap())).unwrap();
        }
        let inputs: Vec<PathBuf> = inputs.iter().map(|input| at(input)).collect();
        let (mut copy, mut one, mut two) = (Best::default(), Best::default(), Best::default());
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            bytes = 0;
            copy.take(measured(|| {
                for input in &inputs {
                    let to = at("copy");
                    bytes += fs::copy(input.join("steps.npy"), &to).unwrap();
                    File::open(&to).unwrap().sync_all().unwrap();
                }
                0
            }));
            for (workers, best) in [(1, &mut one), (2, &mut two)] {
                let options =
                    MergeOptions { workers, overwrite: true, ..MergeOptions::new(inputs.clone(), at("merged")) };
                best.take(measured(|| merge(&options, &mut |_, _| {}).unwrap().rows));
            }
        }
        let rate = |took: f64| bytes as f64 / took / 1e6;
        println!("merge {name}: {} rows, {:.0} MB in", one.rows, bytes as f64 / 1e6);
        println!("  copying      {:6.0} MB/s by the clock, {:6.0} of CPU time", rate(copy.wall), rate(copy.cpu));
        for (workers, best) in [(1, one), (2, two)] {
            println!(
                "  {workers} workers    {:6.0} MB/s by the clock, {:6.0} of CPU time: {:.2} of copying (goal >= 0.60)",
                rate(best.wall),
                rate(best.cpu),
                copy.wall / best.wall
            );
        }
    }
}
