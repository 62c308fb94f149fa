//! Stretches of rows, in the order of the pack -> what each run has, held against the database.
//! One entry for each run that the database lists; runs that it does not list were reported already.

use std::path::Path;

use gristmill_engine::pack;
use gristmill_engine::pack::metadata::{Extra, Run};
use gristmill_format::{Error, Kind};

use super::block::Stretch;
use super::{FIRST_ROW, RUN_ID};
use crate::verify::Fault;
use crate::work::played::Played;

/// What was found of the runs so far.
pub(super) struct Ledger {
    /// Path of the database.
    database: String,
    runs: Vec<Run>,
    extras: Vec<Extra>,
    seen: Vec<Played>,
    /// Number of the first row of each run.
    first: Vec<u64>,
    /// Run of the newest stretch.
    last: Option<u32>,
}

impl Ledger {
    pub(super) fn new(folder: &Path, runs: Option<Vec<Run>>, extras: Vec<Extra>) -> Self {
        let runs = runs.unwrap_or_default();
        let database = folder.join(pack::METADATA).display().to_string();
        Ledger {
            database,
            seen: vec![Played::default(); runs.len()],
            first: vec![0; runs.len()],
            runs,
            extras,
            last: None,
        }
    }

    /// Takes in the next stretch; reports a run that comes again.
    pub(super) fn add(&mut self, stretch: &Stretch, place: &dyn Fn(&Stretch) -> Fault, tell: &mut dyn FnMut(Fault)) {
        let again = self.last.replace(stretch.run) != Some(stretch.run);
        let Ok(at) = self.runs.binary_search_by_key(&u64::from(stretch.run), |run| run.id) else { return };
        let seen = &mut self.seen[at];
        if seen.rows == 0 {
            self.first[at] = stretch.start;
        } else if again {
            let detail = format!("run {} again, after rows of another; its rows do not lie together", stretch.run);
            tell(Fault { rule: Some(RUN_ID), detail, ..place(stretch) });
        }
        seen.join(&stretch.played);
    }

    /// Compares the runs with the database; reports nothing where a file of rows could not be read (not
    /// `whole`).
    pub(super) fn finish(self, whole: bool, tell: &mut dyn FnMut(Fault)) {
        let mut differs = |rule: &'static str, run: u64, kind: Kind, detail: String| {
            let e = Error::new(kind, detail).in_source(&self.database);
            tell(Fault { run: Some(run), rule: Some(rule), ..Fault::new(&e) });
        };
        for (run, seen) in self.runs.iter().zip(&self.seen).filter(|_| whole) {
            if let Some((rule, detail)) = seen.against(run.steps, run.highest_tile) {
                differs(rule, run.id, Kind::OutOfRange, detail);
            }
        }
        for extra in self.extras.iter().filter(|_| whole) {
            let at = self.runs.binary_search_by_key(&extra.run_id, |run| run.id).ok();
            let at = at.filter(|at| self.seen[*at].rows > 0 && self.first[*at] != extra.first_row);
            if let Some(at) = at {
                let (said, first) = (extra.first_row, self.first[at]);
                let detail = format!("table extras says that its rows start at {said}; they start at {first}");
                differs(FIRST_ROW, extra.run_id, Kind::OutOfRange, detail);
            }
        }
    }
}
