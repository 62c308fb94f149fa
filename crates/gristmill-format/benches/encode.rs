//! How fast records become tensors: ratios against a bit loop and against plain fill, all measured in one run.
//! Every figure is the best of several rounds, in CPU time of this thread, writing buffers larger than the cache.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(clippy::print_stdout, reason = "a benchmark reports")]

use gristmill_format::bullet::{self, BoardEncoder};
use gristmill_format::chess::encode::Element;
use gristmill_format::chess::transform::flip;
use gristmill_format::chess::{ChessEncoder, FrameMut, InputFormat, Output, Outputs, layout_v7};
use gristmill_format::encode::{Encoder, Provenance, Row};

/// Rows written per round: 8192 rows of f32 planes are 235 MB, with the policy 296 MB.
const ROWS: usize = 8192;
/// Records encoded, in scattered order, as from a reservoir: 69 MB.
const RECORDS: usize = 8192;
/// Rows of one call, as one encode task has.
const TASK: usize = 256;
const ROUNDS: usize = 7;
/// Rows of the in-cache comparison: 229 kB.
const HOT: usize = 4;

fn main() {
    let (arena, boards) = arena();
    let rows = rows(&arena, layout_v7().size());
    println!("{ROWS} rows from {RECORDS} scattered records, best of {ROUNDS}");
    let planes = ChessEncoder::new(&[Output::Planes(Element::F32)]).expect("one output");
    let (naive, ours) = in_cache(&planes, &rows[..HOT]);
    report("in cache: bit loop, f32", 28_672, naive, None);
    report("in cache: planes f32", 28_672, ours, None);
    println!("{:28} {:6.1} x the bit loop", "", naive / ours);
    let naive = naive_planes(&rows);
    report("bit loop, planes f32", 28_672, naive, None);
    for (name, outputs) in [
        ("planes f32", vec!["planes"]),
        ("planes f16", vec!["planes:f16"]),
        ("planes u8", vec!["planes:u8"]),
        ("planes bits", vec!["planes:bits"]),
        ("probs", vec!["probs"]),
        ("planes, probs, values f32", vec!["planes", "probs", "values"]),
        ("planes u8, probs, values", vec!["planes:u8", "probs", "values"]),
        ("planes bits, probs, values", vec!["planes:bits", "probs", "values"]),
        ("halfkp, both views", vec!["halfkp_stm", "halfkp_nstm"]),
        ("halfkav2_hm, both views", vec!["halfkav2_hm_stm", "halfkav2_hm_nstm"]),
    ] {
        let encoder = ChessEncoder::new(&Outputs::parse(&outputs).expect("known outputs")).expect("distinct outputs");
        let bytes: usize = encoder.outputs().iter().map(|spec| spec.row_bytes()).sum();
        let (ours, fill) = encode(&encoder, &rows);
        report(name, bytes, ours, Some(fill));
        if outputs == ["planes"] {
            println!("{:28} {:6.1} x the bit loop", "", naive / ours);
        }
    }
    for (name, tensors) in [
        ("boards: 768, both views", ["stm", "nstm"]),
        ("boards: halfkp", ["halfkp_stm", "halfkp_nstm"]),
        ("boards: halfkav2_hm", ["halfkav2_hm_stm", "halfkav2_hm_nstm"]),
    ] {
        let encoder = BoardEncoder::new(&tensors.map(String::from)).expect("known tensors");
        let (ours, fill) = encode(&encoder, &self::rows(&boards, bullet::BYTES));
        report(name, 256, ours, Some(fill));
    }
}

fn report(name: &str, bytes: usize, seconds: f64, fill: Option<f64>) {
    let (per_row, rate) = (seconds / ROWS as f64 * 1e6, (bytes * ROWS) as f64 / seconds / 1e9);
    print!("{name:28} {per_row:6.2} us a row {rate:6.2} GB/s");
    match fill {
        Some(fill) => {
            println!("   fill {:6.2} GB/s, ours {:5.1} % of it", rate * seconds / fill, 100.0 * fill / seconds)
        }
        None => println!(),
    }
}

/// CPU seconds of this thread.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn best(mut round: impl FnMut()) -> f64 {
    round();
    (0..ROUNDS).map(|_| timed(&mut round)).fold(f64::INFINITY, f64::min)
}

fn timed(round: &mut impl FnMut()) -> f64 {
    let start = cpu();
    round();
    cpu() - start
}

/// A buffer whose first byte used is on a cache line.
struct Buffer(Vec<u8>, usize, usize);

impl Buffer {
    fn new(len: usize) -> Self {
        let bytes = vec![1; len + 64];
        let start = bytes.as_ptr().align_offset(64);
        Buffer(bytes, start, len)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.0[self.1..self.1 + self.2]
    }
}

/// Records, and boards of bulletformat with the same men.
fn arena() -> (Vec<u8>, Vec<u8>) {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let mut arena = vec![0; RECORDS * layout_v7().size()];
    let mut boards = Vec::new();
    for record in arena.chunks_exact_mut(layout_v7().size()) {
        let mut frame = FrameMut::blank(record, InputFormat::Classical).expect("one record");
        for plane in 12..104 {
            frame.set_plane(plane, random() & random());
        }
        let board = position(&mut random);
        let mut planes = [0u64; 12];
        board
            .pieces()
            .for_each(|(square, man)| planes[usize::from(man & 7) + 6 * usize::from(man >> 3)] |= 1 << square);
        for (i, mask) in planes.iter().enumerate() {
            frame.set_plane(i, flip(*mask));
        }
        boards.extend_from_slice(board.bytes());
        for i in 0..30 {
            frame.set_probability(i * 61, 1.0 / 30.0);
        }
    }
    (arena, boards)
}

/// A board of 8 to 32 men.
fn position(random: &mut impl FnMut() -> u64) -> bullet::Board {
    loop {
        let mut men = std::collections::BTreeMap::new();
        let mut place = |man: u8| men.insert((random() >> 20) as u8 % 48 + 8, man);
        for i in 0..13 {
            place(i % 5);
            place(8 + i % 5);
        }
        place(5);
        place(13);
        if let Ok(board) = bullet::Board::of(&men.into_iter().collect::<Vec<_>>(), 0, 1) {
            return board;
        }
    }
}

fn rows(arena: &[u8], size: usize) -> Vec<Row<'_>> {
    let scattered = (0..ROWS).map(|i| i * 2_654_435_761 % RECORDS);
    scattered
        .map(|i| Row {
            record: &arena[i * size..(i + 1) * size],
            provenance: Provenance::default(),
            bits: Default::default(),
            sparse: None,
        })
        .collect()
}

/// The straightforward loop: one element per bit.
fn naive_planes(rows: &[Row<'_>]) -> f64 {
    let mut buffer = Buffer::new(ROWS * 28_672);
    best(|| {
        bit_loop(rows, buffer.bytes());
        std::hint::black_box(buffer.bytes().len());
    })
}

/// Seconds for `ROWS` rows of the bit loop and of the encoder, into one small buffer again and again.
fn in_cache(encoder: &ChessEncoder, rows: &[Row<'_>]) -> (f64, f64) {
    let mut buffer = Buffer::new(rows.len() * 28_672);
    let times = ROWS / rows.len();
    let naive = best(|| {
        for _ in 0..times {
            bit_loop(rows, std::hint::black_box(buffer.bytes()));
        }
    });
    let ours = best(|| {
        for _ in 0..times {
            encoder.encode(rows, &mut [std::hint::black_box(buffer.bytes())]).expect("good records");
        }
    });
    (naive, ours)
}

fn bit_loop(rows: &[Row<'_>], out: &mut [u8]) {
    for (row, out) in rows.iter().zip(out.chunks_exact_mut(28_672)) {
        let r = row.record;
        for p in 0..112 {
            for s in 0..64 {
                let value = match p {
                    0..104 => {
                        let word = u64::from_le_bytes(r[7440 + 8 * p..7448 + 8 * p].try_into().expect("8 bytes"));
                        (word >> (s ^ 7) & 1) as f32
                    }
                    104..109 => f32::from(r[8272 + p - 104]),
                    109 => f32::from(r[8277]) / 99.0,
                    110 => 0.0,
                    _ => 1.0,
                };
                out[(p * 64 + s) * 4..][..4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
}

/// Seconds of encoding all rows, and of filling the same buffers with one byte; the two alternate.
fn encode(encoder: &dyn Encoder, rows: &[Row<'_>]) -> (f64, f64) {
    let row_bytes: Vec<usize> = encoder.outputs().iter().map(|spec| spec.row_bytes()).collect();
    let mut buffers: Vec<Buffer> = row_bytes.iter().map(|bytes| Buffer::new(bytes * ROWS)).collect();
    let (mut ours, mut fill) = (f64::INFINITY, f64::INFINITY);
    for round in 0..=ROUNDS {
        let encoded = timed(&mut || {
            for (task, rows) in rows.chunks(TASK).enumerate() {
                let mut out: Vec<&mut [u8]> = buffers
                    .iter_mut()
                    .zip(&row_bytes)
                    .map(|(buffer, bytes)| &mut buffer.bytes()[task * TASK * bytes..][..rows.len() * bytes])
                    .collect();
                encoder.encode(rows, &mut out).expect("good records");
            }
        });
        let filled = timed(&mut || {
            for buffer in &mut buffers {
                buffer.bytes().fill(std::hint::black_box(round as u8));
                std::hint::black_box(buffer.bytes());
            }
        });
        if round > 0 {
            (ours, fill) = (ours.min(encoded), fill.min(filled));
        }
    }
    (ours, fill)
}
