//! A directory tree as a [`Store`]: lists visible files, opens them for positioned reads.
//! Keeps no descriptor by itself: a file is open for as long as the caller keeps it.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use super::only::Only;
use super::walk::{self, Seen, stat_of};
use super::{Faults, FileStat, Readings, Store, Watch};

/// The files under one directory, or those of them that a pattern names.
#[derive(Debug)]
pub struct DirStore {
    root: PathBuf,
    only: Only,
    /// The device that it is on.
    device: u64,
    readings: Readings,
}

impl DirStore {
    /// The files under `root`, which must be a readable directory.
    ///
    /// Errors: `Path` with the operating system's cause.
    pub fn new(root: impl Into<PathBuf>) -> crate::Result<Self> {
        let root = root.into();
        let meta = fs::read_dir(&root).and_then(|_| fs::metadata(&root)).map_err(|e| crate::Error::path(&root, &e))?;
        Ok(DirStore { root, only: Only::All, device: meta.dev(), readings: Readings::default() })
    }

    /// What a user means by `place`: the files under a directory; one file, such as a tar; or those that a pattern such as
    /// `games/2024-*/*.tar` names, folders with all that is under them. `~` is the home folder.
    ///
    /// Errors: `Path` with the operating system's cause; `Config` for a pattern that is none.
    pub fn at(place: &Path) -> crate::Result<Self> {
        let place = home(place);
        if place.is_file() {
            let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let above = place.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Ok(DirStore { only: Only::File(name), ..DirStore::new(above)? });
        }
        if place.exists() {
            return DirStore::new(place);
        }
        let (root, only) = Only::divided(&place)?;
        let root = if root.as_os_str().is_empty() { PathBuf::from(".") } else { root };
        Ok(DirStore { only, ..DirStore::new(root)? })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn refusal(&self, name: &str, e: io::Error) -> Error {
        let path = self.root.join(name);
        let not_there = matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        let e = match not_there && !self.is_deleted(&path) {
            true => Error::new(Kind::Away, format!("its folder, or what it is a link to, is away ({e})")),
            false => Error::from(e),
        };
        e.in_source(path.display().to_string())
    }

    /// Whether a file that is not there was deleted: its folder is there without that name. Where the folder is missing, too,
    /// or nothing is mounted on it any more, that is unknown.
    fn is_deleted(&self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        // Asked of one and the same folder, whatever its name leads to meanwhile.
        let Ok(there) = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
            return false;
        };
        statat(&there, name, AtFlags::SYMLINK_NOFOLLOW).is_err_and(|e| e == rustix::io::Errno::NOENT)
            && (folder != self.root || !self.is_unmounted())
    }

    /// Gives a file that a walk sees, or counts a fault.
    fn give(
        &self,
        seen: Seen<'_>,
        faults: &mut Faults,
        each: &mut dyn FnMut(FileStat) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match seen {
            Seen::Folder(_) => {}
            Seen::File(found) if !self.only.has(found.name) => {}
            Seen::File(found) => match found.stat() {
                Ok(stat) => return each(stat),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => faults.error(&self.refusal(found.name, e)),
            },
            Seen::Fault(kind, message) => faults.add(kind, message),
        }
        ControlFlow::Continue(())
    }

    /// Whether the directory is empty and on another device than it was: the place where something was mounted.
    fn is_unmounted(&self) -> bool {
        let elsewhere = fs::metadata(&self.root).is_ok_and(|meta| meta.dev() != self.device);
        elsewhere && fs::read_dir(&self.root).is_ok_and(|mut entries| entries.next().is_none())
    }
}

impl Store for DirStore {
    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn place(&self) -> String {
        super::place::joined(&self.root, self.only.text()).display().to_string()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = Faults::default();
        if let Only::File(file) = &self.only {
            match self.stat(file) {
                Ok(stat) => drop(each(stat)),
                Err(e) if e.kind() == Kind::Io(io::ErrorKind::NotFound) => {}
                Err(e) => faults.error(&e),
            }
            return faults;
        }
        let _ = walk::walk(&self.root, "", &mut |seen| self.give(seen, &mut faults, each));
        faults
    }

    fn list_hidden(&self, folder: &str, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = Faults::default();
        let _ = walk::walk_hidden(&self.root, folder, &mut |seen| self.give(seen, &mut faults, each));
        faults
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let meta = fs::metadata(self.root.join(name)).map_err(|e| self.refusal(name, e))?;
        if !meta.is_file() {
            return Err(self.refusal(name, io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        Ok(stat_of(name, &meta))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(OpenFile::new(&self.root.join(name)).map_err(|e| self.refusal(name, e))?))
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        // Notices tell of all that is under the root; what a pattern names is found by looking again.
        if self.only.is_all() { super::watch::tree(&self.root) } else { Ok(None) }
    }
}

/// A path whose `~` is the home folder, unless something is called so here.
fn home(place: &Path) -> PathBuf {
    match (place.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) if !place.exists() => home.join(rest),
        _ => place.to_owned(),
    }
}

/// An open file, as it was when it was opened.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    size: u64,
}

impl OpenFile {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        // A named pipe would block the open itself.
        let regular = |meta: &fs::Metadata| match meta.is_file() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        };
        regular(&fs::metadata(path)?)?;
        let file = File::open(path)?;
        let meta = file.metadata()?;
        regular(&meta)?;
        Ok(OpenFile { file, size: meta.len() })
    }
}

impl ReadAt for OpenFile {
    fn len(&self) -> Result<u64> {
        Ok(self.size)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        loop {
            match self.file.read_at(buf, offset) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::new(Kind::Io(e.kind()), e.to_string()).at_byte(offset)),
                Ok(n) => return Ok(n),
            }
        }
    }
}
