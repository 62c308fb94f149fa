//! What every store promises, shown on directories, memory and buckets by the same suite.
#![allow(clippy::unwrap_used, reason = "a test may fail, and says what it skips")]

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::store::publish::write_whole;
use gristmill_engine::store::{DirStore, FileStat, Hint, MemoryStore, Store};
use gristmill_faultserver::Network;
use gristmill_format::Kind;

/// A store under test, and how its files come to be.
trait Place {
    fn store(&self) -> Arc<dyn Store>;
    fn write(&self, name: &str, bytes: &[u8]);
    fn rename(&self, from: &str, to: &str);
    fn remove(&self, name: &str);
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

impl Place for Dir {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(DirStore::new(self.0.path()).unwrap())
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }
    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }
    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }
}

struct Memory(Arc<MemoryStore>);

impl Place for Memory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        self.0.write(name, bytes);
    }
    fn rename(&self, from: &str, to: &str) {
        self.0.rename(from, to);
    }
    fn remove(&self, name: &str) {
        self.0.remove(name);
    }
}

/// A folder of a place in memory, opened by its URL.
struct Url(Arc<MemoryStore>);

impl Place for Url {
    fn store(&self) -> Arc<dyn Store> {
        // A folder without files is not there.
        self.write("first", b"");
        let store = gristmill_engine::store::open(Path::new("memory:conformance/some/folder")).unwrap();
        self.remove("first");
        store
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        self.0.write(&format!("some/folder/{name}"), bytes);
    }
    fn rename(&self, from: &str, to: &str) {
        self.0.rename(&format!("some/folder/{from}"), &format!("some/folder/{to}"));
    }
    fn remove(&self, name: &str) {
        self.0.remove(&format!("some/folder/{name}"));
    }
}

/// A folder of a bucket, on a server of this process.
struct Bucket(tempfile::TempDir);

impl Bucket {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(name)).unwrap();
        let network = Network { anonymous: true, ..Network::default() };
        let server = gristmill_faultserver::start(folder.path().into(), network).unwrap();
        let (endpoint, patience) = (Some(server.address.clone()), Some(Duration::from_secs(2)));
        set_options(&format!("s3://{name}"), Options { endpoint, patience, anonymous: true, ..Options::default() });
        Bucket(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join("conforming/some/folder").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

impl Place for Bucket {
    fn store(&self) -> Arc<dyn Store> {
        self.write("first", b"");
        let store = gristmill_engine::store::open(Path::new("s3://conforming/some/folder")).unwrap();
        self.remove("first");
        store
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }
    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }
    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }
}

fn list(store: &dyn Store) -> Vec<FileStat> {
    let mut files = Vec::new();
    let faults = store.list(&mut |file| {
        files.push(file);
        ControlFlow::Continue(())
    });
    assert_eq!(faults.total(), 0, "{faults:?}");
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// Waits until the watch has hinted at `name`; the hints on the way are returned.
fn hints_up_to(watch: &mut dyn gristmill_engine::store::Watch, name: &str) -> Vec<Hint> {
    let mut hints = Vec::new();
    for _ in 0..500 {
        watch.poll(&mut hints);
        if hints.iter().any(|h| matches!(h, Hint::Closed(n) | Hint::Seen(n) if n == name)) {
            return hints;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no hint at {name} in {hints:?}");
}

fn conforms(place: &dyn Place) {
    let store = place.store();
    assert!(!store.root().is_empty());
    assert_eq!(list(&*store), []);

    place.write("b/c/training.2.gz", b"two");
    place.write("training.1.gz", b"");
    place.write(".hidden", b"x");
    place.write(".folder/training.3.gz", b"x");
    let files = list(&*store);
    let names: Vec<&str> = files.iter().map(|f| &*f.name).collect();
    assert_eq!(names, ["b/c/training.2.gz", "training.1.gz"]);
    assert_eq!((files[0].size, files[0].key()), (3, "training.2.gz"));
    for file in &files {
        assert_eq!(store.stat(&file.name).unwrap(), *file, "stat agrees with list");
        assert_eq!(store.open(&file.name).unwrap().len().unwrap(), file.size);
    }

    let mut seen = 0;
    store.list(&mut |_| {
        seen += 1;
        ControlFlow::Break(())
    });
    assert_eq!(seen, 1, "a list ends when its callback says so");

    let mut buf = [0; 2];
    let bytes = store.open("b/c/training.2.gz").unwrap();
    assert_eq!((bytes.read_at(1, &mut buf).unwrap(), &buf), (2, b"wo"));
    assert_eq!(bytes.read_at(2, &mut buf).unwrap(), 1);
    assert_eq!(bytes.read_at(3, &mut buf).unwrap(), 0);
    assert_eq!(bytes.read_at(1 << 40, &mut buf).unwrap(), 0);

    for error in [store.stat("b/nothing.gz").unwrap_err(), store.open("b/nothing.gz").err().unwrap()] {
        assert_eq!(error.kind(), Kind::Io(io::ErrorKind::NotFound));
        assert!(error.to_string().contains("b/nothing.gz"), "{error}");
    }

    let before = store.stat("b/c/training.2.gz").unwrap();
    place.rename("b/c/training.2.gz", "b/moved.gz");
    let after = store.stat("b/moved.gz").unwrap();
    assert!(after.same_file(&before), "a rename keeps what the file is");
    place.write("b/moved.gz", b"more");
    assert!(!store.stat("b/moved.gz").unwrap().same_file(&before), "other bytes do not");
    place.remove("b/moved.gz");
    assert_eq!(list(&*store).len(), 1);

    let Some(mut watch) = store.watch().unwrap() else { return };
    place.write("d/training.4.gz", b"four");
    hints_up_to(&mut *watch, "d/training.4.gz");
    place.write("d/.training.5.gz.part", b"five");
    place.rename("d/.training.5.gz.part", "d/training.5.gz");
    let hints = hints_up_to(&mut *watch, "d/training.5.gz");
    assert!(!hints.iter().any(|h| matches!(h, Hint::Lost(_) | Hint::Blind(_))), "{hints:?}");
    place.remove("d/training.4.gz");
    assert_eq!(list(&*store).len(), 2);
}

#[test]
fn a_folder_of_a_url_conforms() {
    let memory = MemoryStore::named("conformance");
    memory.write("some/folders/a.gz", b"beside it");
    memory.write("a.gz", b"above it");
    conforms(&Url(memory));
}

#[test]
fn a_url_names_a_folder_a_file_or_a_pattern_and_what_is_not_there_is_refused() {
    let memory = MemoryStore::named("named");
    ["a/1.gz", "a/2.gz", "b/3.gz", "c.tar"].into_iter().for_each(|name| memory.write(name, name.as_bytes()));
    let names = |url: &str| {
        let store = gristmill_engine::store::open(Path::new(url)).unwrap();
        assert_eq!(store.place(), url);
        list(&*store).iter().map(|file| format!("{}/{}", store.root(), file.name)).collect::<Vec<_>>()
    };
    let all = ["memory://named/a/1.gz", "memory://named/a/2.gz", "memory://named/b/3.gz", "memory://named/c.tar"];
    assert_eq!(names("memory://named"), all);
    assert_eq!(names("memory://named/a"), all[..2]);
    assert_eq!(names("memory://named/c.tar"), all[3..]);
    assert_eq!(names("memory://named/a/1.gz"), all[..1]);
    assert_eq!(names("memory://named/[bc]*"), all[2..]);
    assert_eq!(names("memory://named/*/[23].gz"), all[1..3]);
    assert_eq!(names("memory://named/nothing*"), [""; 0]);
    for away in ["memory://named/d", "memory://named/a/1", "memory://unnamed", "memory:"] {
        let error = gristmill_engine::store::open(Path::new(away)).unwrap_err().to_string();
        assert!(error.contains("memory:"), "{error}");
    }
}

#[test]
fn a_directory_conforms() {
    conforms(&Dir(tempfile::tempdir().unwrap()));
}

#[test]
fn memory_conforms() {
    conforms(&Memory(Arc::new(MemoryStore::new())));
}

#[test]
fn a_bucket_conforms() {
    conforms(&Bucket::new("conforming"));
}

#[test]
fn a_store_keeps_no_descriptor_and_never_shows_old_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let store = DirStore::new(dir.path()).unwrap();
    let big = |fill: u8| vec![fill; 1 << 20];
    for i in 0..200 {
        fs::write(dir.path().join(format!("{i}.tar")), big(i)).unwrap();
        drop(store.open(&format!("{i}.tar")).unwrap());
    }
    let ours = |e: &fs::DirEntry| fs::read_link(e.path()).is_ok_and(|target| target.starts_with(dir.path()));
    let open = fs::read_dir("/proc/self/fd").unwrap().filter(|e| e.as_ref().is_ok_and(ours)).count();
    assert_eq!(open, 0, "the caller keeps an open file");

    let byte = |store: &DirStore| {
        let mut buf = [0];
        store.open("199.tar").unwrap().read_at(5, &mut buf).unwrap();
        buf[0]
    };
    assert_eq!(byte(&store), 199);
    fs::write(dir.path().join(".new"), big(7)).unwrap();
    fs::rename(dir.path().join(".new"), dir.path().join("199.tar")).unwrap();
    assert_eq!(byte(&store), 7, "replaced by a rename");
    let mut grown = big(8);
    grown.push(1);
    fs::write(dir.path().join("199.tar"), &grown).unwrap();
    assert_eq!(byte(&store), 8, "rewritten in place");
    assert_eq!(store.open("199.tar").unwrap().len().unwrap(), (1 << 20) + 1);
    fs::remove_file(dir.path().join("199.tar")).unwrap();
    assert_eq!(store.open("199.tar").err().unwrap().kind().name(), "not_found");
}

#[test]
fn what_is_not_a_regular_file_is_refused_rather_than_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("folder.gz")).unwrap();
    let store = DirStore::new(dir.path()).unwrap();
    assert!(store.open("folder.gz").is_err());
    assert!(store.stat("folder.gz").is_err());
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("pipe.gz")).status();
    if made.is_ok_and(|s| s.success()) {
        assert_eq!(store.open("pipe.gz").err().unwrap().kind(), Kind::Io(io::ErrorKind::InvalidInput));
        assert_eq!(list(&store), [], "pipes are not listed");
    }
}

#[test]
fn a_file_that_several_write_is_whole_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let text = |writer: u8| vec![writer; 20_000 * usize::from(writer)];
    write_whole(&path, &[&text(1)]).unwrap();
    std::thread::scope(|threads| {
        for writer in 1..=4 {
            let path = &path;
            threads.spawn(move || (0..40).for_each(|_| write_whole(path, &[&text(writer)]).unwrap()));
        }
        for _ in 0..200 {
            let found = fs::read(&path).unwrap();
            assert!(found == text(found[0]), "{} bytes of {}", found.len(), found[0]);
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}
