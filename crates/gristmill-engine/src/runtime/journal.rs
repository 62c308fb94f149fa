//! What arrived and when, in the stream's own time: one JSON line per event, written ahead and fsynced.
//! Reading it back gives the same events; a torn last line is cut off. Knows nothing of what an event means.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An append-only file of events.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Starts a new journal. Errors: the file exists already, or cannot be made.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Journal { file, path: path.to_owned() })
    }

    /// Goes on with a journal, from its last whole event. Errors: there is none, or it cannot be written.
    pub fn reopen(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let (mut whole, mut at) = (0, 0);
        for byte in BufReader::new(&file).bytes() {
            at += 1;
            if byte? == b'\n' {
                whole = at;
            }
        }
        file.set_len(whole)?;
        Ok(Journal { file, path: path.to_owned() })
    }

    /// Appends events and makes them durable before it returns.
    pub fn append<E: Serialize>(&mut self, events: &[E]) -> std::io::Result<()> {
        self.note(events)?;
        self.file.sync_data()
    }

    /// Appends events that outlive this process, not necessarily the machine.
    pub fn note<E: Serialize>(&mut self, events: &[E]) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)?;
            lines.push(b'\n');
        }
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(&lines)
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
        let mut journal = Journal::create(&path).unwrap();
        journal.append(&[("a".to_string(), 1u64), ("b".to_string(), 2)]).unwrap();
        journal.append(&[("c".to_string(), 3u64)]).unwrap();
        assert!(Journal::create(&path).is_err(), "an existing journal is never overwritten");
        let all: Vec<(String, u64)> = Journal::read(&path).unwrap();
        assert_eq!(all.len(), 3);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(Journal::read::<(String, u64)>(&path).unwrap(), all[..2]);
        Journal::reopen(&path).unwrap().append(&[&all[2]]).unwrap();
        assert_eq!(Journal::read::<(String, u64)>(&path).unwrap(), all, "going on mends the tail");
        std::fs::write(&path, [b"junk\n".as_slice(), &bytes].concat()).unwrap();
        assert!(Journal::read::<(String, u64)>(&path).unwrap_err().to_string().contains("line 1"));
    }
}
