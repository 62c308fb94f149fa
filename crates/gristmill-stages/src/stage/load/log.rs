//! What discovery finds -> entries of the first scan, then arrivals, in one order for every reader.
//! Forgets only what has left and is not needed, when it is said so, and never blocks a reader; what cannot be opened is a counted fault, not the end.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use gristmill_format::detect;
use gristmill_format::source::{Access, Limits};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::facts::Facts;
use gristmill_runtime::runtime::scheduler::Rounds;
use gristmill_runtime::store::bucket::Traffic;
use gristmill_runtime::store::{Change, Discover, Faults, FileStat, Held, Store};

use super::index::{Indexed, Untouched};
use super::solid::{Solid, Solids};
use super::source::{Digests, Moves, Source, Which, of_index};

/// Starts a thread of the given name that goes through rounds.
pub type Spawn<'a> = dyn Fn(&str, Rounds) + 'a;

/// Containers that stay open though no drawer may have taken them in yet.
const LATEST: usize = 64;

/// Bits of an id that hold the ordinal.
const ORDINAL_BITS: u32 = 40;

/// What a log is to hold.
pub struct LogSpec {
    /// Where the files are.
    pub store: Arc<dyn Store>,
    /// The search that finds them; see `stage::discover::Search::ready`.
    pub find: Discover,
    /// Index of the provider in the configuration: the upper part of every id.
    pub provider: u16,
    /// Record version to insist on.
    pub version: Option<u32>,
    /// Whether chunks of the kind of this name can be streamed; the error says why not.
    pub fits: fn(&str) -> Result<()>,
    /// The side index of the store, if there is one.
    pub facts: Option<Arc<Facts>>,
    /// What reads solid files; without it they are refused.
    pub solids: Option<Arc<Solids>>,
    /// Whether the stream waits where there are no games yet.
    pub waits: bool,
}

/// A file that was found by the first scan. It is not opened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number: provider index in the upper 24 bits, position among the entries in the lower 40.
    pub id: u64,
    /// The file as the scan saw it.
    pub file: FileStat,
}

impl Entry {
    /// File name without directory.
    pub fn key(&self) -> &str {
        self.file.key()
    }
}

/// A source that came after the first scan. Opened once already, unless it could not be read then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its id.
    pub id: u64,
    /// The id of another whose place it takes, where that one's bytes are no longer there.
    pub old: Option<u64>,
}

/// Counters of a log, for metrics and for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFaults {
    /// What could not be read, watched or opened, by kind, and the latest messages.
    pub faults: Faults,
    /// Files that no format claims.
    pub skipped_files: u64,
    /// Files left out because the same bytes were counted already.
    pub duplicate_files: u64,
    /// Key of the source that was opened last.
    pub last_chunk_key: String,
}

/// The log of one loader stage. Shared by all that read it.
pub struct SourceLog {
    pub(super) store: Arc<dyn Store>,
    provider: u16,
    version: Option<u32>,
    pub(super) fits: fn(&str) -> Result<()>,
    pub(super) facts: Option<Arc<Facts>>,
    pub(super) solids: Option<Arc<Solids>>,
    waits: bool,
    initial: OnceLock<Arc<[Entry]>>,
    pub(super) moves: Arc<Moves>,
    pub(super) state: Mutex<State>,
    pub(super) opened: Mutex<Opened>,
    /// Sources of held files, by lasting id.
    pub(super) held: Mutex<Opened>,
    /// Chunks of the containers that were opened, by whether they are held and id.
    pub(super) lengths: Mutex<HashMap<Which, usize>>,
    pub(super) digests: Arc<Digests>,
    /// Errors of reading open files that reading by name mended.
    retried: Arc<Mutex<Faults>>,
    ended: AtomicBool,
    traffic: Traffic,
    on_change: Arc<dyn Fn() + Send + Sync>,
}

/// Sources that are in use, and a lock for each while it is opened.
pub(super) type Opened = HashMap<u64, Arc<Mutex<Weak<Source>>>>;

#[derive(Default)]
pub(super) struct State {
    pub(super) arrivals: Vec<Arrival>,
    /// Containers that arrived last: they stay open until the drawer has taken them in.
    latest: VecDeque<Arc<Source>>,
    /// Arrivals before those, which every reader has.
    pub(super) passed: usize,
    /// Files found after the first scan.
    pub(super) later: HashMap<u64, FileStat>,
    /// Ids of files that were deleted or written over since the last call, and of files that are back.
    pub(super) left: Vec<(u64, bool)>,
    /// Later files that could not be opened, and what they were to replace.
    failed: HashMap<u64, Option<u64>>,
    /// What the latest listing could not read, and what went wrong outside of listings.
    listed: Faults,
    /// Files of the latest listing that still grew; none before the first one is done.
    growing: Option<u64>,
    counters: LogFaults,
}

impl std::fmt::Debug for SourceLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceLog").field("store", &self.store).field("provider", &self.provider).finish()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SourceLog {
    /// Starts the search in a thread of its own. `on_change` is called from that thread whenever there is something
    /// new to see, and must not block.
    pub fn start(spec: LogSpec, spawn: &Spawn<'_>, on_change: Arc<dyn Fn() + Send + Sync>) -> Arc<SourceLog> {
        let LogSpec { store, find, provider, version, fits, facts, solids, waits } = spec;
        let traffic = Traffic::of(store.counts());
        let log = Arc::new(SourceLog {
            store,
            provider,
            version,
            fits,
            facts,
            solids,
            waits,
            initial: OnceLock::new(),
            moves: Arc::default(),
            state: Mutex::default(),
            opened: Mutex::default(),
            held: Mutex::default(),
            lengths: Mutex::default(),
            digests: Arc::default(),
            retried: Arc::default(),
            ended: AtomicBool::new(false),
            traffic,
            on_change,
        });
        let writer = Ending(log.clone());
        let rounds = find(Box::new(move |change| writer.0.take(change)));
        spawn(&format!("discover-{provider}"), rounds);
        log
    }

    /// Where the files are, for people.
    pub fn root(&self) -> String {
        self.store.root()
    }

    /// What of it is meant, for people.
    pub fn place(&self) -> String {
        self.store.place()
    }

    /// What was asked of the store since the start; nothing of this machine.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Counts of the events that hint at its files, by name; none where no queue has them.
    pub fn events(&self) -> Vec<(&'static str, u64)> {
        self.store.events().map(|counts| counts.now().to_vec()).unwrap_or_default()
    }

    /// Checks that a file can be reached, or was deleted.
    ///
    /// Errors: what prevents that, with the file.
    pub fn looks(&self, name: &str) -> Result<()> {
        match self.store.stat(name) {
            Err(e) if e.kind().is_of_reading() => Err(e),
            _ => Ok(()),
        }
    }

    /// Counts a file that could not be opened.
    pub fn note(&self, e: &Error) {
        lock(&self.state).counters.faults.error(e);
    }

    /// The files of the first scan by (key in natural order, name); `None` until it is complete. Ids are positions,
    /// so they are a function of the files alone.
    pub fn initial(&self) -> Option<Arc<[Entry]>> {
        self.initial.get().cloned()
    }

    /// Opens a source of the log. A single game is not touched; a tar is indexed, once for all concurrent callers and
    /// as long as any of them keeps it.
    ///
    /// Errors, with the file: `Io`, what indexing says, and `Missing` for an id that the log does not have.
    pub fn open(&self, id: u64) -> Result<Arc<Source>> {
        let key = self.found(id)?.key().to_owned();
        self.open_as(id, key)
    }

    /// [`SourceLog::open`], by the key that its file had when it was first seen.
    ///
    /// Errors: as there.
    pub fn open_as(&self, id: u64, key: String) -> Result<Arc<Source>> {
        let file = self.moves.of(id).map_or_else(|| self.found(id), Ok)?;
        self.open_file(&self.opened, id, key, (file, None))
    }

    /// The file of an id as it was found.
    ///
    /// Errors: `Missing`.
    pub fn found(&self, id: u64) -> Result<FileStat> {
        self.file(id).ok_or_else(|| Error::new(Kind::Missing, format!("no source has the id {id}")))
    }

    /// Opens a file that is held under another name, or was once in the log, by its lasting id.
    ///
    /// Errors: as [`SourceLog::open`].
    pub fn open_held(&self, id: u64, file: FileStat, held: Held) -> Result<Arc<Source>> {
        let key = file.key().to_owned();
        self.open_file(&self.held, id, key, (file, Some(held)))
    }

    fn open_file(
        &self,
        opened: &Mutex<Opened>,
        id: u64,
        key: String,
        (file, held): (FileStat, Option<Held>),
    ) -> Result<Arc<Source>> {
        let place = |e: Error| e.in_source(format!("{}/{}", self.store.root(), file.name));
        match detect::detect(&key, &[]).map_err(place)? {
            Some(format) if detect::access(format) == Access::OneChunk => {
                let chunks = detect::open(format, &key, &Untouched).map_err(place)?;
                Ok(self.source(id, key, (file, held), Indexed { chunks, kept: None, solid: None }))
            }
            Some(format) => {
                let slot = lock(opened).entry(id).or_default().clone();
                let mut slot = lock(&slot);
                if let Some(source) = slot.upgrade().filter(|source| source.key == key) {
                    return Ok(source);
                }
                let indexed = self.index(format, &key, &file, held.as_ref()).map_err(place)?;
                lock(&self.lengths).insert((held.is_some(), id), indexed.chunks.len());
                let source = self.source(id, key, (file, held), indexed);
                *slot = Arc::downgrade(&source);
                Ok(source)
            }
            None => Err(place(Error::new(Kind::UnknownFormat, "no format claims this name"))),
        }
    }

    /// What came after the first scan, from place `cursor` on; the next cursor is `cursor` plus their number.
    pub fn arrivals(&self, cursor: usize) -> Vec<Arrival> {
        let state = lock(&self.state);
        let from = cursor.saturating_sub(state.passed);
        state.arrivals.get(from..).map(<[Arrival]>::to_vec).unwrap_or_default()
    }

    /// How many chunks a container has that was opened, by its id in the log or, where it was held, by its lasting id.
    pub fn len_of(&self, held: bool, id: u64) -> Option<usize> {
        lock(&self.lengths).get(&(held, id)).copied()
    }

    /// What a source was when it was first read, by its id in the log or, where it was held, by its lasting id.
    pub fn digest_of(&self, held: bool, id: u64) -> Option<u64> {
        self.digests.of((held, id))
    }

    /// Reads what tells the bytes of a source, unless that is known: its digest, and that of older versions.
    ///
    /// Errors: as [`SourceLog::open`] and [`Source::fetch`].
    pub fn read_digest(&self, id: u64) -> Result<Option<[u64; 2]>> {
        let source = self.open(id)?;
        if Self::holds_one(&source.key) && self.digest_of(false, id).is_none() {
            source.fetch(0, &Limits::default(), &mut Vec::new())?;
        }
        Ok(self.digest_of(false, id).map(|digest| [digest, source.older_digest().unwrap_or(digest)]))
    }

    /// What was read since the last call: whether it was held, its id, and its digest.
    pub fn fresh_digests(&self) -> Vec<((bool, u64), u64)> {
        self.digests.fresh()
    }

    /// Whether a file of this name holds one game, and is read with it.
    pub fn holds_one(name: &str) -> bool {
        let one = |format| detect::access(format) == Access::OneChunk;
        detect::detect(gristmill_runtime::key::of_name(name), &[]).is_ok_and(|format| format.is_some_and(one))
    }

    /// Whether a file of this name is read whole for any of its chunks.
    pub fn is_solid(name: &str) -> bool {
        let solid = |format| detect::access(format) == Access::Solid;
        detect::detect(gristmill_runtime::key::of_name(name), &[]).is_ok_and(|format| format.is_some_and(solid))
    }

    /// Current name of a source's file, relative to the store's root.
    pub fn name(&self, id: u64) -> Option<Arc<str>> {
        let found = self.file(id)?;
        Some(self.moves.of(id).unwrap_or(found).name)
    }

    /// Whether an id is one that this log gives.
    pub fn owns(&self, id: u64) -> bool {
        id >> ORDINAL_BITS == u64::from(self.provider)
    }

    /// A source's file, as it is now known.
    pub fn stat(&self, id: u64) -> Option<FileStat> {
        let found = self.file(id)?;
        Some(self.moves.of(id).unwrap_or(found))
    }

    /// Counters and the latest faults.
    pub fn faults(&self) -> LogFaults {
        let state = lock(&self.state);
        let mut counters = state.counters.clone();
        counters.faults.merge(&state.listed);
        counters.faults.merge(&lock(&self.retried));
        counters
    }

    /// Whether it takes files that are read whole.
    pub fn takes_solids(&self) -> bool {
        self.solids.is_some()
    }

    /// Whether the stream waits where there are no games yet.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether a first listing is done, and nothing is on its way to be taken.
    pub(super) fn is_listed(&self) -> bool {
        let state = lock(&self.state);
        state.growing == Some(0) && state.arrivals.is_empty() && state.passed == 0
    }

    /// Whether the search has ended: nothing will come any more.
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The id of the first file; the others follow it without a gap.
    pub fn first_id(&self) -> u64 {
        self.id(0)
    }

    fn id(&self, number: u64) -> u64 {
        u64::from(self.provider) << ORDINAL_BITS | number
    }

    /// The file of an id as it was found.
    fn file(&self, id: u64) -> Option<FileStat> {
        let number = id ^ self.id(0);
        let initial = self.initial.get()?;
        match initial.get(usize::try_from(number).ok()?) {
            Some(entry) => Some(entry.file.clone()),
            None => lock(&self.state).later.get(&id).cloned(),
        }
    }

    fn source(
        &self,
        id: u64,
        key: String,
        (file, held): (FileStat, Option<Held>),
        Indexed { chunks, kept, solid }: Indexed,
    ) -> Arc<Source> {
        lock(&self.state).counters.last_chunk_key.clone_from(&key);
        // A held file stays where it is, whatever becomes of its name.
        let moves = if held.is_some() { Arc::default() } else { self.moves.clone() };
        let (store, version, facts) = (self.store.clone(), self.version, self.facts.clone());
        let (sums, digests, retried) = (Mutex::default(), Arc::clone(&self.digests), Arc::clone(&self.retried));
        let which = (held.is_some(), id);
        if !Self::holds_one(&key) && digests.of(which).is_none() {
            digests.note(which, solid.as_ref().map_or_else(|| of_index(&*chunks), Solid::digest));
        }
        Arc::new(Source {
            id,
            key,
            chunks,
            file,
            store,
            moves,
            version,
            facts,
            held,
            kept,
            solid,
            sums,
            digests,
            retried,
        })
    }

    fn take(&self, change: Change) {
        match change {
            Change::Scanned(files) => {
                let entry = |(number, file)| Entry { id: self.id(number), file };
                let entries: Arc<[Entry]> = (0..).zip(files).map(entry).collect();
                let _ = self.initial.set(entries);
            }
            Change::New { number, file } => self.arrive(self.id(number), None, file),
            Change::Replaced { old, number, file } => {
                self.arrive(self.id(number), Some(self.id(old)), file);
                lock(&self.state).left.push((self.id(old), true));
            }
            Change::Moved { number, file } => {
                self.moves.note(self.id(number), file);
                lock(&self.state).left.push((self.id(number), false));
            }
            Change::Left { number } => lock(&self.state).left.push((self.id(number), true)),
            Change::Listed { skipped, duplicates, growing, faults } => {
                let mut state = lock(&self.state);
                state.growing = Some(growing);
                (state.counters.skipped_files, state.counters.duplicate_files) = (skipped, duplicates);
                state.listed = faults;
            }
            Change::Fault { kind, message } => lock(&self.state).counters.faults.add(kind, message),
        }
        (self.on_change)();
    }

    /// Keeps a container open a while, for those that draw from it.
    fn lasts(&self, source: Arc<Source>) {
        if source.kept.is_none() {
            return;
        }
        let mut state = lock(&self.state);
        state.latest.push_back(source);
        if state.latest.len() > LATEST {
            state.latest.pop_front();
        }
    }

    fn arrive(&self, id: u64, old: Option<u64>, file: FileStat) {
        let name = file.name.clone();
        lock(&self.state).later.insert(id, file);
        let opened = self.open(id).map(|source| self.lasts(source));
        let not_found = |e: &Error| e.kind() == Kind::Io(std::io::ErrorKind::NotFound);
        let moved = opened.as_ref().err().is_some_and(not_found) && self.may_have_moved(&name);
        let mut state = lock(&self.state);
        // What never arrived cannot be replaced, only what it was to replace.
        let old = old.and_then(|old| state.failed.remove(&old).unwrap_or(Some(old)));
        if let Err(e) = opened.as_ref()
            && !moved
        {
            state.counters.faults.error(e);
        }
        match opened {
            // The drawer tries again when it takes the file in.
            Err(e) if !e.kind().is_of_reading() && !moved => _ = state.failed.insert(id, old),
            _ => state.arrivals.push(Arrival { id, old }),
        }
    }
}

/// Marks the end of the search, however it comes.
struct Ending(Arc<SourceLog>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).counters.faults.add("internal", "the search for files has failed; none will be added");
        }
        self.0.store.readings().ended();
        self.0.ended.store(true, Ordering::Release);
        (self.0.on_change)();
    }
}
