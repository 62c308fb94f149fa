//! A directory tree as a [`Store`]: lists visible files, opens them for positioned reads.
//! Keeps no descriptor by itself: a file is open for as long as whoever opened it keeps it.

use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};

use super::walk::{self, Seen, stat_of};
use super::{Faults, FileStat, Readings, Store, Watch};

/// The files under one directory.
#[derive(Debug)]
pub struct DirStore {
    root: PathBuf,
    readings: Readings,
}

impl DirStore {
    /// The files under `root`, which must be a readable directory.
    ///
    /// Errors: `Path` with the operating system's cause.
    pub fn new(root: impl Into<PathBuf>) -> crate::Result<Self> {
        let root = root.into();
        fs::read_dir(&root).map_err(|e| crate::Error::path(&root, &e))?;
        Ok(DirStore { root, readings: Readings::default() })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn refusal(&self, name: &str, e: io::Error) -> Error {
        Error::from(e).in_source(self.root.join(name).display().to_string())
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
        Ok(Arc::new(OpenFile::new(&self.root.join(name)).map_err(|e| self.refusal(name, e))?))
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn watch(&self) -> Result<Option<Box<dyn Watch>>> {
        super::watch::tree(&self.root)
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
