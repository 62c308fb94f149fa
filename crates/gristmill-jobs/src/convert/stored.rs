//! Files of rows -> blocks of records with their keys, from the first row to the last; and records by number.
//! Knows of a record which game and step it is of, nothing else. Reads by position: memory does not grow with the files.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::error::Result;
use gristmill_engine::pack::runs::Number;
use gristmill_engine::pack::shards::Shard;
use gristmill_engine::store::open_file;
use gristmill_format::layout::Layout;
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error as FormatError, Kind};

/// Rows of a block.
pub(super) const BLOCK: u64 = 8192;

/// Which game and which step of it.
pub(super) type Key = (u64, u32);

/// Records of one layout in files.
pub(super) struct Stored {
    pub(super) layout: Layout,
    files: Vec<Part>,
    rows: u64,
}

struct Part {
    path: PathBuf,
    bytes: Arc<dyn ReadAt>,
    offset: u64,
    /// Number of its first row.
    first: u64,
    rows: u64,
}

impl Stored {
    /// The records of `shards`, which have one layout; there is at least one shard.
    ///
    /// Errors: `Format` with the file.
    pub(super) fn open(layout: Layout, shards: Vec<Shard>) -> Result<Self> {
        let (mut files, mut rows) = (Vec::new(), 0u64);
        for Shard { path, rows: count, offset, .. } in shards {
            let bytes = open_file(&path)?;
            files.push(Part { path, bytes, offset, first: rows, rows: count });
            rows += count;
        }
        Ok(Stored { layout, files, rows })
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Replaces `out` by the records of `count` rows from `first` on. They must be within the table.
    ///
    /// Errors: `Format` with the file.
    pub(super) fn read(&self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let (size, end) = (self.layout.size() as u64, first + count);
        let mut part = Vec::new();
        for file in &self.files {
            let (from, to) = (first.max(file.first), end.min(file.first + file.rows));
            if from < to {
                let span = Span { offset: file.offset + (from - file.first) * size, len: (to - from) * size };
                let read = read_span(&*file.bytes, span, u64::MAX, &mut part);
                read.map_err(|e| e.in_source(file.path.display().to_string()))?;
                out.extend_from_slice(&part);
            }
        }
        Ok(())
    }

    /// An error with the file and the number there of a row.
    pub(super) fn place(&self, e: FormatError, row: u64) -> FormatError {
        let placed = FormatError::new(e.kind(), e.detail());
        match self.files.iter().rfind(|file| file.first <= row) {
            Some(file) => placed
                .in_source(file.path.display().to_string())
                .in_frame(usize::try_from(row - file.first).unwrap_or(usize::MAX)),
            None => placed,
        }
    }
}

/// Some rows, with their keys and their numbers in the files.
#[derive(Default)]
pub(super) struct Block {
    pub(super) keys: Vec<Key>,
    pub(super) rows: Vec<u64>,
    pub(super) records: Vec<u8>,
}

/// How the keys of rows are found.
pub(super) struct Keys {
    run: Number,
    step: Number,
    /// Whether steps have 16 bits and start again above them.
    wraps: bool,
    /// First row and id of each run, ascending, where the database says it better than the rows.
    placed: Option<Vec<(u64, u64)>>,
}

impl Keys {
    /// Those of records of this layout: `run_id` with `step_index` or `step_idx`. `placed` are the first rows and ids of
    /// runs, ascending, where these are to be believed more than the rows.
    ///
    /// Errors: `Missing`, `Unsupported`.
    pub(super) fn new(layout: &Layout, wraps: bool, placed: Option<Vec<(u64, u64)>>) -> gristmill_format::Result<Self> {
        let step = if layout.field("step_idx").is_some() { "step_idx" } else { "step_index" };
        Ok(Keys { run: Number::new(layout, "run_id")?, step: Number::new(layout, step)?, wraps, placed })
    }
}

/// From the first row to the last.
pub(super) struct Walk {
    stored: Arc<Stored>,
    keys: Arc<Keys>,
    at: u64,
    /// Key of the row before, as the row has it and as it was meant.
    before: Option<(Key, Key)>,
    /// Number of runs that are placed before the row.
    placed: usize,
}

impl Walk {
    pub(super) fn new(stored: &Arc<Stored>, keys: &Arc<Keys>) -> Self {
        Walk { stored: stored.clone(), keys: keys.clone(), at: 0, before: None, placed: 0 }
    }

    /// Replaces `block` by the next one; whether there is one.
    ///
    /// Errors: `Format` with file and row.
    pub(super) fn next(&mut self, block: &mut Block) -> Result<bool> {
        let count = BLOCK.min(self.stored.rows - self.at);
        self.stored.read(self.at, count, &mut block.records)?;
        block.keys.clear();
        block.rows.clear();
        block.rows.extend(self.at..self.at + count);
        for (row, record) in (self.at..).zip(block.records.chunks_exact(self.stored.layout.size())) {
            let key = self.key(row, record);
            block.keys.push(key.map_err(|e| self.stored.place(e, row))?);
        }
        self.at += count;
        Ok(count > 0)
    }

    fn key(&mut self, row: u64, record: &[u8]) -> gristmill_format::Result<Key> {
        let (run, step) = (self.keys.run.of(record), self.keys.step.of(record));
        let step = u32::try_from(step)
            .map_err(|_| FormatError::new(Kind::OutOfRange, format!("step {step}, expected one of 32 bits")))?;
        let mut key = (run, step);
        let mut begins = false;
        if let Some(placed) = &self.keys.placed {
            while placed.get(self.placed).is_some_and(|(first, _)| *first <= row) {
                (self.placed, begins) = (self.placed + 1, true);
            }
            let (_, id) = placed[self.placed.max(1) - 1];
            key.0 = id;
        }
        if let Some(((run_before, step_before), meant)) = self.before
            && !begins
            && meant.0 == key.0
        {
            if run_before != run {
                let detail = format!("run {run} among the rows that `metadata.db` gives to run {}", key.0);
                return Err(FormatError::new(Kind::Corrupt, detail));
            }
            if self.keys.wraps {
                // 65535 is followed by 0 where a game continues.
                let over = meant.1 - step_before + if step_before == 0xffff && step == 0 { 0x1_0000 } else { 0 };
                let too_many = || FormatError::new(Kind::OutOfRange, "more steps in a run than 32 bits count");
                key.1 = step.checked_add(over).ok_or_else(too_many)?;
            }
        }
        self.before = Some(((run, step), key));
        Ok(key)
    }
}
