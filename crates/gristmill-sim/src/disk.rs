//! Files in memory that answer as a directory does, and as one whose disk, folder or notices fail. What was made to fail, and
//! how often it was met, is counted. The files outlast a process that ends; what a process knows of them does not.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use gristmill_engine::store::{Faults, FileStat, Hint, Readings, Store, Watch};
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};

use crate::coverage::{Coverage, Fault, State};

/// What runs while a read waits.
pub trait Meanwhile: Send + Sync {
    /// Lets others run.
    fn meanwhile(&self);
}

/// How often, in a process, it is noted which stages a fault met: some faults come with each read.
const NOTED: u32 = 4;

#[derive(Debug, Clone)]
struct Node {
    bytes: Arc<[u8]>,
    mtime_ns: i64,
    inode: u64,
}

/// What is wrong with the disk now.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// Files that cannot be read, and how.
    pub broken: BTreeMap<String, Fault>,
    /// Whether the folder is away.
    pub away: bool,
    /// Whether reads give less than they could.
    pub short: bool,
    /// Whether the next listing is the one before.
    pub stale: bool,
    /// Whether the next listing has files twice.
    pub repeated: bool,
    /// Whether notices come twice.
    pub doubled: bool,
    /// How many of the next opens and reads are refused for the moment.
    pub throttled: u32,
    /// Whether the clock of the machine stands before the times of all files.
    pub behind: bool,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<String, Node>,
    clock: i64,
    hints: Vec<Weak<Mutex<Vec<Hint>>>>,
    troubles: Troubles,
    /// The listing before.
    listed: Vec<FileStat>,
    state: State,
    coverage: Coverage,
    /// Faults of this process that met stages of which nobody noted what they hold, and how often each fault was among them.
    fresh: Vec<Fault>,
    noted: BTreeMap<Fault, u32>,
    /// Every version of every file, by name and time. Several have one time where a file was replaced by one of the same.
    versions: BTreeMap<(String, i64), Vec<Arc<[u8]>>>,
    reads: u64,
    /// Number of times that the loader polled for notices.
    polls: u64,
    /// Number of times that the loader polled for notices since some were lost. `None` if none were lost since the last listing.
    lost: Option<u64>,
}

impl Inner {
    fn hint(&mut self, hint: &Hint) {
        let times = if self.troubles.doubled { 2 } else { 1 };
        if self.troubles.doubled {
            self.met(Fault::HintsDoubled);
        }
        for queue in self.hints.iter().filter_map(Weak::upgrade) {
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            (0..times).for_each(|_| queue.push(hint.clone()));
        }
    }

    fn met(&mut self, fault: Fault) {
        self.coverage.met(fault, self.state);
        let noted = self.noted.entry(fault).or_default();
        if *noted < NOTED {
            *noted += 1;
            self.fresh.push(fault);
        }
    }

    /// Notes what a file of this name is now.
    fn put(&mut self, name: &str, node: Node) {
        self.versions.entry((name.to_owned(), node.mtime_ns)).or_default().push(Arc::clone(&node.bytes));
        self.files.insert(name.to_owned(), node);
    }

    fn stat(&self, name: &str) -> Option<FileStat> {
        let node = self.files.get(name)?;
        let (size, mtime_ns, inode) = (node.bytes.len() as u64, node.mtime_ns, node.inode);
        Some(FileStat { name: name.into(), size, mtime_ns, device: 1, inode })
    }

    /// What hinders a reader of this file.
    fn hindered(&mut self, name: &str, opened: bool) -> Result<()> {
        if self.troubles.throttled > 0 {
            self.troubles.throttled -= 1;
            self.met(Fault::Throttled);
            return Err(Error::from(io::Error::from_raw_os_error(11)).in_source(name));
        }
        if self.troubles.away && !opened {
            self.met(Fault::Away);
            return Err(Error::new(Kind::Away, "its folder is away").in_source(name));
        }
        match self.troubles.broken.get(name).copied() {
            Some(Fault::Broken) => {
                self.met(Fault::Broken);
                Err(Error::from(io::Error::from_raw_os_error(5)).in_source(name))
            }
            Some(fault) if !opened => {
                self.met(fault);
                Err(Error::from(io::Error::from_raw_os_error(13)).in_source(name))
            }
            _ => Ok(()),
        }
    }
}

/// A directory, as one process has it.
#[derive(Default)]
pub struct Disk {
    inner: Arc<Mutex<Inner>>,
    readings: Readings,
    world: OnceLock<Weak<dyn Meanwhile>>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

impl Disk {
    /// The same files, as the next process has them.
    pub fn again(&self) -> Self {
        let mut inner = self.lock();
        (inner.lost, inner.hints) = (None, Vec::new());
        (inner.fresh, inner.noted) = Default::default();
        drop(inner);
        Disk { inner: Arc::clone(&self.inner), ..Disk::default() }
    }

    /// Says who runs while a read waits.
    pub fn inhabit(&self, world: Weak<dyn Meanwhile>) {
        _ = self.world.set(world);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a file there. `closed`: its writer is done, and a notice says so; else it still grows.
    pub fn write(&self, name: &str, bytes: Vec<u8>, closed: bool) {
        let mut inner = self.lock();
        inner.clock += 1;
        let (mtime_ns, bytes): (_, Arc<[u8]>) = (inner.clock, bytes.into());
        let inode = if closed { mtime_ns as u64 } else { inner.files.get(name).map_or(mtime_ns as u64, |n| n.inode) };
        inner.put(name, Node { bytes, mtime_ns, inode });
        inner.hint(&if closed { Hint::Closed(name.to_owned()) } else { Hint::Seen(name.to_owned()) });
    }

    /// Replaces a file by another one of the same time. It has as many bytes.
    pub fn swap(&self, name: &str, bytes: Vec<u8>) {
        let mut inner = self.lock();
        inner.clock += 1;
        let inode = inner.clock as u64;
        if let Some(mtime_ns) = inner.files.get(name).map(|node| node.mtime_ns) {
            inner.put(name, Node { bytes: bytes.into(), mtime_ns, inode });
            inner.hint(&Hint::Closed(name.to_owned()));
        }
    }

    /// Takes a file away.
    pub fn remove(&self, name: &str) {
        let mut inner = self.lock();
        if inner.files.remove(name).is_some() {
            inner.hint(&Hint::Left(name.to_owned()));
        }
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &str, to: &str) {
        let mut inner = self.lock();
        if let Some(node) = inner.files.remove(from) {
            inner.put(to, node);
            inner.hint(&Hint::Left(from.to_owned()));
            inner.hint(&Hint::Closed(to.to_owned()));
        }
    }

    /// Loses the notices that were not taken, and says so.
    pub fn lose_hints(&self) {
        let mut inner = self.lock();
        let queues: Vec<_> = inner.hints.iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            *queue.lock().unwrap_or_else(PoisonError::into_inner) = vec![Hint::Lost("the queue was full".into())];
            inner.lost = Some(0);
        }
    }

    /// Returns how often the loader polled for notices since some were lost. Returns `None` if none were lost since the last listing.
    pub fn polls_since_loss(&self) -> Option<u64> {
        self.lock().lost
    }

    /// Returns how often loaders polled for notices.
    pub fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// Changes what is wrong.
    pub fn trouble(&self, change: impl FnOnce(&mut Troubles)) {
        change(&mut self.lock().troubles);
    }

    /// Notes a fault that no answer shows.
    pub fn met(&self, fault: Fault) {
        self.lock().met(fault);
    }

    /// Says where the chain is.
    pub fn reached(&self, state: State) {
        self.lock().state = state;
    }

    /// Returns where the chain is.
    pub fn state(&self) -> State {
        self.lock().state
    }

    /// Notes what the stages hold for the faults that were met since the last call.
    pub fn note(&self, states: impl FnOnce() -> Vec<State>) {
        let fresh = std::mem::take(&mut self.lock().fresh);
        if fresh.is_empty() {
            return;
        }
        let states = states();
        let mut inner = self.lock();
        fresh.iter().for_each(|fault| states.iter().for_each(|state| inner.coverage.met(*fault, *state)));
    }

    /// Names of the files now.
    pub fn names(&self) -> Vec<String> {
        self.lock().files.keys().cloned().collect()
    }

    /// Bytes of a file now.
    pub fn now(&self, name: &str) -> Arc<[u8]> {
        self.lock().files.get(name).map(|node| Arc::clone(&node.bytes)).unwrap_or_default()
    }

    /// Bytes that files of this name and time had, one after the other.
    pub fn versions(&self, name: &str, mtime_ns: i64) -> Vec<Arc<[u8]>> {
        self.lock().versions.get(&(name.to_owned(), mtime_ns)).cloned().unwrap_or_default()
    }

    /// Bytes that files of this name had after that time.
    pub fn versions_after(&self, name: &str, mtime_ns: i64) -> Vec<Arc<[u8]>> {
        let (from, to) = ((name.to_owned(), mtime_ns + 1), (name.to_owned(), i64::MAX));
        self.lock().versions.range(from..=to).flat_map(|(_, bytes)| bytes.iter().cloned()).collect()
    }

    /// Which faults met which states.
    pub fn coverage(&self) -> Coverage {
        self.lock().coverage.clone()
    }
}

impl Store for Disk {
    fn root(&self) -> String {
        "sim:".to_owned()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut inner = self.lock();
        inner.lost = None;
        let mut faults = Faults::default();
        let mut files: Vec<FileStat> = inner.files.keys().filter_map(|name| inner.stat(name)).collect();
        if inner.troubles.away {
            inner.met(Fault::Away);
            faults.error(&Error::new(Kind::Away, "the folder is away"));
            return faults;
        }
        if std::mem::take(&mut inner.troubles.stale) {
            inner.met(Fault::Stale);
            files.clone_from(&inner.listed);
        } else {
            inner.listed.clone_from(&files);
        }
        if std::mem::take(&mut inner.troubles.repeated) {
            inner.met(Fault::Repeated);
            files.extend_from_within(..);
        }
        drop(inner);
        for file in files {
            if each(file).is_break() {
                break;
            }
        }
        faults
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let inner = self.lock();
        // No fault is met: a notice that leads nowhere loses nothing, since the next listing finds the file.
        if inner.troubles.away {
            return Err(Error::new(Kind::Away, "its folder is away").in_source(name));
        }
        inner.stat(name).ok_or_else(|| Error::from(io::Error::from(io::ErrorKind::NotFound)).in_source(name))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let mut inner = self.lock();
        if inner.state == State::Scanning {
            inner.state = State::Filling;
        }
        inner.hindered(name, false)?;
        let missing = || Error::from(io::Error::from(io::ErrorKind::NotFound)).in_source(name);
        let bytes = Arc::clone(&inner.files.get(name).ok_or_else(missing)?.bytes);
        let (files, world) = (Arc::clone(&self.inner), self.world.get().cloned());
        let ends = AtomicU64::new(ENDS.min(bytes.len() as u64));
        Ok(Arc::new(Open { name: name.to_owned(), bytes, files, world, ends }))
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn is_young(&self, _file: &FileStat, _time: Duration) -> bool {
        let mut inner = self.lock();
        if inner.troubles.behind {
            inner.met(Fault::ClockBack);
        }
        inner.troubles.behind
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        let queue = Arc::<Mutex<Vec<Hint>>>::default();
        self.lock().hints.push(Arc::downgrade(&queue));
        Ok(Some(Box::new(Hints(queue, Arc::clone(&self.inner)))))
    }
}

struct Hints(Arc<Mutex<Vec<Hint>>>, Arc<Mutex<Inner>>);

impl Watch for Hints {
    fn poll(&mut self, hints: &mut Vec<Hint>) {
        let mut inner = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        inner.polls += 1;
        inner.lost = inner.lost.map(|polls| polls + 1);
        drop(inner);
        hints.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// An open file: its bytes stay when its name goes.
struct Open {
    name: String,
    bytes: Arc<[u8]>,
    files: Arc<Mutex<Inner>>,
    world: Option<Weak<dyn Meanwhile>>,
    /// Bytes of both ends that were not read yet. Who opens boards reads them, and others wait for that.
    ends: AtomicU64,
}

/// Bytes of both ends that are read when boards are opened.
const ENDS: u64 = 2 * 256 * 32;

impl ReadAt for Open {
    fn len(&self) -> Result<u64> {
        ReadAt::len(&*self.bytes)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        lock().hindered(&self.name, true)?;
        let opened = self.ends.load(Ordering::Relaxed) == 0;
        if let Some(world) = self.world.as_ref().filter(|_| opened).and_then(Weak::upgrade) {
            world.meanwhile();
        }
        let mut inner = lock();
        inner.reads += 1;
        let short = inner.troubles.short && buf.len() > 1;
        if short {
            inner.met(Fault::Short);
        }
        let most = if short { 1 + inner.reads as usize % (buf.len() - 1) } else { buf.len() };
        let read = self.bytes.read_at(offset, &mut buf[..most])?;
        self.ends.fetch_sub(self.ends.load(Ordering::Relaxed).min(read as u64), Ordering::Relaxed);
        Ok(read)
    }
}
