//! A directory tree as a [`Store`]: lists visible files, opens them for positioned reads.
//! Keeps no descriptor by itself: a file is open for as long as the caller keeps it.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::{MatchOptions, Pattern};
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use super::walk::{self, Seen, stat_of};
use super::{Faults, FileStat, Readings, Store, Watch};

/// The files under one directory, or those of them that a pattern names.
#[derive(Debug)]
pub struct DirStore {
    root: PathBuf,
    only: Option<Only>,
    /// The device that it is on.
    device: u64,
    readings: Readings,
}

/// What is meant of a directory, where it is not all of it.
#[derive(Debug)]
enum Only {
    /// The file of this name directly in it.
    File(String),
    /// What a pattern names: files, and folders with all that is under them.
    Named(Pattern),
}

/// A pattern's `*` ends at a folder; `**` does not.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

impl DirStore {
    /// The files under `root`, which must be a readable directory.
    ///
    /// Errors: `Path` with the operating system's cause.
    pub fn new(root: impl Into<PathBuf>) -> crate::Result<Self> {
        let root = root.into();
        let meta = fs::read_dir(&root).and_then(|_| fs::metadata(&root)).map_err(|e| crate::Error::path(&root, &e))?;
        Ok(DirStore { root, only: None, device: meta.dev(), readings: Readings::default() })
    }

    /// What a user means by `place`: the files under a directory; one file, such as a tar; or those that a pattern such as
    /// `games/2024-*/*.tar` names, folders with all that is under them. `~` is the home folder.
    ///
    /// Errors: `Path` with the operating system's cause; `Config` for a URL, or a pattern that is none.
    pub fn at(place: &Path) -> crate::Result<Self> {
        let text = place.to_string_lossy();
        if is_url(&text) {
            let message = "URLs are not read yet; expected a directory, a tar or a pattern of files on this machine";
            return Err(crate::Error::config("directory", format!("{text}: {message}")));
        }
        let place = home(place);
        if place.is_file() {
            let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let above = place.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return Ok(DirStore { only: Some(Only::File(name)), ..DirStore::new(above)? });
        }
        let magic = |part: &Path| part.to_string_lossy().contains(['*', '?', '[']);
        if place.exists() || !magic(&place) {
            return DirStore::new(place);
        }
        let mut root = PathBuf::new();
        let mut parts = place.components();
        while let Some(part) = parts.clone().next().filter(|part| !magic(part.as_ref())) {
            root.push(part);
            parts.next();
        }
        let root = if root.as_os_str().is_empty() { PathBuf::from(".") } else { root };
        let only = Pattern::new(&parts.as_path().to_string_lossy())
            .map_err(|e| crate::Error::config("directory", format!("{text}: no pattern: {e}")))?;
        Ok(DirStore { only: Some(Only::Named(only)), ..DirStore::new(root)? })
    }

    /// Whether a name below the directory is one of those that are meant: itself, or a folder that it is in.
    fn has(&self, name: &str) -> bool {
        let mut ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
        match &self.only {
            None => true,
            Some(Only::File(file)) => file == name,
            Some(Only::Named(only)) => ends.any(|end| only.matches_with(&name[..end], MATCHING)),
        }
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
        match &self.only {
            None => self.root(),
            Some(Only::File(name)) => self.root.join(name).display().to_string(),
            Some(Only::Named(pattern)) => self.root.join(pattern.as_str()).display().to_string(),
        }
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = Faults::default();
        if let Some(Only::File(file)) = &self.only {
            match self.stat(file) {
                Ok(stat) => drop(each(stat)),
                Err(e) if e.kind() == Kind::Io(io::ErrorKind::NotFound) => {}
                Err(e) => faults.error(&e),
            }
            return faults;
        }
        let _ = walk::walk(&self.root, "", &mut |seen| {
            match seen {
                Seen::Folder(_) => {}
                Seen::File(found) if !self.has(found.name) => {}
                Seen::File(found) => match found.stat() {
                    Ok(stat) => return each(stat),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) => faults.error(&self.refusal(found.name, e)),
                },
                Seen::Fault(kind, message) => faults.add(kind, message),
            }
            ControlFlow::Continue(())
        });
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
        if self.only.is_some() { Ok(None) } else { super::watch::tree(&self.root) }
    }
}

/// Whether a place names a scheme, as `s3://bucket` does.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// A path whose `~` is the home folder, unless something is called so here.
fn home(place: &Path) -> PathBuf {
    match (place.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) if !place.exists() => home.join(rest),
        _ => place.to_owned(),
    }
}

/// Opens one file by its path, for positioned reads.
///
/// Errors: `Io` with the operating system's cause, naming the path.
pub fn open_file(path: &Path) -> Result<Arc<dyn ReadAt>> {
    match OpenFile::new(path) {
        Ok(file) => Ok(Arc::new(file)),
        Err(e) => Err(Error::from(e).in_source(path.display().to_string())),
    }
}

/// An open file, as it was when it was opened.
#[derive(Debug)]
struct OpenFile {
    file: File,
    size: u64,
}

impl OpenFile {
    fn new(path: &Path) -> io::Result<Self> {
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
