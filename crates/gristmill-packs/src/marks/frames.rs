//! The frames of a pack -> a table of SQLite, a row for each, so that rules are conditions as people know them.
//! A record is read when a rule reads the first of its fields; a rule on games alone decodes nothing.
//!
//! `unsafe` twice: SQLite asks that its own structs come first in those of a table and of a cursor, which `repr(C)` keeps.
#![allow(unsafe_code, reason = "rusqlite's traits of virtual tables are unsafe to implement")]

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::{Error, Result as FormatResult};
use gristmill_runtime::table::FrameTable;
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConnection, VTabCursor, escape_double_quote, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Result};

use super::columns::{Column, Number, columns};
use crate::pack_table::{PackTable, Place};

/// What the table is called.
pub(super) const NAME: &str = "pack_frames";
const MODULE_NAME: &CStr = c"pack_frames";

/// Bytes of records that are read together.
const READ_BYTES: usize = 128 << 10;

/// The columns before those of records: number of the frame, id of its game, number within its game.
const OWN: [&str; 3] = ["frame", "game_id", "ply"];

/// A stretch of the frames of a pack, which can be moved between two queries.
pub(super) struct Scan {
    pack: Arc<dyn PackTable>,
    table: Arc<dyn FrameTable>,
    columns: Vec<Column>,
    from: AtomicU64,
    to: AtomicU64,
    /// The error that a query ended with.
    fault: Mutex<Option<Error>>,
}

impl Scan {
    pub(crate) fn new(pack: Arc<dyn PackTable>) -> FormatResult<Arc<Self>> {
        let table = Arc::clone(&pack).records()?;
        let columns = columns(table.layout(), &[&OWN, pack.derived()].concat());
        let (from, to) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Arc::new(Scan { pack, table, columns, from, to, fault: Mutex::default() }))
    }

    /// Makes the table known to a connection.
    pub(super) fn join(self: &Arc<Self>, db: &Connection) -> Result<()> {
        const MODULE: Module<'_, Frames> = Module::eponymous_only_module();
        db.create_module(MODULE_NAME, &MODULE, Some(Arc::clone(self)))
    }

    /// The next query sees these frames.
    pub(super) fn set(&self, from: u64, to: u64) {
        self.from.store(from, Ordering::Relaxed);
        self.to.store(to, Ordering::Relaxed);
    }

    /// Why the last query failed, where it was for a frame.
    pub(super) fn fault(&self) -> Option<Error> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The statement that SQLite knows the table by.
    fn declaration(&self) -> CString {
        let own = OWN.iter().map(|name| (*name).to_owned());
        let named = own.chain(self.columns.iter().map(|column| column.name.clone()));
        let names = named.chain(self.pack.derived().iter().map(|name| (*name).to_owned()));
        let quoted: Vec<String> = names.map(|name| format!("\"{}\"", escape_double_quote(&name))).collect();
        CString::new(format!("CREATE TABLE x({})", quoted.join(", "))).unwrap_or_default()
    }

    fn failed(&self, e: Error) -> rusqlite::Error {
        let text = e.to_string();
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        rusqlite::Error::ModuleError(text)
    }
}

#[repr(C)]
struct Frames {
    /// SQLite's own part, which comes first.
    base: sqlite3_vtab,
    scan: Arc<Scan>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct, as the trait asks.
unsafe impl<'vtab> VTab<'vtab> for Frames {
    type Aux = Arc<Scan>;
    type Cursor = Cursor;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Arc<Scan>>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let scan = aux.ok_or_else(|| rusqlite::Error::ModuleError("a table of no frames".to_owned()))?;
        let table = Frames { base: sqlite3_vtab::default(), scan: Arc::clone(scan) };
        Ok((Cow::Owned(scan.declaration()), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        // So dear that no plan goes through the frames more than once.
        info.set_estimated_cost(1e12);
        info.set_estimated_rows(1 << 30);
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Cursor> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            scan: Arc::clone(&self.scan),
            row: 0,
            end: 0,
            read: RefCell::default(),
        })
    }
}

#[repr(C)]
struct Cursor {
    /// SQLite's own part, which comes first.
    base: sqlite3_vtab_cursor,
    scan: Arc<Scan>,
    row: u64,
    end: u64,
    read: RefCell<Read>,
}

/// What was read ahead.
#[derive(Default)]
struct Read {
    /// The records of frames from `first` on.
    records: Vec<u8>,
    first: u64,
    place: Option<Place>,
}

impl Cursor {
    fn place(&self, read: &mut Read) -> Result<Place> {
        match read.place {
            Some(place) if (place.first..place.end).contains(&self.row) => Ok(place),
            _ => {
                let place = self.scan.pack.place(self.row).map_err(|e| self.scan.failed(e))?;
                Ok(*read.place.insert(place))
            }
        }
    }

    /// The record of the frame, read with those after it.
    fn record<'a>(&self, read: &'a mut Read) -> Result<&'a [u8]> {
        let size = self.scan.table.layout().size();
        let held = (read.records.len() / size) as u64;
        if !(read.first..read.first + held).contains(&self.row) {
            let count = ((READ_BYTES / size).max(1) as u64).min(self.end - self.row);
            let rows: Vec<u64> = (self.row..self.row + count).collect();
            read.records.resize(rows.len() * size, 0);
            read.first = self.row;
            if let Err(e) = self.scan.table.gather(&rows, &mut read.records) {
                read.records.clear();
                return Err(self.scan.failed(e));
            }
        }
        let at = (self.row - read.first) as usize * size;
        Ok(&read.records[at..at + size])
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct, as the trait asks.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> Result<()> {
        self.row = self.scan.from.load(Ordering::Relaxed);
        self.end = self.scan.to.load(Ordering::Relaxed);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.row += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.row >= self.end
    }

    fn column(&self, ctx: &mut Context, i: c_int) -> Result<()> {
        let read = &mut *self.read.borrow_mut();
        let i = usize::try_from(i).unwrap_or_default();
        match i {
            0 => ctx.set_result(self.row.cast_signed()),
            1 => ctx.set_result(self.place(read)?.game.cast_signed()),
            2 => ctx.set_result((self.row - self.place(read)?.first).cast_signed()),
            _ => {
                let record = self.record(read)?;
                let field = i - OWN.len();
                match self.scan.columns.get(field).map(|column| column.of(record)) {
                    Some(Number::Whole(number)) => ctx.set_result(number),
                    Some(Number::Real(number)) => ctx.set_result(number),
                    None => {
                        let derived = self.scan.pack.derive(field - self.scan.columns.len(), record);
                        ctx.set_result(derived.map_err(|e| self.scan.failed(e))?)
                    }
                }
            }
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.row.cast_signed())
    }
}
