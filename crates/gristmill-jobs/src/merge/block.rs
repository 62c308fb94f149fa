//! A stretch of rows of a pack -> the same rows as the new pack has them: form, run ids, valuation ids.

use std::sync::{Arc, Mutex, PoisonError};

use gristmill_engine::error::Result;
use gristmill_engine::pack::rows::{self, RowBlock};
use gristmill_format::g2048::RowForm;
use gristmill_format::g2048::row::{ALIGNED_BYTES, at, narrow};
use gristmill_format::{Error as FormatError, Kind};

use super::beside;
use super::input::Input;

/// Buffers that wait to be used again.
const SPARE: usize = 16;

/// A stretch of rows of one pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Number of the pack.
    pub(super) input: usize,
    /// Which of its rows.
    pub(super) of: RowBlock,
}

/// All rows of all packs, in order.
pub(super) fn all(inputs: &[Input]) -> Vec<Block> {
    let of_pack =
        |(input, pack): (usize, &Input)| rows::blocks(&pack.files).into_iter().map(move |of| Block { input, of });
    inputs.iter().enumerate().flat_map(of_pack).collect()
}

/// What became of a block.
pub(super) struct Merged {
    /// Its rows as they go into the new pack.
    pub(super) bytes: Vec<u8>,
    /// Their values, where values are carried.
    pub(super) values: Vec<u8>,
    /// Its rows as they were stored.
    pub(super) stored: Vec<u8>,
    /// Its rows by run: position of the run in its pack, and how many rows follow each other.
    pub(super) runs: Vec<(usize, u64)>,
}

/// Reads blocks, from many threads at once.
pub(super) struct BlockReader {
    inputs: Arc<[Input]>,
    form: RowForm,
    /// Whether values are carried.
    valued: bool,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl BlockReader {
    pub(super) fn new(inputs: Arc<[Input]>, form: RowForm, valued: bool) -> Self {
        BlockReader { inputs, form, valued, spare: Mutex::default() }
    }

    /// Gives buffers back.
    pub(super) fn recycle(&self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.extend(buffers);
        spare.truncate(SPARE);
    }

    fn buffer(&self) -> Vec<u8> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Reads a block.
    ///
    /// Errors: `Format` naming file and row: a run that the database has not, a valuation that has no name, a value of
    /// another row.
    pub(super) fn read(&self, block: &Block) -> Result<Merged> {
        let input = &self.inputs[block.input];
        let file = &input.files[block.of.file];
        let (mut stored, mut rows) = (self.buffer(), self.buffer());
        file.read(block.of.first, block.of.rows, &mut stored, &mut rows)?;
        let mut values = self.buffer();
        values.clear();
        if self.valued {
            input.beside.read(&block.of, &rows, &mut values)?;
        }
        let runs = renumber(input, &mut rows).map_err(|(row, detail)| {
            let row = block.of.first + row as u64;
            let e = FormatError::new(Kind::OutOfRange, format!("row {row}: {detail}"));
            file.place(e.at_byte(file.byte_of(row)))
        })?;
        beside::renumber(&rows, &mut values);
        if self.form == RowForm::Packed {
            let mut narrowed = self.buffer();
            narrowed.resize(block.of.rows as usize * self.form.bytes(), 0);
            narrow(&rows, &mut narrowed)?;
            self.recycle([std::mem::replace(&mut rows, narrowed)]);
        }
        Ok(Merged { bytes: rows, values, stored, runs })
    }
}

/// Gives aligned rows their new ids; an error names its row.
fn renumber(input: &Input, rows: &mut [u8]) -> Result<Vec<(usize, u64)>, (usize, String)> {
    let same = input.keeps_names();
    let mut runs: Vec<(usize, u64)> = Vec::new();
    let mut last = None;
    let mut id = [0; 4];
    for (i, row) in rows.as_chunks_mut::<ALIGNED_BYTES>().0.iter_mut().enumerate() {
        let run = [row[at::RUN_ID], row[at::RUN_ID + 1], row[at::RUN_ID + 2], row[at::RUN_ID + 3]];
        if last != Some(run) {
            let known = input.runs.binary_search_by_key(&u32::from_le_bytes(run), |(id, _)| *id);
            let found = known.map_err(|_| (i, format!("run {} is not in the database", u32::from_le_bytes(run))))?;
            last = Some(run);
            id = ((input.first_run + found as u64) as u32).to_le_bytes();
            runs.push((found, 0));
        }
        if let Some((_, count)) = runs.last_mut() {
            *count += 1;
        }
        row[at::RUN_ID..][..4].copy_from_slice(&id);
        let valuation = usize::from(row[at::VALUATION_TYPE]);
        match input.ids.get(valuation) {
            Some(_) if same => {}
            Some(id) => row[at::VALUATION_TYPE] = *id,
            None => return Err((i, format!("valuation type {valuation} has no name; there are {}", input.ids.len()))),
        }
    }
    Ok(runs)
}
