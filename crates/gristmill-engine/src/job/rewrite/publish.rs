//! Bytes -> a file that is under its name only when it is whole and on the disk.
//! What exists under the name is replaced; what was not finished is removed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file being written beside its place, under a hidden name.
#[derive(Debug)]
pub(super) struct Staged {
    to: BufWriter<File>,
    hidden: PathBuf,
    path: PathBuf,
    whole: bool,
}

impl Staged {
    /// Starts a file that will be called `path`; makes its folder.
    ///
    /// Errors: `Path`.
    pub(super) fn new(path: PathBuf) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
        let hidden = folder.join(format!(".{name}.part"));
        let file = File::create(&hidden).map_err(|e| Error::path(&path, &e))?;
        Ok(Staged { to: BufWriter::with_capacity(1 << 18, file), hidden, path, whole: false })
    }

    /// Forces it to the disk.
    ///
    /// Errors: `Path`.
    pub(super) fn seal(&mut self) -> Result<()> {
        let forced = self.to.flush().and_then(|()| self.to.get_ref().sync_data());
        forced.map_err(|e| Error::path(&self.path, &e))
    }

    /// Gives it its name; its length in bytes.
    ///
    /// Errors: `Path`.
    pub(super) fn publish(mut self) -> Result<u64> {
        let renamed = fs::rename(&self.hidden, &self.path).and_then(|()| self.to.get_ref().metadata());
        let len = renamed.map_err(|e| Error::path(&self.path, &e))?.len();
        self.whole = true;
        Ok(len)
    }

    /// Where it will be.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
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

/// Removes what an earlier run published under a name that gets nothing now.
///
/// Errors: `Path`.
pub(super) fn withdraw(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::path(path, &e)),
        _ => Ok(()),
    }
}

/// Folders whose entries are to be forced to the disk.
#[derive(Debug, Default)]
pub(super) struct Touched(BTreeSet<PathBuf>);

impl Touched {
    /// Notes the folder of a published file.
    pub(super) fn add(&mut self, path: &Path) {
        if let Some(folder) = path.parent().filter(|folder| !self.0.contains(*folder)) {
            self.0.insert(folder.to_owned());
        }
    }

    /// Forces them.
    ///
    /// Errors: `Path`.
    pub(super) fn force(&mut self) -> Result<()> {
        for folder in std::mem::take(&mut self.0) {
            File::open(&folder).and_then(|file| file.sync_all()).map_err(|e| Error::path(&folder, &e))?;
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
        let mut staged = Staged::new(path.clone()).unwrap();
        staged.write_all(b"one").unwrap();
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
}
