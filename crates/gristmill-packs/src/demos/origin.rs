//! Files that are joined, in order -> the file in which a trajectory begins, and its number there. Reads no byte of them.

use serde::{Deserialize, Serialize};

/// Which file each trajectory of a data set begins in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origins(Vec<Begun>);

/// A file of the data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    /// Its name without folders.
    file: String,
    /// How many trajectories began in the files before.
    before: usize,
    /// Whether it begins with the rest of one of those, which has a number in it, too.
    goes_on: bool,
}

impl Origins {
    /// The next file, when `before` trajectories have begun; the first frames of it are of the last of them where that one
    /// `goes_on`.
    pub(crate) fn begin(&mut self, file: String, before: usize, goes_on: bool) {
        self.0.push(Begun { file, before, goes_on });
    }

    /// How many files there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the files after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// The file in which trajectory `i` begins, and its number there.
    pub(super) fn of(&self, i: usize) -> Option<(&str, u64)> {
        // Of files that begin at one place those in front of the last begin no trajectory.
        let at = self.0.partition_point(|file| file.before <= i).checked_sub(1)?;
        let Begun { file, before, goes_on } = self.0.get(at)?;
        Some((file, (i - before) as u64 + u64::from(*goes_on)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_has_a_number_and_begins_nothing() {
        let mut origins = Origins::default();
        assert_eq!(origins.of(0), None);
        origins.begin("a".to_owned(), 0, false);
        origins.begin("empty".to_owned(), 2, false);
        origins.begin("middle of one".to_owned(), 2, true);
        origins.begin("d".to_owned(), 2, true);
        let of = |i| origins.of(i).unwrap();
        assert_eq!([of(0), of(1), of(2), of(3)], [("a", 0), ("a", 1), ("d", 1), ("d", 2)]);
    }
}
