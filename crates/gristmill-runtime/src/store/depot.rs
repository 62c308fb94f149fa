//! A folder of a bucket in which processes of many machines put whole folders of files, each under a name that the first to finish
//! gets: by creating its marker, which the bucket does once. Needs no lock, decides nothing by a clock or a list, and knows no job.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_format::source::Span;
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::bucket::AT_ONCE;
use super::cache::{self, OUTGOING};
use super::files;
use super::outgoing::Target;
use super::twin::write_pieces;
use crate::runtime::seed::fresh_root;
use crate::{Error, Result};

/// How often a process says that it lives.
const RENEWED: Duration = Duration::from_secs(60);

/// The ending of the object by which a process says that it lives.
const AGAIN: &str = ".renewed";

/// Bytes that one request fetches.
const BLOCK: u64 = 4 << 20;

/// A folder of a bucket.
#[derive(Debug, Clone)]
pub struct Depot {
    target: Target,
}

/// Where the folders of a depot are, and where processes say that they make one.
#[derive(Debug, Clone)]
pub struct Rooms {
    /// The folder with an object for each process that works, `.NAME.ID`.
    pub leases: String,
    /// The folder with the files, below `NAME/ID`.
    pub files: String,
}

impl Rooms {
    fn lease(&self, name: &str, id: &str) -> String {
        format!("{}/.{name}.{id}", self.leases)
    }

    fn folder(&self, name: &str, id: &str) -> String {
        format!("{}/{name}/{id}", self.files)
    }
}

/// The name and the id of a lease, by the name of its object.
pub fn of_lease(object: &str) -> Option<(&str, &str)> {
    object.strip_suffix(AGAIN).unwrap_or(object).strip_prefix('.')?.split_once('.')
}

/// A folder that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The id of the process that sent it.
    pub id: String,
    /// Its files.
    pub files: Vec<SentFile>,
}

/// A file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFile {
    /// Path below the folder, with `/`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// XXH3-128 of its bytes, as 32 hexadecimal digits.
    pub xxh3_128: String,
}

impl Depot {
    /// The depot at `place`, which an option called `field` named; none where `place` is of this machine.
    ///
    /// Errors: `Config` in `field` for a place that cannot be written.
    pub fn at(place: &Path, field: &str) -> Result<Option<Self>> {
        Ok(Target::of(place, field)?.map(|target| Depot { target }))
    }

    /// A path on this machine. The process makes a folder beside it before it sends the folder; no file has this name.
    ///
    /// Errors: `Format` where this machine has no folder for it.
    pub fn here(&self, name: &str) -> Result<PathBuf> {
        let text = self.target.place.display().to_string();
        Ok(cache::root()?.join(OUTGOING).join(format!("{:016x}-{name}", xxh3_64(text.as_bytes()))))
    }

    /// Writes an object, over one of that name.
    ///
    /// Errors: `Format` of writing.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.target.writes()?.put(&self.target.file(name), bytes, false)?;
        Ok(())
    }

    /// Writes an object unless its name is taken. Returns whether the object of this name has these bytes.
    ///
    /// Errors: as [`Depot::put`].
    pub fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        Ok(self.target.writes()?.put(&self.target.file(name), bytes, true)?)
    }

    /// Names and lengths of all objects below a folder of it, hidden ones too, sorted; none of a folder that is not there.
    ///
    /// Errors: `Format` of reading.
    pub fn list(&self, below: &str) -> Result<Vec<(String, u64)>> {
        let (mut found, within) = (Vec::new(), self.target.file(""));
        let folder = if below.is_empty() { self.target.name.clone() } else { self.target.file(below) };
        self.target.writes()?.list_all(&folder, &mut |name, len| {
            found.extend(name.strip_prefix(&within).map(|name| (name.to_owned(), len)));
            ControlFlow::Continue(())
        })?;
        found.sort_unstable();
        Ok(found)
    }

    /// Removes objects.
    ///
    /// Errors: as [`Depot::put`].
    pub fn remove<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let names: Vec<String> = names.into_iter().map(|name| self.target.file(name)).collect();
        Ok(self.target.writes()?.delete_all(&names)?)
    }

    /// Seconds since an object was written, by the clocks of the bucket and of this machine: for people. None where it is gone.
    ///
    /// Errors: `Format` of reading.
    pub fn age(&self, name: &str) -> Result<Option<u64>> {
        let written = match self.target.store.stat(&self.target.file(name)) {
            Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
            stat => stat?.mtime_ns.div_euclid(1_000_000_000),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(Some(now.saturating_sub(written.cast_unsigned())))
    }

    /// Says that this process begins to make a folder under `name`.
    ///
    /// Errors: as [`Depot::put`].
    pub fn begin(&self, rooms: &Rooms, name: &str) -> Result<Deposit> {
        let id = format!("{:016x}", fresh_root());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let said = serde_json::json!({ "host": host, "process": std::process::id() });
        let deposit = Deposit {
            lease: rooms.lease(name, &id),
            folder: rooms.folder(name, &id),
            depot: self.clone(),
            id,
            renewed: SystemTime::now(),
            is_done: false,
        };
        self.put(&deposit.lease, said.to_string().into_bytes())?;
        Ok(deposit)
    }

    /// Removes everything that processes sent under a name, except the folder that has the name.
    ///
    /// Errors: `Format` of reading and removing.
    pub fn remove_others(&self, rooms: &Rooms, name: &str, but: &Sent) -> Result<()> {
        let within = format!("{}/{name}/", rooms.files);
        let all = self.list(&within[..within.len() - 1])?;
        let id_of =
            |object: &str| object.strip_prefix(&within).and_then(|rest| rest.split('/').next()).map(str::to_owned);
        let mut others: Vec<String> = all.iter().filter_map(|(object, _)| id_of(object)).collect();
        others.retain(|id| *id != but.id);
        others.dedup();
        let leases = others.iter().map(|id| rooms.lease(name, id));
        let mut objects: Vec<String> = leases.flat_map(|lease| [format!("{lease}{AGAIN}"), lease]).collect();
        objects.extend(
            all.into_iter().map(|(object, _)| object).filter(|object| id_of(object).is_some_and(|id| id != but.id)),
        );
        self.remove(objects.iter().map(String::as_str))
    }

    /// Makes the folder `to`, and fetches the files of a finished folder into it. It calls `each` now and then; an error of `each` ends it.
    ///
    /// Errors: `Format` of kind `Corrupt` for a file that is not as it was sent, `Io` for one that is gone; `Path`; those of `each`.
    pub fn fetch(
        &self,
        (rooms, name): (&Rooms, &str),
        sent: &Sent,
        to: &Path,
        each: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        for file in &sent.files {
            let object = self.target.place.join(rooms.folder(name, &sent.id)).join(&file.name);
            let corrupt = |detail: &str| {
                Error::from(FormatError::new(Kind::Corrupt, detail).in_source(object.display().to_string()))
            };
            if file.name.split('/').any(|part| matches!(part, "" | "." | "..")) || file.name.contains('\0') {
                return Err(corrupt("no name of a file below a folder"));
            }
            let path = to.join(&file.name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
            }
            // The network may have damaged the file: it is fetched once more.
            let mut tries = 0..2;
            while fetched(&object, file, &path, each)? != file.xxh3_128 {
                tries.next();
                if tries.is_empty() {
                    return Err(corrupt("its bytes are not those that were sent"));
                }
            }
        }
        Ok(())
    }
}

/// Fetches a file to a path of this machine; the hash of what is there then.
fn fetched(object: &Path, file: &SentFile, path: &Path, each: &mut dyn FnMut() -> Result<()>) -> Result<String> {
    let there = files::open_file(object)?;
    if there.len()? != file.bytes {
        return Ok(String::new());
    }
    let refused = |e: std::io::Error| Error::path(path, &e);
    let to = File::create(path).map_err(refused)?;
    let mut at = 0;
    while at < file.bytes {
        let mut spans = Vec::with_capacity(AT_ONCE);
        while at < file.bytes && spans.len() < AT_ONCE {
            let len = BLOCK.min(file.bytes - at);
            spans.push(Span { offset: at, len });
            at += len;
        }
        let full = |e: std::io::Error| FormatError::from(e).in_source(path.display().to_string());
        there.read_spans(&spans, &mut |i, pieces| write_pieces(&to, pieces, spans[i].offset).map_err(full))?;
        each()?;
    }
    to.sync_all().map_err(refused)?;
    hash(path)
}

/// The hash of a file of this machine.
fn hash(path: &Path) -> Result<String> {
    let refused = |e: std::io::Error| Error::path(path, &e);
    let (mut file, mut hash, mut block) = (File::open(path).map_err(refused)?, Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block).map_err(refused)? {
            0 => return Ok(format!("{:032x}", hash.digest128())),
            n => hash.update(&block[..n]),
        }
    }
}

/// A folder that this process sends to a depot. It removes the files it sent if the folder does not get the name.
#[derive(Debug)]
pub struct Deposit {
    depot: Depot,
    id: String,
    lease: String,
    folder: String,
    renewed: SystemTime,
    is_done: bool,
}

impl Deposit {
    /// Says that this process lives, unless it did so a moment ago.
    pub fn renew(&mut self) {
        let now = SystemTime::now();
        if now.duration_since(self.renewed).is_ok_and(|age| age < RENEWED) {
            return;
        }
        self.renewed = now;
        // Only people read this object. The process never writes the lease again, so a removed lease stays removed.
        let _ = self.depot.put(&format!("{}{AGAIN}", self.lease), b"{}".to_vec());
    }

    /// Sends all files of a folder of this machine.
    ///
    /// Errors: `Path` and `Format` of reading and writing.
    pub fn send(&mut self, from: &Path) -> Result<Sent> {
        let mut names = Vec::new();
        names_below(from, "", &mut names)?;
        names.sort_unstable();
        let mut sent = Sent { id: self.id.clone(), files: Vec::with_capacity(names.len()) };
        for name in names {
            let path = from.join(&name);
            let (xxh3_128, depot, mut bytes) = (hash(&path)?, self.depot.clone(), 0);
            let object = depot.target.file(&format!("{}/{name}", self.folder));
            depot.target.writes()?.send(&object, &path, &mut |more| {
                bytes += more;
                self.renew();
                Ok(())
            })?;
            sent.files.push(SentFile { name, bytes, xxh3_128 });
        }
        Ok(sent)
    }

    /// Gives the folder its name: creates the object `marker` with these bytes, unless another folder has the name. Returns whether it
    /// did. `is_wanted` says whether the job still needs the folder.
    ///
    /// A process that removes what a dead one sent first removes its lease, and then reads the marker. This one first writes the marker,
    /// and then reads the lease. So at least one of them sees the other, whatever their clocks say.
    ///
    /// Errors: `Config` in `share` where what was sent was removed meanwhile; `Format` of reading and writing.
    pub fn settle(mut self, marker: &str, bytes: Vec<u8>, is_wanted: &dyn Fn() -> Result<bool>) -> Result<bool> {
        if !is_wanted()? {
            return Err(self.removed());
        }
        match self.depot.put_new(marker, bytes) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(e) => {
                // The bucket may have created the marker and lost the answer. The files stay, since the marker names them.
                self.is_done = !matches!(&e, Error::Format(e) if e.kind() == Kind::Io(ErrorKind::PermissionDenied));
                return Err(e);
            }
        }
        self.is_done = true;
        let stands = is_wanted().and_then(|is_wanted| Ok(is_wanted && self.depot.age(&self.lease)?.is_some()));
        if !matches!(stands, Ok(true)) {
            self.depot.remove([marker])?;
            self.is_done = false;
            return stands.and_then(|_| Err(self.removed()));
        }
        // The commit removes the lease where it stays.
        let _ = self.depot.remove([self.lease.as_str(), &format!("{}{AGAIN}", self.lease)]);
        Ok(true)
    }

    /// The error of a process whose work nobody counts any more.
    fn removed(&self) -> Error {
        let place = self.depot.target.place.display();
        let text = "the shares were committed or removed while this one was made; nothing of it is left";
        Error::config("share", format!("{place}: {text}"))
    }
}

impl Drop for Deposit {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        // What cannot be removed counts for nothing; the commit removes it, or `gristmill clean`.
        let sent = self.depot.list(&self.folder).unwrap_or_default();
        let leases = [format!("{}{AGAIN}", self.lease), self.lease.clone()];
        let _ = self.depot.remove(sent.iter().map(|(name, _)| name).chain(&leases).map(String::as_str));
    }
}

/// Names of all files below a folder of this machine, hidden ones too.
fn names_below(folder: &Path, below: &str, found: &mut Vec<String>) -> Result<()> {
    let refused = |e: std::io::Error| Error::path(folder, &e);
    for entry in fs::read_dir(folder).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.file_type().map_err(refused)?.is_dir() {
            true => names_below(&entry.path(), &format!("{name}/"), found)?,
            false => found.push(name),
        }
    }
    Ok(())
}
