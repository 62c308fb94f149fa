//! Resuming a run of rows by number, from nothing in memory to its next batch: packs of many games and of many rows,
//! beside a fresh start of the same. `cargo bench --bench resume [GAMES]`: a chess pack of GAMES games, 20 000 by
//! default.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::{EncoderConfig, G2048EncoderConfig, IndexConfig, Shuffle};
use gristmill_engine::pack::metadata::{MetadataWriter, Run};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::table::IndexInput;
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::chess::Version;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::container::tar::TarWriter;
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::layout::DType;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::pack::{PackOptions, pack};

/// Rows of the sparse pack, and of one of its games.
const ROWS: u64 = 100_000_000;
const GAME_ROWS: u64 = 25_000;

/// Games of a tar.
const TAR_GAMES: u64 = 1000;

fn main() {
    let games: u64 = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::tempdir().expect("a folder");
    let (chess, steps) = (folder.path().join("chess"), folder.path().join("steps"));
    write_chess(folder.path(), &chess, games);
    let open = || Selection::all(Arc::new(ChunkPack::open(&chess, Residence::Mapped).expect("a pack"))).input();
    resume(&format!("chess, {games} games"), &folder.path().join("state"), EncoderConfig::Chess, &open);
    write_steps(&steps);
    let open = || Selection::all(Arc::new(RowPack::open(&steps, Residence::Mapped).expect("a pack"))).input();
    let encoder = EncoderConfig::G2048(G2048EncoderConfig::default());
    resume(&format!("2048, {ROWS} rows of {} games", ROWS / GAME_ROWS), &folder.path().join("state"), encoder, &open);
}

fn first(loader: &IndexLoader) {
    assert!(matches!(loader.next("", None), Ok(Next::Batch(_))));
}

/// Times of a fresh start and of resuming from the middle, each to its first batch and each the median of five.
fn resume(what: &str, state: &Path, encoder: EncoderConfig, open: &dyn Fn() -> IndexInput) {
    for shuffle in [Shuffle::Rows, Shuffle::Blocks { rows: 65_536, blocks: 16 }] {
        let config =
            IndexConfig { encoder: encoder.clone(), seed: Some(1), shuffle, epochs: Some(2), ..IndexConfig::default() };
        let loader = || IndexLoader::new(open(), config.clone()).expect("a loader");
        let saved = loader();
        saved.seek(saved.batches().unwrap_or(0) / 2).expect("a batch");
        saved.save(state).expect("saved");
        let median = |start: &dyn Fn()| {
            let mut times: Vec<Duration> = (0..5)
                .map(|_| {
                    let begun = Instant::now();
                    start();
                    begun.elapsed()
                })
                .collect();
            times.sort();
            times[2].as_secs_f64() * 1e3
        };
        let fresh = median(&|| first(&loader()));
        let resumed = median(&|| {
            let again = loader();
            again.load(state).expect("loaded");
            first(&again);
        });
        let size = std::fs::metadata(state).expect("a file").len();
        println!(
            "{what}, {shuffle:?}: resumed from a state of {size} bytes, first batch of 1024 after {resumed:.0} ms \
             (goal < 1000), {:.2} times a fresh start",
            resumed / fresh
        );
    }
}

/// A pack of one generated game under many names.
fn write_chess(folder: &Path, to: &Path, games: u64) {
    let (one, tars) = (folder.join("one"), folder.join("tars"));
    let options = ChessOptions {
        folder: one.clone(),
        games: 1,
        first: 1,
        seed: 1,
        plies_max: 20,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(options).expect("a generator");
    while generator.write_next().expect("a game").is_some() {}
    let game = std::fs::read(one.join("training.1.gz")).expect("a game");
    std::fs::create_dir(&tars).expect("a folder");
    for tar in 0..games.div_ceil(TAR_GAMES) {
        let mut writer = TarWriter::new(Vec::new());
        for i in tar * TAR_GAMES..games.min((tar + 1) * TAR_GAMES) {
            writer.append(&format!("d/training.{i}.gz"), &game).expect("a member");
        }
        std::fs::write(tars.join(format!("training.{tar}.tar")), writer.finish().expect("a tar")).expect("written");
    }
    pack(&PackOptions::new(&tars, to), &mut |_| {}).expect("packed");
}

/// A pack whose file is nearly all holes: only what tells games apart is there.
fn write_steps(pack: &Path) {
    std::fs::create_dir(pack).expect("a folder");
    let dtype = DType::Record(layout_aligned().as_ref().clone());
    let header = Header::write(&dtype, &[ROWS], Spelling::NumPy).expect("a header");
    let file = std::fs::File::create(pack.join("steps.npy")).expect("a file");
    file.set_len(header.len() as u64 + ROWS * 48).expect("a sparse file");
    file.write_all_at(&header, 0).expect("a header");
    let mut writer = MetadataWriter::open(pack.join("metadata.db")).expect("a database");
    for game in 0..ROWS / GAME_ROWS {
        let (first, end) = (game * GAME_ROWS, (game + 1) * GAME_ROWS);
        for row in [first, first + 1, end - 2, end - 1] {
            file.write_all_at(&(game as u32).to_le_bytes(), header.len() as u64 + row * 48).expect("a row");
        }
        let run = Run { id: game, seed: Some(game), steps: GAME_ROWS, max_score: game, highest_tile: 2048 };
        writer.put_run(&run).expect("a run");
    }
    writer.finish().expect("a database");
}
