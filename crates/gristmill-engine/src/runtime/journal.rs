//! What arrived and when, in the stream's own time: one JSON line per event, written ahead and fsynced.
//! Reading it back gives the same events; a torn last line is cut off. Knows nothing of what an event means.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How a journal is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// As a new file; one that exists is refused.
    New,
    /// In place of a file that tells nothing.
    Anew,
    /// Behind its last whole event.
    Again,
}

/// An append-only file of events; it is touched once it is opened, and not before.
#[derive(Debug)]
pub struct Journal {
    opening: Opening,
    file: Option<File>,
    path: PathBuf,
}

impl Journal {
    /// A journal at `path`, not opened yet.
    pub fn new(path: &Path, opening: Opening) -> Self {
        Journal { opening, file: None, path: path.to_owned() }
    }

    /// A journal at `path`. Errors: as [`Journal::open`].
    pub fn opened(path: &Path, opening: Opening) -> std::io::Result<Self> {
        let mut journal = Journal::new(path, opening);
        journal.open()?;
        Ok(journal)
    }

    /// Opens the file, once. Errors: it exists, or does not, or cannot be written.
    pub fn open(&mut self) -> std::io::Result<&mut File> {
        let file = match (self.file.take(), self.opening) {
            (Some(file), _) => file,
            (None, Opening::New) => OpenOptions::new().write(true).create_new(true).open(&self.path)?,
            (None, Opening::Anew) => OpenOptions::new().write(true).truncate(true).open(&self.path)?,
            (None, Opening::Again) => {
                let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
                let (mut whole, mut at) = (0, 0);
                for byte in BufReader::new(&file).bytes() {
                    at += 1;
                    if byte? == b'\n' {
                        whole = at;
                    }
                }
                file.set_len(whole)?;
                file
            }
        };
        Ok(self.file.insert(file))
    }

    /// Appends events and makes them durable before it returns.
    pub fn append<E: Serialize>(&mut self, events: &[E]) -> std::io::Result<()> {
        self.note(events)?;
        self.open()?.sync_data()
    }

    /// Appends events that outlive this process, not necessarily the machine.
    pub fn note<E: Serialize>(&mut self, events: &[E]) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        let file = self.open()?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&lines)
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all whole events of a journal. Errors: unreadable, or a line that is no event
    /// (the last one, torn by a crash, is left out instead).
    pub fn read<E: DeserializeOwned>(path: &Path) -> std::io::Result<Vec<E>> {
        let mut reader = BufReader::new(File::open(path)?);
        let mut events = Vec::new();
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(events);
            }
            let event = serde_json::from_slice(&line).map_err(|e| {
                let text = format!("line {}: {e}", events.len() + 1);
                std::io::Error::new(std::io::ErrorKind::InvalidData, text)
            })?;
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_and_a_torn_tail_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let mut journal = Journal::new(&path, Opening::New);
        assert!(!path.exists(), "nothing is written before there is something to write");
        journal.append(&[("a".to_string(), 1u64), ("b".to_string(), 2)]).unwrap();
        journal.append(&[("c".to_string(), 3u64)]).unwrap();
        assert!(Journal::new(&path, Opening::New).open().is_err(), "an existing journal is not written over");
        let all: Vec<(String, u64)> = Journal::read(&path).unwrap();
        assert_eq!(all.len(), 3);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(Journal::read::<(String, u64)>(&path).unwrap(), all[..2]);
        Journal::new(&path, Opening::Again).append(&[&all[2]]).unwrap();
        assert_eq!(Journal::read::<(String, u64)>(&path).unwrap(), all, "going on mends the tail");
        Journal::new(&path, Opening::Anew).append(&all[..1]).unwrap();
        assert_eq!(Journal::read::<(String, u64)>(&path).unwrap(), all[..1]);
        assert!(Journal::new(&folder.path().join("none"), Opening::Again).open().is_err());
        std::fs::write(&path, [b"junk\n".as_slice(), &bytes].concat()).unwrap();
        assert!(Journal::read::<(String, u64)>(&path).unwrap_err().to_string().contains("line 1"));
    }
}
