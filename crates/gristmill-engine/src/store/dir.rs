//! A directory tree as a [`Store`]: lists visible files, opens them for positioned reads.
//! Holds few descriptors whatever the number of files; small files are opened, read and closed.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};

use super::walk::{self, Seen, stat_of};
use super::{Faults, FileStat, Store, Watch};

/// Most descriptors kept open between reads.
const MAX_OPEN: usize = 128;

/// Files below this size hold one game and are read once, whole: their descriptors are not kept.
const KEEP_FROM: u64 = 1 << 20;

/// The files under one directory.
#[derive(Debug)]
pub struct DirStore {
    root: PathBuf,
    open: Mutex<VecDeque<Arc<OpenFile>>>,
}

impl DirStore {
    /// The files under `root`, which must be a readable directory.
    ///
    /// Errors: `Path` with the operating system's cause.
    pub fn new(root: impl Into<PathBuf>) -> crate::Result<Self> {
        let root = root.into();
        fs::read_dir(&root).map_err(|e| crate::Error::path(&root, &e))?;
        Ok(DirStore { root, open: Mutex::default() })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn refusal(&self, name: &str, e: io::Error) -> Error {
        Error::from(e).in_source(self.root.join(name).display().to_string())
    }

    /// A kept descriptor of the bytes that are there now, moved to the front.
    fn kept(&self, name: &str) -> Option<Arc<OpenFile>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|f| &*f.stat.name == name)?;
        let file = open.remove(at)?;
        let now = fs::metadata(self.root.join(name)).ok()?;
        if !file.stat.same_file(&stat_of(name, &now)) {
            return None;
        }
        open.push_front(file.clone());
        Some(file)
    }
}

impl Store for DirStore {
    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn list(&self, each: &mut dyn FnMut(FileStat) -> ControlFlow<()>) -> Faults {
        let mut faults = Faults::default();
        let _ = walk::walk(&self.root, "", &mut |seen| {
            match seen {
                Seen::Folder(_) => {}
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
        let refuse = |e| self.refusal(name, e);
        if let Some(file) = self.kept(name) {
            return Ok(file);
        }
        let file = Arc::new(OpenFile::new(&self.root.join(name), name).map_err(refuse)?);
        if file.stat.size >= KEEP_FROM {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|f| f.stat.name != file.stat.name);
            open.truncate(MAX_OPEN - 1);
            open.push_front(file.clone());
        }
        Ok(file)
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        super::watch::tree(&self.root)
    }
}

/// Opens one file by its path, for positioned reads.
///
/// Errors: `Io` with the operating system's cause, naming the path.
pub fn open_file(path: &Path) -> Result<Arc<dyn ReadAt>> {
    match OpenFile::new(path, "") {
        Ok(file) => Ok(Arc::new(file)),
        Err(e) => Err(Error::from(e).in_source(path.display().to_string())),
    }
}

/// An open file, as it was when it was opened.
#[derive(Debug)]
struct OpenFile {
    file: File,
    stat: FileStat,
}

impl OpenFile {
    fn new(path: &Path, name: &str) -> io::Result<Self> {
        // A named pipe would block the open itself.
        let regular = |meta: &fs::Metadata| match meta.is_file() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        };
        regular(&fs::metadata(path)?)?;
        let file = File::open(path)?;
        let meta = file.metadata()?;
        regular(&meta)?;
        Ok(OpenFile { file, stat: stat_of(name, &meta) })
    }
}

impl ReadAt for OpenFile {
    fn len(&self) -> Result<u64> {
        Ok(self.stat.size)
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
