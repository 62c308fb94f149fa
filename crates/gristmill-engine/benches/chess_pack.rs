//! Packed chess games against the `.gz` files that they were: size, and the cost of one position anywhere.
//! `cargo bench --bench chess_pack [FOLDER]` takes a folder of `.gz` games; without one it generates some.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

mod chess_games;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{IndexConfig, Longer, Pad, View};
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::chess::pack::{PackedGame, Packer, Position, Wanted};
use gristmill_format::chess::source::GameFile;
use gristmill_format::chess::{ChessEncoder, Outputs, Version};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::source::{Chunk, ChunkSource, Limits};
use gristmill_jobs::pack::{PackOptions, pack};
use rustix::time::{ClockId, clock_gettime};

const GAMES: u64 = 200;

/// Random positions in one measurement, and how many are encoded at a time.
const PICKED: u64 = 20_000;
const TOGETHER: usize = 16;

/// Steps of a batch of a loader.
const BATCH: usize = 1024;

/// Planes of 64 numbers that show a position.
const PLANES: usize = 112;

/// One game as it was and as it is packed.
struct Game {
    stored: Vec<u8>,
    packed: Vec<u8>,
}

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with('-')).map(PathBuf::from);
    let made = tempfile::tempdir().expect("a folder");
    let folder = given.unwrap_or_else(|| chess_games::write(made.path(), GAMES, 1));
    let games = read(&folder);
    let bytes = |part: fn(&Game) -> &Vec<u8>| games.iter().map(|game| part(game).len()).sum::<usize>();
    let (stored, packed) = (bytes(|game| &game.stored), bytes(|game| &game.packed));
    let frames: usize = games.iter().map(|game| open(&game.packed).frames()).sum();
    println!("{} games, {frames} positions: .gz {} bytes each", games.len(), stored / frames);
    println!(
        "packed {} bytes each, {:.3} of the .gz (goal: at most 0.8)",
        packed / frames,
        packed as f64 / stored as f64
    );
    let inflating = best(|| inflate(&games));
    let finding = best(|| positions(&games));
    println!("inflating a game  {:8.2} us of processor time", inflating * 1e6);
    println!("one position      {:8.2} us: {:.0} times cheaper (goal: 30)", finding * 1e6, inflating / finding);
    let encoding = best(|| tensors(&games));
    println!(
        "one at random to tensors {:.2} us: {:.0} a second of one core (goal: 50 000)",
        encoding * 1e6,
        1.0 / encoding
    );
    feeding(&folder);
}

/// The whole way: a pack of the folder, batches of a global shuffle; processor time of all threads.
fn feeding(folder: &Path) {
    let made = tempfile::tempdir().expect("a folder");
    pack(&PackOptions::new(folder, made.path()), &mut |_| {}).expect("a pack");
    let all = Selection::all(Arc::new(ChunkPack::open(made.path(), Residence::Mapped).expect("a pack")));
    for threads in [1, 2] {
        let rate = 1e6 / fed(&all, threads, &[], None);
        println!("index loader, {threads} threads: {rate:.0} random positions a second of one core (goal: 50 000)");
    }
    let steps = |offsets: std::ops::Range<i64>, pad| View::Window { offsets: offsets.collect(), pad, tensors: vec![] };
    for tensors in [
        ["planes", "probs", "values"].as_slice(),
        &["planes:packed", "probs:sparse", "values"],
        &["planes", "plies_left"],
        &["planes:packed", "plies_left"],
        // The best move follows from the policy, which is read for it.
        &["planes:packed", "plies_left", "best_idx"],
    ] {
        println!("{}, through the loader: {:.2} us a position", tensors.join(", "), fed(&all, 1, tensors, None));
    }
    println!("a plain fill of the planes' bytes: {:.2} us a position", filled() * 1e6);
    for planes in ["planes", "planes:u8"] {
        let alone = fed(&all, 1, &[planes], None);
        println!("{planes}, probs, values, alone: {alone:.2} us a position");
        for (name, view) in [
            ("windows of 8", steps(-7..1, Pad::Edge)),
            ("windows of 8, zeros", steps(-7..1, Pad::Zero)),
            ("next steps", View::Next { steps: 1, pad: Pad::Edge }),
            ("games of 128, split", View::Trajectory { length: 128, pad: Pad::Drop, longer: Longer::Split }),
        ] {
            let shown = fed(&all, 1, &[planes], Some(view));
            println!("  {name}: {shown:.2} us a step, {:.2} of one alone", shown / alone);
        }
    }
}

/// Processor time, in us, of a step that is shown; policy and values beside planes that are named alone.
fn fed(all: &Selection, threads: usize, planes: &[&str], view: Option<View>) -> f64 {
    let tensors: Vec<String> = match planes {
        [] => Vec::new(),
        [planes] => [planes, "probs", "values"].map(String::from).to_vec(),
        tensors => tensors.iter().copied().map(String::from).collect(),
    };
    let steps = match &view {
        None => 1,
        Some(View::Window { offsets, .. }) => offsets.len(),
        Some(View::Next { .. }) => 2,
        Some(View::Trajectory { length, .. }) => *length as usize,
    };
    let config = IndexConfig {
        tensors,
        view,
        batch_size: (BATCH / steps).max(1),
        epochs: None,
        seed: Some(1),
        threads: Some(threads),
        ..IndexConfig::default()
    };
    let loader = IndexLoader::new(all.input(), config).expect("a loader");
    let (mut rows, mut start) = (0, 0.0);
    // The first batches touch memory that later ones use again.
    for number in 0..120 {
        if number == 20 {
            (rows, start) = (0, process_cpu());
        }
        let Ok(Next::Batch(batch)) = loader.next("", None) else { unreachable!("there is no end") };
        rows += batch.rows;
        black_box(&batch);
    }
    (process_cpu() - start) * 1e6 / (rows * steps) as f64
}

/// CPU seconds of filling the planes of one position, in blocks as large as a batch that take turns, as those of a loader do.
fn filled() -> f64 {
    // Other numbers than 0: the system gives memory for zeros when it is touched.
    let mut batches = vec![vec![1f32; BATCH * PLANES * 64]; 8];
    let start = cpu();
    for turn in 0..64 {
        let batch = &mut batches[turn % 8];
        batch.fill(turn as f32);
        black_box(batch);
    }
    (cpu() - start) / (64 * BATCH) as f64
}

fn open(packed: &[u8]) -> PackedGame<'_> {
    PackedGame::new(packed).expect("what was packed")
}

fn read(folder: &Path) -> Vec<Game> {
    let mut games = Vec::new();
    let (mut chunk, mut packer) = (Chunk::default(), Packer::default());
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "gz")) {
        let stored = std::fs::read(&path).expect("readable");
        if GameFile::new("game").decode(0, &stored, &Limits::default(), &mut chunk).is_err() {
            continue;
        }
        let version = if chunk.layout.as_ref().is_some_and(|layout| layout.size() == Version::V7.bytes()) {
            Version::V7
        } else {
            Version::V6
        };
        let mut packed = Vec::new();
        packer.pack(version, chunk.records(), &mut packed).expect("any game can be packed");
        let mut back = Vec::new();
        open(&packed).records(1 << 26, &mut Position::default(), &mut back).expect("a game");
        assert!(back == chunk.records(), "{} does not come back", path.display());
        games.push(Game { stored, packed });
    }
    assert!(!games.is_empty(), "no games in {}", folder.display());
    games
}

/// CPU seconds of one game.
fn inflate(games: &[Game]) -> f64 {
    let (mut inflater, mut out) = (Inflater::default(), Vec::new());
    let start = cpu();
    for game in games {
        inflater.inflate(&game.stored, 1 << 26, &mut out).expect("a game");
        black_box(&out);
    }
    (cpu() - start) / games.len() as f64
}

fn bits(i: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ z >> 31
}

/// Position `i` of a random sequence, read from its game.
fn random(games: &[Game], i: u64, position: &mut Position) {
    let game = open(&games[bits(2 * i) as usize % games.len()].packed);
    game.position(bits(2 * i + 1) as usize % game.frames(), Wanted::Whole, position).expect("a position");
}

/// CPU seconds of one position.
fn positions(games: &[Game]) -> f64 {
    let mut position = Position::default();
    let start = cpu();
    for i in 0..PICKED {
        random(games, i, &mut position);
        black_box(&position);
    }
    (cpu() - start) / PICKED as f64
}

fn row(position: &Position) -> Row<'_> {
    Row {
        record: position.record(),
        provenance: Provenance::default(),
        bits: Default::default(),
        sparse: position.policy(),
    }
}

/// CPU seconds of one position as planes, probs and values.
fn tensors(games: &[Game]) -> f64 {
    let outputs = Outputs::parse(&["planes", "probs", "values"].map(String::from)).expect("names");
    let encoder = ChessEncoder::new(&outputs).expect("an encoder");
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; TOGETHER * spec.row_bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    let mut some: Vec<Position> = (0..TOGETHER).map(|_| Position::default()).collect();
    let start = cpu();
    for i in 0..PICKED / TOGETHER as u64 {
        for (k, position) in (0..).zip(&mut some) {
            random(games, i * TOGETHER as u64 + k, position);
        }
        let rows: Vec<Row<'_>> = some.iter().map(row).collect();
        encoder.encode(&rows, &mut slices).expect("rows");
    }
    (cpu() - start) / PICKED as f64
}

fn cpu() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn process_cpu() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn best(mut measure: impl FnMut() -> f64) -> f64 {
    (0..7).map(|_| measure()).fold(f64::INFINITY, f64::min)
}
