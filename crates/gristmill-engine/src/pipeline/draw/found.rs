//! The files of an earlier run, and what a first scan found -> which is which: by name and time of change, by bytes where
//! those differ, under another name where the first one is gone. Reads only what names, sizes and times leave open.

use std::collections::{HashMap, HashSet};

use gristmill_runtime::key::of_name;
use gristmill_runtime::store::FileStat;
use gristmill_stages::stage::load::Entry;

use crate::pipeline::draw::recorded::Recorded;

/// What became of the recorded files.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Found {
    /// Recorded id -> id in the log. Several versions of a file that have the same bytes lead to the same one.
    pub(in crate::pipeline) to_log: HashMap<u64, u64>,
    /// Id in the log -> recorded id, of the newest version.
    pub(in crate::pipeline) from_log: HashMap<u64, u64>,
    /// What is where a recorded file was, and is another one.
    pub(in crate::pipeline) instead: HashMap<u64, FileStat>,
    /// Files that no record knows: place among the entries, and the recorded one that was there before.
    pub(in crate::pipeline) new: Vec<(usize, Option<u64>)>,
}

/// The digest of a file of the scan and that of older versions, by its place among the entries; reads it.
type Digest<'a> = dyn FnMut(usize) -> Option<[u64; 2]> + 'a;

struct Finding<'a> {
    recorded: &'a [Recorded],
    entries: &'a [Entry],
    digest: &'a mut Digest<'a>,
    digests: HashMap<usize, Option<[u64; 2]>>,
    found: Found,
}

/// Finds recorded files among the entries of a scan.
pub(in crate::pipeline) fn find<'a>(
    recorded: &'a [Recorded],
    entries: &'a [Entry],
    digest: &'a mut Digest<'a>,
) -> Found {
    let mut finding = Finding { recorded, entries, digest, digests: HashMap::new(), found: Found::default() };
    let unmatched = finding.by_name();
    let taken = finding.elsewhere(&unmatched);
    let found = &mut finding.found;
    for (at, old) in unmatched.into_iter().filter(|(at, _)| !taken.contains(at)) {
        found.new.push((at, old.filter(|old| !found.to_log.contains_key(old))));
    }
    finding.found
}

impl Finding<'_> {
    fn digest(&mut self, at: usize) -> Option<[u64; 2]> {
        *self.digests.entry(at).or_insert_with(|| (self.digest)(at))
    }

    /// Whether an entry has the bytes that were read of a recorded file; not where none were.
    fn has_bytes_of(&mut self, at: usize, file: &Recorded) -> bool {
        file.digest().is_some_and(|read| self.digest(at).is_some_and(|there| there.contains(&read)))
    }

    /// Looks where the files were recorded. Returns the entries that are none of them, with what was there before.
    fn by_name(&mut self) -> Vec<(usize, Option<u64>)> {
        let mut versions: HashMap<&str, Vec<&Recorded>> = HashMap::new();
        for file in self.recorded {
            versions.entry(&file.name).or_default().push(file);
        }
        let mut unmatched = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(versions) = versions.get(&*entry.file.name) else {
                unmatched.push((at, None));
                continue;
            };
            let alike: Vec<&Recorded> = versions.iter().rev().filter(|v| v.size == entry.file.size).copied().collect();
            let (mtime, mark) = (Some(entry.file.mtime_ns), entry.file.version());
            let very = alike.iter().find(|version| version.is_untouched(mtime, mark.as_deref())).copied();
            let very = very.or_else(|| alike.iter().find(|version| self.has_bytes_of(at, version)).copied());
            // What nothing is recorded of gave no row of any batch: whatever it is now, that is what it was.
            let very = very.or_else(|| alike.first().filter(|newest| newest.digest().is_none()).copied());
            if let Some(very) = very {
                self.found.from_log.insert(entry.id, very.id);
                self.found.to_log.insert(very.id, entry.id);
            }
            for version in versions.iter().filter(|version| very.is_none_or(|very| very.id != version.id)) {
                let same = version.size == entry.file.size
                    && match (version.digest(), very.and_then(Recorded::digest)) {
                        (None, _) => true,
                        (own, there) if own == there => true,
                        // Another digest may be that of an older version.
                        (Some(_), _) => self.has_bytes_of(at, version),
                    };
                match same {
                    true => _ = self.found.to_log.insert(version.id, entry.id),
                    false => _ = self.found.instead.insert(version.id, entry.file.clone()),
                }
            }
            if very.is_none() {
                unmatched.push((at, versions.last().map(|newest| newest.id)));
            }
        }
        unmatched
    }

    /// Looks for the files that are not where they were among those `unmatched`: renamed, or copies of which the first is
    /// gone; else among the others, where one file was recorded under two names. Returns the places of those that it found.
    fn elsewhere(&mut self, unmatched: &[(usize, Option<u64>)]) -> HashSet<usize> {
        let mut taken = HashSet::new();
        if self.recorded.iter().all(|file| self.found.to_log.contains_key(&file.id)) {
            return taken;
        }
        let free: HashSet<usize> = unmatched.iter().map(|(at, _)| *at).collect();
        let mut by_size: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            by_size.entry(entry.file.size).or_default().push(at);
        }
        for file in self.recorded.iter().rev() {
            if self.found.to_log.contains_key(&file.id) {
                continue;
            }
            let Some(places) = by_size.get(&file.size) else { continue };
            let unclaimed = places.iter().filter(|at| free.contains(*at) && !taken.contains(*at)).copied().collect();
            if let Some(at) = self.among(file, unclaimed) {
                taken.insert(at);
                self.found.to_log.insert(file.id, self.entries[at].id);
                self.found.from_log.entry(self.entries[at].id).or_insert(file.id);
            } else if let Some(at) = self.second_name(file, places) {
                self.found.to_log.insert(file.id, self.entries[at].id);
            }
        }
        taken
    }

    /// Which of these places has a file, under another name.
    fn among(&mut self, file: &Recorded, mut places: Vec<usize>) -> Option<usize> {
        let (entries, key) = (self.entries, of_name(&file.name));
        // The likeliest first: fewer are read.
        let of_time = |at: usize| {
            let there = &entries[at].file;
            file.is_untouched(Some(there.mtime_ns), there.version().as_deref())
        };
        places.sort_by_key(|at| (!of_time(*at), entries[*at].key() != key, *at));
        if file.digest().is_some() {
            return places.into_iter().find(|at| self.has_bytes_of(*at, file));
        }
        // Never read, so that no batch has a row of it: the time of change tells it, or the key.
        let by_key = |at: &usize| entries[*at].key() == key;
        let timed: Vec<usize> = places.iter().filter(|at| of_time(**at)).copied().collect();
        let one = |places: &[usize]| (places.len() == 1).then(|| places[0]);
        let keyed = || one(&places.iter().filter(|at| by_key(at)).copied().collect::<Vec<_>>());
        timed.iter().find(|at| by_key(at)).copied().or_else(|| one(&timed)).or_else(keyed)
    }

    /// Where a file is that another record has, too: another process saw it before or after it was moved.
    fn second_name(&mut self, file: &Recorded, places: &[usize]) -> Option<usize> {
        let (entries, key) = (self.entries, of_name(&file.name));
        let alike: Vec<usize> = places.iter().filter(|at| entries[**at].key() == key).copied().collect();
        match file.digest() {
            Some(_) => alike.into_iter().find(|at| self.has_bytes_of(*at, file)),
            None => alike.into_iter().find(|at| file.mtime == Some(entries[*at].file.mtime_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an older version says of a digest is as much more.
    const OLDER: u64 = 100;

    /// A file as name, size, time and digest.
    type File<'a> = (&'a str, u64, i64, Option<u64>);

    fn recorded(files: &[File<'_>]) -> Vec<Recorded> {
        let of = |(id, (name, size, mtime, digest)): (u64, &File<'_>)| {
            let file =
                Recorded { id, name: (*name).to_owned(), size: *size, mtime: Some(*mtime), version: None, bytes: None };
            digest.map_or(file.clone(), |digest| file.read(digest))
        };
        (0..).zip(files).map(of).collect()
    }

    /// The ids of recorded files that are there, and the names of new files with what was there before; and what was read.
    type Found = (Vec<Option<u64>>, Vec<(usize, Option<u64>)>, usize);

    fn found(records: &[File<'_>], there: &[File<'_>]) -> Found {
        let stat = |(name, size, mtime_ns, _): &File<'_>| FileStat {
            name: (*name).into(),
            size: *size,
            mtime_ns: *mtime_ns,
            device: 1,
            inode: 1,
        };
        let entries: Vec<Entry> = (100..).zip(there).map(|(id, file)| Entry { id, file: stat(file) }).collect();
        let (mut reads, records) = (0, recorded(records));
        let mut digest = |at: usize| {
            reads += 1;
            there[at].3.map(|digest| [digest, OLDER + digest])
        };
        let found = find(&records, &entries, &mut digest);
        (records.iter().map(|file| found.to_log.get(&file.id).copied()).collect(), found.new, reads)
    }

    #[test]
    fn names_sizes_and_times_tell_files_without_reading_them() {
        let files = [("a", 5, 1, Some(7)), ("b", 6, 1, None), ("c", 7, 1, Some(9))];
        let (ids, new, reads) = found(&files, &files);
        assert_eq!((ids, new, reads), (vec![Some(100), Some(101), Some(102)], vec![], 0));
        let (ids, new, reads) = found(&files, &[("a", 5, 2, Some(7)), ("b", 6, 2, Some(1)), ("c", 7, 2, Some(8))]);
        assert_eq!(ids, [Some(100), Some(101), None], "touched; never read; written over");
        assert_eq!((new, reads), (vec![(2, Some(2))], 2));
        let (ids, new, _) = found(&files[..1], &[("a", 4, 2, Some(7))]);
        assert_eq!((ids, new), (vec![None], vec![(0, Some(0))]), "of another size");
    }

    #[test]
    fn versions_of_one_name_and_size_are_told_apart() {
        let records = [("a", 5, 1, Some(7)), ("a", 5, 2, Some(7)), ("a", 5, 3, Some(8))];
        for (there, ids) in [
            (("a", 5, 3, Some(8)), [None, None, Some(100)]),
            (("a", 5, 2, Some(7)), [Some(100), Some(100), None]),
            (("a", 5, 9, Some(7)), [Some(100), Some(100), None]),
            (("a", 5, 9, Some(6)), [None, None, None]),
        ] {
            let (found, new, _) = found(&records, &[there]);
            assert_eq!(found, ids, "{there:?}");
            assert_eq!(new, if ids == [None; 3] { vec![(0, Some(2))] } else { vec![] });
        }
    }

    #[test]
    fn digests_of_older_versions_are_of_the_same_bytes() {
        let records = [("a", 5, 1, Some(OLDER + 7)), ("a", 5, 2, Some(7)), ("a", 5, 3, Some(OLDER + 8))];
        for (there, ids) in [
            (("a", 5, 2, Some(7)), [Some(100), Some(100), None]),
            (("a", 5, 1, Some(7)), [Some(100), Some(100), None]),
            (("a", 5, 9, Some(8)), [None, None, Some(100)]),
        ] {
            assert_eq!(found(&records, &[there]).0, ids, "{there:?}");
        }
        assert_eq!(found(&records[..1], &[("b", 5, 9, Some(7))]).0, [Some(100)], "under another name");
    }

    #[test]
    fn a_version_of_which_nothing_was_read_is_what_is_there() {
        let records = [("a", 5, 1, None), ("a", 5, 2, Some(7)), ("a", 6, 3, None)];
        assert_eq!(found(&records, &[("a", 5, 2, Some(7))]).0, [Some(100), Some(100), None]);
        assert_eq!(found(&records, &[("a", 6, 9, Some(1))]).0, [None, None, Some(100)]);
    }

    #[test]
    fn files_are_found_under_other_names() {
        let records = [("x/a", 5, 1, Some(7)), ("b", 5, 1, None), ("c", 6, 2, Some(3))];
        let there = [("new", 5, 4, Some(1)), ("y/b", 5, 1, Some(2)), ("other", 5, 9, Some(7)), ("d", 6, 2, Some(4))];
        let (ids, new, _) = found(&records, &there);
        assert_eq!(ids, [Some(102), Some(101), None], "by its bytes; by time and key; other bytes");
        assert_eq!(new, [(0, None), (3, None)]);
        let (ids, new, _) = found(&records[1..2], &[("p", 5, 1, None), ("q", 5, 1, None)]);
        assert_eq!((ids, new.len()), (vec![None], 2), "nothing tells which of the two it is");
        let (ids, new, reads) = found(&records[1..2], &[("y/b", 5, 9, None), ("c", 5, 9, None)]);
        assert_eq!((ids, new.len(), reads), (vec![Some(100)], 1, 0), "never read, moved and written again: by its key");
        let (ids, new, _) = found(&records[1..2], &[("x/b", 5, 9, None), ("y/b", 5, 9, None)]);
        assert_eq!((ids, new.len()), (vec![None], 2), "two have its key");
    }

    #[test]
    fn one_file_may_be_recorded_under_two_names() {
        let records = [("b", 5, 1, None), ("x/b", 5, 1, None), ("y/b", 5, 3, Some(7)), ("y/c", 5, 1, None)];
        let (ids, new, _) = found(&records, &[("x/b", 5, 1, Some(7))]);
        assert_eq!((ids, new), (vec![Some(100), Some(100), Some(100), None], vec![]));
        let (ids, _, _) = found(&records[2..], &[("x/b", 5, 2, Some(8))]);
        assert_eq!(ids, [None, None], "other bytes; another key");
    }
}
