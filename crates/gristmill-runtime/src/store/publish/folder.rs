//! A folder by its descriptor -> what is in it, reached by single names and never through links.
//! Refuses a folder or a file that was swapped for a link meanwhile; no link leads elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

use crate::error::{Error, Result};

/// At most this many nested folders are removed; no folder of ours is that deep.
const DEPTH: usize = 64;

/// What lies under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// A plain file, with its only name.
    File,
    /// A plain file that has other names as well.
    Shared,
    Folder,
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// A folder that is open.
#[derive(Debug)]
pub(super) struct Folder {
    open: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder by a name of the user, through links if need be.
    ///
    /// Errors: `Path`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let open = rustix::fs::openat(CWD, named, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        Ok(Folder { open: File::from(open.map_err(|e| Error::path(path, &e.into()))?), path: path.to_owned() })
    }

    /// Opens a folder in this one.
    ///
    /// Errors: `Path`, also for a link.
    pub(super) fn child(&self, name: impl AsRef<OsStr>) -> Result<Self> {
        let path = self.path.join(name.as_ref());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::openat(&self.open, name.as_ref(), flags, Mode::empty());
        Ok(Folder { open: File::from(open.map_err(|e| Error::path(&path, &e.into()))?), path })
    }

    /// Makes a folder in this one, unless there is something of the name.
    ///
    /// Errors: `Path`.
    pub(super) fn make(&self, name: &str) -> Result<()> {
        match rustix::fs::mkdirat(&self.open, name, Mode::from_raw_mode(0o777)) {
            Err(rustix::io::Errno::EXIST) => Ok(()),
            made => made.map_err(|e| self.refusal(name, e)),
        }
    }

    /// Makes a file that was not there.
    ///
    /// Errors: `Path`.
    pub(super) fn create(&self, name: &str) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.open, name, flags, Mode::from_raw_mode(0o666));
        made.map(File::from).map_err(|e| self.refusal(name, e))
    }

    /// Opens a file for reading.
    ///
    /// Errors: `Path`, also for a link.
    pub(super) fn read(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = rustix::fs::openat(&self.open, name, flags, Mode::empty());
        open.map(File::from).map_err(|e| self.refusal(name, e))
    }

    /// What lies under a name, if anything.
    ///
    /// Errors: `Path`.
    pub(super) fn entry(&self, name: impl AsRef<OsStr>) -> Result<Option<Entry>> {
        match rustix::fs::statat(&self.open, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(e) => Err(self.refusal(name, e)),
            Ok(found) => Ok(Some(match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile if found.st_nlink > 1 => Entry::Shared,
                FileType::RegularFile => Entry::File,
                FileType::Directory => Entry::Folder,
                FileType::Symlink => Entry::Link,
                _ => Entry::Other,
            })),
        }
    }

    /// Whether `name` is that folder, still.
    pub(super) fn is(&self, name: &str, open: &Folder) -> bool {
        let there = rustix::fs::statat(&self.open, name, AtFlags::SYMLINK_NOFOLLOW);
        let ours = rustix::fs::fstat(&open.open);
        there.is_ok_and(|there| ours.is_ok_and(|ours| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)))
    }

    /// All names in it, sorted.
    ///
    /// Errors: `Path`.
    pub(super) fn names(&self) -> Result<Vec<OsString>> {
        let refuse = |e: rustix::io::Errno| Error::path(&self.path, &e.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.open).map_err(refuse)? {
            let name = OsString::from_vec(entry.map_err(refuse)?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Renames something in it to a name in `to`, over the file that is there.
    ///
    /// Errors: `Path`.
    pub(super) fn rename(&self, name: &str, to: &Folder, new: &str) -> Result<()> {
        rustix::fs::renameat(&self.open, name, &to.open, new).map_err(|e| self.refusal(name, e))
    }

    /// Removes a file or a link, if it is there.
    ///
    /// Errors: `Path`.
    pub(super) fn remove(&self, name: impl AsRef<OsStr>) -> Result<()> {
        match rustix::fs::unlinkat(&self.open, name.as_ref(), AtFlags::empty()) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            removed => removed.map_err(|e| self.refusal(name, e)),
        }
    }

    /// Removes an empty folder.
    ///
    /// Errors: `Path`.
    pub(super) fn remove_folder(&self, name: impl AsRef<OsStr>) -> Result<()> {
        rustix::fs::unlinkat(&self.open, name.as_ref(), AtFlags::REMOVEDIR).map_err(|e| self.refusal(name, e))
    }

    /// Removes whatever is there, with all that is in it; of links the link.
    ///
    /// Errors: `Path`.
    pub(super) fn remove_all(&self, name: impl AsRef<OsStr>) -> Result<()> {
        self.remove_below(name.as_ref(), DEPTH)
    }

    fn remove_below(&self, name: &OsStr, depth: usize) -> Result<()> {
        if self.entry(name)? != Some(Entry::Folder) {
            return self.remove(name);
        }
        if depth == 0 {
            return Err(
                self.refuse(name, &format!("folders within each other, more than {DEPTH}; remove them by hand"))
            );
        }
        let inner = self.child(name)?;
        inner.names()?.iter().try_for_each(|name| inner.remove_below(name, depth - 1))?;
        self.remove_folder(name)
    }

    /// Makes the names in it durable.
    ///
    /// Errors: `Path`.
    pub(super) fn sync(&self) -> Result<()> {
        self.open.sync_all().map_err(|e| Error::path(&self.path, &e))
    }

    /// The open folder, to be locked.
    pub(super) fn file(&self) -> &File {
        &self.open
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An error about something in it, in our own words.
    pub(super) fn refuse(&self, name: impl AsRef<OsStr>, text: &str) -> Error {
        Error::path(self.path.join(name.as_ref()), &io::Error::new(io::ErrorKind::InvalidData, text))
    }

    fn refusal(&self, name: impl AsRef<OsStr>, e: rustix::io::Errno) -> Error {
        Error::path(self.path.join(name.as_ref()), &e.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_are_looked_up_in_it_and_links_are_not_followed() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("file"), "text").unwrap();
        fs::write(at("one"), "two names").unwrap();
        fs::hard_link(at("one"), at("two")).unwrap();
        symlink("inner", at("link")).unwrap();
        symlink("file", at("alias")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(Folder::open(&at("file")).is_err(), "no folder");
        let folder = Folder::open(here.path()).unwrap();
        let inner = folder.child("inner").unwrap();
        assert!(folder.child("link").is_err() && folder.child("file").is_err());
        assert!(folder.is("inner", &inner) && !folder.is("file", &inner) && !folder.is("link", &inner));
        let file = folder.read("file").unwrap();
        assert!(folder.read("alias").is_err());
        folder.read("pipe").expect("it is not waited for a writer");
        let new = folder.create("new").unwrap();
        assert!(["new", "file", "alias"].iter().all(|name| folder.create(name).is_err()));
        for open in [folder.file(), inner.file(), &file, &new] {
            let flags = rustix::io::fcntl_getfd(open).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "no program that is started has it");
        }
        let entries = ["file", "one", "inner", "link", "pipe", "none"].map(|name| folder.entry(name).unwrap());
        let expected = [Entry::File, Entry::Shared, Entry::Folder, Entry::Link, Entry::Other].map(Some);
        assert_eq!((&entries[..5], entries[5]), (&expected[..], None));
    }

    #[test]
    fn folders_within_folders_go_unless_they_are_deeper_than_any_of_ours() {
        let here = tempfile::tempdir().unwrap();
        let folder = Folder::open(here.path()).unwrap();
        fs::write(here.path().join("kept"), "text").unwrap();
        for (depth, goes) in [(1, true), (DEPTH, true), (DEPTH + 2, false)] {
            let top = here.path().join(format!("top{depth}"));
            let inner = top.join(vec!["in"; depth - 1].join("/"));
            fs::create_dir_all(&inner).unwrap();
            symlink(here.path().join("kept"), inner.join("link")).unwrap();
            assert_eq!((folder.remove_all(format!("top{depth}")).is_ok(), top.exists()), (goes, !goes), "{depth}");
        }
        assert!(here.path().join("kept").exists());
    }
}
