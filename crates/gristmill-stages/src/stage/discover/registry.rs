//! Every file seen that was not forgotten -> whether the one at hand is new, replaced, moved, or known.
//! The judge of what counts once; reads a file's bytes only where names and stats do not decide.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::source::{Span, read_span};
use gristmill_format::{Error, Result};
use gristmill_runtime::key::natural_cmp;
use gristmill_runtime::store::{Change, FileStat, Store};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Content digests of larger files are taken only to compare two of equal key and size: for them a change of time or
/// size is a change.
const MAX_DIGESTED: u64 = 64 << 20;

/// Bytes hashed at a time.
const STEP: u64 = 1 << 20;

/// The files seen so far, numbered.
#[derive(Debug)]
pub(super) struct Registry {
    store: Arc<dyn Store>,
    known: HashMap<Arc<str>, Known>,
    /// Number of the file at a place of a device.
    places: HashMap<(u64, u64), u64>,
    /// Current name of each file, by number.
    names: HashMap<u64, Arc<str>>,
    next: u64,
    /// Those that were deleted.
    left: HashSet<u64>,
    /// Hash of (key, size), and number.
    alike: BTreeSet<(u64, u64)>,
    /// Content digests, of those files for which they were needed; the store knows those of files that were read.
    digests: HashMap<u64, u64>,
    /// Further names of bytes that are counted already, with the number of those.
    spares: HashMap<Arc<str>, Known>,
    /// Errors of reading files to compare them, which were not reported yet.
    unread: Mutex<Vec<Error>>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    number: u64,
    size: u64,
    mtime_ns: i64,
    device: u64,
    inode: u64,
}

impl Known {
    fn of(number: u64, file: &FileStat) -> Self {
        let FileStat { size, mtime_ns, device, inode, .. } = *file;
        Known { number, size, mtime_ns, device, inode }
    }

    fn stat(&self, name: &Arc<str>) -> FileStat {
        let Known { size, mtime_ns, device, inode, .. } = *self;
        FileStat { name: name.clone(), size, mtime_ns, device, inode }
    }
}

impl Registry {
    /// Nothing seen so far; `stop` ends the reading of large files.
    pub(crate) fn new(store: Arc<dyn Store>, stop: Arc<AtomicBool>) -> Self {
        Registry {
            store,
            known: HashMap::new(),
            places: HashMap::new(),
            names: HashMap::new(),
            next: 0,
            left: HashSet::new(),
            alike: BTreeSet::new(),
            digests: HashMap::new(),
            spares: HashMap::new(),
            unread: Mutex::default(),
            stop,
        }
    }

    /// How many files were left out because their bytes were counted already.
    pub(super) fn duplicates(&self) -> u64 {
        self.spares.len() as u64
    }

    /// Errors of reading files to compare them, since the last call. Such a file counted as one of its own.
    pub(super) fn unread(&mut self) -> Vec<Error> {
        std::mem::take(self.unread.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the first scan: orders the files by key (natural order), then name, leaves out all but the first of
    /// those that are the same file, or have equal key, size and content, and numbers the rest. Names that are
    /// `expected` come first.
    pub(super) fn scan(&mut self, mut files: Vec<FileStat>, expected: &HashSet<String>) -> Vec<FileStat> {
        files.sort_unstable_by(by_key);
        files.sort_by_key(|file| !expected.contains(&*file.name));
        files.retain(|file| {
            let counted = self.same_place(file).or_else(|| self.same_content(file, None));
            match counted {
                Some(number) => _ = self.spares.insert(file.name.clone(), Known::of(number, file)),
                None => _ = self.insert(file),
            }
            counted.is_none()
        });
        files
    }

    /// Takes a file as it is now. `closed`: it was just closed by a writer, or renamed into place.
    pub(super) fn observe(&mut self, file: &FileStat, closed: bool) -> Option<Change> {
        let Some(known) = self.known.get(&file.name).copied() else { return self.first_time(file) };
        let change = self.again(known, file, closed);
        let back = matches!(change, None | Some(Change::Moved { .. })) && self.left.remove(&known.number);
        change.or_else(|| back.then(|| Change::Moved { number: known.number, file: file.clone() }))
    }

    /// Names of known files that `listed` lacks.
    pub(super) fn lacking(&self, listed: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        let names = self.known.iter().filter(|(_, known)| !self.left.contains(&known.number)).map(|(name, _)| name);
        names.filter(|name| !listed.contains(*name)).cloned().collect()
    }

    /// Whether the file of a name is known, and not known to have left.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|known| !self.left.contains(&known.number))
    }

    /// A known file is not under its name any more: it has left, or one of its further names counts now.
    pub(super) fn leave(&mut self, name: &str) -> Option<Change> {
        let number = self.known.get(name)?.number;
        let spares = self.spares.iter().filter(|(_, spare)| spare.number == number);
        let spares: Vec<FileStat> = spares.map(|(name, spare)| spare.stat(name)).collect();
        let there = |spare: &FileStat| self.store.stat(&spare.name).is_ok_and(|now| now.same_file(spare));
        if let Some(file) = spares.into_iter().find(there) {
            self.known.remove(name);
            self.note(number, &file);
            return Some(Change::Moved { number, file });
        }
        self.left.insert(number).then_some(Change::Left { number })
    }

    /// A file was not under this name when it was to be opened: it has left, or is under another name by now.
    pub(super) fn gone(&mut self, number: u64, name: &str) -> Option<Change> {
        let now = self.names.get(&number)?.clone();
        if *now == *name {
            return self.leave(name);
        }
        let file = self.known.get(&now).filter(|_| !self.left.contains(&number))?.stat(&now);
        Some(Change::Moved { number, file })
    }

    /// Forgets a file that has left; its name where it is back by now.
    pub(super) fn forget(&mut self, number: u64) -> Option<Arc<str>> {
        let name = self.names.remove(&number)?;
        let known = self.known.remove(&name)?;
        if known.number != number {
            self.known.insert(name, known);
            return None;
        }
        self.alike.remove(&(alike(&known.stat(&name)), number));
        self.digests.remove(&number);
        self.spares.retain(|_, spare| spare.number != number);
        self.leave_place(&known);
        (!self.left.remove(&number)).then_some(name)
    }

    /// The place of a file is free for another.
    fn leave_place(&mut self, known: &Known) {
        let place = (known.device, known.inode);
        if self.places.get(&place) == Some(&known.number) {
            self.places.remove(&place);
        }
    }

    /// Whether there is nothing to learn about this file: it is known under this name, or a spare whose original is
    /// still there.
    pub(super) fn knows(&self, file: &FileStat) -> bool {
        let same = |known: &&Known| known.stat(&file.name).same_file(file);
        self.known.get(&file.name).filter(same).is_some_and(|known| !self.left.contains(&known.number))
            || self.spares.get(&file.name).filter(same).is_some_and(|spare| self.is_still_there(spare.number))
    }

    fn again(&mut self, known: Known, file: &FileStat, closed: bool) -> Option<Change> {
        let recorded = self.recorded(known.number, &known.stat(&file.name));
        let same_file = known.stat(&file.name).same_file(file);
        if same_file && !(closed && recorded.is_some()) {
            return None;
        }
        let digest = self.digest(file);
        if digest.is_some() && digest == recorded {
            if same_file {
                return None;
            }
            self.digests.extend(digest.map(|digest| (known.number, digest)));
            self.note(known.number, file);
            return Some(Change::Moved { number: known.number, file: file.clone() });
        }
        let number = self.insert(file);
        self.digests.remove(&known.number);
        self.left.remove(&known.number);
        self.names.remove(&known.number);
        self.leave_place(&known);
        self.alike.remove(&(alike(&known.stat(&file.name)), known.number));
        self.digests.extend(digest.map(|d| (number, d)));
        Some(Change::Replaced { old: known.number, number, file: file.clone() })
    }

    fn first_time(&mut self, file: &FileStat) -> Option<Change> {
        if let Some(number) = self.same_place(file) {
            return self.elsewhere(number, file);
        }
        let digest = self.digest(file);
        if let Some(number) = self.same_content(file, digest) {
            return self.elsewhere(number, file);
        }
        let number = self.insert(file);
        self.digests.extend(digest.map(|d| (number, d)));
        Some(Change::New { number, file: file.clone() })
    }

    /// Bytes that are known under another name: a move where that name is gone, else one more name for them.
    fn elsewhere(&mut self, number: u64, file: &FileStat) -> Option<Change> {
        if self.is_still_there(number) {
            self.spares.insert(file.name.clone(), Known::of(number, file));
            return None;
        }
        if let Some(old) = self.names.get(&number) {
            self.known.remove(old);
        }
        self.left.remove(&number);
        self.note(number, file);
        Some(Change::Moved { number, file: file.clone() })
    }

    /// The known file at the same place of the same device, with the same size and time.
    fn same_place(&self, file: &FileStat) -> Option<u64> {
        // Objects of the same bytes have the same mark, and may be of the same second.
        if file.device == 0 {
            return None;
        }
        let number = *self.places.get(&(file.device, file.inode))?;
        let name = self.names.get(&number)?;
        let known = self.known.get(name).filter(|k| k.number == number)?;
        known.stat(name).same_file(file).then_some(number)
    }

    /// The known file with the same key, size and content in another folder.
    fn same_content(&mut self, file: &FileStat, digest: Option<u64>) -> Option<u64> {
        let alike = alike(file);
        let candidates: Vec<u64> = self.alike.range((alike, 0)..=(alike, u64::MAX)).map(|(_, n)| *n).collect();
        if candidates.is_empty() {
            return None;
        }
        let digest = digest.or_else(|| self.digest_any(file))?;
        candidates.into_iter().find(|&number| {
            let Some(name) = self.names.get(&number) else { return false };
            let Some(known) = self.known.get(name).filter(|k| k.number == number) else { return false };
            let known = known.stat(name);
            if known.key() != file.key() || known.size != file.size {
                return false;
            }
            let recorded = self.recorded(number, &known).or_else(|| {
                let unchanged = self.store.stat(&known.name).is_ok_and(|now| now.same_file(&known));
                unchanged.then(|| self.digest_any(&known)).flatten()
            });
            self.digests.extend(recorded.map(|d| (number, d)));
            recorded == Some(digest)
        })
    }

    /// What was read of a known file.
    fn recorded(&self, number: u64, file: &FileStat) -> Option<u64> {
        self.digests.get(&number).copied().or_else(|| self.store.readings().of(file))
    }

    fn is_still_there(&self, number: u64) -> bool {
        let Some(name) = self.names.get(&number) else { return false };
        let known = self.known.get(name).filter(|k| k.number == number);
        known.is_some_and(|k| self.store.stat(name).is_ok_and(|now| now.same_file(&k.stat(name))))
    }

    /// Numbers a file.
    fn insert(&mut self, file: &FileStat) -> u64 {
        let number = self.next;
        self.next += 1;
        self.alike.insert((alike(file), number));
        self.note(number, file);
        number
    }

    /// Notes what a numbered file is now.
    fn note(&mut self, number: u64, file: &FileStat) {
        self.names.insert(number, file.name.clone());
        self.places.insert((file.device, file.inode), number);
        self.spares.remove(&file.name);
        self.known.insert(file.name.clone(), Known::of(number, file));
    }

    /// Hash of the bytes; `None` where the file is too large or cannot be read.
    fn digest(&self, file: &FileStat) -> Option<u64> {
        (file.size <= MAX_DIGESTED).then(|| self.digest_any(file)).flatten()
    }

    /// Hash of the bytes of a file of any size; `None` where it cannot be read.
    fn digest_any(&self, file: &FileStat) -> Option<u64> {
        let read = self.read(file);
        // One that left has nothing to be compared.
        if let Some(e) = read.as_ref().err().filter(|e| e.kind().is_of_reading()) {
            self.unread.lock().unwrap_or_else(PoisonError::into_inner).push(e.clone());
        }
        read.ok().flatten()
    }

    fn read(&self, file: &FileStat) -> Result<Option<u64>> {
        let bytes = self.store.open(&file.name)?;
        let mut hash = Xxh3Default::new();
        let mut step = Vec::new();
        let mut offset = 0;
        while offset < file.size && !self.stop.load(Ordering::Relaxed) {
            let len = STEP.min(file.size - offset);
            read_span(&*bytes, Span { offset, len }, STEP, &mut step)
                .map_err(|e| e.in_source(file.name.to_string()))?;
            hash.update(&step);
            offset += len;
        }
        Ok((offset == file.size).then(|| hash.digest128() as u64))
    }
}

/// Key in natural order, then name.
pub(super) fn by_key(a: &FileStat, b: &FileStat) -> std::cmp::Ordering {
    natural_cmp(a.key(), b.key()).then_with(|| a.name.cmp(&b.name))
}

fn alike(file: &FileStat) -> u64 {
    xxh3_64(file.key().as_bytes()) ^ file.size.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_runtime::store::MemoryStore;

    fn registry() -> (Arc<MemoryStore>, Registry) {
        let store = Arc::new(MemoryStore::new());
        (store.clone(), Registry::new(store, Arc::default()))
    }

    #[test]
    fn nothing_is_kept_of_what_left_and_is_forgotten() {
        let (store, mut registry) = registry();
        for number in 0..50 {
            let name = format!("a{number}");
            store.write(&name, vec![number as u8; 9]);
            let file = store.stat(&name).unwrap();
            assert_eq!(registry.observe(&file, true), Some(Change::New { number, file }));
            store.remove(&name);
            assert_eq!(registry.leave(&name), Some(Change::Left { number }));
            assert!(registry.leave(&name).is_none() && !registry.has(&name), "once");
            assert_eq!(registry.forget(number), None);
        }
        let Registry { known, places, names, alike, digests, spares, left, next, .. } = registry;
        assert!(known.is_empty() && places.is_empty() && names.is_empty() && alike.is_empty());
        assert!(digests.is_empty() && spares.is_empty() && left.is_empty());
        assert_eq!(next, 50, "no number is given twice");
    }

    #[test]
    fn what_is_back_before_it_is_forgotten_is_what_it_was() {
        let (store, mut registry) = registry();
        store.write("a", *b"bytes");
        let file = store.stat("a").unwrap();
        registry.observe(&file, true);
        store.rename("a", "elsewhere");
        registry.leave("a");
        store.rename("elsewhere", "a");
        assert!(!registry.knows(&file), "it is to be read");
        assert_eq!(registry.observe(&file, true), Some(Change::Moved { number: 0, file: file.clone() }));
        assert!(registry.knows(&file) && registry.observe(&file, true).is_none());
        assert_eq!(registry.forget(0).as_deref(), Some("a"), "a registry that forgot it finds it again");
        assert_eq!(registry.observe(&file, true), Some(Change::New { number: 1, file }));
    }

    #[test]
    fn what_was_gone_when_it_was_to_be_opened_is_reported_when_it_is_found_again() {
        let (store, mut registry) = registry();
        store.write("a", *b"bytes");
        let file = store.stat("a").unwrap();
        registry.observe(&file, true);
        let moved = |file: &FileStat| Some(Change::Moved { number: 0, file: file.clone() });
        assert_eq!(registry.gone(0, "a"), Some(Change::Left { number: 0 }));
        assert!(registry.gone(0, "a").is_none() && !registry.knows(&file), "once; it is to be read");
        assert_eq!(registry.observe(&file, true), moved(&file), "back before any listing missed it");
        store.rename("a", "b");
        let file = store.stat("b").unwrap();
        assert_eq!(registry.observe(&file, true), moved(&file));
        assert_eq!(registry.gone(0, "a"), moved(&file), "it was found under its new name meanwhile");
        store.remove("b");
        registry.leave("b");
        assert!(registry.gone(0, "a").is_none() && registry.gone(1, "a").is_none());
    }

    #[test]
    fn a_further_name_counts_once_the_first_is_gone() {
        let (store, mut registry) = registry();
        store.write("a/game", *b"bytes");
        store.write("b/game", *b"bytes");
        let [a, b] = ["a/game", "b/game"].map(|name| store.stat(name).unwrap());
        registry.observe(&a, true);
        assert_eq!(registry.observe(&b, true), None, "the same game");
        store.remove("a/game");
        assert_eq!(registry.leave("a/game"), Some(Change::Moved { number: 0, file: b.clone() }));
        assert!(registry.knows(&b) && registry.duplicates() == 0);
    }
}
