//! A [`Store`] in memory, by its name in this process: for notebooks, and for tests of everything above stores.
//! Behaves like a directory: files have identities and times, and its watch gives hints that can be made to fail.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Result};

use super::{Faults, FileStat, Hint, Readings, Store, Watch};

/// Files in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// Empty for one that no URL names.
    name: String,
    inner: Mutex<Inner>,
    reads: Arc<AtomicU64>,
    readings: Readings,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, (FileStat, Arc<[u8]>)>,
    refused: BTreeMap<String, io::ErrorKind>,
    clock: i64,
    /// One queue for each watch.
    hints: Vec<Arc<Mutex<Vec<Hint>>>>,
}

/// The stores that URLs name. They live as long as the process.
static NAMED: Mutex<BTreeMap<String, Arc<MemoryStore>>> = Mutex::new(BTreeMap::new());

fn named() -> MutexGuard<'static, BTreeMap<String, Arc<MemoryStore>>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryStore {
    /// The files of the place `memory://NAME`, none at first.
    pub fn named(name: &str) -> Arc<Self> {
        let new = || Arc::new(MemoryStore { name: name.to_owned(), ..MemoryStore::default() });
        Arc::clone(named().entry(name.to_owned()).or_insert_with(new))
    }

    /// The store that a URL means whose scheme is followed by `rest`, and what follows its name there.
    ///
    /// Errors: `Path` for a store that nobody named in this process.
    pub(super) fn found(url: &Path, rest: &str) -> crate::Result<(Arc<dyn Store>, String)> {
        let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
        match named().get(name) {
            Some(store) => Ok((Arc::clone(store) as Arc<dyn Store>, below.to_owned())),
            None => {
                let message = format!("nothing was written to memory://{name} in this process");
                Err(crate::Error::Path { path: url.to_owned(), kind: io::ErrorKind::NotFound, message })
            }
        }
    }

    /// No files.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// Writes a file in place and closes it, as a new file when there is none of that name.
    pub fn write(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        let mut inner = self.lock();
        inner.clock += 1;
        let bytes: Arc<[u8]> = bytes.into().into();
        let inode = inner.files.get(name).map_or(inner.clock as u64, |(stat, _)| stat.inode);
        let stat = FileStat { name: name.into(), size: bytes.len() as u64, mtime_ns: inner.clock, device: 1, inode };
        inner.files.insert(name.to_owned(), (stat, bytes));
        inner.hint(&Hint::Closed(name.to_owned()));
    }

    /// Gives a file another name, replacing what was there. Nothing happens when there is no such file.
    pub fn rename(&self, from: &str, to: &str) {
        let mut inner = self.lock();
        if let Some((mut stat, bytes)) = inner.files.remove(from) {
            stat.name = to.into();
            inner.files.insert(to.to_owned(), (stat, bytes));
            inner.hint(&Hint::Left(from.to_owned()));
            inner.hint(&Hint::Closed(to.to_owned()));
        }
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) {
        let mut inner = self.lock();
        inner.files.remove(name);
        inner.hint(&Hint::Left(name.to_owned()));
    }

    /// Opens for writing and closes a file without a change.
    pub fn close_again(&self, name: &str) {
        self.lock().hint(&Hint::Closed(name.to_owned()));
    }

    /// Changes nothing but a file's time.
    pub fn touch(&self, name: &str) {
        let mut inner = self.lock();
        inner.clock += 1;
        let now = inner.clock;
        if let Some((stat, _)) = inner.files.get_mut(name) {
            stat.mtime_ns = now;
        }
        inner.hint(&Hint::Closed(name.to_owned()));
    }

    /// From now on, opening `name` fails with `kind`.
    pub fn refuse(&self, name: &str, kind: io::ErrorKind) {
        self.lock().refused.insert(name.to_owned(), kind);
    }

    /// Forgets the hints that were not taken yet and says so, as a full queue of the system does.
    pub fn lose_hints(&self) {
        for queue in &self.lock().hints {
            *queue.lock().unwrap_or_else(PoisonError::into_inner) = vec![Hint::Lost("told to".into())];
        }
    }

    /// How many reads were made of all files so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn hint(&mut self, hint: &Hint) {
        self.hints.retain(|queue| Arc::strong_count(queue) > 1);
        for queue in &self.hints {
            queue.lock().unwrap_or_else(PoisonError::into_inner).push(hint.clone());
        }
    }
}

fn visible(name: &str) -> bool {
    !name.split('/').any(|part| part.starts_with('.'))
}

fn missing(name: &str) -> Error {
    Error::from(io::Error::from(io::ErrorKind::NotFound)).in_source(name)
}

impl Store for MemoryStore {
    fn root(&self) -> String {
        if self.name.is_empty() { "memory:".into() } else { format!("memory://{}", self.name) }
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list_hidden("", &mut |stat| if visible(&stat.name) { each(stat) } else { ControlFlow::Continue(()) })
    }

    fn list_hidden(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let files: Vec<FileStat> = self.lock().files.values().map(|(stat, _)| stat.clone()).collect();
        let is_below =
            |name: &str| folder.is_empty() || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        for stat in files.into_iter().filter(|stat| is_below(&stat.name)) {
            if each(stat).is_break() {
                break;
            }
        }
        Faults::default()
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        self.lock().files.get(name).map(|(stat, _)| stat.clone()).ok_or_else(|| missing(name))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let inner = self.lock();
        if let Some(kind) = inner.refused.get(name) {
            return Err(Error::from(io::Error::from(*kind)).in_source(name));
        }
        let (_, bytes) = inner.files.get(name).ok_or_else(|| missing(name))?;
        Ok(Arc::new(Counted { bytes: bytes.clone(), reads: self.reads.clone() }))
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        let queue = Arc::<Mutex<Vec<Hint>>>::default();
        self.lock().hints.push(queue.clone());
        Ok(Some(Box::new(Hints(queue))))
    }
}

struct Hints(Arc<Mutex<Vec<Hint>>>);

impl Watch for Hints {
    fn poll(&mut self, hints: &mut Vec<Hint>) {
        hints.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

struct Counted {
    bytes: Arc<[u8]>,
    reads: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn len(&self) -> Result<u64> {
        ReadAt::len(&*self.bytes)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.read_at(offset, buf)
    }
}
