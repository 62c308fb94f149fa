//! Raw logs of 2048 games, gzip level 6: rows/s of inflating and parsing, against zlib and serde_json on the same bytes.
//! One thread; best CPU time, and the median of the ratios of interleaved rounds. Goals: parsing alone 2.4 M rows/s.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

mod played;

use std::hint::black_box;
use std::time::Duration;

use gristmill_format::container::gzip::{Inflater, compress};
use gristmill_format::g2048::log::{Sidecar, parse_game};
use gristmill_format::g2048::row::narrow;
use gristmill_format::source::Limits;
use played::{Peer, game};

const ROWS: usize = 28_000;
const GAMES: u64 = 4;
const ROUNDS: usize = 15;
const LIMITS: Limits = Limits { max_chunk_bytes: 64 << 20 };

fn main() {
    let texts: Vec<String> = (0..GAMES).map(|seed| game(seed, ROWS)).collect();
    let stored: Vec<Vec<u8>> = texts.iter().map(|text| compress(6, text.as_bytes()).unwrap()).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let packed: usize = stored.iter().map(Vec::len).sum();
    let rows = GAMES as usize * ROWS;
    println!(
        "{rows} rows, {:.1} bytes of text and {:.1} stored for each",
        bytes as f64 / rows as f64,
        packed as f64 / rows as f64
    );

    let sidecar = br#"{"seed":1,"num_moves":28000,"score":1,"max_tile":2}"#;
    let sidecar = Sidecar::parse(sidecar).unwrap();
    let mut ours = Ours { sidecar, inflater: Inflater::default(), text: Vec::new(), rows: Vec::new(), out: Vec::new() };
    let mut peer = Peer::default();
    let names = ["parse", "inflate + parse + pack", "zlib + serde_json", "inflate"];
    let mut best = [Duration::MAX; 4];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let took = [
            time(|| texts.iter().map(|text| ours.parse(text.as_bytes())).sum()),
            time(|| stored.iter().map(|game| ours.whole(game)).sum()),
            time(|| stored.iter().map(|game| peer.rows(game)).sum()),
            time(|| stored.iter().map(|game| ours.inflate(game)).sum::<usize>().min(rows)),
        ];
        assert!(took.iter().all(|(n, _)| *n == rows));
        for (best, (_, took)) in best.iter_mut().zip(took) {
            *best = took.min(*best);
        }
        ratios.push(took[2].1.as_secs_f64() / took[1].1.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    for (name, time) in names.iter().zip(best) {
        println!("{name:24} {:6.2} M rows/s", rows as f64 / time.as_secs_f64() / 1e6);
    }
    println!("ratio to zlib + serde_json {:6.2}", ratios[ROUNDS / 2]);
}

/// Runs `work` and says what it gave and how much CPU time it took.
fn time(work: impl FnOnce() -> usize) -> (usize, Duration) {
    let start = cpu_time();
    let n = black_box(work());
    (n, cpu_time() - start)
}

struct Ours {
    sidecar: Sidecar,
    inflater: Inflater,
    text: Vec<u8>,
    rows: Vec<u8>,
    out: Vec<u8>,
}

impl Ours {
    fn parse(&mut self, text: &[u8]) -> usize {
        let summary = parse_game(&self.sidecar, black_box(text), &LIMITS, &mut self.rows).unwrap();
        black_box(&self.rows);
        summary.rows as usize
    }

    fn inflate(&mut self, game: &[u8]) -> usize {
        self.inflater.inflate(black_box(game), LIMITS.max_chunk_bytes, &mut self.text).unwrap();
        self.text.len()
    }

    fn whole(&mut self, game: &[u8]) -> usize {
        self.inflate(game);
        let text = std::mem::take(&mut self.text);
        let n = self.parse(&text);
        self.text = text;
        self.out.resize(n * 46, 0);
        narrow(&self.rows, &mut self.out).unwrap();
        black_box(&self.out);
        n
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
