//! The memory of one batch: columns of rows, each column 64-byte aligned, written piece by piece by several tasks.
//! Once whole it is shared read-write with the consumer and comes back to its pool when the last holder lets go.
#![allow(unsafe_code)]

use std::sync::{Arc, PoisonError, Weak};

use super::arena::Region;
use super::sync::Mutex;
use super::sync::atomic::{AtomicU64, Ordering};

/// Alignment of every column; JAX aliases nothing below it.
const ALIGN: usize = 64;

/// Rows for which one word of `written` has bits.
const WORD: usize = 64;

/// Columns of `rows` rows in one region.
#[derive(Debug)]
pub struct Sheet {
    region: Region,
    rows: usize,
    /// Per column: byte offset and bytes per row.
    columns: Vec<(usize, usize)>,
    /// One bit for each row. It is set if the row was written since the sheet left its pool.
    written: Vec<AtomicU64>,
}

impl Sheet {
    fn new(rows: usize, row_bytes: &[usize]) -> std::io::Result<Self> {
        let mut columns = Vec::with_capacity(row_bytes.len());
        let len = sheet_bytes(rows, row_bytes, |offset, bytes| columns.push((offset, bytes)))
            .ok_or(std::io::ErrorKind::OutOfMemory)?;
        let written = std::iter::repeat_with(AtomicU64::default).take(rows.div_ceil(WORD)).collect();
        Ok(Sheet { region: Region::new(len)?, rows, columns, written })
    }

    /// Rows that it has room for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Writes rows `first..first + count` of every column.
    ///
    /// Panics when a row is out of range or was already written.
    pub fn write<R>(&self, first: usize, count: usize, write: impl FnOnce(&mut [&mut [u8]]) -> R) -> R {
        let end = first.checked_add(count).filter(|end| *end <= self.rows).expect("rows that it has room for");
        let mut at = first;
        while at < end {
            let behind = end.min((at / WORD + 1) * WORD);
            let rows = (u64::MAX >> (WORD - (behind - at))) << (at % WORD);
            let before = self.written[at / WORD].fetch_or(rows, Ordering::Relaxed);
            assert!(before & rows == 0, "each row is written once");
            at = behind;
        }
        let mut slices: Vec<&mut [u8]> = self
            .columns
            .iter()
            // SAFETY: the bits just taken make these rows this call's alone; columns do not overlap.
            .map(|&(offset, bytes)| unsafe { self.region.slice_mut(offset + first * bytes, count * bytes) })
            .collect();
        write(&mut slices)
    }

    /// The bytes of the first `rows` rows of a column. Only for whole sheets.
    fn column(&self, index: usize, rows: usize) -> &[u8] {
        let (offset, bytes) = self.columns[index];
        // SAFETY: a whole sheet is written no more by this crate; consumers that write through the
        // pointer own the batch.
        unsafe { self.region.slice(offset, rows * bytes) }
    }
}

/// Bytes of a sheet, telling each column's offset; `None` when that overflows.
pub fn sheet_bytes(rows: usize, row_bytes: &[usize], mut each: impl FnMut(usize, usize)) -> Option<usize> {
    row_bytes.iter().try_fold(0usize, |offset, &bytes| {
        each(offset, bytes);
        offset.checked_add(rows.checked_mul(bytes)?)?.checked_next_multiple_of(ALIGN)
    })
}

/// Sheets of one shape, reused.
#[derive(Debug)]
pub struct SheetPool {
    rows: usize,
    row_bytes: Vec<usize>,
    free: Mutex<Vec<Sheet>>,
    keep: usize,
}

impl SheetPool {
    /// A pool that keeps at most `keep` free sheets.
    pub fn new(rows: usize, row_bytes: Vec<usize>, keep: usize) -> Arc<Self> {
        Arc::new(SheetPool { rows, row_bytes, free: Mutex::new(Vec::new()), keep })
    }

    /// A sheet to write. Errors: no memory.
    pub fn take(&self) -> std::io::Result<Sheet> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(sheet) = free else { return Sheet::new(self.rows, &self.row_bytes) };
        sheet.written.iter().for_each(|rows| rows.store(0, Ordering::Relaxed));
        Ok(sheet)
    }

    /// Keeps a sheet for the next batch. Never waits: a pool that is busy (or was, when this process was forked
    /// off) goes without it.
    fn give_back(&self, sheet: Sheet) {
        if let Ok(mut free) = self.free.try_lock()
            && free.len() < self.keep
        {
            free.push(sheet);
        }
    }

    /// Shares a whole sheet; it comes back here when the last holder lets go.
    pub fn share(self: &Arc<Self>, sheet: Sheet) -> Arc<SharedSheet> {
        Arc::new(SharedSheet { sheet: Some(sheet), home: Arc::downgrade(self) })
    }
}

/// A whole sheet in the consumer's hands.
#[derive(Debug)]
pub struct SharedSheet {
    sheet: Option<Sheet>,
    home: Weak<SheetPool>,
}

impl SharedSheet {
    fn sheet(&self) -> &Sheet {
        self.sheet.as_ref().expect("present until dropped")
    }

    /// The first `rows` rows of a column.
    pub fn column(&self, index: usize, rows: usize) -> &[u8] {
        self.sheet().column(index, rows)
    }

    /// The first byte of a column, 64-byte aligned; writable by the owner of the batch.
    pub fn column_ptr(&self, index: usize) -> *mut u8 {
        let (offset, _) = self.sheet().columns[index];
        self.sheet().region.as_ptr().wrapping_add(offset)
    }

    /// Rows the sheet has room for.
    pub fn rows(&self) -> usize {
        self.sheet().rows
    }

    /// Lets GPUs read the sheet by themselves, as often as it is used: `device` is the number of one that the process uses.
    /// Whether they may.
    pub fn pin(&self, device: i32) -> bool {
        self.sheet().region.pin(device)
    }
}

impl Drop for SharedSheet {
    fn drop(&mut self) {
        if let (Some(sheet), Some(home)) = (self.sheet.take(), self.home.upgrade()) {
            home.give_back(sheet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_sheets_come_back() {
        let pool = SheetPool::new(3, vec![100, 7], 1);
        let sheet = pool.take().unwrap();
        sheet.write(1, 2, |columns| {
            columns[0].fill(1);
            columns[1].fill(2);
        });
        sheet.write(0, 1, |columns| columns.iter_mut().for_each(|c| c.fill(9)));
        let shared = pool.share(sheet);
        assert_eq!(shared.column(1, 3), [[9u8; 7], [2; 7], [2; 7]].concat());
        let first = shared.column_ptr(0);
        assert!((0..2).all(|c| (shared.column_ptr(c) as usize).is_multiple_of(64)));
        drop(shared);
        assert_eq!(pool.share(pool.take().unwrap()).column_ptr(0), first, "the same memory again");
    }

    #[test]
    #[should_panic(expected = "written once")]
    fn writing_a_row_twice_is_caught() {
        let sheet = SheetPool::new(2, vec![8], 0).take().unwrap();
        sheet.write(0, 2, |_| ());
        sheet.write(1, 1, |_| ());
    }
}
