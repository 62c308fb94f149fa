//! Bytes -> one file that is under its name only when it is whole.
//! What exists under the name is replaced; what was not finished is removed. Links under the hidden name are not followed.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::place::writable;
use super::sync_folder;
use crate::error::{Error, Result};

/// A file being written beside its place, under a hidden name.
#[derive(Debug)]
pub struct Staged {
    to: BufWriter<File>,
    hidden: PathBuf,
    path: PathBuf,
    whole: bool,
}

impl Staged {
    /// Starts a file that will be called `path`, in a folder that is there.
    ///
    /// Errors: `Path`; of kind `ResourceBusy` while another writer has it.
    pub fn new(path: PathBuf) -> Result<Self> {
        Staged::opened(path, false)
    }

    fn opened(path: PathBuf, wait: bool) -> Result<Self> {
        let path = writable(&path, "output")?.into_owned();
        let hidden = hidden(&path);
        let file = alone(&hidden, wait).map_err(|e| Error::path(&path, &e))?;
        Ok(Staged { to: BufWriter::with_capacity(1 << 18, file), hidden, path, whole: false })
    }

    /// The same, in a folder that is made if need be.
    ///
    /// Errors: `Path`.
    pub fn within(path: PathBuf) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
        }
        Staged::new(path)
    }

    /// Appends bytes.
    ///
    /// Errors: `Path`.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).map_err(|e| Error::path(&self.path, &e))
    }

    /// Forces it to the disk.
    ///
    /// Errors: `Path`.
    pub fn seal(&mut self) -> Result<()> {
        let forced = self.to.flush().and_then(|()| self.to.get_ref().sync_data());
        forced.map_err(|e| Error::path(&self.path, &e))
    }

    /// Gives it its name; its length in bytes. What was under the name is gone.
    ///
    /// Errors: `Path`.
    pub fn publish(mut self) -> Result<u64> {
        let renamed = self.to.flush().and_then(|()| fs::rename(&self.hidden, &self.path));
        let len = renamed.and_then(|()| self.to.get_ref().metadata()).map_err(|e| Error::path(&self.path, &e))?.len();
        self.whole = true;
        Ok(len)
    }

    /// Opens the sealed file for reading, at its start.
    ///
    /// Errors: `Path`.
    pub fn reopen(&self) -> Result<File> {
        File::open(&self.hidden).map_err(|e| Error::path(&self.path, &e))
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The name of the file at `path` while it is written.
pub(super) fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{}.part", name.trim_start_matches('.')))
}

impl Write for Staged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.whole {
            // What is left of an unfinished file is ours alone; a failure to remove it says nothing new.
            let _ = fs::remove_file(&self.hidden);
        }
    }
}

/// Makes the file under a hidden name, for this writer alone: others wait until it has got its name or was given up, or are
/// refused. What a killed writer left is removed first, and so is a link, which is never followed.
fn alone(hidden: &Path, wait: bool) -> io::Result<File> {
    let identity = |meta: &fs::Metadata| (meta.dev(), meta.ino());
    let locked = |file: &File| -> io::Result<bool> {
        let locked = if wait { file.lock() } else { file.try_lock().map_err(busy) };
        match locked {
            // Where the file system has no locks, writers of the same file are on their own.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
            locked => locked?,
        }
        let there = fs::symlink_metadata(hidden);
        Ok(there.is_ok_and(|there| file.metadata().is_ok_and(|ours| identity(&there) == identity(&ours))))
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    loop {
        match File::options().write(true).create_new(true).custom_flags(flags).open(hidden) {
            Ok(file) if locked(&file)? => return Ok(file),
            // Another one took it for a leftover in the moment before the lock.
            Ok(_) => continue,
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            Err(_) => {}
        }
        match fs::symlink_metadata(hidden) {
            Ok(there) if there.is_file() => {
                match File::options().read(true).write(true).custom_flags(flags).open(hidden) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    left => {
                        // Held until it is removed: a process that waits for the lock then finds that the name is
                        // another file's.
                        let left = left?;
                        if locked(&left)? {
                            remove(hidden)?;
                        }
                    }
                }
            }
            Ok(_) => remove(hidden)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
}

fn busy(e: TryLockError) -> io::Error {
    match e {
        TryLockError::WouldBlock => io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it"),
        TryLockError::Error(e) => e,
    }
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Writes `parts`, one after another, as the file at `path`, over what was there: durable when this returns, and at no
/// moment half written, even with other writers.
///
/// Errors: `Path`.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let mut staged = Staged::opened(path.to_owned(), true)?;
    parts.iter().try_for_each(|part| staged.append(part))?;
    staged.seal()?;
    staged.publish()?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Removes the file or folder of this name, if there is one. Others may give it the name, or remove it, at the same time.
///
/// Errors: `Path`.
pub fn withdraw(path: &Path) -> Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => fs::remove_file(path),
        removed => removed,
    };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::path(path, &e)),
        _ => Ok(()),
    }
}

/// Folders whose entries are to be forced to the disk.
#[derive(Debug, Default)]
pub struct Touched(BTreeSet<PathBuf>);

impl Touched {
    /// Notes the folder of a published file.
    pub fn add(&mut self, path: &Path) {
        if let Some(folder) = path.parent().filter(|folder| !self.0.contains(*folder)) {
            self.0.insert(folder.to_owned());
        }
    }

    /// Forces them.
    ///
    /// Errors: `Path`.
    pub fn force(&mut self) -> Result<()> {
        for folder in std::mem::take(&mut self.0) {
            sync_folder(&folder)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/a");
        assert!(Staged::new(path.clone()).is_err(), "there is no such folder");
        let mut staged = Staged::within(path.clone()).unwrap();
        staged.append(b"one").unwrap();
        staged.seal().unwrap();
        assert!(!path.exists());
        assert_eq!(staged.publish().unwrap(), 3);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        let mut staged = Staged::new(path.clone()).unwrap();
        staged.write_all(b"two").unwrap();
        drop(staged);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1, "nothing hidden is left");
        withdraw(&path).unwrap();
        withdraw(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_is_withdrawn_is_gone_and_what_cannot_be_is_an_error() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::create_dir_all(at("folder/deep")).unwrap();
        fs::write(at("file"), "old").unwrap();
        assert!(withdraw(&at("file/inner")).is_err(), "a file has no files in it");
        ["folder", "file", "file", "none/file"].iter().for_each(|name| withdraw(&at(name)).unwrap());
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
    }

    #[test]
    fn whole_files_are_replaced_and_leave_nothing_else() {
        let target = tempfile::tempdir().unwrap();
        let path = target.path().join("file");
        write_whole(&path, &[b"one"]).unwrap();
        write_whole(&path, &[b"tw", b"o"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
        assert!(write_whole(&target.path().join("gone/file"), &[b"x"]).is_err());
    }

    #[test]
    fn links_under_the_hidden_name_are_removed_and_not_followed() {
        let target = tempfile::tempdir().unwrap();
        let (path, other) = (target.path().join("file"), target.path().join("other"));
        let symbolic = |a: &Path, b: &Path| std::os::unix::fs::symlink(a, b);
        let hard = |a: &Path, b: &Path| fs::hard_link(a, b);
        type Link<'a> = &'a dyn Fn(&Path, &Path) -> io::Result<()>;
        let links: [Link<'_>; 2] = [&symbolic, &hard];
        for link in links {
            fs::write(&other, "mine").unwrap();
            link(&other, &target.path().join(".file.part")).unwrap();
            let mut staged = Staged::new(path.clone()).unwrap();
            staged.append(b"one").unwrap();
            let busy = Staged::new(path.clone()).unwrap_err();
            assert!(matches!(busy, Error::Path { kind: io::ErrorKind::ResourceBusy, .. }), "{busy}");
            staged.publish().unwrap();
            link(&other, &target.path().join(".file.part")).unwrap();
            write_whole(&path, &[b"two"]).unwrap();
            assert_eq!((fs::read(&other).unwrap(), fs::read(&path).unwrap()), (b"mine".to_vec(), b"two".to_vec()));
            assert_eq!(fs::read_dir(target.path()).unwrap().count(), 2);
        }
        fs::create_dir(target.path().join(".file.part")).unwrap();
        assert!(Staged::new(path).is_err());
    }
}
