//! The folder of this machine in which what was fetched from elsewhere is kept, within a bound: one folder for each file.
//! What a process uses is locked and stays; of the rest the files that were used last stay longest.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use gristmill_format::{Error, Kind, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::version::lies;

/// Name of the file in a kept file's folder that says what it is of, and that its users lock.
const NAME: &str = "name";

/// Name of the sparse file of a kept file.
pub(super) const BYTES: &str = "bytes";

/// Start of the names of folders that keep parts of files. A number follows.
const PART: &str = "part-";

/// Processes that may keep parts of files in one cache at once.
const MOST_PARTS: u32 = 1000;

/// The least room for parts of files, in bytes. A cache with less keeps no parts.
const LEAST: u64 = 1 << 20;

/// Name of the folder with the output of jobs on its way to a bucket; nothing removes it to make room.
pub(super) const OUTGOING: &str = "outgoing";

/// The folder of files that grow and are sent to a bucket segment by segment.
pub(super) const SEGMENTS: &str = "segments";

/// Where files are kept, and how many bytes of the disk they may take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cache {
    /// The folder; `$XDG_CACHE_HOME/gristmill/twins`, else `~/.cache/gristmill/twins`, where nothing is said.
    pub folder: Option<PathBuf>,
    /// Bytes; half of what is free where nothing is said.
    pub limit: Option<u64>,
}

static CACHE: Mutex<Cache> = Mutex::new(Cache { folder: None, limit: None });

/// Says where files are kept from now on.
pub fn set_cache(cache: Cache) {
    *CACHE.lock().unwrap_or_else(PoisonError::into_inner) = cache;
}

/// A kept file's folder, which stays while this lives.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    /// Locked, as by every process that uses it.
    _name: File,
}

/// The folder in which files are kept.
///
/// Errors: `Io` where the user named no folder and has no home.
pub(super) fn root() -> Result<PathBuf> {
    let cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    cache.folder.or_else(default_folder).ok_or_else(|| {
        let detail = "there is no home to keep what is fetched in; name a folder for it (cache)";
        Error::new(Kind::Io(ErrorKind::NotFound), detail)
    })
}

/// The folder of what is kept of `path`, in this version of it, of `len` bytes; room is made for all of them.
///
/// Errors: `Io` with the folder; `TooLarge` for more than may be kept, with what to do.
pub(super) fn place(path: &Path, version: u64, len: u64) -> Result<Place> {
    let cache = said();
    let root = root()?;
    let refused = |e: io::Error| unkept(&root, &e);
    fs::create_dir_all(&root).map_err(refused)?;
    let text = path.display().to_string();
    let own = root.join(named(path, version));
    loop {
        fs::create_dir_all(&own).map_err(refused)?;
        let name = own.join(NAME);
        let file = OpenOptions::new().create(true).append(true).open(&name);
        let file = match file {
            // It was removed by a process that made room.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            file => file.map_err(refused)?,
        };
        file.lock_shared().map_err(refused)?;
        if !is_still(&file, &name) {
            continue;
        }
        fs::write(&name, &text).map_err(refused)?;
        make_room(&root, &own, len, cache.limit).map_err(|e| e.in_source(text.clone()))?;
        return Ok(Place { folder: own, _name: file });
    }
}

/// Locks a folder for parts of `files` (path and version), and returns it with the bytes that the parts may take. A process has a folder of
/// its own. `needed` is the length of all files in bytes. Removes what an earlier process kept there of other files.
///
/// Errors: as [`place`].
pub(super) fn part_of(files: &[(&Path, u64)], needed: u64) -> Result<(Place, u64)> {
    let (cache, root) = (said(), root()?);
    let refused = |e: io::Error| unkept(&root, &e);
    let names: BTreeSet<PathBuf> = files.iter().map(|(path, version)| named(path, *version).into()).collect();
    for slot in 0..MOST_PARTS {
        let folder = root.join(format!("{PART}{slot}"));
        fs::create_dir_all(&folder).map_err(refused)?;
        let name = folder.join(NAME);
        let file = match OpenOptions::new().create(true).append(true).open(&name) {
            // Another process removed the folder, or it belongs to another user.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => continue,
            file => file.map_err(refused)?,
        };
        match file.try_lock() {
            Ok(()) if is_still(&file, &name) => {}
            Ok(()) | Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(e)) => return Err(refused(e)),
        }
        fs::write(&name, "parts of files").map_err(refused)?;
        for entry in fs::read_dir(&folder).map_err(refused)?.flatten().filter(|entry| entry.path().is_dir()) {
            if !names.contains(Path::new(&entry.file_name())) {
                fs::remove_dir_all(entry.path()).map_err(refused)?;
            }
        }
        let room = room(&root, &folder, cache.limit).map_err(refused)?;
        // Other processes read from the length of this file how many bytes the parts may take.
        let bytes = File::create(folder.join(BYTES)).and_then(|bytes| bytes.set_len(room.min(needed)));
        bytes.map_err(refused)?;
        make_room(&root, &folder, room.min(needed), cache.limit)?;
        return Ok((Place { folder, _name: file }, room.min(needed)));
    }
    let detail = format!(
        "{MOST_PARTS} folders {PART}N are in use or belong to other users; stop a process that reads through this cache, or name \
         another folder (cache)"
    );
    Err(Error::new(Kind::TooLarge, detail).in_source(root.display().to_string()))
}

/// Bytes of the cache that files in use leave free. Those in the folder `own` do not count.
fn room(root: &Path, own: &Path, limit: Option<u64>) -> io::Result<u64> {
    let kept = kept(root)?;
    let limit = limit.unwrap_or_else(|| usual(root, &kept));
    let others: u64 = kept.iter().filter(|kept| kept.folder != own).map(Kept::in_use).sum();
    Ok(limit.saturating_sub(others))
}

/// The cache that the user set.
fn said() -> Cache {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn unkept(root: &Path, e: &io::Error) -> Error {
    let detail = format!("what is fetched cannot be kept there: {e}; name another folder (cache)");
    Error::new(Kind::Io(e.kind()), detail).in_source(root.display().to_string())
}

/// Whether `file`, which was opened by `name`, still has this name. A process that makes room may have removed it.
fn is_still(file: &File, name: &Path) -> bool {
    fs::metadata(name).is_ok_and(|meta| file.metadata().is_ok_and(|own| own.ino() == meta.ino()))
}

/// The folder of what is kept of `path`, in this version of it; none where nothing is.
pub(super) fn found(path: &Path, version: u64) -> Option<PathBuf> {
    let (root, name) = (root().ok()?, named(path, version));
    [root.join(&name), root.join(format!("{PART}0")).join(&name)].into_iter().find(|folder| folder.is_dir())
}

/// The name of the folder that keeps the file `path` in this version.
pub(super) fn named(path: &Path, version: u64) -> String {
    format!("{:016x}-{version:016x}", xxh3_64(lies(path).display().to_string().as_bytes()))
}

/// Whether files fit into the cache as it is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fit {
    /// Bytes that the cache may take.
    pub limit: u64,
    /// Bytes of them that files in use take, or will take: other ones.
    pub others: u64,
    /// Bytes of the files.
    pub needed: u64,
}

impl Fit {
    /// Of files that twins are of. Nothing is changed.
    ///
    /// Errors: as [`HeldFile::open`](super::HeldFile::open) where there is no home.
    pub fn of(files: &[&super::HeldFile]) -> Result<Self> {
        let twins = files.iter().filter_map(|file| file.twin());
        Fit::of_all(twins.filter_map(|twin| Some((twin.path(), twin.version()?, twin.len()))))
    }

    /// Measures files, each given by its path, its version, and its length in bytes.
    ///
    /// Errors: as [`Fit::of`].
    pub(super) fn of_all<'a>(files: impl Iterator<Item = (&'a Path, u64, u64)>) -> Result<Self> {
        let (cache, root) = (said(), root()?);
        let (mut own_folders, mut needed) = (BTreeSet::new(), 0);
        for (path, version, len) in files {
            if own_folders.insert(root.join(named(path, version))) {
                needed += len;
            }
        }
        let kept = kept(&root).unwrap_or_default();
        let limit = cache.limit.unwrap_or_else(|| usual(&root, &kept));
        let others = kept.iter().filter(|kept| !own_folders.contains(&kept.folder)).map(Kept::in_use).sum();
        Ok(Fit { limit, others, needed })
    }

    /// Whether they do.
    pub fn holds(&self) -> bool {
        self.others.saturating_add(self.needed) <= self.limit
    }

    /// Bytes that the cache keeps of the files if it does not hold them all. `None` if it holds them all, or has less than 1 MiB of room.
    pub fn part(&self) -> Option<u64> {
        Some(self.limit.saturating_sub(self.others)).filter(|part| !self.holds() && *part >= LEAST)
    }
}

/// A folder of the cache.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    used: SystemTime,
    folder: PathBuf,
    /// Bytes of the disk that it takes.
    bytes: u64,
}

impl Kept {
    /// Bytes that it may take while somebody uses it: those of the whole file; 0 where nobody does.
    fn in_use(&self) -> u64 {
        let is_used = File::open(self.folder.join(NAME))
            .is_ok_and(|name| matches!(name.try_lock(), Err(TryLockError::WouldBlock)));
        let whole = || fs::metadata(self.folder.join(BYTES)).map_or(0, |meta| meta.len());
        if is_used { whole().max(self.bytes) } else { 0 }
    }
}

/// What the cache keeps, that which was used longest ago first.
fn kept(root: &Path) -> io::Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for entry in fs::read_dir(root)? {
        let folder = entry?.path();
        if folder.ends_with(OUTGOING) || folder.ends_with(SEGMENTS) {
            continue;
        }
        let used = fs::metadata(folder.join(NAME)).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let bytes = taken(&folder);
        kept.push(Kept { used, folder, bytes });
    }
    kept.sort();
    Ok(kept)
}

/// What the cache may take where nothing is said: half of what is free, and what it takes already.
fn usual(root: &Path, kept: &[Kept]) -> u64 {
    let there = root.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok());
    let free = there.map_or(0, |disk| disk.f_bavail * disk.f_frsize / 2);
    kept.iter().map(|kept| kept.bytes).sum::<u64>() + free
}

/// Removes what nobody uses until `len` bytes more fit beside all that files in use may come to take.
fn make_room(root: &Path, own: &Path, len: u64, limit: Option<u64>) -> Result<()> {
    let refused = |e: io::Error| Error::from(e).in_source(root.display().to_string());
    let mut kept = kept(root).map_err(refused)?;
    let limit = limit.unwrap_or_else(|| usual(root, &kept));
    kept.retain(|kept| kept.folder != own);
    let mut others: u64 = kept.iter().map(|kept| kept.bytes.max(kept.in_use())).sum();
    for Kept { folder, bytes, .. } in &kept {
        if others + len <= limit {
            return Ok(());
        }
        if removed(folder) {
            others -= bytes;
        }
    }
    if others + len <= limit {
        return Ok(());
    }
    let detail = format!(
        "{len} bytes, and what is kept on this machine may take {limit}, of which files in use take {others}; raise \
         cache_limit, or name a folder on a larger disk (cache)"
    );
    Err(Error::new(Kind::TooLarge, detail))
}

/// Bytes of the disk that a folder takes, with all folders in it.
fn taken(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let of = |entry: fs::DirEntry| {
        let meta = entry.metadata().ok()?;
        Some(meta.blocks() * 512 + if meta.is_dir() { taken(&entry.path()) } else { 0 })
    };
    entries.flatten().filter_map(of).sum()
}

/// Removes a kept file unless somebody uses it.
fn removed(folder: &Path) -> bool {
    let Ok(name) = File::open(folder.join(NAME)) else { return fs::remove_dir_all(folder).is_ok() };
    match name.try_lock() {
        Ok(()) => fs::remove_dir_all(folder).is_ok(),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

fn default_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    Some(cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?.join("gristmill/twins"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::MutexGuard;

    /// A cache in a folder of its own. All tests of a process share one cache: who has this is the only one.
    pub(in crate::store) struct Own {
        folder: tempfile::TempDir,
        _turn: MutexGuard<'static, ()>,
    }

    impl Own {
        /// Says `limit` (bytes) of the cache.
        pub(in crate::store) fn new(limit: Option<u64>) -> Own {
            static TURN: Mutex<()> = Mutex::new(());
            let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let folder = tempfile::tempdir().unwrap();
            set_cache(Cache { folder: Some(folder.path().into()), limit });
            Own { folder, _turn: turn }
        }

        pub(in crate::store) fn folder(&self) -> &Path {
            self.folder.path()
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            set_cache(Cache::default());
        }
    }

    #[test]
    fn what_was_used_long_ago_makes_room_and_what_is_in_use_stays() {
        let root = tempfile::tempdir().unwrap();
        let kept = |name: &str| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(NAME), name).unwrap();
            fs::write(folder.join("bytes"), vec![1; 100_000]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
            folder
        };
        let (old, used, new) = (kept("old"), kept("used"), kept("new"));
        let user = File::open(used.join(NAME)).unwrap();
        user.lock_shared().unwrap();
        let own = root.path().join("own");
        make_room(root.path(), &own, 50_000, Some(400_000)).unwrap();
        assert!(old.exists(), "there is room");
        make_room(root.path(), &own, 150_000, Some(400_000)).unwrap();
        assert!(!old.exists() && used.exists() && new.exists());
        let e = make_room(root.path(), &own, 350_000, Some(400_000)).unwrap_err().to_string();
        assert!(used.exists() && !new.exists() && e.contains("raise cache_limit"), "{e}");
        File::options().write(true).open(used.join("bytes")).unwrap().set_len(300_000).unwrap();
        let e = make_room(root.path(), &own, 150_000, Some(400_000)).unwrap_err().to_string();
        assert!(e.contains("files in use take 300000"), "what its user has not fetched yet counts: {e}");
    }
}
