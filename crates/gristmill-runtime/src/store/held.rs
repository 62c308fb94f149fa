//! A whole file as one slice of bytes: mapped, so that the system reads the pages that are touched, or read into memory.
//! A mapped file must not be cut while it is held; cutting it ends the process, as with any mapping.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use gristmill_format::{Error, Kind, Result};
use memmap2::{Advice, Mmap, MmapMut};

/// Where the bytes of a held file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residence {
    /// In the system's cache of files, as far as it has room.
    #[default]
    Mapped,
    /// In memory of this process, on huge pages where there are any.
    Memory,
}

/// The bytes of a file from an offset on.
#[derive(Debug)]
pub struct HeldFile {
    bytes: Bytes,
    offset: usize,
    len: usize,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Memory(MmapMut),
}

impl HeldFile {
    /// Holds `len` bytes of the file at `path` from `offset` on.
    ///
    /// Errors, with the path: `Io`; `Truncated` when the file ends before that; `TooLarge` when there is no such memory.
    pub fn open(path: &Path, offset: u64, len: u64, residence: Residence) -> Result<Self> {
        let place = |e: Error| e.in_source(path.display().to_string());
        let mut file = File::open(path).map_err(|e| place(e.into()))?;
        let there = file.metadata().map_err(|e| place(e.into()))?.len();
        if offset.checked_add(len).is_none_or(|end| end > there) {
            let detail = format!("expected {len} bytes from byte {offset} on, the file has {there}");
            return Err(place(Error::new(Kind::Truncated, detail).at_byte(there)));
        }
        let size = |n: u64| usize::try_from(n).map_err(|_| place(Error::new(Kind::TooLarge, format!("{n} bytes"))));
        let (offset, len) = (size(offset)?, size(len)?);
        let (bytes, offset) = match residence {
            Residence::Mapped => {
                // SAFETY: the mapping is read-only and private to this type. A file that is cut meanwhile raises a
                // signal, which is documented above; bytes that change are read as other bytes, which every reader checks.
                let map = unsafe { Mmap::map(&file) }.map_err(|e| place(e.into()))?;
                // Rows are wanted from anywhere: pages around them are not. A wish, which may be refused.
                let _ = map.advise(Advice::Random);
                (Bytes::Mapped(map), offset)
            }
            Residence::Memory => {
                let none = |e: std::io::Error| Error::new(Kind::TooLarge, format!("{len} bytes of memory: {e}"));
                let mut map = MmapMut::map_anon(len.max(1)).map_err(|e| place(none(e)))?;
                let _ = map.advise(Advice::HugePage);
                let sought = file.seek(SeekFrom::Start(offset as u64));
                sought.and_then(|_| file.read_exact(&mut map[..len])).map_err(|e| place(e.into()))?;
                (Bytes::Memory(map), 0)
            }
        };
        Ok(HeldFile { bytes, offset, len })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Memory(map) => map,
        };
        &all[self.offset..self.offset + self.len]
    }

    /// Says that bytes `start..end` will be wanted soon. Costs nothing where they are in memory; never fails.
    pub fn want(&self, start: usize, end: usize) {
        let end = end.min(self.len);
        if let (Bytes::Mapped(map), true) = (&self.bytes, start < end) {
            let _ = map.advise_range(Advice::WillNeed, self.offset + start, end - start);
        }
    }
}

/// Zero bytes of this process's own, on huge pages where there are any: touching them for the first time costs a small part of
/// what it costs elsewhere. Only what is touched is taken.
#[derive(Debug)]
pub struct Room(MmapMut);

impl Room {
    /// Room for `len` bytes.
    ///
    /// Errors: `TooLarge` when there is no such memory.
    pub fn new(len: usize) -> Result<Room> {
        let none = |e: std::io::Error| Error::new(Kind::TooLarge, format!("{len} bytes of memory: {e}"));
        let map = MmapMut::map_anon(len.max(1)).map_err(none)?;
        let _ = map.advise(Advice::HugePage);
        Ok(Room(map))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_residences_hold_the_same_bytes_and_short_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, (0..200).collect::<Vec<u8>>()).unwrap();
        for residence in [Residence::Mapped, Residence::Memory] {
            let held = HeldFile::open(&path, 10, 100, residence).unwrap();
            assert_eq!(held.bytes(), (10..110).collect::<Vec<u8>>());
            held.want(0, 1000);
            let error = HeldFile::open(&path, 150, 51, residence).unwrap_err();
            assert_eq!(error.kind(), Kind::Truncated);
            assert!(error.to_string().contains("rows"), "{error}");
            assert!(HeldFile::open(&path, u64::MAX, 1, residence).is_err());
            assert!(HeldFile::open(&path, 200, 0, residence).unwrap().bytes().is_empty());
        }
        assert!(HeldFile::open(&folder.path().join("none"), 0, 0, Residence::Mapped).is_err());
    }
}
