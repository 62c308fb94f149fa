//! Bytes of whole files as they were first read -> a digest, found again by what the file is: device, inode, size and time.
//! Tells a file that was only touched, or written again as it was, from one with other bytes; and one that was moved just now
//! from one that was deleted, once the search has looked. Carries to the search which files are gone or forgotten. Reads nothing itself.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::FileStat;

/// The digest of a whole file's bytes: the low half of xxh3's 128 bits.
pub fn digest(bytes: &[u8]) -> u64 {
    xxh3_128(bytes) as u64
}

/// Looks of the search after which a file that is not under its name was deleted: the first may have begun before that.
const LOOKS: u64 = 2;

/// Digests of the files of a store that were read whole, and names that are away while it may be that they were moved.
#[derive(Debug, Default)]
pub struct Readings {
    digests: Mutex<HashMap<u64, u64>>,
    /// How often the search has reported every notice that it had; 0 where nothing notifies it.
    looks: AtomicU64,
    /// Looks before a name was first missed.
    missed: Mutex<HashMap<String, u64>>,
    /// Numbers of files that have left and that nobody needs any more, for the search.
    forgotten: Mutex<Vec<u64>>,
    /// Numbers of files that were not under these names when they were to be opened, for the search.
    gone: Mutex<Vec<(u64, Arc<str>)>>,
}

impl Readings {
    /// The search has reported every move that it was notified of.
    pub fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Release);
    }

    /// Nothing notifies the search any more.
    pub fn ended(&self) {
        self.looks.store(0, Ordering::Release);
    }

    /// Whether a file that is not under its name may have been moved: the search has not looked since.
    pub fn may_have_moved(&self, name: &str) -> bool {
        let looks = self.looks.load(Ordering::Acquire);
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *missed.entry(name.to_owned()).or_insert(looks);
        let may = looks > 0 && looks < first + LOOKS;
        if !may {
            missed.remove(name);
        }
        may
    }

    /// Notes what a file was when it was first read.
    pub fn note(&self, file: &FileStat, digest: u64) {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).entry(place(file)).or_insert(digest);
    }

    /// Forgets a file that has left: what it was, and that the search found it under this number.
    pub fn forget(&self, number: u64, file: &FileStat) {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).remove(&place(file));
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    /// The numbers that were forgotten since the last call.
    pub fn take_forgotten(&self) -> Vec<u64> {
        std::mem::take(&mut *self.forgotten.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that the file of this number was not under this name when it was to be opened.
    pub fn gone(&self, number: u64, name: Arc<str>) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).push((number, name));
    }

    /// The files that were gone since the last call.
    pub fn take_gone(&self) -> Vec<(u64, Arc<str>)> {
        std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a file was when it was first read, if it ever was.
    pub fn of(&self, file: &FileStat) -> Option<u64> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&place(file)).copied()
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
    fn a_name_that_is_away_was_deleted_once_the_search_has_looked() {
        let readings = Readings::default();
        assert!(!readings.may_have_moved("a"), "nobody would tell");
        readings.looked();
        assert!(readings.may_have_moved("a"));
        readings.looked();
        assert!(readings.may_have_moved("a"), "that look may have begun before");
        readings.looked();
        assert!(!readings.may_have_moved("a"));
        assert!(readings.may_have_moved("b"));
        readings.ended();
        assert!(!readings.may_have_moved("b"));
    }

    #[test]
    fn what_was_gone_or_forgotten_is_told_once() {
        let readings = Readings::default();
        let file = FileStat { name: "a".into(), size: 3, mtime_ns: -7, device: 1, inode: 2 };
        readings.gone(4, file.name.clone());
        readings.forget(5, &file);
        assert_eq!((readings.take_gone(), readings.take_forgotten()), (vec![(4, "a".into())], vec![5]));
        assert!(readings.take_gone().is_empty() && readings.take_forgotten().is_empty());
    }

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
