//! Shards to frames beside bare decompression of the same bytes, pickled arrays to memory beside memcpy, a MAGICAL
//! demonstration to stacks: one thread, CPU time, medians of the ratios of interleaved rounds. The real Pong shard and MAGICAL
//! demonstration where `GRISTMILL_SHARED` (or `../shared`) has them, else a shard that is made here.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill_bytes::container::gzip::{self, Inflater};
use gristmill_bytes::container::pickle::{PickleLimits, parse};
use gristmill_bytes::container::zstd;
use gristmill_demo::form::{ReadOptions, read};
use gristmill_demo::native::Magical;
use gristmill_demo::shard::{Members, Shard, ShardWriter, metadata, unpack_into};
use gristmill_demo::trajectory::{Tape, Trajectories};

const ROUNDS: usize = 25;
const BATCH: usize = 32;
const MAX: usize = 1 << 30;

fn main() {
    let packed = shared("pong.tar.zst").unwrap_or_else(|| zstd::compress(19, &made()).unwrap());
    let mut tar = Vec::new();
    zstd::decompress(&packed, MAX, &mut tar).unwrap();
    let gz = gzip::compress(6, &tar).unwrap();
    let frames = Shard::read(&tar, MAX).unwrap().trajectories.frames();
    println!("a shard of {frames} frames, {:.1} MB unpacked", tar.len() as f64 / 1e6);
    let mut room = vec![1; tar.len()];
    let mut bare = ::zstd::bulk::Decompressor::new().unwrap();
    let mut mill = Mill::new(tar.len() + (1 << 20));
    let name = "zstd shard to batches";
    compare(
        "zstd alone, into memory touched before",
        name,
        tar.len(),
        0.4,
        || {
            bare.decompress_to_buffer(black_box(&packed), &mut room).unwrap();
        },
        || mill.batches(&packed),
    );
    compare(
        "zstd alone, into fresh memory",
        "zstd shard to records",
        tar.len(),
        0.4,
        || {
            black_box(bare.decompress(black_box(&packed), tar.len()).unwrap());
        },
        || _ = black_box(Shard::read(black_box(&packed), MAX).unwrap()),
    );
    let mut inflater = Inflater::default();
    let mut room = Vec::new();
    compare(
        "gzip alone, into memory touched before",
        "gzip shard to batches",
        tar.len(),
        0.4,
        || {
            inflater.inflate(black_box(&gz), MAX, &mut room).unwrap();
        },
        || mill.batches(&gz),
    );
    let mut room = vec![1; tar.len()];
    let plain = Tape::new(tar.clone());
    compare(
        "memcpy of the tar",
        "plain shard to batches",
        tar.len(),
        0.0,
        || {
            room.copy_from_slice(black_box(&tar));
        },
        || mill.gather(&Shard::over(&plain, MAX).unwrap().trajectories),
    );

    for len in [64 << 10, 1 << 20, 16 << 20] {
        let (from, pickle) = (vec![7u8; len], array(&vec![7; len]));
        let (mut one, mut two) = (vec![1u8; len], vec![1u8; len]);
        let name = format!("array of {} KiB, unpickled and copied", len >> 10);
        compare(
            "memcpy",
            &name,
            len,
            0.5,
            || one.copy_from_slice(black_box(&from)),
            || {
                let pickle = parse(black_box(&pickle), &PickleLimits::default()).unwrap();
                two.copy_from_slice(&pickle.array(pickle.root()).unwrap().c_order(&pickle).unwrap());
            },
        );
    }
    if let Some(file) = shared("magical-MoveToRegion.pkl.gz") {
        let options = ReadOptions { magical: Magical::LoResChw4E, ..ReadOptions::default() };
        let once = || {
            black_box(read("demo.pkl.gz", black_box(&file), &options).unwrap());
        };
        let mut room = Vec::new();
        inflater.inflate(&file, MAX, &mut room).unwrap();
        let len = room.len();
        compare(
            "gzip alone",
            "MAGICAL demonstration to stacks",
            len,
            0.0,
            || {
                inflater.inflate(black_box(&file), MAX, &mut room).unwrap();
            },
            once,
        );
    }
}

/// Memory that is used again from shard to shard: for what is unpacked, and for one batch of each field.
struct Mill {
    room: Arc<Room>,
    batches: Vec<Vec<u8>>,
}

struct Room(Vec<u8>);

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

struct Shared(Arc<Room>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

impl Mill {
    fn new(len: usize) -> Self {
        Mill { room: Arc::new(Room(vec![1; len])), batches: Vec::new() }
    }

    /// Unpacks a shard, reads its frames and gathers all of its batches.
    fn batches(&mut self, packed: &[u8]) {
        let room = Arc::get_mut(&mut self.room).unwrap();
        let len = room.0.capacity();
        room.0.resize(len, 0);
        let len = unpack_into(black_box(packed), &mut room.0).unwrap().unwrap();
        room.0.truncate(len);
        let tape = Tape::new(Shared(self.room.clone()));
        self.gather(&Shard::over(&tape, MAX).unwrap().trajectories);
    }

    fn gather(&mut self, all: &Trajectories) {
        let fields = all.layout().unwrap().fields();
        self.batches.resize_with(fields.len(), Vec::new);
        for start in (0..all.frames()).step_by(BATCH) {
            let frames = start..all.frames().min(start + BATCH);
            for (field, batch) in fields.iter().zip(&mut self.batches) {
                batch.resize(frames.len() * field.bytes(), 0);
                all.gather(&field.name, frames.clone(), batch).unwrap();
            }
        }
        black_box(&self.batches);
    }
}

/// Runs both turn by turn and prints rates and the median of the ratios.
fn compare(peer: &str, name: &str, bytes: usize, goal: f64, mut theirs: impl FnMut(), mut ours: impl FnMut()) {
    let mut best = [Duration::MAX; 2];
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let mut took = [Duration::ZERO; 2];
        for who in [round % 2, 1 - round % 2] {
            let start = cpu_time();
            if who == 0 {
                theirs()
            } else {
                ours()
            }
            took[who] = cpu_time() - start;
            best[who] = best[who].min(took[who]);
        }
        ratios.push(took[0].as_secs_f64() / took[1].as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let wanted = if goal > 0.0 { format!(" (goal >= {goal})") } else { String::new() };
    println!(
        "{name}: {:.0} MB/s; {peer}: {:.0} MB/s; ratio {:.2}{wanted}",
        rate(best[1]),
        rate(best[0]),
        ratios[ROUNDS / 2]
    );
}

fn shared(name: &str) -> Option<Vec<u8>> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    std::fs::read(folder.join("data/demos").join(name)).ok()
}

/// An array of bytes as NumPy pickles it by protocol 4.
fn array(bytes: &[u8]) -> Vec<u8> {
    let mut pickle =
        b"\x80\x04\x8c\x15numpy.core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07\
        ndarray\x94\x93\x94K\0\x85\x94C\x01b\x94\x87\x94R\x94(K\x01J"
            .to_vec();
    pickle.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
    pickle.extend_from_slice(
        b"\x85\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02u1\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xff\
          J\xff\xff\xff\xffK\0t\x94b\x89B",
    );
    pickle.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
    pickle.extend_from_slice(bytes);
    pickle.extend_from_slice(b"\x94t\x94b.");
    pickle
}

/// The tar of a thousand frames: a few squares that move over a still picture, and an action.
fn made() -> Vec<u8> {
    let six = b"(dVn\nI6\ns.";
    let meta = metadata(b"(dVtask_name\nVsquares\ns.", ("Discrete", six), ("Discrete", six), "GRAY").unwrap();
    let mut writer = ShardWriter::new(Vec::new(), &meta, Members::Pickle).unwrap();
    let still: Vec<u8> = (0..4 * 84 * 84u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 29) as u8).collect();
    let picture = |t: usize| {
        let mut picture = still.clone();
        for (i, row) in picture.chunks_exact_mut(84).enumerate() {
            let at = (t * (1 + i / 84)) % 76;
            row[at..at + 8].fill((i % 84 / 8) as u8);
        }
        array(&picture)
    };
    for t in 0..1000 {
        let done = if t % 200 == 199 { b"I01\n.".to_vec() } else { b"I00\n.".to_vec() };
        let fields = [
            ("acts".to_owned(), format!("I{}\n.", t % 6).into_bytes()),
            ("dones".to_owned(), done),
            ("next_obs".to_owned(), picture(t + 1)),
            ("obs".to_owned(), picture(t)),
        ];
        writer.frame(&fields).unwrap();
    }
    writer.finish().unwrap()
}

fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}
