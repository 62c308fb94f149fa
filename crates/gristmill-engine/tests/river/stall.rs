//! Who waits for whom: each test makes one cause larger than the others on purpose, and reads its name.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gristmill_engine::pipeline::Waits;
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::{DataLoader, Next};
use gristmill_faultserver::{Network, start};
use gristmill_format::container::gzip;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::games::{generate, loader, mixed, next, options, preset, varied};
use super::waited::{is_mostly, until_it_is};

fn waits(loader: &DataLoader) -> Waits {
    loader.metrics().waits
}

/// What was waited for while `batches` were taken, the first one not counted.
fn while_taking(loader: &DataLoader, batches: usize, train: impl Fn()) -> Waits {
    next(loader, "").unwrap();
    let before = waits(loader);
    for _ in 0..batches {
        train();
        next(loader, "").unwrap();
    }
    waits(loader).since(&before)
}

/// No reservoir: what comes is read for it.
fn plain(folder: &Path) -> Lc0Preset {
    Lc0Preset { reservoir: Some(0), ..preset(folder) }
}

/// Few rows of long games: nearly all time goes into decoding.
fn long_games(folder: &Path) -> Lc0Preset {
    generate(gristmill_generate::ChessOptions { plies_max: 400, ..options(folder, 12) });
    Lc0Preset { sampling_rate: None, position_count: Some(1), threads: Some(1), batch_size: 32, ..plain(folder) }
}

#[test]
fn a_slow_store_is_named() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(&folder.path().join("slow-store"), 24));
    let network = Network { anonymous: true, latency: Duration::from_millis(60), ..Network::default() };
    let server = start(folder.path().into(), network).unwrap();
    let endpoint = Some(server.address.clone());
    set_options("s3://slow-store", Options { endpoint, anonymous: true, ..Options::default() });
    let directories = vec![Weighted { directory: "s3://slow-store".into(), weight: 1.0 }];
    let loader = loader(&Lc0Preset { directories, ..plain(folder.path()) });
    let is_so = |found: &Waits| found.limited_by_since_start == "storage" && found.stall_since_start > 0.8;
    until_it_is(|| while_taking(&loader, 30, || ()), is_so);
    let mut now = (0..20).map(|_| (while_taking(&loader, 30, || ()), loader.status(0)).1);
    let now = now.find(|now| now.limited_by == "storage").expect("the last second is that of the store, too");
    assert_eq!(now.outputs[0].waits.limited_by, "storage", "{now:?}");
}

#[test]
fn a_slow_trainer_is_named() {
    let loader = loader(&preset(mixed()));
    let train = || std::thread::sleep(Duration::from_millis(40));
    let is_so = |found: &Waits| found.limited_by_since_start == "trainer" && found.seconds("trainer") > 1.5;
    until_it_is(|| while_taking(&loader, 40, train), is_so);
}

#[test]
fn what_is_yet_to_be_filled_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let patience = Some(Duration::from_millis(300));
    let few = Lc0Preset { watch: Some(true), ..preset(empty.path()) };
    let large = Lc0Preset { reservoir: Some(200_000), sampling_rate: Some(0.01), ..preset(mixed()) };
    for (what, preset) in [("no game is there", few), ("the reservoir is not full", large)] {
        let measure = || {
            let loader = loader(&preset);
            assert!(matches!(loader.next("", patience), Ok(Next::Pending)), "{what}");
            waits(&loader)
        };
        let is_so = |found: &Waits| found.stall_since_start > 0.5 && found.seconds("pool") > 0.2;
        until_it_is(measure, |found| is_so(found) && found.limited_by_since_start == "pool");
    }
}

#[test]
fn heavy_decoding_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let loader = loader(&long_games(folder.path()));
    until_it_is(|| while_taking(&loader, 20, || ()), is_mostly("decode", 4.0));
}

/// Games that gzip stores without compression: the loader decodes them in little time.
fn stored_games(folder: &Path) -> Lc0Preset {
    generate(options(folder, 40));
    for file in std::fs::read_dir(folder).unwrap() {
        let (path, mut records) = (file.unwrap().path(), Vec::new());
        gzip::Inflater::default().inflate(&std::fs::read(&path).unwrap(), 1 << 20, &mut records).unwrap();
        std::fs::write(&path, gzip::compress(0, &records).unwrap()).unwrap();
    }
    plain(folder)
}

#[test]
fn heavy_encoding_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // The encoder searches the legal moves of each row twice.
    let tensors = ["planes:f32", "probs", "legal", "legal:bits", "values"].map(String::from).to_vec();
    let stored = stored_games(folder.path());
    let all = Lc0Preset { sampling_rate: None, threads: Some(1), tensors, batch_size: 256, ..stored };
    let loader = loader(&all);
    until_it_is(|| while_taking(&loader, 40, || ()), is_mostly("encode", 1.0));
}

/// Raised when it is dropped, whatever a test finds.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `body` while `rivals` threads want the same core as the threads that it starts.
fn beside(rivals: usize, body: impl FnOnce() + Send) {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sched_setaffinity(None, &one).unwrap();
            let over = Over(Arc::default());
            for _ in 0..rivals {
                let over = Arc::clone(&over.0);
                std::thread::spawn(move || {
                    let mut x = 1u64;
                    while !over.load(Ordering::Relaxed) {
                        x = std::hint::black_box(x.wrapping_mul(3));
                    }
                });
            }
            body();
        });
    });
}

#[test]
fn a_machine_without_a_free_core_is_named() {
    if !Path::new("/proc/thread-self/schedstat").exists() {
        // The system does not count how long threads wait for a core: then nobody says that one is missing.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let preset = long_games(folder.path());
    beside(16, || {
        let loader = loader(&preset);
        let is_so = |found: &Waits| {
            let [core, decode, storage] = ["core", "decode", "storage"].map(|cause| found.seconds(cause));
            found.limited_by_since_start == "core" && core > 2.0 * decode && core > 4.0 * storage
        };
        until_it_is(|| while_taking(&loader, 12, || ()), is_so);
    });
}

#[test]
fn the_parts_are_the_whole_and_a_wait_is_seen_while_it_lasts() {
    let loader = loader(&plain(varied()));
    assert_eq!(waits(&loader), Waits::default(), "nobody wanted a batch");
    let start = Instant::now();
    for _ in 0..20 {
        next(&loader, "");
        std::thread::sleep(Duration::from_millis(3));
    }
    let found = waits(&loader);
    let whole = start.elapsed().as_secs_f64();
    let parts: f64 = found.waits.iter().map(|waited| waited.seconds).sum();
    assert!((parts - whole).abs() < 0.05 * whole + 0.02, "{parts} of {whole}: {found:?}");
    assert!(found.seconds("trainer") > 0.05);
    let text = loader.metrics().prometheus();
    assert!(text.contains(r#"cause="trainer"} "#) && text.contains("gristmill_stall_ratio"), "{text}");
    loader.stop();
    let stopped = waits(&loader);
    assert!(loader.next("", None).is_err());
    std::thread::sleep(Duration::from_millis(30));
    let later = waits(&loader);
    assert!(later.seconds("trainer") - stopped.seconds("trainer") < 0.025, "time stands still after the end");
}
