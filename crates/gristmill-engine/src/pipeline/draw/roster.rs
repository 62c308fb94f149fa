//! The sources of one log under ids that last: a fresh run takes the log's own, a restored or replayed one
//! keeps the recorded ones and finds their files by name. Says what a journal tells of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_format::Kind;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::{FileStat, Held, Holding, Spill, Token};
use gristmill_stages::stage::load::{Source, SourceLog};

use crate::pipeline::draw::event::Event;
use crate::pipeline::draw::found::find;
use crate::pipeline::draw::outage::Outages;
use crate::pipeline::draw::recorded::{Recorded, record};

/// The files of an earlier run.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct PastFiles {
    pub(in crate::pipeline) files: Vec<Recorded>,
    /// Those that came after the first scan.
    pub(in crate::pipeline) later: BTreeSet<u64>,
    /// Nothing beyond them is to be taken in.
    pub(in crate::pipeline) fixed: bool,
    /// No journal has an id from here on.
    pub(in crate::pipeline) next: u64,
}

#[derive(Debug, Default)]
pub(in crate::pipeline) struct Names {
    /// Recorded id -> id in the log, for restored and replayed runs.
    pub(in crate::pipeline) to_log: HashMap<u64, u64>,
    pub(in crate::pipeline) from_log: HashMap<u64, u64>,
    /// Ids in the log, each with an older record that it has the bytes of.
    versions: BTreeSet<(u64, u64)>,
    /// What is where a recorded file was, and is another one.
    pub(in crate::pipeline) instead: HashMap<u64, FileStat>,
    /// Files by lasting id; a fresh run leaves those of its first scan to the log.
    pub(in crate::pipeline) files: BTreeMap<u64, Recorded>,
    /// Those that have left the disk, or are there under another id, and of its first scan those that were forgotten.
    pub(in crate::pipeline) left: BTreeSet<u64>,
    pub(in crate::pipeline) forgotten: BTreeSet<u64>,
    /// How often files that had left came back, or were forgotten.
    pub(super) returns: u64,
    pub(in crate::pipeline) next: u64,
    pub(in crate::pipeline) ready: bool,
    /// A file of the scan that could not be read for its identity; its error where the stream does not wait.
    unread: Option<u64>,
    refused: Option<Error>,
    /// Arrivals of the log that were given ids already.
    pub(in crate::pipeline) cursor: usize,
    pub(in crate::pipeline) arrivals: Vec<(u64, Option<u64>)>,
    /// Arrivals before those, which every branch has.
    pub(in crate::pipeline) passed: usize,
}

/// The sources of one log under lasting ids.
#[derive(Debug)]
pub(in crate::pipeline) struct Roster {
    pub(in crate::pipeline) loader: String,
    log: Arc<SourceLog>,
    pub(in crate::pipeline) recorded: Option<Vec<Recorded>>,
    /// Recorded files that came after the first scan.
    later: BTreeSet<u64>,
    /// Nothing beyond the recorded files is taken in.
    pub(super) fixed: bool,
    /// What is new gets this id at least.
    next: u64,
    /// Holds what is opened, for as long as a state needs it.
    pub(super) spill: Option<Arc<Spill>>,
    outages: Arc<Outages>,
    names: Mutex<Names>,
    /// Whether a stream asked for a chunk when all files were tried and none had one.
    pub(super) starved: AtomicBool,
}

impl Roster {
    /// `past`: what an earlier run left behind; absent in a fresh run.
    pub(in crate::pipeline) fn new(
        loader: String,
        log: Arc<SourceLog>,
        past: Option<PastFiles>,
        (spill, outages): (Option<Arc<Spill>>, Arc<Outages>),
    ) -> Self {
        let (recorded, PastFiles { later, fixed, next, .. }) = match past {
            Some(mut past) => (Some(std::mem::take(&mut past.files)), past),
            None => (None, PastFiles::default()),
        };
        Roster {
            loader,
            log,
            recorded,
            later,
            fixed,
            next,
            spill,
            outages,
            names: Mutex::default(),
            starved: AtomicBool::default(),
        }
    }

    pub(in crate::pipeline) fn log(&self) -> &SourceLog {
        &self.log
    }

    pub(in crate::pipeline) fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first scan in, once it is complete; `true` when ids can be used.
    pub(in crate::pipeline) fn ready(&self) -> bool {
        let mut names = self.lock();
        if names.ready {
            return true;
        }
        let Some(entries) = self.log.initial() else { return false };
        if names.unread.is_some_and(|id| self.outages.rests(id)) {
            return false;
        }
        names.next = self.log.first_id() + entries.len() as u64;
        let Some(recorded) = &self.recorded else {
            names.ready = true;
            return true;
        };
        let mut unread = None;
        let found = find(recorded, &entries, &mut |at| {
            let read = self.log.read_digest(entries[at].id);
            if let Some(error) = read.as_ref().err().filter(|error| error.kind().is_of_reading()) {
                unread.get_or_insert_with(|| (entries[at].id, error.clone()));
            }
            read.ok().flatten()
        });
        if let Some((id, error)) = unread {
            // Which file it is decides what is drawn: that is not guessed.
            (names.unread, names.refused) = (Some(id), self.outages.failed(id, &error).err());
            return false;
        }
        if let Some(id) = names.unread.take() {
            self.outages.over(id, true);
        }
        names.ready = true;
        names.files = recorded.iter().map(|file| (file.id, file.clone())).collect();
        names.next =
            recorded.iter().map(|file| file.id + 1).max().unwrap_or_else(|| self.log.first_id()).max(self.next);
        (names.to_log, names.from_log, names.instead) = (found.to_log, found.from_log, found.instead);
        let counts = |id: u64| names.to_log.get(&id).is_some_and(|log| names.from_log.get(log) == Some(&id));
        names.left = recorded.iter().map(|file| file.id).filter(|id| !counts(*id)).collect();
        names.versions = names.left.iter().filter_map(|id| Some((*names.to_log.get(id)?, *id))).collect();
        for (at, old) in found.new.into_iter().filter(|_| !self.fixed) {
            let (id, entry) = (names.next, &entries[at]);
            names.next += 1;
            names.files.insert(id, record(id, &entry.file));
            names.arrivals.push((id, old));
            names.to_log.insert(id, entry.id);
            names.from_log.insert(entry.id, id);
        }
        true
    }

    /// The error where there is no first scan, and none will come; or where one cannot be taken in.
    pub(in crate::pipeline) fn unscanned(&self) -> Option<Error> {
        let refused = self.lock().refused.clone();
        let ended = self.log.ended() && self.log.initial().is_none();
        refused.or_else(|| ended.then(|| self.incomplete()))
    }

    fn incomplete(&self) -> Error {
        let faults = self.log.faults().faults;
        let latest = faults.messages().last().map(|fault| format!("; the latest fault: {fault}")).unwrap_or_default();
        Error::Stage { stage: self.loader.clone(), message: format!("the first scan did not complete{latest}") }
    }

    /// Every file so far under its lasting id, in order of id.
    pub(in crate::pipeline) fn files(&self) -> Vec<Recorded> {
        let entries = if self.recorded.is_none() { self.log.initial() } else { None };
        let names = self.lock();
        let first = entries.iter().flat_map(|entries| entries.iter());
        let first = first.filter(|entry| !names.forgotten.contains(&entry.id));
        let known = first.map(|entry| record(entry.id, &entry.file)).chain(names.files.values().cloned());
        let read = |file: Recorded| match self.digest(&names, &file) {
            Some(digest) => file.read(digest),
            None => file,
        };
        known.map(read).collect()
    }

    /// The record that counts of those that are of one file which is there; any other means the same bytes.
    pub(in crate::pipeline) fn of_same_file(&self, id: u64) -> u64 {
        let names = self.lock();
        names.to_log.get(&id).and_then(|log| names.from_log.get(log)).copied().unwrap_or(id)
    }

    /// Whether a recorded file is among those that were found.
    pub(in crate::pipeline) fn is_there(&self, id: u64) -> bool {
        self.lock().to_log.contains_key(&id)
    }

    /// What was first read of a file.
    fn digest(&self, names: &Names, file: &Recorded) -> Option<u64> {
        let log_id = if self.recorded.is_none() { Some(file.id) } else { names.to_log.get(&file.id).copied() };
        let read = || self.log.digest_of(true, file.id).or_else(|| self.log.digest_of(false, log_id?));
        file.digest().or_else(read)
    }

    /// What was read for the first time since the last call.
    pub(in crate::pipeline) fn fresh_digests(&self) -> Option<Event> {
        let fresh = self.log.fresh_digests();
        let names = self.lock();
        let is_told = |id: &u64| names.files.get(id).is_some_and(|file| file.digest().is_some());
        let mut files = Vec::new();
        for ((held, id), digest) in fresh {
            let of_log = !held && self.recorded.is_some();
            let own = if of_log { names.from_log.get(&id).copied() } else { Some(id) };
            let older = names.versions.range((id, 0)..=(id, u64::MAX)).map(|(_, older)| *older);
            let older = older.filter(|id| of_log && names.files.contains_key(id));
            let ids = own.into_iter().chain(older).filter(|id| !is_told(id));
            files.extend(ids.map(|id| (id, format!("{digest:016x}"))));
        }
        (!files.is_empty()).then(|| Event::Read { loader: self.loader.clone(), files })
    }

    /// The files that a first admission chooses from: those of the first scan, of this run or of the recorded one.
    pub(in crate::pipeline) fn first_files(&self) -> Vec<Recorded> {
        match &self.recorded {
            Some(recorded) => recorded.iter().filter(|file| !self.later.contains(&file.id)).cloned().collect(),
            None => {
                let first: HashSet<u64> =
                    self.log.initial().iter().flat_map(|all| all.iter()).map(|one| one.id).collect();
                self.files().into_iter().filter(|file| first.contains(&file.id)).collect()
            }
        }
    }

    /// Opens a source by its lasting id, from where it is held if it is.
    ///
    /// Errors: `State` for a recorded file that is not there or has another size, else what opening says.
    pub(in crate::pipeline) fn open(&self, id: u64) -> Result<Arc<Source>> {
        let Some(spill) = &self.spill else { return self.open_there(id) };
        let Some(file) = self.file(id) else { return self.open_there(id) };
        let token = Token::new(id, &file.name, file.size);
        let open = |held: Held| {
            // Its facts are those of the file under the name that it had.
            let stat = FileStat { name: file.name.as_str().into(), ..held.file.clone() };
            Ok(self.log.open_held(id, stat, held)?)
        };
        if let Some(held) = spill.get(token, (file.size, file.mtime), self.now(id).as_ref()) {
            return open(held);
        }
        let source = self.open_there(id)?;
        match spill.hold(token, &source.file(), Path::new(&source.path())) {
            Holding::Held(held) => open(held),
            Holding::Not => Ok(source),
            // A run that resumes from here could not have it: so this run does without it, too.
            Holding::Gone => {
                if let Some(held) = spill.get(token, (file.size, file.mtime), None) {
                    return open(held);
                }
                // Only a file that was deleted has left for good.
                self.log.looks(&source.file().name)?;
                let kind = Kind::Io(std::io::ErrorKind::NotFound);
                let gone = gristmill_format::Error::new(kind, "it has left before it could be held");
                Err(gone.in_source(source.path()).into())
            }
        }
    }

    /// Holds a file that is opened later, where files are held; one that cannot be held is missed when it is opened.
    pub(in crate::pipeline) fn hold(&self, id: u64) {
        if self.spill.is_some() {
            let _ = self.open(id);
        }
    }

    /// A file by its lasting id, as it is recorded.
    fn file(&self, id: u64) -> Option<Recorded> {
        let known = self.lock().files.get(&id).cloned();
        let found = || self.log.found(id).ok().filter(|_| self.recorded.is_none());
        known.or_else(|| found().map(|stat| record(id, &stat)))
    }

    /// Name of a source's file when it was first seen: what a journal or a state says of it, whatever its name is now.
    pub(in crate::pipeline) fn first_name(&self, id: u64) -> Option<String> {
        self.file(id).map(|file| file.name)
    }

    /// The very file that an id of this run means. `None` for one of an earlier run, of which name and size are known.
    fn now(&self, id: u64) -> Option<FileStat> {
        let recorded = self.recorded.iter().flatten().next_back().is_some_and(|last| id <= last.id);
        let log_id = match &self.recorded {
            None => id,
            Some(_) if recorded => return None,
            Some(_) => *self.lock().to_log.get(&id)?,
        };
        self.log.stat(log_id)
    }

    /// The token of a source that is held.
    pub(in crate::pipeline) fn token(&self, id: u64) -> Option<Token> {
        self.file(id).map(|file| Token::new(id, &file.name, file.size))
    }

    fn open_there(&self, id: u64) -> Result<Arc<Source>> {
        let names = self.lock();
        if self.recorded.is_none() {
            drop(names);
            return Ok(self.log.open(id)?);
        }
        let file = names.files.get(&id).cloned();
        let log_id = names.to_log.get(&id).copied();
        drop(names);
        let (Some(file), Some(log_id)) = (file, log_id) else {
            let (name, why) = self.lacks(id).unwrap_or_else(|| ("?".to_owned(), "is gone".to_owned()));
            return Err(Error::State(format!("{}: file `{name}` (source {id}) {why}", self.loader)));
        };
        let source = self.log.open_as(log_id, gristmill_runtime::key::of_name(&file.name).to_owned())?;
        let size = source.file().size;
        if size != file.size {
            let text = format!("{}: file `{}` has {size} bytes, it had {}", self.loader, file.name, file.size);
            return Err(Error::State(text));
        }
        // A container is read when it is opened. Size and time may be those of a file that was written over since.
        let is_read = |read| self.log.digest_of(false, log_id) == Some(read) || source.older_digest() == Some(read);
        if !SourceLog::holds_one(&source.key) && file.digest().is_some_and(|read| !is_read(read)) {
            let text =
                format!("{}: file `{}` was written over with as many bytes and the same time", self.loader, file.name);
            return Err(Error::State(text));
        }
        Ok(source)
    }

    /// Whether a file that could not be found may have been moved just now: its new name is known in a moment.
    pub(in crate::pipeline) fn may_have_moved(&self, id: u64, error: &gristmill_format::Error) -> bool {
        error.kind() == Kind::Io(std::io::ErrorKind::NotFound)
            && self.name(id).is_some_and(|name| self.log.may_have_moved(&name))
    }

    /// Where a source's file is, or was, for people.
    pub(in crate::pipeline) fn path(&self, id: u64) -> String {
        format!("{}/{}", self.log.root(), self.name(id).unwrap_or_else(|| "?".into()))
    }

    /// How many chunks a source has, where that is known.
    pub(in crate::pipeline) fn len(&self, id: u64) -> Option<usize> {
        let log_id = match self.recorded {
            None => Some(id),
            Some(_) => self.lock().to_log.get(&id).copied(),
        };
        let opened = || log_id.and_then(|log_id| self.log.len_of(false, log_id));
        let container = || self.log.len_of(true, id).or_else(opened);
        if SourceLog::holds_one(&self.name(id)?) { Some(1) } else { container() }
    }

    /// What arrived after the first scan, from place `cursor` on: id and the id it replaces.
    pub(in crate::pipeline) fn arrivals(&self, cursor: usize) -> Vec<(u64, Option<u64>)> {
        let mut names = self.lock();
        if !names.ready {
            return Vec::new();
        }
        self.number(&mut names);
        let from = cursor.saturating_sub(names.passed);
        names.arrivals.get(from..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// How many sources arrived after the first scan.
    pub(in crate::pipeline) fn arrived_so_far(&self) -> u64 {
        let names = self.lock();
        (names.passed + names.arrivals.len()) as u64
    }

    /// How a source is recorded.
    pub(in crate::pipeline) fn arrived(&self, id: u64) -> Option<Recorded> {
        let file = self.file(id)?;
        let names = self.lock();
        Some(match self.digest(&names, &file) {
            Some(digest) => file.read(digest),
            None => file,
        })
    }

    /// Current name of a source's file; of one that is gone, the name that it had.
    pub(in crate::pipeline) fn name(&self, id: u64) -> Option<String> {
        let log_id = match self.recorded {
            None => Some(id),
            Some(_) => self.lock().to_log.get(&id).copied(),
        };
        let current = log_id.and_then(|id| self.log.name(id)).map(|name| name.to_string());
        current.or_else(|| self.lock().files.get(&id).map(|file| file.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_runtime::runtime::scheduler::{Rounds, Scheduler};
    use gristmill_runtime::store::{Change, DirStore, Store, Take};
    use gristmill_stages::config::IoErrors;
    use gristmill_stages::stage::load::LogSpec;

    /// The run does without a file that leaves between the scan and the link: no later run could have it.
    #[test]
    fn what_leaves_before_it_is_held_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (games, spill) = (folder.path().join("games"), folder.path().join("spill"));
        std::fs::create_dir(&games).unwrap();
        let store = Arc::new(DirStore::new(&games).unwrap());
        let name = |game: u64| format!("training.{game}.gz");
        (0..2).for_each(|game| std::fs::write(games.join(name(game)), "a game").unwrap());
        let files: Vec<FileStat> = (0..2).map(|game| store.stat(&name(game)).unwrap()).collect();
        let find = Box::new(move |mut take: Take| {
            take(Change::Scanned(files));
            Box::new(|| None) as Rounds
        });
        let spec = LogSpec {
            store,
            find,
            provider: 0,
            version: None,
            fits: |_| Ok(()),
            facts: None,
            solids: None,
            waits: false,
        };
        let log = SourceLog::start(spec, &|_, mut rounds| while rounds().is_some() {}, Arc::new(|| ()));
        let spill = Arc::new(Spill::open(&spill, (0, 1), 1 << 20).unwrap());
        let outages = Arc::new(Outages::new(IoErrors::Wait, Arc::default(), Scheduler::new().time()));
        let roster = Roster::new("load".into(), log, None, (Some(spill), outages));
        assert!(roster.ready());
        std::fs::remove_file(games.join(name(1))).unwrap();
        assert!(roster.open(0).is_ok());
        let Err(Error::Format(error)) = roster.open(1) else { panic!("it is gone") };
        assert_eq!(error.kind(), Kind::Io(std::io::ErrorKind::NotFound));
        assert!(error.to_string().contains("training.1.gz: not_found: it has left before it could be held"), "{error}");
        assert_eq!(roster.files().iter().map(|file| file.mtime.is_some()).collect::<Vec<_>>(), [true, true]);
    }
}
