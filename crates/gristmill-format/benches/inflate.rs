//! Synthetic V6 games, gzip level 6: our whole-file inflate against bare libdeflate on the same bytes, one thread.
//! Prints the best CPU time per record and MB/s, and the median of the ratios of interleaved rounds (goal: 0.90 or more); then what
//! it costs to hold the head of a game against its sums, beside the same head without checks and the whole game.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(unsafe_code, missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Duration;

use gristmill_format::chess::source::GameFile;
use gristmill_format::chess::{Version, game as games_of};
use gristmill_format::container::gzip::{Inflater, compress};
use gristmill_format::head::Head;
use gristmill_format::source::{Chunk, ChunkSource, Limits};
use libdeflate_sys as sys;

const RECORD: usize = 8356;
const GAMES: u64 = 64;
const ROUNDS: usize = 61;

fn main() {
    let games: Vec<Vec<u8>> = (0..GAMES).map(|seed| compress(6, &game(seed)).unwrap()).collect();
    let stored: usize = games.iter().map(Vec::len).sum();
    let mut bare = Bare::new();
    let mut inflater = Inflater::default();
    let mut out = Vec::new();
    let mut best = [Duration::MAX; 2];
    let mut inflated = [0; 2];
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut took = [Duration::ZERO; 2];
        for who in [round % 2, 1 - round % 2] {
            let start = cpu_time();
            inflated[who] = 0;
            for game in &games {
                inflated[who] += if who == 0 {
                    bare.inflate(black_box(game))
                } else {
                    inflater.inflate(black_box(game), 16 << 20, &mut out).unwrap();
                    black_box(&out).len()
                };
            }
            took[who] = cpu_time() - start;
            best[who] = best[who].min(took[who]);
        }
        ratios.push(took[0].as_secs_f64() / took[1].as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    assert_eq!(inflated[0], inflated[1]);
    let bytes = inflated[0];
    println!("{GAMES} games, {} records, {:.1}:1", bytes / RECORD, bytes as f64 / stored as f64);
    for (name, time) in ["libdeflate", "gristmill"].iter().zip(best) {
        let (micros, records) = (time.as_secs_f64() * 1e6, (bytes / RECORD) as f64);
        println!("{name:10} {:6.0} MB/s  {:.2} us/record", bytes as f64 / micros, micros / records);
    }
    println!("ratio      {:6.3}", ratios[ROUNDS / 2]);
    heads(&games);
}

/// Shares of a game that are wanted, in percent.
const WANTED: [usize; 5] = [5, 25, 50, 75, 90];

/// A game as it is stored, how many positions it has, and its sums.
struct Known<'a> {
    stored: &'a [u8],
    frames: usize,
    head: Head,
}

/// Microseconds of a use of one game, the best of several rounds.
fn best(games: &[Known<'_>], mut one: impl FnMut(&Known<'_>)) -> f64 {
    let mut round = || {
        let start = cpu_time();
        games.iter().for_each(&mut one);
        (cpu_time() - start).as_secs_f64() * 1e6 / games.len() as f64
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn heads(games: &[Vec<u8>]) {
    let (source, limits, mut chunk) = (GameFile::new("game"), Limits::default(), Chunk::default());
    let mut known = |stored| {
        source.decode(0, stored, &limits, &mut chunk).unwrap();
        Known { stored, frames: chunk.frames, head: source.head(0, stored, &chunk).unwrap() }
    };
    let games: Vec<Known<'_>> = games.iter().map(|stored| known(stored)).collect();
    let mut chunk = Chunk::default();
    let whole = best(&games, |one| source.decode(0, black_box(one.stored), &limits, &mut chunk).unwrap());
    println!("whole game, with its CRC-32  {whole:7.1} us");
    let noted = best(&games, |one| {
        source.decode(0, black_box(one.stored), &limits, &mut chunk).unwrap();
        black_box(source.head(0, one.stored, &chunk));
    });
    println!("the same, and its sums, once {noted:7.1} us, {:.3} of it", noted / whole);
    for percent in WANTED {
        let first = |one: &Known<'_>| (one.frames * percent / 100).max(1);
        let bare = best(&games, |one| {
            let want = first(one) * Version::V7.bytes();
            if chunk.kept.tool::<Inflater>().inflate_head(one.stored, want, &mut chunk.bytes).unwrap() {
                games_of::parse_head(&mut chunk, first(one)).unwrap();
            } else {
                source.decode(0, one.stored, &limits, &mut chunk).unwrap();
            }
        });
        let checked = best(&games, |one| {
            let alone = one.head.is_of(black_box(one.stored))
                && source.decode_head(0, (first(one), &one.head), one.stored, &limits, &mut chunk).unwrap();
            if !alone {
                source.decode(0, one.stored, &limits, &mut chunk).unwrap();
            }
        });
        println!(
            "first {percent:2} %: {bare:7.1} us without checks, {checked:7.1} us with them: {:.3} times as much, {:.3} of the whole",
            checked / bare,
            checked / whole
        );
    }
}

/// libdeflate with the exact output size known beforehand, into memory that was touched before.
struct Bare {
    raw: *mut sys::libdeflate_decompressor,
    out: Vec<u8>,
}

impl Bare {
    fn new() -> Self {
        // SAFETY: no arguments; null is refused.
        let raw = unsafe { sys::libdeflate_alloc_decompressor() };
        assert!(!raw.is_null());
        Bare { raw, out: vec![1; 4 << 20] }
    }

    fn inflate(&mut self, game: &[u8]) -> usize {
        let size = u32::from_le_bytes(*game.last_chunk().unwrap()) as usize;
        assert!(size <= self.out.len());
        // SAFETY: a live decompressor; both buffers are valid for the lengths given; a null pointer asks for exact size.
        let verdict = unsafe {
            sys::libdeflate_gzip_decompress(
                self.raw,
                game.as_ptr().cast(),
                game.len(),
                self.out.as_mut_ptr().cast(),
                size,
                std::ptr::null_mut(),
            )
        };
        assert_eq!(verdict, sys::libdeflate_result_LIBDEFLATE_SUCCESS);
        black_box(&self.out);
        size
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed once.
        unsafe { sys::libdeflate_free_decompressor(self.raw) }
    }
}

/// 60 to 180 records: some thirty legal moves with noisy visit shares, boards that change by a square or two a ply.
fn game(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut boards = [0u64; 104];
    boards.fill_with(|| random.next() & random.next() & random.next());
    let mut bytes = Vec::new();
    for ply in 0..60 + random.below(121) {
        let mut record = vec![0; RECORD];
        record[..8].copy_from_slice(&[6, 0, 0, 0, 1, 0, 0, 0]);
        record[8..7440].as_chunks_mut().0.fill((-1.0f32).to_le_bytes());
        for _ in 0..20 + random.below(20) {
            let at = 8 + 4 * random.below(1858);
            let share = random.below(800) as f32 / 800.0;
            record[at..at + 4].copy_from_slice(&share.to_le_bytes());
        }
        boards.copy_within(..91, 13);
        boards[random.below(13)] ^= 1 << random.below(64) | 1 << random.below(64);
        for (plane, board) in record[7440..8272].as_chunks_mut().0.iter_mut().zip(boards) {
            *plane = board.to_le_bytes();
        }
        record[8277] = ply.to_le_bytes()[0];
        for value in record[8280..8352].as_chunks_mut().0 {
            *value = (random.below(20_000) as f32 / 10_000.0 - 1.0).to_le_bytes();
        }
        bytes.extend(record);
    }
    bytes
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
