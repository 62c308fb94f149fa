//! Index feeding: opening a pack of 10^8 rows, going to any batch, gathering at random, and the whole way to tokens.
//! Rates are rows a second of one core's processor time, beside a plain gather of the same rows in the same run.
#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_engine::config::{Augmentation, EncoderConfig, G2048EncoderConfig, G2048Target, IndexConfig, Shuffle};
use gristmill_engine::pack::checksums::Verify;
use gristmill_engine::pack::metadata::{MetadataWriter, Run};
use gristmill_engine::pack::open::RowPack;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::Residence;
use gristmill_engine::table::{FileTable, FrameTable, Part};
use gristmill_engine::{IndexLoader, Next};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::encode::Tokenizer;
use gristmill_format::g2048::row::layout_aligned;
use gristmill_format::g2048::{Board, StepRow};
use gristmill_format::layout::DType;
use gristmill_jobs::checksum::{ChecksumOptions, checksum};
use rustix::time::{ClockId, clock_gettime};

/// Rows of the sparse pack, and of one of its games.
const SPARSE_ROWS: u64 = 100_000_000;
const GAME_ROWS: u64 = 25_000;

/// Rows that are really there: 192 MiB, well beyond the caches.
const ROWS: u64 = 4 << 20;

/// Rows gathered at random at a time.
const PICKED: usize = 1 << 20;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    opening(folder.path());
    feeding(folder.path());
}

fn header(rows: u64) -> Vec<u8> {
    let dtype = DType::Record(layout_aligned().as_ref().clone());
    Header::write(&dtype, &[rows], Spelling::NumPy).expect("a header")
}

fn database(pack: &Path, runs: u64, steps: u64) {
    let mut writer = MetadataWriter::open(pack.join("metadata.db")).expect("a database");
    for id in 0..runs {
        let run = Run { id, seed: Some(id), steps, max_score: id, highest_tile: 2048 };
        writer.put_run(&run).expect("a run");
    }
    writer.finish().expect("a database");
}

/// A pack whose file is nearly all holes: only what tells games apart is there.
fn opening(folder: &Path) {
    use std::os::unix::fs::FileExt;
    let pack = folder.join("sparse");
    std::fs::create_dir(&pack).expect("a folder");
    let header = header(SPARSE_ROWS);
    let file = std::fs::File::create(pack.join("steps.npy")).expect("a file");
    file.set_len(header.len() as u64 + SPARSE_ROWS * 48).expect("a sparse file");
    file.write_all_at(&header, 0).expect("a header");
    for game in 0..SPARSE_ROWS / GAME_ROWS {
        let (first, end) = (game * GAME_ROWS, (game + 1) * GAME_ROWS);
        for row in [first, first + 1, end - 2, end - 1] {
            file.write_all_at(&(game as u32).to_le_bytes(), header.len() as u64 + row * 48).expect("a row");
        }
    }
    database(&pack, SPARSE_ROWS / GAME_ROWS, GAME_ROWS);
    let start = Instant::now();
    let all = Selection::all(Arc::new(RowPack::open(&pack, Residence::Mapped).expect("a pack")));
    let opened = start.elapsed();
    let start = Instant::now();
    let some = all.query("max_score % 3 = 0", &[]).expect("a condition");
    let (train, val) = some.split(0.1, 42).expect("a split");
    let selected = start.elapsed();
    println!("open {SPARSE_ROWS} rows, {} games: {opened:.1?} (bound 1 s)", all.games().len());
    println!("select and split into {} and {} rows: {selected:.1?}", train.rows().len(), val.rows().len());
    let config = IndexConfig { batch_size: 4096, seed: Some(1), encoder: steps(), ..IndexConfig::default() };
    let mut worst = [Duration::ZERO; 3];
    for i in 0..20u64 {
        // The second time the pages of these rows are in memory.
        for time in [1, 2] {
            let loader = IndexLoader::new(train.input(), config.clone()).expect("a loader");
            let start = Instant::now();
            loader.seek(i * loader.batches().unwrap_or(0) / 20).expect("a batch");
            worst[0] = worst[0].max(start.elapsed());
            loader.start().expect("threads");
            assert!(matches!(loader.next("", None), Ok(Next::Batch(_))));
            worst[time] = worst[time].max(start.elapsed());
        }
    }
    let [seek, cold, warm] = worst;
    println!("go to any batch: at most {seek:.1?} (bound 10 ms)");
    println!("  and have its 4096 rows: at most {warm:.1?}; where each is the first of its page, {cold:.1?}");
}

fn steps() -> EncoderConfig {
    EncoderConfig::G2048(G2048EncoderConfig::default())
}

fn bits(i: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ z >> 31
}

fn row(i: u64) -> StepRow {
    let bits = bits(i);
    let packed = Board::from_nibbles(bits).pack();
    let kind = [0, 0, 1, 2][(i % 4) as usize];
    let value = |j: u64| {
        let share = (bits >> (16 * j) & 0xFFFF) as f32 / 65_536.0;
        if kind == 0 { 4000.0 + 20.0 * share } else { 0.5 + share / 2.0 }
    };
    StepRow {
        run_id: (i / GAME_ROWS) as u32,
        step_index: (i % GAME_ROWS) as u32,
        board: packed.board,
        move_dir: (bits >> 20 & 3) as u8,
        valuation_type: kind,
        ev_legal: (bits >> 24 & 15) as u8 | 1 << (bits >> 20 & 3),
        branch_evs: [value(0), value(1), value(2), value(3)],
        ..StepRow::default()
    }
}

fn feeding(folder: &Path) {
    let pack = folder.join("dense");
    std::fs::create_dir(&pack).expect("a folder");
    let mut bytes = header(ROWS);
    let offset = bytes.len();
    (0..ROWS).for_each(|i| bytes.extend_from_slice(&row(i).to_aligned()));
    std::fs::write(pack.join("steps.npy"), &bytes).expect("a file");
    database(&pack, ROWS.div_ceil(GAME_ROWS) - 1, GAME_ROWS);
    let rest = ROWS % GAME_ROWS;
    let mut writer = MetadataWriter::open(pack.join("metadata.db")).expect("a database");
    let last = Run { id: ROWS / GAME_ROWS, seed: Some(0), steps: rest, max_score: 0, highest_tile: 2 };
    writer.put_run(&last).expect("a run");
    writer.finish().expect("a database");

    let part = Part { path: pack.join("steps.npy"), offset: offset as u64, rows: ROWS };
    let picked: Vec<u64> = (0..PICKED as u64).map(|i| bits(i) % ROWS).collect();
    let mut out = vec![0u8; PICKED * 48];
    for residence in [Residence::Memory, Residence::Mapped] {
        let layout = layout_aligned().as_ref().clone();
        let table = FileTable::open(layout, vec![part.clone()], residence).expect("a table");
        let plain = in_memory(&bytes[offset..]);
        let baseline = best(|| plain_gather(&plain, &picked, &mut out));
        let ours = best(|| table.gather(&picked, &mut out).expect("rows"));
        println!(
            "gather 48-byte rows at random, {residence:?}: {:.1} M rows/s, {:.2} of a plain gather in memory (bound 0.8)",
            PICKED as f64 / ours / 1e6,
            baseline / ours
        );
    }

    let edges = |scale: f64| (0..=32).map(|i| -scale * (f64::from(32 - i) / 32.0).powi(4)).collect();
    let tokenizer = Tokenizer::new([edges(60_000.0), edges(1.0), edges(1.0)], -1500, serde_json::Map::new());
    let path = folder.join("tokenizer.json");
    std::fs::write(&path, tokenizer.expect("edges increase").to_json(2)).expect("a file");
    let tokens = EncoderConfig::G2048(G2048EncoderConfig {
        target: G2048Target::Tokens,
        rotate: Augmentation::Any,
        flip: Augmentation::Any,
        tokenizer: Some(path),
        ..G2048EncoderConfig::default()
    });
    checking(&pack);
    let all = Selection::all(Arc::new(RowPack::open(&pack, Residence::Memory).expect("a pack")));
    for (name, encoder) in [("exponents", steps()), ("tokens + rotation + flip", tokens)] {
        for shuffle in [Shuffle::Rows, Shuffle::Blocks { rows: 65_536, blocks: 16 }] {
            for threads in [1, 2] {
                _ = rate(name, &all, &encoder, shuffle, threads);
            }
        }
    }
}

/// What it costs to hold blocks of rows against their checksums: an epoch in which every block is touched first, the next one,
/// and one without checks, several times by turns.
fn checking(pack: &Path) {
    checksum(&ChecksumOptions { pack: pack.to_owned(), ..Default::default() }, &mut |_, _| Ok(())).expect("checksums");
    let open = |verify| {
        let pack = RowPack::open_with(pack, Residence::Memory, Some(verify)).expect("a pack");
        Selection::all(Arc::new(pack))
    };
    let mut best = [0.0f64; 3];
    for _ in 0..3 {
        let (off, checked) = (open(Verify::Off), open(Verify::FirstTouch));
        for (i, (name, all)) in
            [("unchecked", &off), ("first touch", &checked), ("touched", &checked)].iter().enumerate()
        {
            best[i] = best[i].max(rate(name, all, &steps(), Shuffle::Rows, 1));
        }
    }
    println!(
        "an epoch of exponents with first_touch: {:.2} of the speed without; each later one {:.2}",
        best[1] / best[0],
        best[2] / best[0]
    );
}

/// Batches of one epoch through the whole loader, in rows a second of processor time.
fn rate(name: &str, all: &Selection, encoder: &EncoderConfig, shuffle: Shuffle, threads: usize) -> f64 {
    let config = IndexConfig {
        encoder: encoder.clone(),
        batch_size: 4096,
        seed: Some(1),
        shuffle,
        threads: Some(threads),
        ..IndexConfig::default()
    };
    let loader = IndexLoader::new(all.input(), config).expect("a loader");
    assert!(matches!(loader.next("", None), Ok(Next::Batch(_))));
    let (wall, start) = (Instant::now(), seconds(ClockId::ProcessCPUTime));
    let mut rows = 0;
    while let Ok(Next::Batch(batch)) = loader.next("", None) {
        rows += batch.rows;
        black_box(&batch);
    }
    let cpu = seconds(ClockId::ProcessCPUTime) - start;
    println!(
        "{name}, {shuffle:?}, {threads} threads: {:.1} M rows/s of one core, {:.1} M rows/s by the clock",
        rows as f64 / cpu / 1e6,
        rows as f64 / wall.elapsed().as_secs_f64() / 1e6
    );
    rows as f64 / cpu
}

/// The same bytes on huge pages, where a careful program would have them.
fn in_memory(bytes: &[u8]) -> memmap2::MmapMut {
    let mut map = memmap2::MmapMut::map_anon(bytes.len()).expect("memory");
    let _ = map.advise(memmap2::Advice::HugePage);
    map.copy_from_slice(bytes);
    map
}

/// What a loop in C would do.
fn plain_gather(from: &[u8], rows: &[u64], out: &mut [u8]) {
    let from = from.as_chunks::<48>().0;
    for (row, out) in rows.iter().zip(out.as_chunks_mut::<48>().0) {
        *out = from[*row as usize];
    }
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Shortest processor time of a call.
fn best(mut work: impl FnMut()) -> f64 {
    work();
    let timed = (0..7).map(|_| {
        let start = seconds(ClockId::ThreadCPUTime);
        work();
        seconds(ClockId::ThreadCPUTime) - start
    });
    timed.fold(f64::INFINITY, f64::min)
}
