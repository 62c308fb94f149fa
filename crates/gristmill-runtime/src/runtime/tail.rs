//! An append-only file of one writer: what is appended stands after the last whole line, whatever a torn write left there.
//! Locked while it is open, so that two writers never mix; the lock ends with the process. Knows nothing of lines.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Error, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

/// Zeros in a row that no line has, as many as a checksum and its space: bytes that a machine crash left unwritten.
const UNWRITTEN: usize = 17;

/// Whether a part of a line was never written: the machine crashed after the disk had what comes after it, and before anything of both
/// was made durable.
pub(super) fn has_hole(line: &[u8]) -> bool {
    line.split(|byte| *byte != 0).any(|zeros| zeros.len() >= UNWRITTEN)
}

/// A file that is appended to.
#[derive(Debug)]
pub(super) struct Tail {
    file: File,
    /// Bytes that are whole.
    whole: u64,
    /// The process that has the lock; one that was forked from it has the file alone.
    locked_in: u32,
}

impl Drop for Tail {
    /// Ends the lock at once, whatever programs were just being started with copies of the descriptor.
    fn drop(&mut self) {
        if self.locked_in == std::process::id() {
            // Where the file system has no locks, there is none to end.
            let _ = self.file.unlock();
        }
    }
}

impl Tail {
    /// Makes a new file. Errors: there is one, or it cannot be made.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Tail::locked(OpenOptions::new().write(true).create_new(true).open(path)?)
    }

    /// Takes the existing file, if there is one; none of it counts as whole yet.
    ///
    /// Errors: `ResourceBusy` where another writer has it; it cannot be written.
    pub(super) fn hold(path: &Path) -> io::Result<Option<Self>> {
        match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => Tail::locked(file).map(Some),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn locked(file: File) -> io::Result<Self> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let text = "another loader or command is writing it; stop that one first, or take another file";
                Err(Error::new(ErrorKind::ResourceBusy, text))
            }
            // Where the file system has no locks, writers of the same file are on their own.
            Err(TryLockError::Error(e)) if e.kind() != ErrorKind::Unsupported => Err(e),
            _ => Ok(Tail { file, whole: 0, locked_in: std::process::id() }),
        }
    }

    /// The file, to be read.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Keeps the first `whole` bytes; cuts off the others before anything is appended.
    pub(super) fn keep(&mut self, whole: u64) {
        self.whole = whole;
    }

    /// Appends bytes, all or none. Errors: also where another process has cut the file.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let there = self.file.metadata()?.len();
        if there < self.whole {
            let text = format!("it was cut to {there} bytes while it was written; it had {}", self.whole);
            return Err(Error::new(ErrorKind::InvalidData, text));
        }
        if there > self.whole {
            self.file.set_len(self.whole)?;
        }
        self.file.seek(SeekFrom::Start(self.whole))?;
        if let Err(error) = self.file.write_all(bytes) {
            // Where this fails, too, the next one does it.
            let _ = self.file.set_len(self.whole);
            return Err(error);
        }
        self.whole += bytes.len() as u64;
        Ok(())
    }

    /// Makes what was appended durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_torn_write_left_is_cut_off_and_two_writers_never_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(Tail::hold(&path).unwrap().is_none());
        let mut tail = Tail::create(&path).unwrap();
        tail.append(b"one\n").unwrap();
        std::fs::write(&path, b"one\ntw").unwrap();
        tail.append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(Tail::hold(&path).unwrap_err().kind(), ErrorKind::ResourceBusy);
        std::fs::write(&path, b"one").unwrap();
        assert_eq!(tail.append(b"three\n").unwrap_err().kind(), ErrorKind::InvalidData);
        drop(tail);
        let mut tail = Tail::hold(&path).unwrap().unwrap();
        tail.keep(2);
        tail.append(b"!").unwrap();
        tail.sync().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"on!");
    }

    #[test]
    fn a_lock_ends_with_its_tail_whoever_has_a_copy_of_the_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let tail = Tail::create(&path).unwrap();
        let copy = tail.file().try_clone().unwrap();
        drop(tail);
        assert!(Tail::hold(&path).unwrap().is_some());
        drop(copy);
        assert!(Tail::hold(folder.path()).is_err(), "only what is not there is none");
    }
}
