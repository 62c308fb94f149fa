//! The sources of one log under ids that last: a fresh run takes the log's own, a restored or replayed one
//! keeps the recorded ones and finds their files by name. Also writes and reads the journal of arrivals.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::drawer::Admission;
use crate::config::SplitBy;
use crate::error::{Error, Result};
use crate::runtime::journal::Journal;
use crate::stage::load::{Arrival, Source, SourceLog};
use crate::store::{FileStat, Held, Spill, Token};

/// A file as a journal or state remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) size: u64,
}

/// The files of an earlier run.
#[derive(Debug, Clone, Default)]
pub(super) struct PastFiles {
    pub(super) files: Vec<Recorded>,
    /// Those that came after the first scan.
    pub(super) later: BTreeSet<u64>,
    /// Nothing beyond them is to be taken in.
    pub(super) fixed: bool,
}

/// One line of the journal (docs/format/journal.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Event {
    /// The run's root seed.
    Seed(u64),
    /// What a splitter stage goes by; one that nothing is told of goes by file.
    Split { stage: String, by: SplitBy },
    /// The first scan of a loader stage.
    Initial { loader: String, files: Vec<Recorded> },
    /// What a run knew that goes on from a state, where its rank has no journal yet.
    Known { loader: String, files: Vec<Recorded> },
    /// Draws of a pool below `at` may have been made; nothing that is not told of was taken in before any of them.
    Reached {
        pool: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<u32>,
        at: u64,
    },
    /// A source that a pool admitted before one of its draws.
    Admit {
        pool: String,
        /// Whose draws are counted, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lane: Option<u32>,
        loader: String,
        file: Recorded,
        #[serde(flatten)]
        admission: Admission,
    },
}

/// A journal that several pools write to.
pub(super) type SharedJournal = Arc<Mutex<Journal>>;

#[derive(Debug, Default)]
struct Names {
    /// Recorded id -> id in the log, for restored and replayed runs.
    to_log: HashMap<u64, u64>,
    from_log: HashMap<u64, u64>,
    /// Files by lasting id; a fresh run leaves those of its first scan to the log.
    files: BTreeMap<u64, Recorded>,
    next: u64,
    ready: bool,
    /// Arrivals of the log that were given ids already.
    cursor: usize,
    arrivals: Vec<(u64, Option<u64>)>,
}

/// The sources of one log under lasting ids.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) loader: String,
    log: Arc<SourceLog>,
    recorded: Option<Vec<Recorded>>,
    /// Recorded files that came after the first scan.
    later: BTreeSet<u64>,
    /// Nothing beyond the recorded files is taken in.
    fixed: bool,
    /// Holds what is opened, for as long as a state needs it.
    spill: Option<Arc<Spill>>,
    names: Mutex<Names>,
}

impl Roster {
    /// `past`: what an earlier run left behind; absent in a fresh run.
    pub(super) fn new(loader: String, log: Arc<SourceLog>, past: Option<PastFiles>, spill: Option<Arc<Spill>>) -> Self {
        let (recorded, later, fixed) = match past {
            Some(past) => (Some(past.files), past.later, past.fixed),
            None => (None, BTreeSet::new(), false),
        };
        Roster { loader, log, recorded, later, fixed, spill, names: Mutex::default() }
    }

    pub(super) fn log(&self) -> &SourceLog {
        &self.log
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first scan in, once it is complete; `true` when ids can be used.
    pub(super) fn ready(&self) -> bool {
        let mut names = self.lock();
        if names.ready {
            return true;
        }
        let Some(entries) = self.log.initial() else { return false };
        names.ready = true;
        names.next = self.log.first_id() + entries.len() as u64;
        let Some(recorded) = &self.recorded else { return true };
        names.files = recorded.iter().map(|file| (file.id, file.clone())).collect();
        names.next = recorded.iter().map(|file| file.id + 1).max().unwrap_or_else(|| self.log.first_id());
        let by_name: HashMap<&str, &Recorded> = recorded.iter().map(|file| (file.name.as_str(), file)).collect();
        for entry in entries.iter() {
            let known = by_name.get(&*entry.file.name);
            // What is held can go on to be drawn from, and what is here now takes its place.
            let replaces = |known: &&&Recorded| self.spill.is_some() && known.size != entry.file.size;
            let old = known.filter(replaces).map(|known| known.id);
            let id = match known {
                Some(known) if old.is_none() => known.id,
                _ if self.fixed => continue,
                _ => {
                    let id = names.next;
                    names.next += 1;
                    names.files.insert(id, record(id, &entry.file));
                    names.arrivals.push((id, old));
                    id
                }
            };
            names.to_log.insert(id, entry.id);
            names.from_log.insert(entry.id, id);
        }
        true
    }

    /// Every file so far under its lasting id, in order of id.
    pub(super) fn files(&self) -> Vec<Recorded> {
        let entries = if self.recorded.is_none() { self.log.initial() } else { None };
        let first = entries.iter().flat_map(|entries| entries.iter()).map(|entry| record(entry.id, &entry.file));
        first.chain(self.lock().files.values().cloned()).collect()
    }

    /// The files that a first admission chooses from: those of the first scan, of this run or of the recorded one.
    pub(super) fn first_files(&self) -> Vec<Recorded> {
        match &self.recorded {
            Some(recorded) => recorded.iter().filter(|file| !self.later.contains(&file.id)).cloned().collect(),
            None => self.files(),
        }
    }

    /// Opens a source by its lasting id, from where it is held if it is.
    ///
    /// Errors: `State` for a recorded file that is not there or has another size, else what opening says.
    pub(super) fn open(&self, id: u64) -> Result<Arc<Source>> {
        let Some(spill) = &self.spill else { return self.open_there(id) };
        let Some(file) = self.file(id) else { return self.open_there(id) };
        let token = Token::new(id, &file.name, file.size);
        let open = |held: Held| {
            // Its facts are those of the file under the name that it had.
            let stat = FileStat { name: file.name.as_str().into(), ..held.file.clone() };
            Ok(self.log.open_held(id, stat, held)?)
        };
        if let Some(held) = spill.get(token, self.now(id).as_ref()) {
            return open(held);
        }
        let source = self.open_there(id)?;
        spill.hold(token, &source.file(), Path::new(&source.path())).map_or(Ok(source), open)
    }

    /// Holds a file that is opened later, where files are held; one that cannot be had is missed when it is opened.
    pub(super) fn hold(&self, id: u64) {
        if self.spill.is_some() {
            let _ = self.open(id);
        }
    }

    /// A file by its lasting id, as it is recorded.
    fn file(&self, id: u64) -> Option<Recorded> {
        let known = self.lock().files.get(&id).cloned();
        known.or_else(|| self.log.stat(id).filter(|_| self.recorded.is_none()).map(|stat| record(id, &stat)))
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

    /// What a source is told by where it is held.
    pub(super) fn token(&self, id: u64) -> Option<Token> {
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
            let name = self.recorded.iter().flatten().find(|file| file.id == id).map_or("?", |file| &file.name);
            return Err(Error::State(format!("{}: file `{name}` (source {id}) is no longer there", self.loader)));
        };
        let source = self.log.open(log_id)?;
        let size = source.file().size;
        if size != file.size {
            let text = format!("{}: file `{}` has {size} bytes, it had {}", self.loader, file.name, file.size);
            return Err(Error::State(text));
        }
        Ok(source)
    }

    /// The name of a recorded file that is not there as it was, and why.
    pub(super) fn lacks(&self, id: u64) -> Option<(String, String)> {
        let names = self.lock();
        let recorded = self.recorded.as_ref()?;
        let unknown = || recorded.iter().find(|file| file.id == id).map_or("?", |file| &file.name).to_owned();
        let Some(file) = names.files.get(&id) else { return Some((unknown(), "is not among its files".into())) };
        let token = Token::new(id, &file.name, file.size);
        if self.spill.as_ref().is_some_and(|spill| spill.get(token, None).is_some()) {
            return None;
        }
        let Some(size) = names.to_log.get(&id).and_then(|log| self.log.stat(*log)).map(|stat| stat.size) else {
            return Some((file.name.clone(), "is gone".into()));
        };
        (size != file.size).then(|| (file.name.clone(), format!("has {size} bytes, it had {}", file.size)))
    }

    /// What arrived after the first scan, from place `cursor` on: id and the id it replaces.
    pub(super) fn arrivals(&self, cursor: usize) -> Vec<(u64, Option<u64>)> {
        let mut names = self.lock();
        if !names.ready {
            return Vec::new();
        }
        for arrival in self.log.arrivals(names.cursor) {
            names.cursor += 1;
            let (source, old) = match &arrival {
                Arrival::New(source) => (source, None),
                Arrival::Replaced { old, new } => (new, Some(*old)),
            };
            let stat = source.file();
            let id = if self.recorded.is_none() { source.id } else { names.next };
            names.next = names.next.max(id + 1);
            let old = old.map(|old| names.from_log.get(&old).copied().unwrap_or(old));
            names.to_log.insert(id, source.id);
            names.from_log.insert(source.id, id);
            names.files.insert(id, record(id, &stat));
            names.arrivals.push((id, old));
        }
        names.arrivals.get(cursor..).map(<[_]>::to_vec).unwrap_or_default()
    }

    /// How many sources arrived after the first scan.
    pub(super) fn arrived_so_far(&self) -> u64 {
        self.lock().arrivals.len() as u64
    }

    /// How a source that arrived is recorded.
    pub(super) fn arrived(&self, id: u64) -> Option<Recorded> {
        self.lock().files.get(&id).cloned()
    }

    /// Current name of a source's file; of one that is gone, the name that it had.
    pub(super) fn name(&self, id: u64) -> Option<String> {
        let log_id = match self.recorded {
            None => Some(id),
            Some(_) => self.lock().to_log.get(&id).copied(),
        };
        let current = log_id.and_then(|id| self.log.name(id)).map(|name| name.to_string());
        current.or_else(|| self.lock().files.get(&id).map(|file| file.name.clone()))
    }
}

fn record(id: u64, stat: &FileStat) -> Recorded {
    Recorded { id, name: stat.name.to_string(), size: stat.size }
}
