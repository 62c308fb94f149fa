//! Rows of a pack and the runs that they belong to -> a table that knows where each game begins and ends.
//! Trusts the database only after it checked the rows at both ends of every run; rows themselves pass through.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gristmill_format::layout::Layout;
use gristmill_format::{Error, Result};
use gristmill_runtime::store::HeldFile;
use gristmill_runtime::table::{Chunks, FileTable, FrameTable, Needs};

use super::runs::RunIndex;

/// The rows of a pack, which belong to runs.
#[derive(Debug)]
pub struct RunTable {
    rows: FileTable,
    index: Arc<RunIndex>,
    /// Whether each run lies in one piece, once it was checked.
    whole: OnceLock<std::result::Result<(), Error>>,
}

impl RunTable {
    /// The rows, and an index of them.
    pub fn new(rows: FileTable, index: Arc<RunIndex>) -> Self {
        RunTable { rows, index, whole: OnceLock::new() }
    }
}

impl FrameTable for RunTable {
    fn layout(&self) -> &Layout {
        self.rows.layout()
    }

    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        self.rows.gather(rows, out)
    }

    fn gathered(&self, rows: &[u64]) -> Result<Vec<u8>> {
        self.rows.gathered(rows)
    }

    fn want(&self, start: u64, end: u64) {
        self.rows.want(start, end);
    }

    fn files(&self) -> Vec<&HeldFile> {
        self.rows.files()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        self.rows.needs(rows, each)
    }

    fn locate(&self, row: u64) -> (String, u64) {
        self.rows.locate(row)
    }

    /// Looks at every run when it is first called.
    ///
    /// Errors: as [`RunIndex::in_one_piece`].
    fn chunks(&self) -> Result<&dyn Chunks> {
        self.whole.get_or_init(|| self.index.in_one_piece(&self.rows)).clone().map(|()| self as &dyn Chunks)
    }
}

impl Chunks for RunTable {
    fn bounds(&self, row: u64) -> Range<u64> {
        self.index.stretch_of(row).map_or(row..row, |(start, end, _)| start..end)
    }
}
