//! Stretches of rows, in the order of the pack -> what each run has, held against the database.
//! One entry for each run that the database lists; runs that it does not list were reported already.

use gristmill_format::{Error, Kind};
use serde::{Deserialize, Serialize};

use super::block::{Ended, Stretch};
use super::{FIRST_ROW, RUN_ID};
use crate::verify::Fault;

/// What the database of a pack says of its runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Database {
    /// Its path.
    pub(super) path: String,
    /// By ascending id: the id, steps, and highest tile.
    pub(super) runs: Vec<(u64, u64, u64)>,
    /// Ids of runs, and their first rows.
    pub(super) first_rows: Vec<(u64, u64)>,
}

/// What was found of the runs so far.
pub(super) struct Ledger {
    database: Database,
    seen: Vec<Ended>,
    /// Number of the first row of each run.
    first: Vec<u64>,
    /// Run of the newest stretch.
    last: Option<u32>,
}

impl Ledger {
    pub(super) fn new(database: Database) -> Self {
        let runs = database.runs.len();
        Ledger { database, seen: vec![Ended::default(); runs], first: vec![0; runs], last: None }
    }

    /// Takes in the next stretch, of the file at `path`; reports a run that comes again.
    pub(super) fn add(&mut self, stretch: &Stretch, path: &str, tell: &mut dyn FnMut(Fault)) {
        let again = self.last.replace(stretch.run) != Some(stretch.run);
        let Some(at) = self.at(u64::from(stretch.run)) else { return };
        let seen = &mut self.seen[at];
        if seen.rows == 0 {
            self.first[at] = stretch.start;
        } else if again {
            let detail = format!("run {} again, after rows of another; its rows do not lie together", stretch.run);
            let e = Error::new(Kind::OutOfRange, detail).in_source(path).at_byte(stretch.byte);
            let (run, frame) = (Some(u64::from(stretch.run)), Some(stretch.row));
            tell(Fault { run, frame, rule: Some(RUN_ID), ..Fault::new(&e) });
        }
        seen.join(&stretch.rows);
    }

    /// Where a run is in the list.
    fn at(&self, run: u64) -> Option<usize> {
        self.database.runs.binary_search_by_key(&run, |(id, ..)| *id).ok()
    }

    /// Compares the runs with the database; reports nothing where a file of rows could not be read (not
    /// `whole`).
    pub(super) fn finish(self, whole: bool, tell: &mut dyn FnMut(Fault)) {
        let mut differs = |rule: &'static str, run: u64, kind: Kind, detail: String| {
            let e = Error::new(kind, detail).in_source(&self.database.path);
            tell(Fault { run: Some(run), rule: Some(rule), ..Fault::new(&e) });
        };
        for ((run, steps, highest_tile), seen) in self.database.runs.iter().zip(&self.seen).filter(|_| whole) {
            if let Some((rule, detail)) = seen.against(*steps, *highest_tile) {
                differs(rule, *run, Kind::OutOfRange, detail);
            }
        }
        for (run, said) in self.database.first_rows.iter().filter(|_| whole) {
            let at = self.at(*run).filter(|at| self.seen[*at].rows > 0 && self.first[*at] != *said);
            if let Some(at) = at {
                let first = self.first[at];
                let detail = format!("table extras says that its rows start at {said}; they start at {first}");
                differs(FIRST_ROW, *run, Kind::OutOfRange, detail);
            }
        }
    }
}
