//! The source log: what the scan found, what came later, opening, reading and what goes wrong on the way.
#![allow(clippy::unwrap_used, reason = "a test may fail, and says what it skips")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::games::{game, tar};
use gristmill_engine::runtime::scheduler::Rounds;
use gristmill_engine::stage::discover::Search;
use gristmill_engine::stage::load::{Arrival, LogSpec, Source, SourceLog};
use gristmill_engine::store::{DirStore, MemoryStore, Store, Take};
use gristmill_format::Kind;
use gristmill_format::source::{Chunk, Limits};

/// A log and the signal it gives.
struct Log {
    log: Arc<SourceLog>,
    stop: Arc<AtomicBool>,
    changed: Arc<(Mutex<u64>, Condvar)>,
}

impl Log {
    fn new(store: Arc<dyn Store>, version: Option<u32>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
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
            provider: 3,
            version,
            fits: |_| Ok(()),
            facts: None,
            solids: None,
            waits: false,
        };
        let changed = Arc::<(Mutex<u64>, Condvar)>::default();
        let signal = changed.clone();
        let on_change = Arc::new(move || {
            *signal.0.lock().unwrap() += 1;
            signal.1.notify_all();
        });
        let spawn = |name: &str, mut rounds: Rounds| {
            let task = move || while rounds().map(std::thread::sleep).is_some() {};
            std::thread::Builder::new().name(name.to_owned()).spawn(task).unwrap();
        };
        let log = SourceLog::start(spec, &spawn, on_change);
        let log = Log { log, stop, changed };
        log.until(|log| log.initial().is_some());
        log
    }

    /// Waits, by the log's own signal, until `done`.
    fn until(&self, done: impl Fn(&SourceLog) -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        let mut count = self.changed.0.lock().unwrap();
        while !done(&self.log) {
            assert!(Instant::now() < until, "{:?}", self.log.faults());
            count = self.changed.1.wait_timeout(count, Duration::from_millis(200)).unwrap().0;
        }
    }

    fn arrivals(&self, n: usize) -> Vec<Arrival> {
        self.until(|log| log.arrivals(0).len() >= n);
        self.log.arrivals(0)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.until(SourceLog::ended);
    }
}

const BASE: u64 = 3 << 40;

fn read(source: &Source, chunk: usize) -> gristmill_format::Result<Chunk> {
    let (mut stored, mut out) = (Vec::new(), Chunk::default());
    source.fetch(chunk, &Limits::default(), &mut stored)?;
    source.decode(chunk, &stored, &Limits::default(), &mut out)?;
    Ok(out)
}

#[test]
fn ids_are_positions_in_key_order_and_continue_with_arrivals() {
    let store = Arc::new(MemoryStore::new());
    store.write("b/training.9.gz", game(1, 9));
    store.write("a/training.10.gz", game(2, 10));
    let log = Log::new(store.clone(), None);
    let entries = log.log.initial().unwrap();
    let listed: Vec<_> = entries.iter().map(|e| (e.id, e.key(), &*e.file.name)).collect();
    let expected = [(BASE, "training.9.gz", "b/training.9.gz"), (BASE + 1, "training.10.gz", "a/training.10.gz")];
    assert_eq!(listed, expected);

    store.write("training.1.gz", game(3, 1));
    store.write("a/training.10.gz", game(4, 4));
    let arrivals = log.arrivals(2);
    assert_eq!(arrivals, [Arrival { id: BASE + 2, old: None }, Arrival { id: BASE + 3, old: Some(BASE + 1) }]);
    let new = log.log.open(BASE + 2).unwrap();
    assert_eq!((new.id, new.key.as_str(), new.len()), (BASE + 2, "training.1.gz", 1));
    assert_eq!(read(&log.log.open(BASE + 3).unwrap(), 0).unwrap().frames, 4);
    assert_eq!(log.log.arrivals(1).len(), 1);
    assert_eq!(log.log.arrivals(7).len(), 0);
    assert_eq!(log.log.name(BASE + 2).as_deref(), Some("training.1.gz"));
    assert_eq!(log.log.name(BASE + 9), None);
    assert_eq!(log.log.open(7).unwrap_err().kind(), Kind::Missing, "an id of another provider");
}

#[test]
fn a_game_is_not_touched_before_it_is_fetched_and_a_tar_is_walked_once() {
    let store = Arc::new(MemoryStore::new());
    store.write("training.1.gz", game(2, 1));
    store.write("hour.tar", tar(&[3, 1, 2]));
    let log = Log::new(store.clone(), None);
    let entries = log.log.initial().unwrap();
    let (hour, single) = (entries[0].id, log.log.open(entries[1].id).unwrap());
    assert_eq!((single.len(), store.reads()), (1, 0));
    assert_eq!(read(&single, 0).unwrap().frames, 2);

    let before = store.reads();
    let opened: Vec<Arc<Source>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| log.log.open(hour).unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let walk = store.reads() - before;
    assert!(opened.iter().all(|s| Arc::ptr_eq(s, &opened[0])), "opened once for all");
    assert_eq!(opened[0].len(), 3);
    drop(opened);
    let again = log.log.open(hour).unwrap();
    assert_eq!(store.reads() - before, 2 * walk, "one walk each time it is not kept");
    let chunk = read(&again, 2).unwrap();
    assert_eq!((chunk.frames, chunk.record(1)[8000]), (2, 2));
    assert_eq!(log.log.faults().last_chunk_key, "hour.tar");
}

#[test]
fn a_renamed_file_is_read_under_its_new_name_by_those_who_hold_it() {
    let store = Arc::new(MemoryStore::new());
    store.write("training.1.gz", game(2, 1));
    store.write("training.2.gz", game(2, 2));
    let log = Log::new(store.clone(), None);
    let held = log.log.open(BASE).unwrap();
    store.rename("training.1.gz", "old/renamed.gz");
    log.until(|log| log.name(BASE).as_deref() == Some("old/renamed.gz"));
    for source in [held, log.log.open(BASE).unwrap()] {
        assert_eq!(read(&source, 0).unwrap().record(0)[8000], 1);
        assert_eq!((source.key.as_str(), &*source.file().name), ("training.1.gz", "old/renamed.gz"));
    }
    assert_eq!(log.log.arrivals(0).len(), 0);
}

#[test]
fn errors_name_file_member_and_chunk() {
    let store = Arc::new(MemoryStore::new());
    let mut cut = tar(&[1, 1]);
    cut.truncate(12_000);
    store.write("hour.tar", cut);
    for name in ["training.1.gz", "training.2.gz", "training.3.gz"] {
        store.write(name, game(1, 0)[..8000].to_vec());
    }
    let log = Log::new(store.clone(), None);
    let hour = log.log.open(BASE).unwrap();
    assert_eq!(read(&hour, 0).unwrap().frames, 1);
    let error = read(&hour, 1).unwrap_err();
    assert_eq!(error.kind(), Kind::Truncated);
    let place = error.place();
    assert_eq!(place.source.as_deref(), Some("memory:/hour.tar"));
    assert_eq!((place.member.as_deref(), place.chunk), (Some("d/training.1.gz"), Some(1)));
    assert_eq!(read(&hour, 2).unwrap_err().kind(), Kind::Missing);
    assert_eq!(log.log.faults().faults.count("truncated"), 1, "the tar's own fault is counted");

    let [bad, vanished, refused] = [1, 2, 3].map(|i| log.log.open(BASE + i).unwrap());
    let error = read(&bad, 0).unwrap_err();
    assert_eq!((error.place().source.as_deref(), error.place().chunk), (Some("memory:/training.1.gz"), Some(0)));
    store.remove("training.2.gz");
    assert_eq!(read(&vanished, 0).unwrap_err().kind().name(), "not_found");
    for (kind, name) in [
        (io::ErrorKind::PermissionDenied, "permission"),
        (io::ErrorKind::StaleNetworkFileHandle, "mount_lost"),
        (io::ErrorKind::TimedOut, "io"),
    ] {
        store.refuse("training.3.gz", kind);
        let error = read(&refused, 0).unwrap_err();
        assert_eq!(error.kind().name(), name);
        assert!(error.to_string().contains("training.3.gz"), "{error}");
    }
    let tight = Limits { max_chunk_bytes: 1000 };
    assert_eq!(bad.fetch(0, &tight, &mut Vec::new()).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn an_arrival_that_cannot_be_opened_is_counted_and_comes_once_it_can() {
    let store = Arc::new(MemoryStore::new());
    store.write("hour.tar", tar(&[1]));
    let log = Log::new(store.clone(), None);
    store.write("hour.tar", vec![1; 5000]);
    log.until(|log| log.faults().faults.total() > 0);
    assert!(log.log.faults().faults.messages().any(|m| m.contains("hour.tar")), "{:?}", log.log.faults());
    assert_eq!(log.log.arrivals(0).len(), 0);
    store.write("hour.tar", tar(&[1, 2]));
    let arrivals = log.arrivals(1);
    assert_eq!(arrivals, [Arrival { id: BASE + 2, old: Some(BASE) }], "in place of the one that was good");
    assert_eq!(log.log.open(BASE + 2).unwrap().len(), 2);
}

/// The id of a file is of the bytes that were found: what the file grew to, before it was first opened, comes as another.
#[test]
fn a_file_that_grew_before_it_was_opened_has_left_and_comes_as_another() {
    let store = Arc::new(MemoryStore::new());
    store.write("hour.tar", tar(&[1]));
    let found = store.stat("hour.tar").unwrap().size;
    let log = Log::new(store.clone(), None);
    store.write("hour.tar", tar(&[1, 2]));
    let grown = store.stat("hour.tar").unwrap().size;
    let error = log.log.open(BASE).map(|source| source.len()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io(io::ErrorKind::NotFound));
    let text = error.to_string();
    assert!(text.contains(&format!("{grown} bytes")) && text.contains(&found.to_string()), "{text}");
    assert_eq!(log.arrivals(1), [Arrival { id: BASE + 1, old: Some(BASE) }]);
    assert_eq!(log.log.open(BASE + 1).unwrap().len(), 2);
}

/// A file of the same size that took the name before the first opening is another file, too.
#[test]
fn a_file_that_was_replaced_before_it_was_opened_has_left_though_its_size_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (tar(&[1]), tar(&[2]));
    let longest = first.len().max(second.len());
    let padded = |mut bytes: Vec<u8>| {
        bytes.resize(longest, 0);
        bytes
    };
    std::fs::write(dir.path().join("hour.tar"), padded(first)).unwrap();
    let log = Log::new(Arc::new(DirStore::new(dir.path()).unwrap()), None);
    std::fs::write(dir.path().join("hour.part"), padded(second)).unwrap();
    std::fs::rename(dir.path().join("hour.part"), dir.path().join("hour.tar")).unwrap();
    let error = log.log.open(BASE).map(|source| source.len()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io(io::ErrorKind::NotFound), "{error}");
    assert!(error.to_string().contains("written over since"), "{error}");
    assert_eq!(log.arrivals(1), [Arrival { id: BASE + 1, old: Some(BASE) }]);
    assert_eq!(read(&log.log.open(BASE + 1).unwrap(), 0).unwrap().frames, 2);
}

#[test]
fn records_of_another_version_are_refused_when_told_to() {
    let store = Arc::new(MemoryStore::new());
    store.write("training.1.gz", game(2, 1));
    for (version, good) in [(None, true), (Some(6), true), (Some(7), false)] {
        let log = Log::new(store.clone(), version);
        let result = read(&log.log.open(BASE).unwrap(), 0);
        assert_eq!(result.is_ok(), good, "{version:?}");
        assert!(good || result.unwrap_err().kind() == Kind::UnknownVersion);
    }
}

#[test]
fn stopping_ends_the_thread_soon_and_without_an_end_of_the_scan() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::new(Arc::new(DirStore::new(dir.path()).unwrap()), None);
    assert!(!log.log.ended());
    let start = Instant::now();
    log.stop.store(true, Ordering::Relaxed);
    log.until(SourceLog::ended);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_failed_search_is_said() {
    let store = Arc::new(MemoryStore::new());
    let find = Box::new(|take: Take| -> Rounds {
        Box::new(move || {
            let _told = &take;
            panic!("on purpose")
        })
    });
    let spec =
        LogSpec { store, find, provider: 0, version: None, fits: |_| Ok(()), facts: None, solids: None, waits: false };
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let spawn = |_: &str, rounds: Rounds| drop(std::thread::spawn(rounds).join());
    let log = SourceLog::start(
        spec,
        &spawn,
        Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }),
    );
    assert!(log.ended() && log.initial().is_none());
    assert_eq!(log.faults().faults.count("internal"), 1);
    assert!(calls.load(Ordering::Relaxed) > 0);
}
