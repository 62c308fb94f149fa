//! Measured, not judged: the scan of 100 000 small files, and the time from the close of a file to its arrival.
//! Run with `cargo test --release --test parts discover_speed -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and this one prints what it measured")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use gristmill_engine::runtime::scheduler::Rounds;
use gristmill_engine::stage::discover::Search;
use gristmill_engine::stage::load::{LogSpec, SourceLog};
use gristmill_engine::store::DirStore;

/// Resident memory of this process in bytes, where the system tells.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[test]
#[ignore = "takes a while and asserts nothing but counts"]
fn a_hundred_thousand_files() {
    // Disks create and delete files slowly; memory, where there is a folder of it, does not.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    for i in 0..100_000 {
        let folder = dir.path().join(format!("training-run1-{}", i / 10_000));
        if i % 10_000 == 0 {
            fs::create_dir(&folder).unwrap();
        }
        fs::write(folder.join(format!("training.{}.gz", 138_000_000 + i)), [0x1f, 0x8b]).unwrap();
    }
    for round in 0..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let (before, start) = (resident(), Instant::now());
        let store = Arc::new(DirStore::new(dir.path()).unwrap());
        let search = Search {
            store: store.clone(),
            watch: true,
            rescan: Duration::from_secs(600),
            expected: Default::default(),
            waits: true,
            stop: stop.clone(),
        };
        let spec = LogSpec {
            store,
            find: search.ready(),
            provider: 0,
            version: None,
            fits: |_| Ok(()),
            facts: None,
            solids: None,
            waits: false,
        };
        let spawn = |_: &str, mut rounds: Rounds| {
            std::thread::spawn(move || while rounds().map(std::thread::sleep).is_some() {});
        };
        let log = SourceLog::start(spec, &spawn, Arc::new(move || tell.send(()).unwrap_or_default()));
        while log.initial().is_none() {
            told.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        let scanned = start.elapsed();
        let grown = resident().saturating_sub(before);
        assert_eq!(log.initial().unwrap().len(), 100_000);
        println!("scan and sort of 100 000 files, watched: {scanned:?}; {} bytes a file", grown / 100_000);

        let mut waits = Vec::new();
        for i in 0..20 {
            let path = dir.path().join(format!("training-run1-3/late.{round}.{i}.gz"));
            fs::write(path, format!("{round} {i}")).unwrap();
            let closed = Instant::now();
            while log.arrivals(0).len() <= i {
                told.recv_timeout(Duration::from_secs(10)).unwrap();
            }
            waits.push(closed.elapsed());
        }
        waits.sort();
        println!("close to arrival: median {:?}, longest {:?}", waits[10], waits[19]);
        stop.store(true, Ordering::Relaxed);
        while !log.ended() {
            told.recv_timeout(Duration::from_secs(10)).unwrap();
        }
        for i in 0..20 {
            fs::remove_file(dir.path().join(format!("training-run1-3/late.{round}.{i}.gz"))).unwrap();
        }
    }
}
