//! The rows of a pack, last block first -> their values. Rewards are counted by many threads, returns added up by the reader.
//! Holds a few blocks, however long a run is; refuses rows that do not lie as the database says.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack;
use gristmill_engine::pack::metadata::Metadata;
use gristmill_engine::pack::rows::{self, RowBlock, RowsOf};
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::row::at;
use gristmill_format::g2048::value::{Returns, VALUE_BYTES, ValueOptions, reward};
use gristmill_format::{Error as FormatError, Kind};

use crate::in_order::{Hands, InOrder};

/// What a thread finds in a row.
#[derive(Debug, Clone, Copy)]
struct Found {
    run: u32,
    step: u32,
    reward: u32,
}

/// Buffers for a block.
#[derive(Default)]
struct Hand {
    stored: Vec<u8>,
    rows: Vec<u8>,
}

/// The run whose rows are being taken in.
#[derive(Debug, Clone, Copy)]
struct Current {
    run: u32,
    /// Rows that the database says, and rows so far.
    said: u64,
    rows: u64,
    /// `step_index` of the row that was taken in last: of all so far the first.
    step: u32,
}

/// The values of the rows of a pack, block by block from the last to the first.
pub(crate) struct Backwards {
    files: Arc<[RowsOf]>,
    blocks: Arc<[RowBlock]>,
    flow: InOrder<Result<Vec<Found>>>,
    /// Blocks that are still to come.
    left: usize,
    /// Runs that are still to come, by ascending id, and how many rows they have by the database.
    runs: Vec<(u64, u64)>,
    current: Option<Current>,
    returns: Returns,
    database: String,
}

impl Backwards {
    /// Begins with the last row of `files`, the rows of the pack in `folder`.
    ///
    /// Errors: the database's; `Empty` with the file for one that holds no row, `WrongSize` with the database for another
    /// number of rows than it says; `Path` where there are no threads.
    pub(crate) fn start(
        folder: &Path,
        files: Vec<RowsOf>,
        options: ValueOptions,
        workers: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        if let Some(empty) = files.iter().find(|file| file.shard.rows == 0) {
            return Err(empty.place(FormatError::new(Kind::Empty, "no rows: there is nothing to value")).into());
        }
        let database = folder.join(pack::METADATA);
        let mut runs = Vec::new();
        Metadata::open(&database)?.runs(&mut |run| {
            // Games without a step have no row.
            runs.extend((run.steps > 0).then_some((run.id, run.steps)));
            Ok(())
        })?;
        let database = database.display().to_string();
        let rows: u64 = files.iter().map(|file| file.shard.rows).sum();
        let said = runs.iter().fold(0u64, |sum, (_, steps)| sum.saturating_add(*steps));
        if said != rows {
            let detail = format!("{said} steps, the files have {rows} rows; `gristmill verify` lists what is wrong");
            return Err(FormatError::new(Kind::WrongSize, detail).in_source(database).into());
        }
        let blocks: Arc<[RowBlock]> = rows::blocks(&files).into();
        let (files, hands): (Arc<[RowsOf]>, Hands<Hand>) = (files.into(), Hands::default());
        let (read, listed) = (files.clone(), blocks.clone());
        let work = move |i: usize| {
            let block = &listed[listed.len() - 1 - i];
            hands.with(|hand| rewards(&read[block.file], block, hand))
        };
        let flow = InOrder::start(workers, blocks.len(), stop, work).map_err(|e| Error::path(folder, &e))?;
        let (left, returns) = (blocks.len(), Returns::new(options));
        Ok(Backwards { files, blocks, flow, left, runs, current: None, returns, database })
    }

    /// Rows of all files.
    pub(crate) fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.shard.rows).sum()
    }

    /// Runs that are still to come, those without rows not counted.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.len() as u64
    }

    /// The block before the last one that was given, and its values in `out`; `None` before the first.
    ///
    /// Errors: `Format` with file and row: rows that cannot be read, without a move, of another run than `metadata.db`
    /// has there, or not in order; `Stopped`.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<RowBlock>> {
        let Some(found) = self.flow.next()? else {
            self.close()?;
            return match self.runs.last() {
                Some((run, _)) => Err(self.differs(format!("run {run} has steps, but no rows")).into()),
                None => Ok(None),
            };
        };
        let found = found?;
        self.left -= 1;
        let block = self.blocks[self.left];
        out.resize(found.len() * VALUE_BYTES, 0);
        for ((i, found), out) in found.iter().enumerate().zip(out.as_chunks_mut().0).rev() {
            let i = i as u64;
            self.order(&block, i, found)?;
            let value = self.returns.before(found.run, found.step, found.reward);
            *out = value.map_err(|e| self.place(&block, i, e.kind(), e.detail()))?.to_bytes();
        }
        Ok(Some(block))
    }

    /// Takes in the row before the one that was taken in last.
    fn order(&mut self, block: &RowBlock, i: u64, found: &Found) -> Result<()> {
        let Found { run, step, .. } = *found;
        if let Some(current) = self.current.as_mut().filter(|current| current.run == run) {
            let later = current.step;
            (current.rows, current.step) = (current.rows + 1, step);
            if step > later {
                let detail = format!("step_index {step} of run {run} is followed by {later}");
                return Err(self.place(block, i, Kind::Corrupt, &detail).into());
            }
            return Ok(());
        }
        self.close()?;
        match self.runs.pop() {
            Some((expected, said)) if expected == u64::from(run) => {
                self.current = Some(Current { run, said, rows: 1, step });
                Ok(())
            }
            expected => {
                let expected = expected.map_or("none".to_owned(), |(run, _)| format!("run {run}"));
                let detail = format!(
                    "a row of run {run}; by `metadata.db` and the rows after it, expected {expected}: runs lie in order \
                     of their ids, each in one piece"
                );
                Err(self.place(block, i, Kind::Corrupt, &detail).into())
            }
        }
    }

    /// The rows of a run are all there.
    fn close(&mut self) -> Result<(), FormatError> {
        match self.current.take() {
            Some(Current { run, said, rows, .. }) if said != rows => {
                Err(self.differs(format!("run {run} has {said} steps, but {rows} rows")))
            }
            _ => Ok(()),
        }
    }

    fn differs(&self, detail: String) -> FormatError {
        FormatError::new(Kind::WrongSize, detail).in_source(&self.database)
    }

    fn place(&self, block: &RowBlock, i: u64, kind: Kind, detail: &str) -> FormatError {
        at_row(&self.files[block.file], block.first + i, kind, detail)
    }
}

fn at_row(file: &RowsOf, row: u64, kind: Kind, detail: &str) -> FormatError {
    file.place(FormatError::new(kind, format!("row {row}: {detail}")).at_byte(file.byte_of(row)))
}

/// Counts the rewards of a block.
fn rewards(file: &RowsOf, block: &RowBlock, hand: &mut Hand) -> Result<Vec<Found>> {
    file.read(block.first, block.rows, &mut hand.stored, &mut hand.rows)?;
    let mut found = Vec::with_capacity(block.rows as usize);
    for (i, row) in (0..).zip(hand.rows.as_chunks().0) {
        let row = StepRow::from_aligned(row);
        let reward = reward(&row).map_err(|e| {
            let number = block.first + i;
            let e = FormatError::new(e.kind(), format!("row {number}: {}", e.detail()));
            file.place(e.at_byte(file.byte_of_field(number, at::MOVE_DIR)))
        })?;
        found.push(Found { run: row.run_id, step: row.step_index, reward });
    }
    Ok(found)
}
