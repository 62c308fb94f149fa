//! The whole river against the bare chain of its parts, in one run: CPU microseconds per frame and their ratios.
//! `cargo bench --bench river [FOLDER]` takes a folder of games; without one it generates its own.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

mod chess_games;
mod processor;

use std::path::{Path, PathBuf};
use std::time::Instant;

use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::runtime::arena::Arena;
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::runtime::sheet::SheetPool;
use gristmill_engine::{DataLoader, Next};
use gristmill_format::chess::{ChessEncoder, Output, Version, game, layout_v6, layout_v7};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::encode::{Encoder, Provenance, Row, TensorSpec};
use gristmill_format::layout::Conform;
use gristmill_format::source::{Chunk, Limits};
use processor::cpu;

const RESERVOIR: usize = 32_768;
const BATCH: usize = 1024;
const PIECE: usize = 64;
const ROUNDS: usize = 3;

fn games(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "gz"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("readable")).collect()
}

fn outputs(planes: &str) -> Vec<Output> {
    [planes, "probs", "values"].iter().map(|text| Output::parse(text).expect("known")).collect()
}

/// Inflation alone: CPU seconds per frame.
fn inflate_only(games: &[Vec<u8>], limit: usize) -> f64 {
    let (mut inflater, mut out, mut frames) = (Inflater::default(), Vec::new(), 0);
    let start = cpu();
    for bytes in games.iter().cycle() {
        inflater.inflate(bytes, Limits::default().max_chunk_bytes, &mut out).expect("sound");
        frames += out.len() / Version::V6.bytes();
        if frames >= limit {
            break;
        }
    }
    (cpu() - start) / frames as f64
}

/// Encoding alone, from slots into recycled sheets: CPU seconds per frame.
fn encode_only(games: &[Vec<u8>], planes: &str, limit: usize) -> f64 {
    let mut bare = Bare::new(planes);
    let frames = bare.fill(games);
    let start = cpu();
    let mut encoded = 0;
    while encoded < limit {
        let slots: Vec<u32> = (0..PIECE as u32).map(|i| (encoded as u32 + i) % frames as u32).collect();
        bare.encode(&slots);
        bare.refill_marks(&slots);
        encoded += PIECE;
    }
    (cpu() - start) / encoded as f64
}

/// The least that can be done: inflate, copy into a random slot of a reservoir, encode what was there.
struct Bare {
    encoder: ChessEncoder,
    arena: Arena,
    pool: std::sync::Arc<SheetPool>,
    sheet: Option<gristmill_engine::runtime::sheet::Sheet>,
    row: usize,
    widen: Conform,
}

impl Bare {
    fn new(planes: &str) -> Self {
        let encoder = ChessEncoder::new(&outputs(planes)).expect("outputs");
        let rows = encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        Bare {
            arena: Arena::new(RESERVOIR + PIECE, layout_v7().size()).expect("memory"),
            pool: SheetPool::new(BATCH, rows, 4),
            sheet: None,
            row: 0,
            widen: Conform::new(layout_v6(), layout_v7()).expect("layouts"),
            encoder,
        }
    }

    fn copy(&self, record: &[u8], slot: u32) {
        self.arena.fill(slot, |bytes| self.widen.record(record, &mut bytes[..layout_v7().size()]));
    }

    fn fill(&mut self, games: &[Vec<u8>]) -> usize {
        let (mut inflater, mut chunk, mut slot) = (Inflater::default(), Chunk::default(), 0);
        for bytes in games.iter().cycle() {
            inflater.inflate(bytes, Limits::default().max_chunk_bytes, &mut chunk.bytes).expect("sound");
            game::parse(&mut chunk).expect("a game");
            for frame in 0..chunk.frames {
                if slot == RESERVOIR {
                    return slot;
                }
                self.copy(chunk.record(frame), slot as u32);
                slot += 1;
            }
        }
        slot
    }

    fn refill_marks(&self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.arena.fill(*slot, |_| ()));
    }

    fn encode(&mut self, slots: &[u32]) {
        let sheet = match self.sheet.take() {
            Some(sheet) if self.row < BATCH => sheet,
            done => {
                if let Some(done) = done {
                    drop(self.pool.share(done));
                }
                self.row = 0;
                self.pool.take().expect("memory")
            }
        };
        let size = layout_v7().size();
        self.arena.drain(slots, |views| {
            let from = Provenance::default();
            let rows: Vec<Row<'_>> = views
                .iter()
                .map(|view| Row { record: &view[..size], provenance: from, bits: Default::default(), sparse: None })
                .collect();
            sheet.write(self.row, rows.len(), |columns| self.encoder.encode(&rows, columns)).expect("encodes");
        });
        self.row += slots.len();
        self.sheet = Some(sheet);
    }

    /// CPU seconds per frame of the bare chain, in steady state.
    fn run(&mut self, games: &[Vec<u8>], limit: usize) -> f64 {
        let held = self.fill(games);
        let key = Key::new(1, "bare");
        let (mut inflater, mut chunk) = (Inflater::default(), Chunk::default());
        let mut logical: Vec<u32> = (0..held as u32).collect();
        let mut free: Vec<u32> = (held as u32..(held + PIECE) as u32).collect();
        let (mut frames, mut out) = (0, Vec::with_capacity(PIECE));
        let start = cpu();
        for bytes in games.iter().cycle() {
            inflater.inflate(bytes, Limits::default().max_chunk_bytes, &mut chunk.bytes).expect("sound");
            game::parse(&mut chunk).expect("a game");
            for frame in 0..chunk.frames {
                let at = key.at(frames as u64).below(held as u64) as usize;
                let slot = free.pop().expect("a free slot");
                self.copy(chunk.record(frame), slot);
                out.push(std::mem::replace(&mut logical[at], slot));
                frames += 1;
                if out.len() == PIECE {
                    self.encode(&out);
                    free.append(&mut out);
                }
            }
            if frames >= limit {
                break;
            }
        }
        (cpu() - start) / frames as f64
    }
}

/// The loader: CPU seconds and wall seconds per frame, after the reservoir is full.
fn river(folder: &Path, planes: &str, threads: usize, limit: usize) -> (f64, f64) {
    let options = Lc0Preset {
        directories: vec![Weighted { directory: folder.to_owned(), weight: 1.0 }],
        reservoir: Some(RESERVOIR),
        batch_size: BATCH,
        watch: Some(false),
        seed: Some(1),
        threads: Some(threads),
        tensors: [planes, "probs", "values"].map(String::from).to_vec(),
        index: Some("off".into()),
        ..Lc0Preset::default()
    };
    let loader = DataLoader::new(lc0(&options).expect("a preset")).expect("a config");
    let next = || match loader.next("", None).expect("sound") {
        Next::Batch(batch) => batch.rows,
        _ => 0,
    };
    (0..12).for_each(|_| _ = next());
    let (start, wall, mut frames) = (cpu(), Instant::now(), 0);
    while frames < limit {
        frames += next();
    }
    ((cpu() - start) / frames as f64, wall.elapsed().as_secs_f64() / frames as f64)
}

/// How much two threads that share nothing gain over one here: the ceiling of any scaling.
fn scaling(games: &[Vec<u8>], limit: usize) -> f64 {
    let wall = |threads: usize| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| inflate_only(games, limit));
            }
        });
        start.elapsed().as_secs_f64() / threads as f64
    };
    best(|| wall(1)) / best(|| wall(2))
}

fn best(mut measure: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let own = tempfile::tempdir().expect("a folder");
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| chess_games::write(own.path(), 1500, 5));
    let games = games(&folder);
    let limit = 200_000;
    let inflate = best(|| inflate_only(&games, limit));
    println!("{} games; CPU microseconds per frame, best of {ROUNDS}", games.len());
    println!("inflate alone          {:6.2}", inflate * 1e6);
    println!("two threads of inflation alone gain {:.2} x: the machine's ceiling", scaling(&games, limit));
    for planes in ["planes", "planes:u8", "planes:bits"] {
        let encode = best(|| encode_only(&games, planes, limit));
        let bare = best(|| Bare::new(planes).run(&games, limit));
        let one = best(|| river(&folder, planes, 1, limit).0);
        println!("{planes}");
        println!("  encode alone         {:6.2}", encode * 1e6);
        println!("  bare chain           {:6.2}", bare * 1e6);
        println!("  river, one thread    {:6.2}   {:.2} x the bare chain (goal <= 1.25)", one * 1e6, one / bare);
        println!("  (inflate + encode) / river = {:.2} (goal >= 0.70)", (inflate + encode) / one);
        let wall = |threads| best(|| river(&folder, planes, threads, limit).1);
        let (single, double) = (wall(1), wall(2));
        println!(
            "  frames a second: {:.0} on one thread, {:.0} on two = {:.2} x (goal >= 1.8 where two cores are free)",
            1.0 / single,
            1.0 / double,
            single / double
        );
    }
}
