//! Searches of a store in memory, round by round: no time passes here.

use std::cell::RefCell;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Result};
use gristmill_runtime::store::{MemoryStore, Readings};

use super::*;

fn search(store: Arc<dyn Store>, watch: bool) -> Search {
    let (expected, stop) = (HashSet::new(), Arc::default());
    Search { store, watch, rescan: Duration::from_secs(60), expected, waits: false, stop }
}

fn text(change: Change) -> String {
    match change {
        Change::Scanned(files) => format!("scanned {}", files.iter().map(|f| &*f.name).collect::<Vec<_>>().join(" ")),
        Change::New { file, .. } => format!("new {}", file.name),
        Change::Replaced { old, file, .. } => format!("{} in place of {old}", file.name),
        Change::Moved { file, .. } => format!("moved {}", file.name),
        Change::Left { number } => format!("left {number}"),
        Change::Listed { skipped, growing, .. } => format!("listed, {skipped} skipped, {growing} growing"),
        Change::Fault { kind, .. } => format!("fault {kind}"),
    }
}

/// A store whose first lists fail, and whose files may be of this moment: then the first looks at one find that it grew, or fail.
#[derive(Debug, Default)]
struct Failing {
    files: MemoryStore,
    left: AtomicU32,
    /// Nanoseconds of the time of change of all files.
    since: Option<i64>,
    grows: AtomicU32,
    grew: AtomicU32,
    away: AtomicU32,
    /// Hints in place of those of the files in memory.
    told: Option<Arc<Mutex<Vec<Hint>>>>,
    /// Whether its watches see no moves, as those of a bucket.
    sees_no_moves: bool,
}

/// The hints of a [`Failing`] store.
struct Told {
    watch: Box<dyn Watch>,
    told: Option<Arc<Mutex<Vec<Hint>>>>,
    sees_moves: bool,
}

impl Watch for Told {
    fn poll(&mut self, hints: &mut Vec<Hint>) {
        match &self.told {
            Some(told) => hints.append(&mut told.lock().unwrap()),
            None => self.watch.poll(hints),
        }
    }

    fn sees_moves(&self) -> bool {
        self.sees_moves
    }
}

fn one_of(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

impl Failing {
    fn aged(&self, stat: FileStat) -> FileStat {
        let grew = i64::from(self.grew.load(Ordering::Relaxed));
        FileStat { mtime_ns: self.since.map_or(stat.mtime_ns, |since| since + grew), ..stat }
    }
}

impl Store for Failing {
    fn root(&self) -> String {
        self.files.root()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = self.files.list(&mut |stat| each(self.aged(stat)));
        if one_of(&self.left) {
            faults.error(&Error::from(io::Error::other("the disk")).in_source("deep"));
        }
        faults
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        if one_of(&self.away) {
            return Err(Error::from(io::Error::other("the disk")).in_source(name));
        }
        if one_of(&self.grows) {
            self.grew.fetch_add(1, Ordering::Relaxed);
        }
        Ok(self.aged(self.files.stat(name)?))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        self.files.open(name)
    }

    fn readings(&self) -> &Readings {
        self.files.readings()
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        let (told, sees_moves) = (self.told.clone(), !self.sees_no_moves);
        Ok(self.files.watch()?.map(|watch| Box::new(Told { watch, told, sees_moves }) as Box<dyn Watch>))
    }
}

#[test]
fn a_search_that_does_not_watch_ends_with_its_scan() {
    let store = Arc::new(MemoryStore::new());
    ["b.gz", "a.gz", "notes.txt"].iter().for_each(|name| store.write(name, *name));
    let (mut seen, found) = (Vec::new(), search(store, false));
    run(&found, &mut |change| seen.push(text(change)));
    assert_eq!(seen, ["listed, 1 skipped, 0 growing", "scanned a.gz b.gz"]);
    found.stop.store(true, Ordering::Relaxed);
    run(&found, &mut |change| panic!("{change:?} after the stop"));
}

#[test]
fn what_changes_is_seen_in_the_next_round_and_what_left_after_a_second() {
    let store = Arc::new(MemoryStore::new());
    store.write("a.gz", "a");
    let (seen, wanted) = (RefCell::new(Vec::new()), search(store.clone(), true));
    let stop = wanted.stop.clone();
    let mut found = Discovery::new(wanted, |change| seen.borrow_mut().push(text(change)));
    let mut rounds = |n: u64| {
        (0..n).for_each(|_| assert!(found.round()));
        seen.take()
    };
    assert_eq!(rounds(1), ["listed, 0 skipped, 0 growing", "scanned a.gz"]);
    store.write("b.gz", "b");
    assert_eq!(rounds(1), ["new b.gz"]);
    store.write("notes.txt", "no games");
    store.rename("b.gz", "c.gz");
    assert_eq!(rounds(1), ["moved c.gz"]);
    store.remove("a.gz");
    assert_eq!(rounds(GONE), [""; 0]);
    assert_eq!(rounds(1), ["left 0"]);
    // Notices are lost: all is listed, and what is new must prove that it does not grow.
    store.write("d.gz", "d");
    store.lose_hints();
    assert_eq!(rounds(1), ["fault watch", "listed, 1 skipped, 1 growing"]);
    assert_eq!(rounds(SETTLE - 1), [""; 0]);
    assert_eq!(rounds(1), ["new d.gz"]);
    // It is not listed again within a second.
    store.lose_hints();
    assert_eq!(rounds(PAUSE - SETTLE - 1), ["fault watch"]);
    assert_eq!(rounds(1), ["listed, 1 skipped, 0 growing"]);
    store.write("d.gz", "more");
    store.remove("c.gz");
    assert_eq!(rounds(1), ["d.gz in place of 2"]);
    store.write("c.gz", "b");
    rounds(1);
    assert!(rounds(2 * GONE).is_empty(), "a file that is back has not left");
    stop.store(true, Ordering::Relaxed);
    assert!(!found.round());
}

#[test]
fn all_is_listed_again_in_the_time_that_was_given() {
    let seen = RefCell::new(0);
    let wanted = Search { rescan: 10 * POLL, ..search(Arc::new(MemoryStore::new()), true) };
    let mut found =
        Discovery::new(wanted, |change| *seen.borrow_mut() += u64::from(matches!(change, Change::Listed { .. })));
    (0..30).for_each(|_| assert!(found.round()));
    assert_eq!(*seen.borrow(), 1 + 3);
}

#[test]
fn a_first_list_that_lacks_a_folder_is_made_again_and_without_patience_three_times() {
    for (fails, waits, rounds, expected) in [
        (9, false, 2 * PAUSE + 1, &["fault io"][..]),
        (2, false, 2 * PAUSE + 1, &["fault io", "listed, 0 skipped, 0 growing", "scanned a.gz"]),
        (4, true, 4 * PAUSE + 1, &["fault io", "listed, 0 skipped, 0 growing", "scanned a.gz"]),
    ] {
        let store = Failing { left: fails.into(), ..Failing::default() };
        store.files.write("a.gz", "a");
        let seen = RefCell::new(Vec::new());
        let wanted = Search { waits, ..search(Arc::new(store), false) };
        let mut found = Discovery::new(wanted, |change| seen.borrow_mut().push(text(change)));
        assert!((1..rounds).all(|_| found.round()) && !found.round(), "{fails} lists that fail");
        assert_eq!(seen.take(), expected);
    }
}

/// The time of change of its file lies ahead, so that no time of the test makes it old.
fn young(grows: u32, away: u32) -> Arc<Failing> {
    let store = Failing { since: Some(i64::MAX / 2), grows: grows.into(), away: away.into(), ..Failing::default() };
    store.files.write("a.gz", "a");
    Arc::new(store)
}

#[test]
fn a_young_file_of_the_first_scan_is_waited_for_until_it_does_not_grow() {
    let scanned = ["listed, 0 skipped, 0 growing", "scanned a.gz"];
    let taken = ["fault growing", "listed, 0 skipped, 0 growing", "scanned a.gz"];
    for (grows, away, rounds, expected) in [
        (0, 0, 1 + SETTLE, &scanned[..]),
        (1, 0, 1 + 2 * SETTLE, &scanned),
        (0, 1, 1 + 2 * SETTLE, &scanned),
        (u32::MAX, 0, 1 + PATIENCE, &taken),
    ] {
        let seen = RefCell::new(Vec::new());
        let mut found =
            Discovery::new(search(young(grows, away), false), |change| seen.borrow_mut().push(text(change)));
        assert!((1..rounds).all(|_| found.round()) && !found.round(), "{grows}, {away}");
        assert_eq!(seen.take(), expected);
    }
}

/// A file that may still grow cannot be checked: its folder is away.
#[test]
fn a_young_file_that_is_away_is_waited_for_as_its_folder_is() {
    for (waits, rounds) in [(true, 1 + 6 * SETTLE), (false, 1 + 2 * SETTLE)] {
        let seen = RefCell::new(Vec::new());
        let wanted = Search { waits, ..search(young(0, 5), true) };
        let mut found = Discovery::new(wanted, |change| seen.borrow_mut().push(text(change)));
        (1..rounds).for_each(|_| assert!(found.round()));
        assert_eq!(seen.take(), if waits { &["fault io"][..] } else { &[] }, "no wait without a word");
        assert!(found.round());
        let (growing, names) = if waits { (0, "a.gz") } else { (1, "") };
        assert_eq!(seen.take(), [format!("listed, 0 skipped, {growing} growing"), format!("scanned {names}")]);
    }
}

#[test]
fn a_search_that_watches_scans_without_a_file_that_grows_for_long() {
    let seen = RefCell::new(Vec::new());
    let mut found = Discovery::new(search(young(3, 0), true), |change| seen.borrow_mut().push(text(change)));
    let mut rounds = |n: u64| {
        (0..n).for_each(|_| assert!(found.round()));
        seen.take()
    };
    assert_eq!(rounds(2 * SETTLE), [""; 0]);
    assert_eq!(rounds(1), ["listed, 0 skipped, 1 growing", "scanned "]);
    assert_eq!(rounds(2 * SETTLE - 2), [""; 0]);
    assert_eq!(rounds(1), ["new a.gz"]);
}

#[test]
fn a_file_in_a_new_folder_must_prove_that_it_does_not_grow() {
    let told = Arc::<Mutex<Vec<Hint>>>::default();
    let store = Arc::new(Failing { told: Some(told.clone()), ..Failing::default() });
    let seen = RefCell::new(Vec::new());
    let wanted = Search { rescan: 40 * POLL, ..search(store.clone(), true) };
    let mut found = Discovery::new(wanted, |change| seen.borrow_mut().push(text(change)));
    let mut rounds = |n: u64| {
        (0..n).for_each(|_| assert!(found.round()));
        seen.take()
    };
    let hints_at = |name: &str| told.lock().unwrap().push(Hint::Seen(name.into()));
    rounds(3);
    store.files.write("new/b.gz", "b");
    hints_at("new/b.gz");
    assert_eq!(rounds(SETTLE), [""; 0]);
    store.files.write("new/b.gz", "more");
    assert_eq!(rounds(SETTLE), [""; 0], "it grew");
    assert_eq!(rounds(1), ["new new/b.gz"]);
    // One that is known as it is has proved it, and one that is gone is forgotten.
    store.files.write("new/c.gz", "c");
    ["new/b.gz", "new/c.gz"].iter().for_each(|name| hints_at(name));
    assert_eq!(rounds(1), [""; 0]);
    store.files.remove("new/c.gz");
    assert_eq!(rounds(SETTLE), [""; 0]);
    assert_eq!(rounds(40 - 3 - 3 * SETTLE - 2), ["listed, 0 skipped, 0 growing"]);
}

#[test]
fn a_file_that_a_list_lacks_has_left_a_second_later_unless_its_folder_is_away() {
    let store = Arc::new(Failing::default());
    ["a.gz", "b.gz"].iter().for_each(|name| store.files.write(name, *name));
    let seen = RefCell::new(Vec::new());
    let mut found = Discovery::new(search(store.clone(), true), |change| seen.borrow_mut().push(text(change)));
    let mut rounds = |n: u64| {
        (0..n).for_each(|_| assert!(found.round()));
        seen.take()
    };
    rounds(2 * GONE);
    store.files.remove("a.gz");
    store.files.lose_hints();
    assert_eq!(rounds(1), ["fault watch", "listed, 0 skipped, 0 growing"]);
    assert_eq!(rounds(GONE - 1), [""; 0]);
    assert_eq!(rounds(1), ["left 0"]);
    store.files.remove("b.gz");
    rounds(GONE);
    // Nobody can say now whether it is there: it is looked for again a second later.
    store.away.store(1, Ordering::Relaxed);
    assert_eq!(rounds(GONE), [""; 0]);
    assert_eq!(rounds(1), ["left 1"]);
}

#[test]
fn a_name_that_is_away_may_have_been_moved_only_where_a_watch_would_tell() {
    for (watch, sees_no_moves) in [(true, false), (true, true), (false, false)] {
        let store = Arc::new(Failing { sees_no_moves, ..Failing::default() });
        let mut found = Discovery::new(search(store.clone(), watch), |_| {});
        assert_eq!(found.round(), watch);
        assert_eq!(store.readings().may_have_moved("a.gz"), watch && !sees_no_moves, "after the scan");
        if watch {
            (0..5).for_each(|_| assert!(found.round()));
            assert_eq!(store.readings().may_have_moved("b.gz"), !sees_no_moves, "later");
        }
    }
}

/// Doubled without a bound, the pause between two listings of a long outage became no pause at all.
#[test]
fn a_long_outage_is_listed_as_often_as_all_is_listed() {
    let store = Arc::new(Failing { left: 200.into(), ..Failing::default() });
    let lists = RefCell::new(0);
    let wanted = Search { rescan: 2 * PAUSE as u32 * POLL, ..search(store.clone(), true) };
    store.left.store(0, Ordering::Relaxed);
    let mut found =
        Discovery::new(wanted, |change| *lists.borrow_mut() += u64::from(matches!(change, Change::Listed { .. })));
    assert!(found.round());
    store.left.store(200, Ordering::Relaxed);
    (0..150 * 2 * PAUSE).for_each(|_| assert!(found.round()));
    assert!((150..=152).contains(&*lists.borrow()), "{lists:?}");
}

/// A notice of a file leads to a folder that cannot be read, and two listings lack it.
#[test]
fn what_could_not_be_read_is_listed_again_soon_and_later_each_time() {
    let store = Arc::new(Failing::default());
    store.files.write("a.gz", "a");
    let seen = RefCell::new(Vec::new());
    let mut found = Discovery::new(search(store.clone(), true), |change| seen.borrow_mut().push(text(change)));
    let mut rounds = |n: u64| {
        (0..n).for_each(|_| assert!(found.round()));
        seen.take()
    };
    assert_eq!(rounds(1), ["listed, 0 skipped, 0 growing", "scanned a.gz"]);
    store.away.store(1, Ordering::Relaxed);
    store.left.store(2, Ordering::Relaxed);
    store.files.write("b.gz", "b");
    assert_eq!(rounds(PAUSE - 2), [""; 0]);
    assert_eq!(rounds(1), ["fault io", "listed, 0 skipped, 1 growing"]);
    assert_eq!(rounds(SETTLE), ["new b.gz"]);
    assert_eq!(rounds(2 * PAUSE - SETTLE - 1), [""; 0]);
    assert_eq!(rounds(1), ["listed, 0 skipped, 0 growing"]);
    assert_eq!(rounds(4 * PAUSE - 1), [""; 0]);
    assert_eq!(rounds(1), ["listed, 0 skipped, 0 growing"]);
    // Nothing was lacking: the next listing comes in its time, and what is lacking then is reported again.
    store.left.store(1, Ordering::Relaxed);
    assert_eq!(rounds(60 * 50 - 1), [""; 0]);
    assert_eq!(rounds(1), ["fault io", "listed, 0 skipped, 0 growing"]);
}
