//! Demonstrations of 49 kB a step (two stacks of two pictures of 64 x 64, in colour) through the whole loader, beside bare copying and
//! bare decompression of the same shards, in one run: CPU microseconds a step, and ratios. Then packing, and random steps of the pack.
//! `cargo bench --bench demonstrations [tar|tgz|tar.zst|pack|take ...]` takes some parts alone.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the figures are what a benchmark is for, and it may open files"
)]

mod processor;

use std::hint::black_box;
use std::path::Path;

use gristmill_engine::config::{EncoderConfig, MemorySize};
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::runtime::pages::Pages;
use gristmill_engine::{DataLoader, Next};
use gristmill_format::container::gzip::{self, Inflater};
use gristmill_format::container::zstd;
use gristmill_format::demo::pickled::fields;
use gristmill_format::demo::shard::{Members, ShardWriter, metadata};
use gristmill_format::layout::{Layout, Scalar};
use gristmill_jobs::pack::{Existing, PackOptions, pack};
use processor::cpu;

/// The allocator of the command and of the Python module.
#[global_allocator]
static PAGES: Pages = Pages;

const STEPS: usize = 250;
const SHARDS: usize = 12;
const DISTINCT: usize = 3;
const BATCH: usize = 64;
const RESERVOIR: usize = 512;
const ROUNDS: usize = 3;
const PASSES: usize = 6;
const SIDE: usize = 64;
const PICTURE: usize = 3 * SIDE * SIDE;

/// A world of tiles whose textures are smooth, through which a window moves, and men that walk on it.
struct World {
    tiles: Vec<u8>,
    wide: usize,
    men: Vec<Vec<u8>>,
    state: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = World { tiles: Vec::new(), wide: 0, men: Vec::new(), state: seed };
        let kinds: Vec<Vec<u8>> = (0..24).map(|_| world.texture(16)).collect();
        world.men = (0..6).map(|_| world.texture(8)).collect();
        let (across, down) = (64, 8);
        world.wide = across * 16;
        world.tiles = vec![0; world.wide * down * 16 * 3];
        for tile in 0..across * down {
            let kind = &kinds[world.below(24)];
            for y in 0..16 {
                let at = ((tile / across * 16 + y) * world.wide + tile % across * 16) * 3;
                world.tiles[at..at + 48].copy_from_slice(&kind[y * 48..][..48]);
            }
        }
        world
    }

    fn below(&mut self, n: u64) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % n) as usize
    }

    /// A square of `side` pixels whose colours change slowly, with some grain.
    fn texture(&mut self, side: usize) -> Vec<u8> {
        let corners: Vec<f64> = (0..12).map(|_| self.below(256) as f64).collect();
        let mut pixels = Vec::new();
        for (y, x) in (0..side).flat_map(|y| (0..side).map(move |x| (y, x))) {
            let (v, u) = (y as f64 / side as f64, x as f64 / side as f64);
            for c in 0..3 {
                let at = |i: usize| corners[4 * c + i];
                let mean = (at(0) * (1.0 - u) + at(1) * u) * (1.0 - v) + (at(2) * (1.0 - u) + at(3) * u) * v;
                pixels.push((mean + self.below(9) as f64 - 4.0).clamp(0.0, 255.0) as u8);
            }
        }
        pixels
    }

    /// The pictures of a walk, channels first.
    fn walk(&mut self, steps: usize) -> Vec<Vec<u8>> {
        let (mut x, mut y) = (self.below(64), 32);
        let mut men: Vec<(usize, usize)> = (0..6).map(|_| (self.below(56), self.below(56))).collect();
        let mut pictures = Vec::with_capacity(steps);
        for _ in 0..steps {
            x = (x + 1 + self.below(3)) % (self.wide - SIDE);
            y = (y + self.below(3)).saturating_sub(1).min(63);
            let mut picture = vec![0; PICTURE];
            for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
                let at = ((y + row) * self.wide + x + column) * 3;
                for c in 0..3 {
                    picture[c * SIDE * SIDE + row * SIDE + column] = self.tiles[at + c];
                }
            }
            for (man, (top, left)) in men.iter_mut().enumerate() {
                *top = (*top + self.below(3)).saturating_sub(1).min(55);
                *left = (*left + self.below(5)).saturating_sub(2).min(55);
                for (i, value) in self.men[man].iter().enumerate() {
                    let (row, column) = (*top + i / 3 / 8, *left + i / 3 % 8);
                    picture[i % 3 * SIDE * SIDE + row * SIDE + column] = *value;
                }
            }
            pictures.push(picture);
        }
        pictures
    }
}

/// A shard of pickles, as `il-representations` and `imitation` write it: `obs` and `next_obs` of two pictures, `acts`, `dones`.
fn shard(seed: u64) -> Vec<u8> {
    let six = b"(dVn\nI6\ns.";
    let meta = metadata(b"(dVtask_name\nVwalk\ns.", ("Discrete", six), ("Discrete", six), "RGB").unwrap();
    let mut writer = ShardWriter::new(Vec::new(), &meta, Members::Pickle).unwrap();
    let stack: &[usize] = &[6, SIDE, SIDE];
    let layout = Layout::aligned(&[
        ("acts", Scalar::I64, &[]),
        ("dones", Scalar::Bool, &[]),
        ("next_obs", Scalar::U8, stack),
        ("obs", Scalar::U8, stack),
    ])
    .unwrap();
    let mut world = World::new(seed);
    let pictures = world.walk(STEPS + 2);
    let place = |name: &str| layout.field(name).unwrap().offset;
    for step in 0..STEPS {
        let mut record = vec![0; layout.size()];
        record[place("acts")] = (step % 6) as u8;
        record[place("dones")] = u8::from(step % 125 == 124);
        for (name, first) in [("obs", step), ("next_obs", step + 1)] {
            for (i, picture) in pictures[first..first + 2].iter().enumerate() {
                record[place(name) + i * PICTURE..][..PICTURE].copy_from_slice(picture);
            }
        }
        writer.frame(&fields(&layout, &record, []).unwrap()).unwrap();
    }
    writer.finish().unwrap()
}

/// The whole loader: CPU seconds a step in the first pass, with its start, and in passes in which each shard is read again.
fn stream(folder: &Path) -> [f64; 2] {
    let options = Lc0Preset {
        directories: vec![Weighted { directory: folder.to_owned(), weight: 1.0 }],
        reservoir: Some(RESERVOIR),
        batch_size: BATCH,
        epochs: Some(1000),
        seed: Some(1),
        threads: Some(1),
        encoder: EncoderConfig::Fields,
        tensors: ["obs:u8[6,64,64]", "next_obs:u8[6,64,64]", "acts:i64", "dones:bool"].map(String::from).to_vec(),
        max_solid_bytes: Some(MemorySize(13 << 20)),
        index: Some("off".into()),
        ..Lc0Preset::default()
    };
    let start = cpu();
    let loader = DataLoader::new(lc0(&options).unwrap()).unwrap();
    let next = || match loader.next("", None).unwrap() {
        Next::Batch(batch) => batch.rows,
        _ => 0,
    };
    let pass = |passes: usize| {
        let mut steps = 0;
        while steps < passes * SHARDS * STEPS {
            steps += next();
        }
        steps as f64
    };
    let first = pass(1);
    let first = (cpu() - start) / first;
    pass(1);
    let start = cpu();
    let steps = pass(PASSES);
    [first, (cpu() - start) / steps]
}

fn best(mut measure: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// CPU seconds a step of something done to one shard.
fn alone(mut work: impl FnMut()) -> f64 {
    work();
    best(|| {
        let start = cpu();
        (0..8).for_each(|_| work());
        (cpu() - start) / (8 * STEPS) as f64
    })
}

fn show(name: &str, took: f64, beside: &str) {
    println!("  {name:24} {:7.2} us, {:7.0} steps a CPU second{beside}", took * 1e6, 1.0 / took);
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |part: &str| wanted.is_empty() || wanted.iter().any(|one| one == part);
    let folder = tempfile::tempdir().unwrap();
    let tars: Vec<Vec<u8>> = (0..DISTINCT as u64).map(shard).collect();
    let size = tars[0].len();
    println!("{SHARDS} shards of {STEPS} steps, {:.1} kB a step; best of {ROUNDS}", size as f64 / STEPS as f64 / 1e3);
    let (mut one, mut two) = (tars[0].clone(), tars[1].clone());
    for (packing, goal) in [("tar", 0.0), ("tgz", 1.25), ("tar.zst", 1.7)].into_iter().filter(|(name, _)| wants(name)) {
        let stored: Vec<Vec<u8>> = tars
            .iter()
            .map(|tar| match packing {
                "tgz" => gzip::compress(6, tar).unwrap(),
                "tar.zst" => zstd::compress(19, tar).unwrap(),
                _ => tar.clone(),
            })
            .collect();
        let into = folder.path().join(packing);
        std::fs::create_dir(&into).unwrap();
        for i in 0..SHARDS {
            std::fs::write(into.join(format!("{i:02}.{packing}")), &stored[i % DISTINCT]).unwrap();
        }
        println!("{packing}: {:.1} kB stored a step", stored[0].len() as f64 / STEPS as f64 / 1e3);
        let copy = alone(|| two.copy_from_slice(black_box(&one)));
        show("one copy", copy, "");
        let mut inflater = Inflater::default();
        let unpack = match packing {
            "tgz" => alone(|| _ = inflater.inflate(black_box(&stored[0]), size, &mut one).unwrap()),
            "tar.zst" => alone(|| _ = zstd::decompress_into(black_box(&stored[0]), &mut two).unwrap().unwrap()),
            _ => copy,
        };
        if packing != "tar" {
            show("unpacked alone", unpack, "");
        }
        let [first, took] =
            (0..ROUNDS).map(|_| stream(&into)).fold([f64::INFINITY; 2], |[a, b], [c, d]| [a.min(c), b.min(d)]);
        let goal = if goal > 0.0 { format!(" (goal <= {goal})") } else { String::new() };
        let what = if packing == "tar" { "one copy" } else { "unpacking alone" };
        show("stream, its first pass", first, "");
        show("stream, one thread", took, &format!(", {:.2} x {what}{goal}", took / unpack));
    }
    let into = folder.path().join("shards to pack");
    std::fs::create_dir(&into).unwrap();
    for (i, tar) in tars.iter().enumerate() {
        std::fs::write(into.join(format!("{i}.tar")), tar).unwrap();
    }
    if wants("pack") {
        let took = (0..ROUNDS).map(|round| packed(&into, &folder.path().join(format!("pack {round}"))));
        show("pack", took.fold(f64::INFINITY, f64::min), " (goal >= 5000)");
    }
}

/// Packs shards: CPU seconds a step.
fn packed(from: &Path, to: &Path) -> f64 {
    let start = cpu();
    let options = PackOptions { existing: Existing::Refuse, workers: 1, ..PackOptions::new(from, to) };
    black_box(pack(&options, &mut |_| {}).unwrap());
    (cpu() - start) / (DISTINCT * STEPS) as f64
}
