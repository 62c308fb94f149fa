//! A full reservoir of whole frames against one of folded frames, in turn in one run: each round inflates a game, fills the
//! slots of its frames and encodes those that leave. Processor microseconds per frame, and bytes. `cargo bench --bench
//! reservoir [FRAMES]`.

#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

mod chess_games;
mod processor;

use gristmill_engine::runtime::seed::Key;
use gristmill_engine::runtime::sheet::{Sheet, SheetPool};
use gristmill_engine::runtime::slots::{Long, Slots};
use gristmill_format::chess::{ChessEncoder, Output, game, layout_v6, layout_v7};
use gristmill_format::container::gzip::Inflater;
use gristmill_format::encode::{Encoder, Provenance, Row, TensorSpec};
use gristmill_format::layout::Conform;
use gristmill_format::source::{Chunk, Limits};
use processor::cpu;

const BATCH: usize = 1024;
const PIECE: usize = 64;
const ROUNDS: usize = 7;

fn games() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let written = chess_games::write(folder.path(), 1000, 5);
    let paths = std::fs::read_dir(written).expect("a folder").map(|entry| entry.expect("entry").path());
    paths.map(|path| std::fs::read(path).expect("readable")).collect()
}

/// One reservoir, and what goes through it.
struct Run {
    slots: Slots,
    held: Vec<u32>,
    free: Vec<u32>,
    encoder: ChessEncoder,
    widen: Conform,
    sheets: std::sync::Arc<SheetPool>,
    sheet: Option<(Sheet, usize)>,
    key: Key,
    frames: u64,
    chunk: Chunk,
    inflater: Inflater,
}

impl Run {
    fn new(frames: usize, long: Option<Long>) -> Self {
        let tensors: Vec<Output> =
            ["planes", "probs", "values"].iter().map(|text| Output::parse(text).expect("known")).collect();
        let encoder = ChessEncoder::new(&tensors).expect("outputs");
        let rows = encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        let all = frames + PIECE;
        Run {
            slots: Slots::new(all, layout_v7().size(), long, u64::MAX).expect("memory"),
            held: Vec::new(),
            free: (0..all as u32).rev().collect(),
            encoder,
            widen: Conform::new(layout_v6(), layout_v7()).expect("layouts"),
            sheets: SheetPool::new(BATCH, rows, 4),
            sheet: None,
            key: Key::new(1, "reservoir"),
            frames: 0,
            chunk: Chunk::default(),
            inflater: Inflater::default(),
        }
    }

    /// Takes a game in; encodes what leaves once `capacity` frames are held.
    fn game(&mut self, bytes: &[u8], capacity: usize, out: &mut Vec<u32>) {
        self.inflater.inflate(bytes, Limits::default().max_chunk_bytes, &mut self.chunk.bytes).expect("sound");
        game::parse(&mut self.chunk).expect("a game");
        let mut scratch = self.slots.scratch();
        for frame in 0..self.chunk.frames {
            let slot = self.free.pop().expect("a free slot");
            let write = |bytes: &mut [u8]| self.widen.record(self.chunk.record(frame), bytes);
            self.slots.fill(slot, &mut scratch, write).expect("room");
            self.frames += 1;
            if self.held.len() < capacity {
                self.held.push(slot);
                continue;
            }
            let at = self.key.at(self.frames).below(capacity as u64) as usize;
            out.push(std::mem::replace(&mut self.held[at], slot));
            if out.len() == PIECE {
                self.encode(out);
                self.free.append(out);
            }
        }
    }

    /// Frees slots that were not encoded.
    fn let_go(&mut self, slots: &mut Vec<u32>) {
        slots.iter().for_each(|slot| self.slots.discard(*slot));
        self.free.append(slots);
    }

    fn encode(&mut self, slots: &[u32]) {
        let (sheet, row) = match self.sheet.take() {
            Some((sheet, row)) if row < BATCH => (sheet, row),
            done => {
                drop(done.map(|(sheet, _)| self.sheets.share(sheet)));
                (self.sheets.take().expect("memory"), 0)
            }
        };
        let encoded = self.slots.drain(slots, |first, records| {
            let from = Provenance::default();
            let rows: Vec<Row<'_>> = records
                .iter()
                .map(|record| Row { record, provenance: from, bits: Default::default(), sparse: None })
                .collect();
            sheet.write(row + first, rows.len(), |columns| self.encoder.encode(&rows, columns))
        });
        encoded.expect("encodes");
        self.sheet = Some((sheet, row + slots.len()));
    }
}

fn main() {
    let capacity = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(200_000);
    let games = games();
    let policy = layout_v7().field("probabilities").expect("a policy");
    let long = Long { offset: policy.offset, count: policy.count() };
    let size = layout_v7().size();
    let mut runs = [None, Some(long)].map(|long| (Run::new(capacity, long), f64::INFINITY));
    for (run, _) in &mut runs {
        let mut out = Vec::new();
        while run.held.len() < capacity {
            games.iter().for_each(|bytes| run.game(bytes, capacity, &mut out));
        }
        run.let_go(&mut out);
    }
    for _ in 0..ROUNDS {
        for (run, best) in &mut runs {
            let (start, before, mut out) = (cpu(), run.frames, Vec::new());
            games.iter().for_each(|bytes| run.game(bytes, capacity, &mut out));
            *best = best.min((cpu() - start) / (run.frames - before) as f64);
            run.let_go(&mut out);
        }
    }
    println!("a reservoir of {capacity} frames; processor microseconds per frame, best of {ROUNDS} rounds in turn");
    let [whole, folded] = runs.map(|(_, best)| best * 1e6);
    let bytes = |one: usize| one.next_multiple_of(64) * capacity / 1_000_000;
    println!("whole frames   {whole:6.2} us   {:6} MB", bytes(size));
    println!("folded frames  {folded:6.2} us   {:6} MB   {:.3} x the time", bytes(long.folded(size)), folded / whole);
}
