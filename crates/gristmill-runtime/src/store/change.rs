//! What discovery finds out about the files of a store, as the source log takes it.
//! Files are numbered: those of the first scan in key order, later ones as they come.

use crate::runtime::scheduler::Rounds;

use super::{Faults, FileStat};

/// One step of what is known about the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The first scan is complete: these files, number = position. Comes once, after the [`Change::Listed`] of that scan and before
    /// any other file.
    Scanned(Vec<FileStat>),
    /// A file that was not there before.
    New {
        /// Its number.
        number: u64,
        /// The file.
        file: FileStat,
    },
    /// A file with other bytes under a name that was known.
    Replaced {
        /// Number of what was there before.
        old: u64,
        /// Number of what is there now.
        number: u64,
        /// The file.
        file: FileStat,
    },
    /// A known file, the same bytes, under another name or with another time of change.
    Moved {
        /// Its number, which it keeps.
        number: u64,
        /// The file as it is now.
        file: FileStat,
    },
    /// A known file was deleted. If it comes back as it was, it has [`Change::Moved`].
    Left {
        /// Its number.
        number: u64,
    },
    /// A whole listing is done: how many files were passed over because of their names, and what could not be read.
    /// Takes the place of what the listing before it said.
    Listed {
        /// Files that no format claims.
        skipped: u64,
        /// Files that were left out because the same bytes were counted already.
        duplicates: u64,
        /// Files that still grow, and come when they are complete.
        growing: u64,
        /// What could not be read.
        faults: Faults,
    },
    /// Something went wrong outside a listing.
    Fault {
        /// A short stable word.
        kind: &'static str,
        /// What happened.
        message: String,
    },
}

/// What takes the steps of a search.
pub type Take = Box<dyn FnMut(Change) + Send>;

/// A search that is ready to run: its rounds tell what takes its steps what they find, until it is stopped.
pub type Discover = Box<dyn FnOnce(Take) -> Rounds + Send>;
