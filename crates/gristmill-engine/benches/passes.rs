//! What a game costs between inflating it and selecting its rows: validator and rescorer (without tables), beside
//! stock zlib on the same games.
//! Prints CPU time per position, the best of several interleaved rounds, and the ratio.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(unsafe_code, missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::time::Duration;

use gristmill_engine::stage::ChunkPass;
use gristmill_engine::stage::rescore::Rescore;
use gristmill_engine::stage::validate::Validate;
use gristmill_format::chess::Version;
use gristmill_format::chess::check::Rules;
use gristmill_format::chess::rescore::{Rescorer, Settings};
use gristmill_format::chess::source::GameFile;
use gristmill_format::source::{Chunk, ChunkSource, Limits};
use gristmill_generate::{ChessGenerator, ChessOptions};

const GAMES: u64 = 100;
const ROUNDS: usize = 15;

/// Maximum number of microseconds a position that validator and rescorer may take together.
const GOAL: f64 = 4.0;

fn main() {
    let stored = games();
    let (source, limits) = (GameFile::new("game"), Limits::default());
    let (mut chunk, mut out) = (Chunk::default(), vec![1; 8 << 20]);
    let validate = Validate::new(Rules::DEFAULT);
    let rescore = Rescore::new(Rescorer::new(Settings::default(), None).unwrap());
    let mut best = [Duration::MAX; 3];
    let mut positions = 0;
    for _ in 0..ROUNDS {
        let mut took = [Duration::ZERO; 3];
        positions = 0;
        for game in &stored {
            let start = cpu_time();
            black_box(zlib(black_box(game), &mut out));
            took[0] += cpu_time() - start;
            // As in the river: a pass finds the records where the decoder left them.
            source.decode(0, game, &limits, &mut chunk).unwrap();
            positions += chunk.frames;
            let start = cpu_time();
            validate.run(black_box(&mut chunk), &mut |_, _| {}).unwrap();
            took[1] += cpu_time() - start;
            let start = cpu_time();
            rescore.run(black_box(&mut chunk), &mut |_, _| {}).unwrap();
            took[2] += cpu_time() - start;
        }
        for (best, took) in best.iter_mut().zip(took) {
            *best = took.min(*best);
        }
    }
    let [zlib, validator, rescorer] = best.map(|time| time.as_secs_f64() * 1e6 / positions as f64);
    println!("{GAMES} games, {positions} positions, best of {ROUNDS}, CPU time of one thread");
    println!("stock zlib  {zlib:6.2} us a position");
    for (name, cost) in [("validator", validator), ("rescorer", rescorer), ("both", validator + rescorer)] {
        println!(
            "{name:11} {cost:6.2} us a position, {:.2} of zlib, {:.2} of the {GOAL} us goal for both",
            cost / zlib,
            cost / GOAL
        );
    }
}

/// The games as stored.
fn games() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (version, plies_max) = (Version::V6, 200);
    let path = folder.path().to_owned();
    let options =
        ChessOptions { folder: path, games: GAMES, first: 1, seed: 3, plies_max, version, games_per_tar: None };
    let mut generator = ChessGenerator::new(options).unwrap();
    let files = std::iter::from_fn(|| generator.write_next().unwrap());
    files.map(|file| std::fs::read(file.path).unwrap()).collect()
}

/// Inflates a gzip file with the C library; how many bytes it gave.
fn zlib(game: &[u8], out: &mut [u8]) -> usize {
    let mut stream = MaybeUninit::<libz_sys::z_stream>::zeroed();
    let stream = stream.as_mut_ptr();
    // SAFETY: zlib wants a zeroed stream and fills it in; both buffers are valid for the lengths given and outlive
    // the calls; the stream is ended once.
    unsafe {
        (*stream).next_in = game.as_ptr().cast_mut();
        (*stream).avail_in = u32::try_from(game.len()).unwrap();
        (*stream).next_out = out.as_mut_ptr();
        (*stream).avail_out = u32::try_from(out.len()).unwrap();
        let size = i32::try_from(size_of::<libz_sys::z_stream>()).unwrap();
        assert_eq!(libz_sys::inflateInit2_(stream, 15 + 16, libz_sys::zlibVersion(), size), libz_sys::Z_OK);
        assert_eq!(libz_sys::inflate(stream, libz_sys::Z_FINISH), libz_sys::Z_STREAM_END);
        let written = usize::try_from((*stream).total_out).unwrap();
        libz_sys::inflateEnd(stream);
        written
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
