//! The ids of one journal, event by event -> the ids that all journals share, and the events that the journal still needs when a
//! run with other ids resumes it. Reads no file.

use std::collections::{HashMap, HashSet};

use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::resume::parts::{Common, Named};

/// No run gives ids from here on: those of providers are below.
const NO_ID: u64 = 1 << 56;

/// What the ids of one journal mean at some line of it.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct Numbering {
    /// Common ids, by those of the journal.
    ids: HashMap<u64, u64>,
    /// The common files that the journal names, at whatever line.
    named: Named,
    /// Digests of files that the journal has not named yet.
    read: HashMap<u64, u64>,
    /// Above every id that it mentions.
    next: u64,
}

impl Numbering {
    /// The common id of a file that the journal names.
    pub(in crate::pipeline) fn of(&self, id: u64) -> Option<u64> {
        self.ids.get(&id).copied()
    }

    /// An id that the journal does not mention, nor any above it.
    pub(in crate::pipeline) fn next(&self) -> u64 {
        self.next
    }

    fn mention(&mut self, id: u64) {
        if id < NO_ID {
            self.next = self.next.max(id + 1);
        }
    }

    /// Notes a file that some line names, before any line is taken. `numbered`: by the ids that the journal has at its beginning.
    pub(in crate::pipeline) fn name(&mut self, file: &Recorded, common: &Common, numbered: bool) {
        self.named.add(file, common, numbered);
    }

    /// Takes a file that the journal tells of; its common id.
    pub(in crate::pipeline) fn know(&mut self, file: &Recorded, common: &mut Common) -> u64 {
        self.mention(file.id);
        let id = common.add(file, &self.ids, &self.named);
        self.ids.insert(file.id, id);
        if let Some(digest) = self.read.remove(&file.id).or(file.digest()) {
            common.read(id, digest);
        }
        id
    }

    /// Takes files of which the journal may have told by other ids: from here on, these count for all versions of them.
    pub(in crate::pipeline) fn know_anew(&mut self, files: &[Recorded], common: &mut Common) {
        let own: HashSet<u64> = files.iter().map(|file| file.id).collect();
        let names: HashSet<(&str, u64)> = files.iter().map(|file| (file.name.as_str(), file.size)).collect();
        let is_one = |id: &u64| common.get(*id).is_some_and(|file| names.contains(&(file.name.as_str(), file.size)));
        self.ids.retain(|id, at| !own.contains(id) && !is_one(at));
        self.read.retain(|id, _| !own.contains(id));
        self.named.renumber(files, common);
        for file in files {
            self.know(file, common);
        }
    }

    /// Takes what was first read of a file; one that the journal tells of later only waits for that.
    pub(in crate::pipeline) fn read(&mut self, id: u64, digest: u64, common: &mut Common) {
        self.mention(id);
        match self.of(id) {
            Some(id) => common.read(id, digest),
            None => _ = self.read.entry(id).or_insert(digest),
        }
    }

    /// Of files under their common ids, those that the journal does not know by these, with all their versions.
    pub(in crate::pipeline) fn lacks(&self, files: &[Recorded]) -> Vec<Recorded> {
        let is_other = |file: &&Recorded| self.of(file.id) != Some(file.id);
        let names: HashSet<(&str, u64)> =
            files.iter().filter(is_other).map(|file| (file.name.as_str(), file.size)).collect();
        files.iter().filter(|file| names.contains(&(file.name.as_str(), file.size))).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: u64, name: &str, mtime: i64) -> Recorded {
        Recorded { id, name: name.to_owned(), size: 5, mtime: Some(mtime), version: None, bytes: None }
    }

    /// Digests of the files by common id.
    fn digests(common: Common) -> Vec<(u64, String, Option<u64>)> {
        common.files().into_iter().map(|file| (file.id, file.name.clone(), file.digest())).collect()
    }

    #[test]
    fn what_was_read_belongs_to_the_file_that_had_the_id_then() {
        let mut common = Common::of(vec![file(1, "a", 1)]);
        let mut ids = Numbering::default();
        ids.read(2, 22, &mut common);
        assert_eq!([ids.know(&file(1, "b", 1), &mut common), ids.know(&file(2, "c", 1), &mut common)], [2, 3]);
        ids.read(1, 11, &mut common);
        ids.read(9, 99, &mut common);
        let known = [file(1, "a", 1), file(2, "b", 1), file(3, "c", 1)];
        assert_eq!(ids.lacks(&known), known, "each has another id, or none");
        ids.know_anew(&known, &mut common);
        assert!(ids.lacks(&known).is_empty());
        ids.read(1, 10, &mut common);
        assert_eq!(ids.next(), 10, "the id of a file that was read, and never taken in, is not given again");
        let read = [(1, "a", 10), (2, "b", 11), (3, "c", 22)].map(|(id, name, read)| (id, name.to_owned(), Some(read)));
        assert_eq!(digests(common), read);
    }

    /// A rank named a file by an id that another rank gave to another file, and by the common one further on.
    #[test]
    fn a_file_that_has_another_id_further_on_is_the_same_file() {
        let known = [file(30, "a", 1), file(33, "b", 1)];
        let (mut common, mut ids) = (Common::of(known.to_vec()), Numbering::default());
        ids.name(&file(30, "b", 1), &common, true);
        known.iter().for_each(|file| ids.name(file, &common, false));
        assert_eq!(ids.know(&file(30, "b", 1), &mut common), 33);
        ids.know_anew(&known, &mut common);
        assert_eq!([30, 33].map(|id| ids.of(id)), [Some(30), Some(33)]);
    }

    /// A state forgets a file that left and that nobody needs. The journal still names it, before the one that took its name.
    #[test]
    fn a_file_that_was_forgotten_is_not_the_one_that_took_its_name() {
        let mut common = Common::of(vec![file(3, "a", 4)]);
        let mut ids = Numbering::default();
        let named = [file(0, "a", 3), file(3, "a", 4)];
        named.iter().for_each(|file| ids.name(file, &common, true));
        assert_eq!([0, 1].map(|i: usize| ids.know(&named[i], &mut common)), [0, 3]);
        let mut other = Numbering::default();
        assert_eq!(other.know(&file(7, "b", 1), &mut common), 7);
        let mut common = Common::of(vec![file(3, "a", 4)]);
        assert_eq!(other.know(&file(0, "a", 3), &mut common), 3, "of one that was only touched");
    }

    #[test]
    fn versions_keep_their_ids_when_they_are_told_of_again() {
        let versions = [file(0, "a", 1), file(4, "a", 2)];
        let mut common = Common::of(versions.to_vec());
        let mut ids = Numbering::default();
        assert_eq!([ids.know(&file(4, "a", 1), &mut common), ids.know(&file(7, "a", 2), &mut common)], [0, 4]);
        assert_eq!(ids.lacks(&versions), versions);
        ids.know_anew(&versions, &mut common);
        assert_eq!([0, 4, 7].map(|id| ids.of(id)), [Some(0), Some(4), None]);
        assert_eq!(common.files().len(), 2);
    }
}
