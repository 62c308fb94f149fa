//! A file of step rows -> stretches of it in the 48-byte form, whatever order and padding its fields have.
//! Knows fields by name; says of other rows what they are, and never guesses.

use std::sync::Arc;

use gristmill_format::g2048::RowForm;
use gristmill_format::g2048::row::{ALIGNED_BYTES, layout_aligned, widen};
use gristmill_format::layout::{Conform, Layout};
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::open_file;

use super::shards::Shard;

/// One file of rows, open for reading from many threads at once.
pub struct RowsOf {
    /// Where it is and what its header says.
    pub shard: Shard,
    bytes: Arc<dyn ReadAt>,
    form: Stored,
}

/// Rows in a block: some 3 MB.
const BLOCK: u64 = 1 << 16;

/// A stretch of rows of one file.
#[derive(Debug, Clone, Copy)]
pub struct RowBlock {
    /// Number of the file.
    pub file: usize,
    /// Number of its first row in the file.
    pub first: u64,
    /// Number of its first row among all rows.
    pub start: u64,
    /// How many rows.
    pub rows: u64,
}

impl RowBlock {
    /// The file of its last row, and the row's number there.
    pub fn last(&self) -> (usize, u64) {
        (self.file, self.first + self.rows - 1)
    }
}

/// All rows of some files, in order, in blocks that are worth a thread's while.
pub fn blocks(files: &[RowsOf]) -> Vec<RowBlock> {
    let (mut blocks, mut start) = (Vec::new(), 0);
    for (file, RowsOf { shard, .. }) in files.iter().enumerate() {
        for first in (0..shard.rows).step_by(BLOCK as usize) {
            let rows = BLOCK.min(shard.rows - first);
            blocks.push(RowBlock { file, first, start, rows });
            start += rows;
        }
    }
    blocks
}

/// How the rows of a file are stored.
enum Stored {
    /// In one of the two forms.
    Form(RowForm),
    /// The same fields in another order, with other padding, or in another byte order.
    Other(Conform),
}

impl RowsOf {
    /// Opens the file of a shard.
    ///
    /// Errors, with the file: `Io`; `Unsupported` for records that are no step rows, with what they are.
    pub fn open(shard: Shard) -> Result<Self> {
        let form = stored(&shard.layout).map_err(|e| e.in_source(shard.path.display().to_string()))?;
        let bytes = open_file(&shard.path)?;
        Ok(RowsOf { shard, bytes, form })
    }

    /// Bytes of the file, its header included.
    ///
    /// Errors: `Io`, with the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.bytes.len().map_err(|e| self.place(e))
    }

    /// Byte of the file at which a row starts.
    pub fn byte_of(&self, row: u64) -> u64 {
        self.shard.offset + row * self.shard.layout.size() as u64
    }

    /// Byte of the file at which a field of a row starts, from its place in the 48-byte form.
    pub fn byte_of_field(&self, row: u64, aligned: usize) -> u64 {
        let field = layout_aligned().fields().iter().find(|field| field.offset == aligned);
        let here = field.and_then(|field| self.shard.layout.field(&field.name));
        self.byte_of(row) + here.map_or(0, |field| field.offset as u64)
    }

    /// Reads `rows` rows from number `first` on: as they are into `stored`, and in the 48-byte form into `aligned`.
    ///
    /// Errors, with file and byte: `Truncated`, `Io`.
    pub fn read(&self, first: u64, rows: u64, stored: &mut Vec<u8>, aligned: &mut Vec<u8>) -> Result<()> {
        let span = Span { offset: self.byte_of(first), len: rows * self.shard.layout.size() as u64 };
        read_span(&*self.bytes, span, u64::MAX, stored).map_err(|e| self.place(e))?;
        aligned.resize(rows as usize * ALIGNED_BYTES, 0);
        match &self.form {
            Stored::Form(RowForm::Aligned) => aligned.copy_from_slice(stored),
            Stored::Form(RowForm::Packed) => widen(stored, aligned).map_err(|e| self.place(e))?,
            Stored::Other(conform) => conform.records(stored, aligned).map_err(|e| self.place(e))?,
        }
        Ok(())
    }

    /// Says of an error that it is in this file.
    pub fn place(&self, e: Error) -> Error {
        e.in_source(self.shard.path.display().to_string())
    }
}

/// Says how rows of this layout are stored; by the names of the fields, whatever their order.
fn stored(layout: &Layout) -> Result<Stored> {
    for form in [RowForm::Aligned, RowForm::Packed] {
        if *layout == **form.layout() {
            return Ok(Stored::Form(form));
        }
    }
    let has = |name: &str| layout.field(name).is_some();
    let missing: Vec<&str> =
        layout_aligned().fields().iter().map(|field| field.name.as_str()).filter(|name| !has(name)).collect();
    let more: Vec<&str> = layout
        .fields()
        .iter()
        .map(|field| field.name.as_str())
        .filter(|name| layout_aligned().field(name).is_none())
        .collect();
    if missing.is_empty() && more.is_empty() {
        return Ok(Stored::Other(Conform::new(layout, layout_aligned())?));
    }
    let what = if has("exps") {
        "these are self-play rows, which `convert` makes a pack of"
    } else if has("ev_values") {
        "these are rows of a legacy expectimax pack, which `convert` reads"
    } else if missing == ["board_eval"] && more.is_empty() {
        "rows without board_eval are of 2025 and number the moves otherwise; pack their logs again"
    } else {
        "these are no step rows"
    };
    let detail = format!("{what} (fields missing: {}; unknown: {})", missing.join(", "), more.join(", "));
    Err(Error::new(Kind::Unsupported, detail))
}
