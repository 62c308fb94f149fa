//! Trajectories of many files -> one nameless file beside the output, from which any of them can be had again.
//! Memory holds one trajectory; the file goes with the process, however that ends.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_format::demo::value::Extra;

/// Frames on the disk: records in one file, what travels beside them in another.
#[derive(Debug)]
pub(super) struct Spool {
    records: BufWriter<File>,
    extras: BufWriter<File>,
    names: Vec<String>,
    /// Bytes of a record.
    size: usize,
    folder: std::path::PathBuf,
}

/// Where the extras of a trajectory lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    start: u64,
    end: u64,
}

impl Spool {
    /// An empty one for records of `size` bytes, on the disk of `folder`.
    ///
    /// Errors: `Path`.
    pub(super) fn new(folder: &Path, size: usize) -> Result<Self> {
        let file = || tempfile::tempfile_in(folder).map_err(|e| Error::path(folder, &e));
        let (records, extras) = (BufWriter::new(file()?), BufWriter::new(file()?));
        Ok(Spool { records, extras, names: Vec::new(), size, folder: folder.to_owned() })
    }

    /// Adds records, back to back.
    ///
    /// Errors: `Path`.
    pub(super) fn add(&mut self, records: &[u8]) -> Result<()> {
        self.records.write_all(records).map_err(|e| Error::path(&self.folder, &e))
    }

    /// Adds extras, each with the number of its frame.
    ///
    /// Errors: `Path`.
    pub(super) fn add_extras<'a>(&mut self, extras: impl Iterator<Item = (u64, &'a str, &'a Extra)>) -> Result<Place> {
        let refuse = |e: std::io::Error| Error::path(&self.folder, &e);
        let start = self.extras.stream_position().map_err(refuse)?;
        for (frame, name, extra) in extras {
            let id = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
                self.names.push(name.to_owned());
                self.names.len() - 1
            });
            let (kind, bytes): (u64, &[u8]) = match extra {
                Extra::Text(text) => (0, text.as_bytes()),
                Extra::Bytes(bytes) => (1, bytes),
                Extra::Json(text) => (2, text.as_bytes()),
                Extra::Pickle(bytes) => (3, bytes),
            };
            for number in [frame, id as u64, kind, bytes.len() as u64] {
                self.extras.write_all(&number.to_le_bytes()).map_err(refuse)?;
            }
            self.extras.write_all(bytes).map_err(refuse)?;
        }
        Ok(Place { start, end: self.extras.stream_position().map_err(refuse)? })
    }

    /// Reads `count` records from number `first` on.
    ///
    /// Errors: `Path`.
    pub(super) fn read(&mut self, first: usize, count: usize, to: &mut Vec<u8>) -> Result<()> {
        let (at, size) = (first as u64 * self.size as u64, self.size);
        to.resize(count * size, 0);
        let read = self.records.seek(SeekFrom::Start(at)).and_then(|_| self.records.get_mut().read_exact(to));
        read.map_err(|e| Error::path(&self.folder, &e))
    }

    /// Reads the extras at a place: frame, name and value.
    ///
    /// Errors: `Path`.
    pub(super) fn read_extras(&mut self, place: Place) -> Result<Vec<(u64, String, Extra)>> {
        let folder = self.folder.clone();
        let refuse = |e: std::io::Error| Error::path(&folder, &e);
        let mut bytes = vec![0; (place.end - place.start) as usize];
        self.extras.seek(SeekFrom::Start(place.start)).map_err(refuse)?;
        self.extras.get_mut().read_exact(&mut bytes).map_err(refuse)?;
        let (mut left, mut found) = (bytes.as_slice(), Vec::new());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while !left.is_empty() {
            let mut numbers = [0u64; 4];
            for number in &mut numbers {
                let mut word = [0; 8];
                left.read_exact(&mut word).map_err(refuse)?;
                *number = u64::from_le_bytes(word);
            }
            let [frame, id, kind, len] = numbers;
            let (value, rest) = left.split_at(len as usize);
            left = rest;
            let extra = match kind {
                0 => Extra::Text(text(value)),
                1 => Extra::Bytes(value.to_vec()),
                2 => Extra::Json(text(value)),
                _ => Extra::Pickle(value.to_vec()),
            };
            found.push((frame, self.names[id as usize].clone(), extra));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_in_any_order_and_nothing_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(folder.path(), 2).unwrap();
        spool.add(&[1, 1, 2, 2]).unwrap();
        let extras = [Extra::Text("größe".into()), Extra::Pickle(vec![0, 255]), Extra::Json("{}".into())];
        let one = spool.add_extras([(0, "a", &extras[0]), (1, "b", &extras[1])].into_iter()).unwrap();
        spool.add(&[3, 3]).unwrap();
        let two = spool.add_extras([(2, "a", &extras[2])].into_iter()).unwrap();
        let mut records = Vec::new();
        spool.read(1, 2, &mut records).unwrap();
        assert_eq!(records, [2, 2, 3, 3]);
        assert_eq!(spool.read_extras(two).unwrap(), [(2, "a".to_owned(), extras[2].clone())]);
        let first = spool.read_extras(one).unwrap();
        assert_eq!(first[1], (1, "b".to_owned(), extras[1].clone()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
