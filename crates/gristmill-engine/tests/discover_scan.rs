//! The first scan on a real directory: what is found, in which order, and what is passed over.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and says what it skips")]

use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_engine::stage::discover::{Search, run};
use gristmill_engine::store::{Change, DirStore, Faults, FileStat, MemoryStore, Readings, Store, Watch};
use gristmill_format::source::ReadAt;

struct Scan {
    names: Vec<String>,
    skipped: u64,
    duplicates: u64,
    faults: Faults,
}

fn scan(root: &Path) -> Scan {
    let search = Search {
        store: Arc::new(DirStore::new(root).unwrap()),
        watch: false,
        rescan: Duration::from_secs(60),
        expected: Default::default(),
        waits: true,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut changes = Vec::new();
    run(&search, &mut |change| changes.push(change));
    let mut changes = changes.into_iter();
    let Some(Change::Listed { skipped, duplicates, faults, .. }) = changes.next() else {
        panic!("counters come first")
    };
    let Some(Change::Scanned(files)) = changes.next() else { panic!("then the scan") };
    assert_eq!(changes.next(), None, "and nothing more without a watch");
    Scan { names: files.iter().map(|f| f.name.to_string()).collect(), skipped, duplicates, faults }
}

fn write(root: &Path, name: &str, bytes: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn files_come_in_natural_order_of_their_keys_whatever_their_folders() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b/training.100.gz", "z/y/x/training.9.gz", "training.10.gz", "a/training.99.gz", "a/run-2.tar"] {
        write(dir.path(), name, name);
    }
    let found = scan(dir.path());
    let expected = ["a/run-2.tar", "z/y/x/training.9.gz", "training.10.gz", "a/training.99.gz", "b/training.100.gz"];
    assert_eq!(found.names, expected);
    assert_eq!(found.faults, Faults::default());
}

#[test]
fn an_empty_directory_is_an_empty_scan() {
    let dir = tempfile::tempdir().unwrap();
    let found = scan(dir.path());
    assert_eq!((found.names.len(), found.skipped, found.faults.total()), (0, 0, 0));
}

#[test]
fn a_missing_directory_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let error = DirStore::new(dir.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[test]
fn dot_names_are_invisible_and_unknown_names_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    for name in [".training.1.gz.Xa3", ".git/training.2.gz", "a/._training.3.gz", "a/.b/c/training.4.gz"] {
        write(dir.path(), name, name);
    }
    for name in ["LICENSE", "notes.txt", "a/plain", "training.5.gz", "packed.tar.gz", "old.tar.xz"] {
        write(dir.path(), name, name);
    }
    let found = scan(dir.path());
    assert_eq!(found.names, ["packed.tar.gz", "training.5.gz"]);
    assert_eq!(found.skipped, 4);
    assert_eq!(found.faults.count("unsupported"), 1, "a packing that is not read is refused with advice");
    assert!(found.faults.messages().any(|m| m.contains("old.tar.xz")), "{:?}", found.faults);
}

#[test]
fn links_are_followed_once_and_their_loops_are_faults() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    write(dir.path(), "real/training.1.gz", "1");
    write(dir.path(), "real/deep/training.2.gz", "2");
    write(outside.path(), "training.3.gz", "3");
    symlink(dir.path(), dir.path().join("real/deep/up")).unwrap();
    symlink("itself", dir.path().join("itself")).unwrap();
    symlink("nothing", dir.path().join("dangling.gz")).unwrap();
    symlink(dir.path().join("real"), dir.path().join("again")).unwrap();
    symlink(outside.path(), dir.path().join("outside")).unwrap();
    symlink(dir.path().join("real/training.1.gz"), dir.path().join("training.1.link.gz")).unwrap();
    fs::hard_link(dir.path().join("real/training.1.gz"), dir.path().join("training.1.hard.gz")).unwrap();
    let found = scan(dir.path());
    assert_eq!(found.names, ["real/training.1.gz", "real/deep/training.2.gz", "outside/training.3.gz"]);
    assert_eq!(found.duplicates, 2, "a link and a hard link to a counted file");
    assert_eq!(found.faults.count("symlink_loop"), 2, "{:?}", found.faults);
    assert_eq!(found.faults.count("not_found"), 1, "the dangling link: {:?}", found.faults);
}

#[test]
fn an_unreadable_folder_is_a_fault_and_the_rest_is_found() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "shut/training.1.gz", "1");
    write(dir.path(), "training.2.gz", "2");
    let shut = dir.path().join("shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&shut).is_ok() {
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
        println!("skipped: this user may read every folder");
        return;
    }
    let found = scan(dir.path());
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(found.names, ["training.2.gz"]);
    assert_eq!(found.faults.count("permission"), 1);
    assert!(found.faults.messages().any(|m| m.contains("shut")));
}

#[test]
fn equal_names_in_several_folders_count_once_if_their_bytes_are_equal() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a/training.1.gz", "the same");
    write(dir.path(), "b/training.1.gz", "the same");
    write(dir.path(), "c/training.1.gz", "another!");
    write(dir.path(), "d/training.1.gz", "longer than the others");
    write(dir.path(), "e/training.2.gz", "the same");
    for folder in ["a", "b"] {
        let large = fs::File::create(dir.path().join(folder).join("hour.tar")).unwrap();
        large.set_len(65 << 20).unwrap();
    }
    let found = scan(dir.path());
    let expected = ["a/hour.tar", "a/training.1.gz", "c/training.1.gz", "d/training.1.gz", "e/training.2.gz"];
    assert_eq!(found.names, expected, "only equal names are compared by content");
    assert_eq!(found.duplicates, 2);
}

#[test]
fn twenty_thousand_files_are_all_found_once() {
    // Disks create and delete files slowly; memory, where there is a folder of it, does not.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    for folder in 0..20 {
        fs::create_dir(dir.path().join(format!("{folder}"))).unwrap();
        for i in 0..1000 {
            fs::write(dir.path().join(format!("{folder}/training.{}.gz", folder * 1000 + i)), b"").unwrap();
        }
    }
    let found = scan(dir.path());
    assert_eq!(found.names.len(), 20_000);
    for (i, name) in found.names.iter().enumerate() {
        assert_eq!(*name, format!("{}/training.{i}.gz", i / 1000));
    }
}

/// A store whose files grow a few times more, and were changed just now.
#[derive(Debug)]
struct Growing {
    files: Arc<MemoryStore>,
    left: AtomicU64,
}

impl Growing {
    fn now(file: FileStat) -> FileStat {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        FileStat { mtime_ns: i64::try_from(now.as_nanos()).unwrap(), ..file }
    }
}

impl Store for Growing {
    fn root(&self) -> String {
        self.files.root()
    }
    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.files.list(&mut |file| each(if file.key() == "old.gz" { file } else { Growing::now(file) }))
    }
    fn stat(&self, name: &str) -> gristmill_format::Result<FileStat> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let file = self.files.stat(name)?;
        let size = file.size - left.unwrap_or(0);
        Ok(FileStat { size, mtime_ns: 1 << 60, ..file })
    }
    fn open(&self, name: &str) -> gristmill_format::Result<Arc<dyn ReadAt>> {
        self.files.open(name)
    }
    fn readings(&self) -> &Readings {
        self.files.readings()
    }
    fn watch(&self) -> gristmill_format::Result<Option<Box<dyn Watch>>> {
        Ok(None)
    }
}

#[test]
fn a_file_that_is_being_written_is_taken_when_it_is_whole() {
    let files = Arc::new(MemoryStore::new());
    files.write("old.gz", *b"complete long ago");
    files.write("new.gz", *b"this one is on its way");
    for watch in [false, true] {
        let stop = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Growing { files: Arc::clone(&files), left: AtomicU64::new(4) });
        let rescan = Duration::from_secs(600);
        let search = Search { store, watch, rescan, expected: HashSet::new(), waits: true, stop: Arc::clone(&stop) };
        let (mut first, mut later) = (Vec::new(), Vec::new());
        run(&search, &mut |change| match change {
            Change::Scanned(files) => first.extend(files.into_iter().map(|file| (file.name.to_string(), file.size))),
            Change::New { file, .. } => {
                later.push((file.name.to_string(), file.size));
                stop.store(true, Ordering::Relaxed);
            }
            other => assert!(matches!(other, Change::Listed { .. }), "{other:?}"),
        });
        let (old, new) = (("old.gz".to_owned(), 17), ("new.gz".to_owned(), 22));
        match watch {
            // No later scan would come back to it.
            false => assert_eq!((first, later), (vec![new, old], vec![])),
            // The start does not wait for it.
            true => assert_eq!((first, later), (vec![old], vec![new])),
        }
    }
}
