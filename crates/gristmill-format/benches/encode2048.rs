//! Step rows -> tensors: rows a second of one core for each 2048 encoder, beside a plain copy of the same rows.
#![allow(clippy::print_stdout, reason = "the figures are what a benchmark is for")]

use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::g2048::encode::{Augment, Binner, Classes, Draw, Element, StepEncoder, Target, Tokenizer};
use gristmill_format::g2048::row::layout_aligned;
use rustix::time::{ClockId, clock_gettime};

const ROWS: usize = 4096;
const BATCHES: usize = 64;

/// Batches whose memory takes turns, as in a loader: more than the cache of a core holds.
const TURNS: usize = 16;

fn main() {
    let records = records();
    let any = Augment { rotate: Draw::Any, flip: Draw::Any };
    let encoders = [
        ("steps", encoder(Target::Steps, Augment::default(), Element::I64)),
        ("hard_move", encoder(Target::HardMove, Augment::default(), Element::I64)),
        ("binned_ev", encoder(Target::BinnedEv(Binner::default()), Augment::default(), Element::I64)),
        ("tokens", encoder(tokens(), Augment::default(), Element::I64)),
        ("tokens + rotation + flip", encoder(tokens(), any, Element::I64)),
        ("tokens + rotation + flip, 8 bits", encoder(tokens(), any, Element::U8)),
    ];
    let size = layout_aligned().size();
    let mut copy = vec![0u8; ROWS * size];
    let copied = best(|| copy.copy_from_slice(&records));
    println!("{:34} {:8.1} M rows/s", "copy of 48-byte rows", ROWS as f64 / copied / 1e6);
    for (name, encoder) in encoders {
        let rows: Vec<Row<'_>> =
            records.chunks_exact(size).zip(bits()).map(|(record, bits)| row(record, bits)).collect();
        let out = || encoder.outputs().iter().map(|spec| vec![0; ROWS * spec.row_bytes()]).collect();
        let mut outs: Vec<Vec<Vec<u8>>> = std::iter::repeat_with(out).take(TURNS).collect();
        let mut turn = 0;
        let seconds = best(|| {
            turn = (turn + 1) % TURNS;
            let mut slices: Vec<&mut [u8]> = outs[turn].iter_mut().map(Vec::as_mut_slice).collect();
            encoder.encode(&rows, &mut slices).expect("rows of the bench are good");
        });
        let rate = ROWS as f64 / seconds / 1e6;
        println!("{name:34} {rate:8.1} M rows/s  {:6.1} ns/row  {:5.3} of the copy", 1e3 / rate, copied / seconds);
    }
}

fn row(record: &[u8], bits: u64) -> Row<'_> {
    Row { record, provenance: Provenance::default(), bits: bits.into(), sparse: None }
}

fn encoder(target: Target, augment: Augment, element: Element) -> StepEncoder {
    StepEncoder::new(target, augment, element).expect("an encoder of the bench")
}

fn tokens() -> Target {
    let edges = |scale: f64| (0..=32).map(|i| -scale * (f64::from(32 - i) / 32.0).powi(4)).collect();
    let tokenizer = Tokenizer::new([edges(60_000.0), edges(1.0), edges(1.0)], -1500, serde_json::Map::new());
    Target::Tokens(Classes::new(tokenizer.expect("edges increase"), &["search", "tuple11", "tuple10"]))
}

fn bits() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9E37_79B9_7F4A_7C15u64), |x| Some((x ^ x >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93)))
}

/// Rows of all valuations, one in sixteen with a tile of 65536.
fn records() -> Vec<u8> {
    let mut out = Vec::new();
    for (i, bits) in (0u32..).zip(bits().skip(7)).take(ROWS) {
        let kind = [0u8, 0, 1, 2][i as usize % 4];
        let mask = if i.is_multiple_of(16) { 1u16 << (bits & 15) } else { 0 };
        let mut record = Vec::new();
        record.extend_from_slice(&0u32.to_le_bytes());
        record.extend_from_slice(&i.to_le_bytes());
        record.extend_from_slice(&bits.to_le_bytes());
        record.extend_from_slice(&((bits >> 40) as i32 % 100_000).to_le_bytes());
        record.extend_from_slice(&mask.to_le_bytes());
        let chosen = (bits >> 20 & 3) as u8;
        record.extend_from_slice(&[chosen, kind, (bits >> 24 & 15) as u8 | 1 << chosen, 11]);
        record.extend_from_slice(&[0; 6]);
        for j in 0..4 {
            let share = (bits >> (16 * j) & 0xFFFF) as f32 / 65_536.0;
            let value = if kind == 0 { 4000.0 + 20.0 * share } else { 0.5 + share / 2.0 };
            record.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&record);
    }
    out
}

/// Shortest processor time of a call, in seconds.
fn best(mut work: impl FnMut()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let mut shortest = f64::INFINITY;
    for _ in 0..9 {
        let start = now();
        (0..BATCHES).for_each(|_| work());
        shortest = shortest.min((now() - start) / BATCHES as f64);
    }
    shortest
}
