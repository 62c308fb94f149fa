//! Places with named bytes: list, stat, open at an offset, watch. `place` says which store a path or a URL means: a directory
//! (`dir`), memory (`memory`), a bucket or a server (`bucket`); `files` reads one file or folder of any of them.
//! Knows no format and no stage; what a watch says are hints, the truth is always a stat or a list.

mod blocks;
pub mod bucket;
mod cache;
mod change;
mod cleaning;
mod copied;
pub mod depot;
mod dir;
mod faults;
pub mod files;
mod growing;
mod held;
pub mod keeping;
mod memory;
mod only;
pub mod outgoing;
pub mod place;
mod pool;
pub mod publish;
mod readings;
mod rehearsal;
pub mod segments;
mod spill;
mod twin;
mod under;
mod version;
mod walk;
mod watch;

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use crate::runtime::scheduler::Crew;

pub use cache::{Cache, Fit, set_cache};
pub use change::{Change, Discover, Take};
pub use copied::{here, pack_of, settled};
pub use dir::DirStore;
pub use faults::Faults;
pub use files::open_file;
pub use held::{HeldFile, Residence, Room};
pub use memory::MemoryStore;
pub use place::open;
pub use pool::Pool;
pub use readings::{Readings, digest};
pub use rehearsal::{Asked, Rehearsal};
pub use spill::{Held, Holding, Spill, Token};
pub use twin::{Claims, Hold, Pins};
pub use version::{FORMAT as VERSIONS, folder_of, is_version, newest};

/// What a store knows of a file without reading it. Cheap to clone: the name is shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStat {
    /// Name relative to the root of the store, parts separated by `/`.
    pub name: Arc<str>,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change, in nanoseconds since 1970 (0 where unknown).
    pub mtime_ns: i64,
    /// Device the file is on (0 where there is no such thing).
    pub device: u64,
    /// Number of the file on its device; where there is no device, a hash of what tells its versions apart (0 without either).
    pub inode: u64,
}

impl FileStat {
    /// The file's name without its directory: the sort key, and what splits hash.
    pub fn key(&self) -> &str {
        crate::key::of_name(&self.name)
    }

    /// Whether both describe the same bytes, whatever the name: device, inode, size and time of change agree.
    pub fn same_file(&self, other: &FileStat) -> bool {
        (self.device, self.inode, self.size, self.mtime_ns) == (other.device, other.inode, other.size, other.mtime_ns)
    }

    /// Whether the file now is the one that was found: its version agrees where its store has versions, whose times differ between
    /// a listing and a file alone; else as [`FileStat::same_file`].
    pub fn is_as(&self, found: &FileStat) -> bool {
        match (self.version(), found.version()) {
            (Some(now), Some(then)) => now == then,
            _ => self.same_file(found),
        }
    }

    /// Which version of a file this is, where its store tells versions apart by a mark of their own, as buckets do.
    pub fn version(&self) -> Option<String> {
        (self.device == 0 && self.inode != 0).then(|| format!("{:016x}", self.inode))
    }

    /// Whether it was changed less than `time` ago, or in what the clock of this machine takes for the future.
    pub fn changed_within(&self, time: Duration) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i128::from(self.mtime_ns) + time.as_nanos() as i128 > now.as_nanos() as i128
    }
}

/// What a watch noticed. Hints only: names may be wrong, late, repeated, or of files that are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// A file of this name was closed after writing, or renamed into place.
    Closed(String),
    /// A file of this name lies in a folder that appeared; whether it is complete is not known.
    Seen(String),
    /// A file of this name was deleted or moved elsewhere.
    Left(String),
    /// Notices were lost, or will come no more, for the reason given: watch again and list everything again.
    Lost(String),
    /// A part of the tree could not be watched, for the reason given: only lists see changes there.
    Blind(String),
}

/// Change notices of a store. Dropping it ends them.
pub trait Watch: Send {
    /// Appends what was noticed since the last call; never waits.
    fn poll(&mut self, hints: &mut Vec<Hint>);

    /// Whether it notices each file that is moved before the next list does.
    fn sees_moves(&self) -> bool {
        true
    }
}

/// What a loader stands on where that is not this machine: who does its work, what time it is, and where its files are.
pub trait World: Crew {
    /// The store of a place.
    ///
    /// Errors: as [`place::open`].
    fn open(&self, place: &Path) -> crate::Result<Arc<dyn Store>>;
}

/// A place with named bytes.
///
/// Contract, checked by `tests/store_conformance.rs`: `list` gives every visible file once (no name with a part that
/// starts with a dot), `stat` and `open` agree with it, errors name the file, and nothing is lost between a `watch`
/// and the `list` that follows it.
pub trait Store: Send + Sync + Debug {
    /// The place, for people: a path or a URL.
    fn root(&self) -> String;

    /// What of it is meant, for people: all of it, one file, or what a pattern names.
    fn place(&self) -> String {
        self.root()
    }

    /// Gives every visible file to `each`, in no particular order. Never gives up by itself: what could
    /// not be read is counted in the result. Ends early when `each` breaks.
    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults;

    /// The same of the files in one folder, by its name, and in those under it; all for an empty name. Names stay whole.
    fn list_below(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list(&mut |stat| match folder.is_empty()
            || stat.name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        {
            true => each(stat),
            false => ControlFlow::Continue(()),
        })
    }

    /// The same with hidden files, where the store can list them.
    fn list_hidden(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        self.list_below(folder, each)
    }

    /// What is known of one file.
    ///
    /// Errors, naming the file: `Io` with the operating system's cause, `NotFound` only of a file that was deleted; `Away`
    /// where its folder is missing, too.
    fn stat(&self, name: &str) -> Result<FileStat>;

    /// Opens one file for positioned reads.
    ///
    /// Errors: as [`Store::stat`].
    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>>;

    /// Opens the files below a folder whose names `is` accepts, each with its name. Where lists tell versions of files apart, it
    /// asks for nothing but the list.
    ///
    /// Errors: as [`Store::open`]; `Io` where not all could be listed.
    fn open_listed(&self, folder: &str, is: &dyn Fn(&str) -> bool) -> Result<Vec<(String, Arc<dyn ReadAt>)>> {
        let mut names = Vec::new();
        let faults = self.list_hidden(folder, &mut |stat| {
            names.extend(is(&stat.name).then(|| stat.name.to_string()));
            ControlFlow::Continue(())
        });
        if let Some(why) = faults.messages().last() {
            let e = Error::new(Kind::Io(std::io::ErrorKind::Other), why);
            return Err(e.in_source(format!("{}/{folder}", self.root())));
        }
        names.into_iter().map(|name| Ok((name.clone(), self.open(&name)?))).collect()
    }

    /// Digests of its files that were read whole.
    fn readings(&self) -> &Readings;

    /// Whether a file changed within this time, by the clock of this machine; also where that clock stands before the file's time.
    fn is_young(&self, file: &FileStat, time: Duration) -> bool {
        file.changed_within(time)
    }

    /// Starts noticing changes. `None` where there are no change notices: then only repeated lists find them.
    ///
    /// Errors: `Io` when notices exist but could not be had (limits, permissions).
    fn watch(&self) -> Result<Option<Box<dyn Watch>>>;

    /// Counts of what this process asks of it over a network; none of what is not on one.
    fn counts(&self) -> Option<Arc<bucket::Counts>> {
        None
    }

    /// Counts of the events that its watch receives from a queue; none where it does not read one.
    fn events(&self) -> Option<Arc<bucket::EventCounts>> {
        None
    }

    /// The same store as one that takes files; none of this machine's files, which jobs write themselves, and of what is read only.
    fn writes(&self) -> Option<&dyn Writes> {
        None
    }
}

/// What tells the versions of one file of a bucket apart, as its service says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The ETag.
    pub tag: Option<String>,
    /// The version, where the service counts versions.
    pub version: Option<String>,
}

/// A bucket that takes files. Readers find each file whole or not at all.
pub trait Writes {
    /// Writes a file in one request. Returns `false`, and writes nothing, where the file must be new and one with other bytes has its
    /// name.
    ///
    /// Errors, naming the file: `Io`.
    fn put(&self, name: &str, bytes: Vec<u8>, only_new: bool) -> Result<bool>;

    /// Replaces a file in one request, if it still has this mark. Returns `false`, and writes nothing, where it has another, or is gone.
    ///
    /// Errors: as [`Writes::put`]; of a service that has no such request.
    fn replace(&self, name: &str, bytes: Vec<u8>, was: &Mark) -> Result<bool>;

    /// All bytes of a file of at most `most` bytes, and the mark of just these bytes; none where there is no such file.
    ///
    /// Errors: as [`Writes::put`]; `TooLarge`.
    fn read_marked(&self, name: &str, most: u64) -> Result<Option<(Vec<u8>, Mark)>>;

    /// Writes the bytes of a file of this machine, and overwrites a file of that name. `each` gets the bytes sent since its last call;
    /// its error stops the sending.
    ///
    /// Errors: as [`Writes::put`], those of reading, and those of `each`.
    fn send(&self, name: &str, file: &Path, each: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;

    /// Removes a file; does nothing where there is none.
    ///
    /// Errors: as [`Writes::put`].
    fn delete(&self, name: &str) -> Result<()>;

    /// Removes files, several at once.
    ///
    /// Errors: as [`Writes::put`]; others may be removed then.
    fn delete_all(&self, names: &[String]) -> Result<()>;

    /// Gives `each` the names and lengths of all files below a folder, hidden ones too, until it breaks.
    ///
    /// Errors: `Io` where not all could be listed.
    fn list_all(&self, folder: &str, each: &mut dyn FnMut(&str, u64) -> ControlFlow<()>) -> Result<()>;
}
