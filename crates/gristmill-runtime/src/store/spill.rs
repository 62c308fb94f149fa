//! Files that may still be needed -> second names for them in a folder of their own, which outlive the first ones: hard links
//! where the file system has them, else copies. Bounded in bytes; knows no format; callers say which files they need.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use xxhash_rust::xxh3::Xxh3;

use super::copied::here;
use super::files::{self, is_file};
use super::publish::{Staged, sync_folder, withdraw};
use super::walk::stat_of;
use super::{DirStore, FileStat, Store};
use crate::error::{Error, Result};

/// The identity of a held file: its lasting id, and a hash of the name and the size that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// The lasting id.
    pub id: u64,
    hash: u64,
}

impl Token {
    /// That of a file called `name` below its directory.
    pub fn new(id: u64, name: &str, size: u64) -> Self {
        let mut hash = Xxh3::new();
        hash.update(name.as_bytes());
        hash.update(&[0]);
        hash.update(&size.to_le_bytes());
        Token { id, hash: hash.digest() }
    }

    fn file(self) -> String {
        format!("{:016x}-{:016x}", self.id, self.hash)
    }

    fn parse(file: &str) -> Option<Self> {
        let (id, hash) = file.split_once('-').filter(|_| file.len() == 33)?;
        Some(Token { id: u64::from_str_radix(id, 16).ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
    }
}

/// Where the bytes of a held file are.
#[derive(Debug, Clone)]
pub struct Held {
    /// The store of all held files.
    pub store: Arc<dyn Store>,
    /// The file, as that store knows it.
    pub file: FileStat,
}

/// What became of a file that was to be held.
#[derive(Debug, Clone)]
pub enum Holding {
    /// It is.
    Held(Held),
    /// There is no room, it cannot be had under another name, or it is another one than it was.
    Not,
    /// It is no longer there.
    Gone,
}

/// The files that one rank holds, in the folder of all ranks.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    own: String,
    rank: u32,
    most: u64,
    store: Arc<dyn Store>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    held: BTreeMap<Token, FileStat>,
    bytes: u64,
    /// What was there when this run began, of all ranks, by hash.
    earlier: HashMap<u64, Vec<(Token, FileStat)>>,
    /// Names of folders of runs of other numbers of ranks.
    outdated: Vec<String>,
    /// Whether names have come since the folder was forced to the disk.
    unforced: bool,
    releases: u64,
    refused: u64,
}

impl Spill {
    /// The files of rank `rank` of `world` in `folder`, which is made if need be; at most `most` bytes of them.
    ///
    /// Errors: `Path`.
    pub fn open(folder: &Path, (rank, world): (u32, u32), most: u64) -> Result<Self> {
        let own = format!("rank-{rank}-of-{world}");
        let path = folder.join(&own);
        fs::create_dir_all(&path).map_err(|e| Error::path(&path, &e))?;
        let mut inner = Inner::default();
        let ours = format!("-of-{world}");
        for ranks in names(folder)?.into_iter().filter(|name| name.starts_with("rank-")) {
            for file in names(&folder.join(&ranks))? {
                let name = format!("{ranks}/{file}");
                let Some(token) = Token::parse(&file) else {
                    if ranks == own {
                        // A copy that was not finished.
                        withdraw(&folder.join(&name))?;
                    }
                    continue;
                };
                let Ok(meta) = fs::metadata(folder.join(&name)) else { continue };
                let stat = stat_of(&name, &meta);
                if ranks == own {
                    inner.bytes += stat.size;
                    inner.held.insert(token, stat.clone());
                }
                inner.earlier.entry(token.hash).or_default().push((token, stat));
            }
            if !ranks.ends_with(&ours) {
                inner.outdated.push(ranks);
            }
        }
        let store = Arc::new(DirStore::new(folder)?);
        Ok(Spill { folder: folder.to_owned(), own, rank, most, store, inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a file of this size, and time of change if that is known, where they are held. With `now`, only those of
    /// this very file: by its place on the disk, or by size and time of change.
    pub fn get(&self, token: Token, (size, mtime): (u64, Option<i64>), now: Option<&FileStat>) -> Option<Held> {
        let mut inner = self.lock();
        if let Some(stat) = inner.held.get(&token) {
            let very = |now: &FileStat| {
                now.size == stat.size
                    && (now.mtime_ns == stat.mtime_ns || (now.device, now.inode) == (stat.device, stat.inode))
            };
            return now.map_or(stat.size == size, very).then(|| self.at(stat.clone()));
        }
        if now.is_some() {
            return None;
        }
        let there = |(_, stat): &&(Token, FileStat)| stat.size == size && self.folder.join(&*stat.name).exists();
        let known: Vec<_> = inner.earlier.get(&token.hash).into_iter().flatten().filter(there).collect();
        // Runs that found files in another order gave them other ids.
        let ids = |(other, _): &(Token, FileStat)| other.id;
        let one = known.windows(2).all(|pair| ids(pair[0]) == ids(pair[1]));
        let own = known.iter().find(|(other, _)| *other == token);
        let timed = known.iter().find(|(_, stat)| Some(stat.mtime_ns) == mtime);
        let (_, stat) = own.or(timed).or(known.first().filter(|_| one)).copied()?.clone();
        let own = self.keep(&mut inner, token, &stat, &self.folder.join(&*stat.name));
        Some(self.at(own.ok().flatten().unwrap_or(stat)))
    }

    fn at(&self, file: FileStat) -> Held {
        Held { store: Arc::clone(&self.store), file }
    }

    /// Holds a file that is at `path`.
    pub fn hold(&self, token: Token, file: &FileStat, path: &Path) -> Holding {
        match self.keep(&mut self.lock(), token, file, path) {
            Ok(Some(stat)) => Holding::Held(self.at(stat)),
            Ok(None) => Holding::Not,
            Err(Gone) => Holding::Gone,
        }
    }

    /// What was held so far under the token stays until the new name is there.
    fn keep(
        &self,
        inner: &mut Inner,
        token: Token,
        file: &FileStat,
        path: &Path,
    ) -> std::result::Result<Option<FileStat>, Gone> {
        let name = format!("{}/{}", self.own, token.file());
        let to = self.folder.join(&name);
        let stale = inner.held.get(&token).map_or(0, |stale| stale.size);
        if (inner.bytes - stale).saturating_add(file.size) > self.most {
            inner.refused += 1;
            return Ok(None);
        }
        let new = self.folder.join(&self.own).join(NEW);
        let _ = withdraw(&new);
        match link(path, &new) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Gone),
            Err(_) if copy(path, &new, file).is_err() => {
                return if is_file(path).unwrap_or(true) { Ok(None) } else { Err(Gone) };
            }
            _ => {}
        }
        let stat = fs::metadata(&new).ok().map(|meta| stat_of(&name, &meta));
        let stat = stat.filter(|stat| (stat.size, stat.mtime_ns) == (file.size, file.mtime_ns));
        let Some(stat) = stat.filter(|_| fs::rename(&new, &to).is_ok()) else {
            let _ = withdraw(&new);
            return Ok(None);
        };
        // Renaming one of two names of a file onto the other leaves both.
        let _ = withdraw(&new);
        inner.bytes = inner.bytes - stale + stat.size;
        inner.unforced = true;
        inner.held.insert(token, stat.clone());
        Ok(Some(stat))
    }

    /// Makes what is held durable.
    ///
    /// Errors: `Path`.
    pub fn force(&self) -> Result<()> {
        if std::mem::take(&mut self.lock().unforced) { sync_folder(&self.folder.join(&self.own)) } else { Ok(()) }
    }

    /// Releases what is no longer needed: of the own files those that `needs` denies; once this run has saved twice,
    /// those of runs of other numbers of ranks.
    ///
    /// Errors: `Path`.
    pub fn release(&self, needs: &dyn Fn(Token) -> bool) -> Result<()> {
        let mut inner = self.lock();
        let gone: Vec<Token> = inner.held.keys().copied().filter(|token| !needs(*token)).collect();
        for token in gone {
            withdraw(&self.folder.join(&self.own).join(token.file()))?;
            inner.bytes -= inner.held.remove(&token).map_or(0, |stat| stat.size);
        }
        inner.releases += 1;
        if inner.releases < 2 || self.rank > 0 {
            return Ok(());
        }
        std::mem::take(&mut inner.outdated).iter().try_for_each(|ranks| withdraw(&self.folder.join(ranks)))
    }

    /// Files and bytes that are held of ids that `of` accepts.
    pub fn held(&self, of: impl Fn(u64) -> bool) -> [u64; 2] {
        let inner = self.lock();
        let sizes = inner.held.iter().filter(|(token, _)| of(token.id)).map(|(_, stat)| stat.size);
        sizes.fold([0, 0], |[files, bytes], size| [files + 1, bytes + size])
    }

    /// How many files were not held for want of room, and how many bytes there is room for.
    pub fn refused(&self) -> [u64; 2] {
        [self.lock().refused, self.most]
    }
}

/// A file that was to be held is no longer there.
struct Gone;

/// The name of what is on its way to be held.
const NEW: &str = "new";

fn names(folder: &Path) -> Result<Vec<String>> {
    let at = |e| Error::path(folder, &e);
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(at)? {
        names.extend(entry.map_err(at)?.file_name().into_string());
    }
    Ok(names)
}

/// A second name of a file: of what a symbolic link leads to, not of the link.
fn link(path: &Path, to: &Path) -> io::Result<()> {
    let path = &*here(path).ok_or(io::ErrorKind::Unsupported)?;
    match fs::symlink_metadata(path)?.is_symlink() {
        true => fs::hard_link(fs::canonicalize(path)?, to),
        false => fs::hard_link(path, to),
    }
}

/// A copy with the same time of change.
fn copy(path: &Path, to: &Path, file: &FileStat) -> Result<()> {
    let at = |e| Error::path(path, &e);
    let mut copy = Staged::new(to.to_owned())?;
    files::copy(path, &mut copy, to)?;
    copy.seal()?;
    copy.publish()?;
    let since = Duration::from_nanos(u64::try_from(file.mtime_ns).unwrap_or(0));
    let made = File::options().write(true).open(to).map_err(at)?;
    made.set_modified(UNIX_EPOCH + since).map_err(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(folder: &Path, name: &str) -> FileStat {
        stat_of(name, &fs::metadata(folder.join(name)).unwrap())
    }

    fn bytes(held: &Held) -> Vec<u8> {
        let mut bytes = vec![0; held.file.size as usize];
        held.store.open(&held.file.name).unwrap().read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_held_file_outlives_its_name_until_nobody_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let (games, spill) = (folder.path(), &folder.path().join("spill"));
        fs::write(games.join("a"), "one").unwrap();
        fs::write(games.join("b"), "three").unwrap();
        std::os::unix::fs::symlink("b", games.join("c")).unwrap();
        let held = Spill::open(spill, (0, 1), 9).unwrap();
        let [a, c] = ["a", "c"].map(|name| (Token::new(u64::from(name.as_bytes()[0]), name, 0), stat(games, name)));
        for (token, file) in [&a, &c] {
            assert!(matches!(held.hold(*token, file, &games.join(&*file.name)), Holding::Held(_)));
        }
        assert_eq!(held.held(|_| true), [2, 8]);
        let (late, _) = (Token::new(9, "late", 0), ());
        assert!(matches!(held.hold(late, &a.1, &games.join("a")), Holding::Not), "there is no room");
        assert_eq!(held.refused(), [1, 9]);
        ["a", "b", "c"].iter().for_each(|name| fs::remove_file(games.join(name)).unwrap());
        assert_eq!(bytes(&held.get(a.0, (3, None), Some(&a.1)).unwrap()), b"one");
        assert_eq!(bytes(&held.get(c.0, (5, None), None).unwrap()), b"three");
        held.force().unwrap();
        let again = Spill::open(spill, (0, 1), 9).unwrap();
        assert_eq!(bytes(&again.get(a.0, (3, None), None).unwrap()), b"one");
        let other = FileStat { mtime_ns: 1, inode: 0, ..a.1.clone() };
        let touched = FileStat { mtime_ns: 1, ..a.1.clone() };
        assert!(again.get(a.0, (3, None), Some(&touched)).is_some(), "the very file, touched");
        assert!(again.get(a.0, (4, None), None).is_none(), "it had another size");
        assert!(again.get(a.0, (3, None), Some(&other)).is_none(), "another file of this name and size");
        again.release(&|token| token == c.0).unwrap();
        assert_eq!(again.held(|_| true), [1, 5]);
        assert!(again.get(a.0, (3, None), None).is_none() && again.get(c.0, (5, None), None).is_some());
        assert_eq!(fs::read_dir(spill.join("rank-0-of-1")).unwrap().count(), 1);
    }

    #[test]
    fn what_other_ranks_held_is_taken_over_before_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (games, spill) = (folder.path(), &folder.path().join("spill"));
        fs::write(games.join("a"), "one").unwrap();
        let file = stat(games, "a");
        Spill::open(spill, (1, 2), 99).unwrap().hold(Token::new(5, "a", 3), &file, &games.join("a"));
        fs::remove_file(games.join("a")).unwrap();
        let alone = Spill::open(spill, (0, 1), 99).unwrap();
        let token = Token::new(7, "a", 3);
        assert!(alone.get(token, (3, None), Some(&file)).is_none());
        assert!(alone.get(Token::new(7, "a", 4), (4, None), None).is_none());
        assert_eq!(bytes(&alone.get(token, (3, None), None).unwrap()), b"one");
        alone.release(&|_| true).unwrap();
        assert!(spill.join("rank-1-of-2").is_dir(), "two ranks may still resume from the state before");
        alone.release(&|_| true).unwrap();
        assert!(!spill.join("rank-1-of-2").exists());
        assert_eq!(bytes(&alone.get(token, (3, None), None).unwrap()), b"one");
    }

    #[test]
    fn two_versions_of_one_name_and_size_are_held_and_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (games, spill) = (folder.path(), &folder.path().join("spill"));
        let two = Spill::open(spill, (0, 2), 99).unwrap();
        let mut times = Vec::new();
        for (id, text) in [(5, "one"), (8, "two")] {
            fs::write(games.join("new"), text).unwrap();
            let time = UNIX_EPOCH + Duration::from_secs(id);
            File::options().write(true).open(games.join("new")).unwrap().set_modified(time).unwrap();
            fs::rename(games.join("new"), games.join("a")).unwrap();
            let file = stat(games, "a");
            times.push(file.mtime_ns);
            assert!(matches!(two.hold(Token::new(id, "a", 3), &file, &games.join("a")), Holding::Held(_)));
        }
        fs::remove_file(games.join("a")).unwrap();
        let held = |spill: &Spill, id, mtime| {
            spill.get(Token::new(id, "a", 3), (3, mtime), None).map(|held| String::from_utf8(bytes(&held)).unwrap())
        };
        let again = Spill::open(spill, (0, 2), 99).unwrap();
        assert_eq!([5, 8].map(|id| held(&again, id, None).unwrap()), ["one", "two"]);
        let alone = Spill::open(spill, (0, 1), 99).unwrap();
        assert_eq!(held(&alone, 9, None), None, "it could be either");
        assert_eq!(held(&alone, 9, Some(times[1])).unwrap(), "two", "under another id");
        let names = || fs::read_dir(spill.join("rank-0-of-1")).unwrap().count();
        assert_eq!(names(), 1);
        let Some(own) = alone.get(Token::new(9, "a", 3), (3, None), None) else { panic!("it is held") };
        assert!(matches!(alone.hold(Token::new(9, "a", 3), &own.file, &spill.join(&*own.file.name)), Holding::Held(_)));
        assert_eq!((names(), alone.held(|_| true)), (1, [1, 3]), "held again, it is one file still");
    }

    #[test]
    fn what_was_replaced_meanwhile_is_not_held_and_copies_are_as_good() {
        let folder = tempfile::tempdir().unwrap();
        let (games, spill) = (folder.path(), &folder.path().join("spill"));
        fs::write(games.join("a"), "one").unwrap();
        let old = FileStat { mtime_ns: 7, ..stat(games, "a") };
        let held = Spill::open(spill, (0, 1), 99).unwrap();
        assert!(matches!(held.hold(Token::new(1, "a", 3), &old, &games.join("a")), Holding::Not));
        assert!(matches!(held.hold(Token::new(1, "b", 3), &old, &games.join("b")), Holding::Gone));
        let to = games.join("copy");
        copy(&games.join("a"), &to, &old).unwrap();
        assert_eq!((fs::read(&to).unwrap(), stat(games, "copy").mtime_ns), (b"one".to_vec(), 7));
        assert_eq!(held.held(|_| true), [0, 0]);
    }
}
