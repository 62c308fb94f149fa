//! A stretch of rows of a pack -> what is wrong with them, and which runs they are of. Run on many threads at once.

use gristmill_engine::pack::metadata::Run;
use gristmill_engine::pack::rows::{RowBlock, RowsOf};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::check::Checker;
pub(super) use gristmill_format::g2048::played::Ended;
use gristmill_format::g2048::played::Played;
use gristmill_format::g2048::row::at;
use gristmill_format::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::{RUN_ID, SEED, VALUATION_TYPE};
use crate::in_order::Hands;
use crate::verify::{Example, Fault, Verification};
use crate::work::drawn::Step;

/// Rows of one run that follow each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) run: u32,
    /// Number of the file, of the first row there, and the byte at which that has its run.
    pub(super) file: usize,
    pub(super) row: u64,
    pub(super) byte: u64,
    /// Number of the first row in the pack.
    pub(super) start: u64,
    pub(super) rows: Ended,
}

/// Buffers for a block.
#[derive(Debug, Default)]
pub(super) struct Hand {
    stored: Vec<u8>,
    rows: Vec<u8>,
}

/// What was found in a block.
pub(super) struct Judged {
    pub(super) found: Verification,
    pub(super) stretches: Vec<Stretch>,
    pub(super) hand: Hand,
}

impl Judged {
    /// The rows as they are in the file.
    pub(super) fn stored(&self) -> &[u8] {
        &self.hand.stored
    }
}

/// Judges blocks of a pack.
pub(super) struct Judge {
    files: Vec<RowsOf>,
    /// By ascending id; none where the database cannot be read.
    runs: Option<Vec<Run>>,
    types: Option<ValuationTypes>,
    keep: usize,
    hands: Hands<Hand>,
}

impl Judge {
    pub(super) fn new(files: Vec<RowsOf>, runs: Option<Vec<Run>>, types: Option<ValuationTypes>, keep: usize) -> Self {
        Judge { files, runs, types, keep, hands: Hands::default() }
    }

    pub(super) fn files(&self) -> &[RowsOf] {
        &self.files
    }

    /// Reads a block, and judges nothing.
    ///
    /// Errors: as [`Judge::judge`].
    pub(super) fn read(&self, block: &RowBlock) -> Result<Judged> {
        let mut hand = self.hands.take();
        self.files[block.file].read(block.first, block.rows, &mut hand.stored, &mut hand.rows)?;
        Ok(Judged { found: Verification::default(), stretches: Vec::new(), hand })
    }

    /// Gives buffers back.
    pub(super) fn recycle(&self, hand: Hand) {
        self.hands.put(hand);
    }

    /// Judges a block, with the file and number of the row before it.
    ///
    /// Errors, with file and byte: rows that cannot be read.
    pub(super) fn judge(&self, block: &RowBlock, before: Option<(usize, u64)>) -> Result<Judged> {
        let mut hand = self.hands.take();
        let (mut checker, mut previous) = (Checker::default(), None);
        if let Some((file, row)) = before
            && self.files[file].read(row, 1, &mut hand.stored, &mut hand.rows).is_ok()
        {
            previous = hand.rows.first_chunk().map(StepRow::from_aligned);
            previous.iter().for_each(|row| checker.row(row, &mut |_, _| {}));
        }
        self.files[block.file].read(block.first, block.rows, &mut hand.stored, &mut hand.rows)?;
        let mut found = Verification { checked: block.rows, ..Verification::default() };
        let mut stretches: Vec<(Stretch, Played)> = Vec::new();
        let mut known = None;
        for (i, row) in (0..).zip(hand.rows.as_chunks().0) {
            let row = StepRow::from_aligned(row);
            let mut tell = |rule: &'static str, aligned: usize, detail: String| {
                let fault = self.fault(block, i, &row, rule, aligned, detail);
                let before = previous.as_ref().filter(|before: &&StepRow| before.run_id == row.run_id);
                let drawn = |fault| Example { fault, before: before.map(Step::new), row: Step::new(&row) };
                found.add_row(self.keep, fault, drawn);
            };
            if stretches.last().is_none_or(|(stretch, _)| stretch.run != row.run_id) {
                known = self.runs.as_ref().map(|runs| {
                    let at = runs.binary_search_by_key(&u64::from(row.run_id), |run| run.id);
                    at.ok().map(|at| &runs[at])
                });
                if known == Some(None) {
                    let listed = self.runs.as_ref().map_or(0, Vec::len);
                    let detail = format!("run {}, which `metadata.db` does not list; it lists {listed}", row.run_id);
                    tell(RUN_ID, at::RUN_ID, detail);
                }
                let (run, file, row_of, start) = (row.run_id, block.file, block.first + i, block.start + i);
                let byte = self.files[file].byte_of_field(row_of, at::RUN_ID);
                let stretch = Stretch { run, file, row: row_of, byte, start, rows: Ended::default() };
                stretches.push((stretch, Played::default()));
            }
            checker.row(&row, &mut |rule, detail| tell(rule.name(), rule.offset(), detail));
            if let Some(types) = &self.types
                && types.name(row.valuation_type).is_none()
            {
                let detail = format!("{}, which has no name; there are {}", row.valuation_type, types.names().len());
                tell(VALUATION_TYPE, at::VALUATION_TYPE, detail);
            }
            // 0 stands for a seed that was not known, too.
            let seed = known.flatten().and_then(|run| run.seed).filter(|seed| *seed != 0).map(|seed| seed as u32);
            let seed = seed.or(previous.filter(|previous| previous.run_id == row.run_id).map(|previous| previous.seed));
            if let Some(expected) = seed.filter(|seed| *seed != row.seed) {
                tell(SEED, at::SEED, format!("{}, expected {expected}, that of its run", row.seed));
            }
            if let Some((_, played)) = stretches.last_mut() {
                played.add(&row);
            }
            previous = Some(row);
        }
        let ended = |(stretch, played): (Stretch, Played)| Stretch { rows: played.ended(), ..stretch };
        Ok(Judged { found, stretches: stretches.into_iter().map(ended).collect(), hand })
    }

    fn fault(
        &self,
        block: &RowBlock,
        i: u64,
        row: &StepRow,
        rule: &'static str,
        aligned: usize,
        detail: String,
    ) -> Fault {
        let (file, number) = (&self.files[block.file], block.first + i);
        let e = Error::new(Kind::OutOfRange, detail).at_byte(file.byte_of_field(number, aligned));
        Fault { run: Some(u64::from(row.run_id)), frame: Some(number), rule: Some(rule), ..Fault::new(&file.place(e)) }
    }
}
