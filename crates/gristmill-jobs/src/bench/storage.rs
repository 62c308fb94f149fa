//! Places in the files of the data -> how fast they are read here, one after another: from the disk, where what memory keeps of
//! them can be dropped, and then from memory. Drops what is kept of these files alone; changes no byte of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use serde::Serialize;

use crate::meter::Meter;

/// The first reading ends after this many bytes, or this long.
const BYTES: u64 = 64 << 20;
const SECONDS: f64 = 0.5;

/// Passes over files in memory, of which the fastest counts, and most files that stay open for them.
const AGAIN: usize = 3;
const OPEN: usize = 256;

/// Places of which the system says whether memory has the file there.
const PROBES: usize = 64;

/// A place to read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// How fast the files of the data are read, one place after another, by one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Storage {
    /// Files that were read from.
    pub files: usize,
    /// Places that were read: chunks, or pieces at random.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether they came from the disk: memory kept none of them.
    pub cold: bool,
    /// Why not, where they did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// The first reading, by the clock.
    pub bytes_per_second: f64,
    /// See `bytes_per_second`.
    pub reads_per_second: f64,
    /// The second reading of the same places, from memory, by the clock.
    pub cached_bytes_per_second: f64,
    /// See `cached_bytes_per_second`.
    pub cached_reads_per_second: f64,
    /// Processor time of a byte in the second reading, in microseconds.
    pub cached_cpu_us_per_byte: f64,
}

/// Reads the places twice, the first time after memory let go of their files; none where no file can be opened.
pub(super) fn measure(units: &[Unit]) -> Option<Storage> {
    let paths: BTreeSet<&Path> = units.iter().map(|unit| &*unit.path).collect();
    let kept = drop_kept(&paths, units);
    // Where there is a file for each place, opening it is part of reading it from the disk; files of many places stay open.
    let mut reader = Reader::default();
    if paths.len() < units.len() {
        reader.open(units);
    }
    let first = reader.pass(units, SECONDS);
    if first.bytes == 0 {
        return None;
    }
    let done = &units[..first.reads];
    reader.open(done);
    let again = (0..AGAIN).map(|_| reader.pass(done, SECONDS));
    let again = again.reduce(|best, pass| if pass.cpu_of_byte() < best.cpu_of_byte() { pass } else { best })?;
    Some(Storage {
        files: done.iter().map(|unit| &*unit.path).collect::<BTreeSet<_>>().len(),
        reads: first.reads as u64,
        bytes: first.bytes,
        cold: kept.is_none(),
        remark: kept,
        bytes_per_second: first.bytes as f64 / first.wall,
        reads_per_second: first.reads as f64 / first.wall,
        cached_bytes_per_second: again.bytes as f64 / again.wall,
        cached_reads_per_second: again.reads as f64 / again.wall,
        cached_cpu_us_per_byte: again.cpu_of_byte() * 1e6,
    })
}

#[derive(Default)]
struct Reader<'a> {
    open: BTreeMap<&'a Path, File>,
    buffer: Vec<u8>,
    meter: Meter,
}

/// What a pass read, and how long it took.
#[derive(Debug, Clone, Copy)]
struct Pass {
    reads: usize,
    bytes: u64,
    wall: f64,
    cpu: f64,
}

impl Pass {
    fn cpu_of_byte(&self) -> f64 {
        self.cpu / self.bytes.max(1) as f64
    }
}

impl<'a> Reader<'a> {
    /// Keeps the files of these places open, as many as there may be.
    fn open(&mut self, units: &'a [Unit]) {
        for unit in units {
            if self.open.len() >= OPEN {
                break;
            }
            if !self.open.contains_key(&*unit.path)
                && let Ok(file) = File::open(&unit.path)
            {
                self.open.insert(&unit.path, file);
            }
        }
    }

    /// Reads places one after another, for a bounded time.
    fn pass(&mut self, units: &[Unit], seconds: f64) -> Pass {
        let start = self.meter.now();
        let mut pass = Pass { reads: 0, bytes: 0, wall: 0.0, cpu: 0.0 };
        for unit in units {
            if pass.bytes >= BYTES || self.meter.now().wall - start.wall >= seconds {
                break;
            }
            self.buffer.resize(usize::try_from(unit.len.min(BYTES)).unwrap_or(0), 0);
            let read = match self.open.get(&*unit.path) {
                Some(file) => read(file, unit.offset, &mut self.buffer),
                None => File::open(&unit.path).and_then(|file| read(&file, unit.offset, &mut self.buffer)),
            };
            pass.bytes += read.unwrap_or_default() as u64;
            pass.reads += 1;
        }
        let end = self.meter.now();
        (pass.wall, pass.cpu) = ((end.wall - start.wall).max(1e-9), (end.cpu - start.cpu).max(1e-9));
        pass
    }
}

fn read(file: &File, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Asks the system to drop what memory keeps of these files. Why it did not, where that is so.
fn drop_kept(paths: &BTreeSet<&Path>, units: &[Unit]) -> Option<String> {
    for path in paths {
        let Ok(file) = File::open(path) else { continue };
        // What is not written yet is not dropped.
        let dropped = fdatasync(&file).and_then(|()| fadvise(&file, 0, None, Advice::DontNeed));
        if let Err(e) = dropped {
            return Some(format!("memory keeps the files: {e}"));
        }
    }
    let (mut kept, mut asked) = (0, 0);
    for unit in units.iter().step_by(units.len().div_ceil(PROBES).max(1)) {
        let Ok(file) = File::open(&unit.path) else { continue };
        let mut byte = [0];
        match preadv2(&file, &mut [IoSliceMut::new(&mut byte)], unit.offset, ReadWriteFlags::NOWAIT) {
            Ok(_) => kept += 1,
            Err(Errno::AGAIN) => {}
            Err(e) => return Some(format!("this file system does not say what memory keeps: {e}")),
        }
        asked += 1;
    }
    (kept * 10 > asked)
        .then(|| format!("memory keeps {kept} of {asked} places, although the system was told to drop the files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_to_the_byte_and_missing_files_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, vec![7; 10_000]).unwrap();
        let unit = |offset, len| Unit { path: path.clone(), offset, len };
        let found = measure(&[unit(0, 6000), unit(6000, 4000), unit(9000, 5000)]).unwrap();
        assert_eq!((found.files, found.reads, found.bytes), (1, 3, 11_000), "what is beyond the end is not there");
        assert!(found.bytes_per_second > 0.0 && found.cached_cpu_us_per_byte > 0.0, "{found:?}");
        assert_eq!(found.cold, found.remark.is_none(), "{found:?}");
        assert_eq!(measure(&[Unit { path: folder.path().join("none"), offset: 0, len: 9 }]), None);
        assert_eq!(measure(&[]), None);
    }
}
