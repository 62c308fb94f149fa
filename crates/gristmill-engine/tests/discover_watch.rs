//! Watching a real directory: each way a file can come, change or go, and what becomes of it. Nothing lost, nothing twice.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it skips")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use gristmill_engine::stage::discover::{Search, run};
use gristmill_engine::store::{Change, DirStore, MemoryStore, Store};

/// A search running in a thread, and what it said so far.
struct Running {
    dir: tempfile::TempDir,
    changes: Receiver<Change>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn over(store: Arc<dyn Store>, dir: tempfile::TempDir, rescan: Duration) -> (Self, Vec<String>) {
        let (tell, changes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let search =
            Search { store, watch: true, rescan, expected: Default::default(), waits: true, stop: stop.clone() };
        let thread = std::thread::spawn(move || run(&search, &mut |change| tell.send(change).unwrap_or_default()));
        let running = Running { dir, changes, stop, thread: Some(thread) };
        assert!(matches!(running.next(), Change::Listed { .. }), "what the listing says comes first");
        let Change::Scanned(files) = running.next() else { panic!("then the scan") };
        (running, files.iter().map(|f| f.name.to_string()).collect())
    }

    fn on(names: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let store = Arc::new(DirStore::new(dir.path()).unwrap());
        let (running, mut found) = Running::over(store, dir, Duration::from_secs(600));
        found.sort();
        let mut names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        names.sort();
        assert_eq!(found, names);
        running
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &str) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn next(&self) -> Change {
        self.changes.recv_timeout(Duration::from_secs(20)).expect("a change")
    }

    fn comes(&self, number: u64) -> String {
        match self.next() {
            Change::New { number: n, file } if n == number => file.name.to_string(),
            other => panic!("expected a new file {number}, got {other:?}"),
        }
    }

    fn replaced(&self, old: u64, number: u64) -> String {
        match self.next() {
            Change::Replaced { old: o, number: n, file } if (o, n) == (old, number) => file.name.to_string(),
            other => panic!("expected {number} in place of {old}, got {other:?}"),
        }
    }

    fn moved(&self, number: u64) -> String {
        match self.next() {
            Change::Moved { number: n, file } if n == number => file.name.to_string(),
            other => panic!("expected {number} to have moved, got {other:?}"),
        }
    }

    /// Nothing else was said: a last file is the next thing that is noticed.
    fn nothing_but(&self, number: u64) {
        self.write("zzz.last.gz", "the last");
        assert_eq!(self.comes(number), "zzz.last.gz");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(self.changes.try_iter().collect::<Vec<_>>(), []);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_written_file_and_a_renamed_one_each_come_once() {
    let river = Running::on(&["training.1.gz"]);
    river.write("training.2.gz", "two");
    assert_eq!(river.comes(1), "training.2.gz");
    river.write(".training.3.gz.Xq1", "three");
    fs::rename(river.path(".training.3.gz.Xq1"), river.path("training.3.gz")).unwrap();
    assert_eq!(river.comes(2), "training.3.gz");
    river.write("notes.txt", "no game");
    river.nothing_but(3);
}

#[test]
fn an_open_file_does_not_count_before_it_is_closed() {
    let river = Running::on(&[]);
    let mut file = File::create(river.path("training.1.gz")).unwrap();
    file.write_all(b"half").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(river.changes.try_iter().count(), 0);
    drop(file);
    assert_eq!(river.comes(0), "training.1.gz");
    river.nothing_but(1);
}

#[test]
fn a_half_written_file_of_the_scan_is_replaced_when_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = File::create(dir.path().join("training.1.gz")).unwrap();
    file.write_all(b"half").unwrap();
    let store = Arc::new(DirStore::new(dir.path()).unwrap());
    let (river, found) = Running::over(store, dir, Duration::from_secs(600));
    assert_eq!(found, ["training.1.gz"]);
    file.write_all(b" and the other half").unwrap();
    drop(file);
    assert_eq!(river.replaced(0, 1), "training.1.gz");
    river.nothing_but(2);
}

#[test]
fn closed_again_or_touched_is_not_new() {
    let river = Running::on(&["training.1.gz"]);
    river.write("training.2.gz", "two");
    river.comes(1);
    for name in ["training.1.gz", "training.2.gz"] {
        drop(File::options().append(true).open(river.path(name)).unwrap());
    }
    // An arrival's content is known: another time alone changes nothing but the time.
    let touched = File::options().append(true).open(river.path("training.2.gz")).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH).unwrap();
    drop(touched);
    assert_eq!(river.moved(1), "training.2.gz");
    // The same bytes rewritten are the same file.
    river.write("training.2.gz", "two");
    assert_eq!(river.moved(1), "training.2.gz");
    river.nothing_but(2);
}

#[test]
fn other_bytes_under_a_known_name_replace_it() {
    let river = Running::on(&["training.1.gz"]);
    river.write("training.1.gz", "rewritten in place");
    assert_eq!(river.replaced(0, 1), "training.1.gz");
    river.write(".part", "renamed over it");
    fs::rename(river.path(".part"), river.path("training.1.gz")).unwrap();
    assert_eq!(river.replaced(1, 2), "training.1.gz");
    fs::remove_file(river.path("training.1.gz")).unwrap();
    river.write("training.1.gz", "deleted, then made again");
    assert_eq!(river.replaced(2, 3), "training.1.gz");
    river.nothing_but(4);
}

#[test]
fn a_rename_keeps_the_file_and_says_where_it_is() {
    let river = Running::on(&["a/training.1.gz", "a/training.2.gz"]);
    fs::rename(river.path("a/training.1.gz"), river.path("training.100.gz")).unwrap();
    assert_eq!(river.moved(0), "training.100.gz");
    // Its old name is free for another file.
    river.write("a/training.1.gz", "another game");
    assert_eq!(river.comes(2), "a/training.1.gz");
    // A folder's new name is the new name of what is in it.
    fs::rename(river.path("a"), river.path("b")).unwrap();
    let mut moved = [river.next(), river.next()].map(|change| match change {
        Change::Moved { number, file } => (number, file.name.to_string()),
        other => panic!("{other:?}"),
    });
    moved.sort();
    assert_eq!(moved, [(1, "b/training.2.gz".to_owned()), (2, "b/training.1.gz".to_owned())]);
    // And the folder is watched under it.
    river.write("b/training.3.gz", "three");
    assert_eq!(river.comes(3), "b/training.3.gz");
    river.nothing_but(4);
}

#[test]
fn folders_that_are_moved_in_are_scanned_and_watched() {
    let river = Running::on(&[]);
    let outside = tempfile::tempdir_in(river.dir.path().parent().unwrap()).unwrap();
    fs::create_dir_all(outside.path().join("in/deep")).unwrap();
    fs::write(outside.path().join("in/training.1.gz"), "1").unwrap();
    fs::write(outside.path().join("in/deep/training.2.gz"), "22").unwrap();
    fs::rename(outside.path().join("in"), river.path("in")).unwrap();
    assert_eq!(river.comes(0), "in/training.1.gz");
    assert_eq!(river.comes(1), "in/deep/training.2.gz");
    river.write("in/deep/training.3.gz", "333");
    assert_eq!(river.comes(2), "in/deep/training.3.gz");
    // Moved out again: what happens there is no longer ours.
    fs::rename(river.path("in"), outside.path().join("out")).unwrap();
    fs::write(outside.path().join("out/training.4.gz"), "4444").unwrap();
    river.nothing_but(3);
}

#[test]
fn files_put_into_new_folders_at_once_are_not_lost() {
    let river = Running::on(&[]);
    let mut expected = Vec::new();
    for folder in 0..40 {
        let name = format!("{folder}/a/b/c");
        fs::create_dir_all(river.path(&name)).unwrap();
        for (i, place) in [name.as_str(), &name[..name.len() - 2], &name[..name.len() - 4]].iter().enumerate() {
            let name = format!("{place}/training.{folder}.{i}.gz");
            river.write(&name, &name);
            expected.push(name);
        }
    }
    let mut found: Vec<String> = (0..expected.len() as u64).map(|n| river.comes(n)).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    river.nothing_but(120);
}

#[test]
fn links_into_place_count_when_they_appear() {
    let river = Running::on(&["training.1.gz"]);
    let outside = tempfile::tempdir_in(river.dir.path().parent().unwrap()).unwrap();
    fs::write(outside.path().join("training.2.gz"), "two").unwrap();
    fs::hard_link(outside.path().join("training.2.gz"), river.path("training.2.gz")).unwrap();
    assert_eq!(river.comes(1), "training.2.gz");
    fs::create_dir(outside.path().join("folder")).unwrap();
    fs::write(outside.path().join("folder/training.3.gz"), "three").unwrap();
    symlink(outside.path().join("folder"), river.path("linked")).unwrap();
    assert_eq!(river.comes(2), "linked/training.3.gz");
    fs::write(outside.path().join("folder/training.4.gz"), "four").unwrap();
    assert_eq!(river.comes(3), "linked/training.4.gz");
    symlink(river.path("training.1.gz"), river.path("training.9.gz")).unwrap();
    symlink(river.dir.path(), river.path("linked/loop")).unwrap();
    river.nothing_but(4);
}

#[test]
fn deleted_files_and_folders_disturb_nothing() {
    let river = Running::on(&["a/b/training.1.gz", "training.2.gz"]);
    fs::remove_dir_all(river.path("a")).unwrap();
    fs::remove_file(river.path("training.2.gz")).unwrap();
    fs::create_dir_all(river.path("a/b")).unwrap();
    river.write("a/b/training.3.gz", "three");
    assert_eq!(river.comes(2), "a/b/training.3.gz");
    river.nothing_but(3);
}

#[test]
fn a_removed_root_is_said_and_found_again() {
    let top = tempfile::tempdir().unwrap();
    let root = top.path().join("games");
    fs::create_dir(&root).unwrap();
    let store = Arc::new(DirStore::new(&root).unwrap());
    let (river, found) = Running::over(store, top, Duration::from_millis(400));
    assert_eq!(found, [""; 0]);
    fs::remove_dir(&root).unwrap();
    loop {
        match river.next() {
            Change::Fault { kind: "watch", .. } => break,
            Change::Listed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    fs::create_dir(&root).unwrap();
    fs::write(root.join("training.1.gz"), "1").unwrap();
    loop {
        match river.next() {
            Change::New { file, .. } => break assert_eq!(&*file.name, "training.1.gz"),
            Change::Listed { .. } | Change::Fault { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn lost_hints_are_made_up_for_by_a_listing() {
    let store = Arc::new(MemoryStore::new());
    store.write("training.1.gz", "one");
    let (river, found) = Running::over(store.clone(), tempfile::tempdir().unwrap(), Duration::from_secs(600));
    assert_eq!(found, ["training.1.gz"]);
    // The hint of each file may or may not have been taken before the rest is lost; the listing knows better.
    for i in 2..50 {
        store.write(&format!("training.{i}.gz"), format!("game {i}"));
        store.lose_hints();
    }
    store.write("training.1.gz", "one, rewritten");
    store.lose_hints();
    let (mut new, mut replaced, mut faults) = (Vec::new(), 0, 0);
    while new.len() < 48 || replaced == 0 {
        match river.next() {
            Change::New { file, .. } => new.push(file.name.to_string()),
            Change::Replaced { old: 0, .. } => replaced += 1,
            Change::Fault { kind: "watch", .. } => faults += 1,
            Change::Listed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    new.sort();
    new.dedup();
    assert_eq!((new.len(), replaced), (48, 1));
    assert!(faults > 0, "and it is said");
}

#[test]
fn without_any_hint_the_regular_listing_finds_files() {
    let store = Arc::new(MemoryStore::new());
    let dir = tempfile::tempdir().unwrap();
    let (river, _) = Running::over(Arc::new(Mute(store.clone())), dir, Duration::from_millis(200));
    store.write("training.1.gz", "one");
    store.write("training.2.gz", "two");
    let mut new = Vec::new();
    while new.len() < 2 {
        match river.next() {
            Change::New { file, .. } => new.push(file.name.to_string()),
            Change::Listed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(new, ["training.1.gz", "training.2.gz"], "in key order");
}

#[test]
fn a_copy_counts_once_and_stands_in_when_the_original_goes() {
    let store = Arc::new(MemoryStore::new());
    store.write("a/training.1.gz", "one");
    store.write("b/training.1.gz", "one");
    let dir = tempfile::tempdir().unwrap();
    let (river, found) = Running::over(Arc::new(Mute(store.clone())), dir, Duration::from_millis(100));
    assert_eq!(found, ["a/training.1.gz"]);
    let reads = store.reads();
    for _ in 0..5 {
        match river.next() {
            Change::Listed { duplicates: 1, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(store.reads(), reads, "it is compared once, not at every listing");
    store.remove("a/training.1.gz");
    loop {
        match river.next() {
            Change::Moved { number: 0, file } => break assert_eq!(&*file.name, "b/training.1.gz"),
            Change::Listed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_overflow_of_the_real_queue_loses_nothing() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").ok().and_then(|t| t.trim().parse().ok());
    let Some(limit @ 1..=20_000) = limit else {
        println!("skipped: the system queues {limit:?} notices");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("training.0.gz"), "").unwrap();
    let store = DirStore::new(dir.path()).unwrap();
    let mut watch = store.watch().unwrap().unwrap();
    for i in 0..limit {
        fs::write(dir.path().join(format!("{i}.gz")), "").unwrap();
    }
    let mut hints = Vec::new();
    watch.poll(&mut hints);
    assert!(hints.iter().any(|h| matches!(h, gristmill_engine::store::Hint::Lost(_))), "an overflow is reported");
}

/// A store without change notices.
#[derive(Debug)]
struct Mute(Arc<MemoryStore>);

impl Store for Mute {
    fn root(&self) -> String {
        self.0.root()
    }
    fn list(
        &self,
        each: &mut dyn FnMut(gristmill_engine::store::FileStat) -> std::ops::ControlFlow<()>,
    ) -> gristmill_engine::store::Faults {
        self.0.list(each)
    }
    fn stat(&self, name: &str) -> gristmill_format::Result<gristmill_engine::store::FileStat> {
        self.0.stat(name)
    }
    fn open(&self, name: &str) -> gristmill_format::Result<Arc<dyn gristmill_format::source::ReadAt>> {
        self.0.open(name)
    }
    fn readings(&self) -> &gristmill_engine::store::Readings {
        self.0.readings()
    }
    fn watch(&self) -> gristmill_format::Result<Option<Box<dyn gristmill_engine::store::Watch>>> {
        Ok(None)
    }
}
