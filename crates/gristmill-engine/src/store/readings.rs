//! Bytes of whole files as they were first read -> a digest, found again by what the file is: device, inode, size and time.
//! Tells a file that was only touched, or written again as it was, from one with other bytes. Reads nothing itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::FileStat;

/// The digest of a whole file's bytes: the low half of xxh3's 128 bits.
pub fn digest(bytes: &[u8]) -> u64 {
    xxh3_128(bytes) as u64
}

/// Digests of the files of a store that were read whole.
#[derive(Debug, Default)]
pub struct Readings(Mutex<HashMap<u64, u64>>);

impl Readings {
    /// Notes what a file was when it was first read.
    pub fn note(&self, file: &FileStat, digest: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(place(file)).or_insert(digest);
    }

    /// What a file was when it was first read, if it ever was.
    pub fn of(&self, file: &FileStat) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&place(file)).copied()
    }
}

fn place(file: &FileStat) -> u64 {
    let numbers = [file.device, file.inode, file.size, file.mtime_ns as u64];
    xxh3_64(&numbers.map(u64::to_le_bytes).concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_of_the_file_as_it_was_under_any_name() {
        let readings = Readings::default();
        let file = FileStat { name: "a".into(), size: 3, mtime_ns: -7, device: 1, inode: 2 };
        readings.note(&file, digest(b"one"));
        readings.note(&file, digest(b"two"));
        assert_eq!(readings.of(&FileStat { name: "b".into(), ..file.clone() }), Some(digest(b"one")), "the first");
        assert_eq!(readings.of(&FileStat { mtime_ns: -8, ..file }), None);
    }
}
