//! Boards that are reached by number, near or elsewhere, some of which cannot be read for a while: what a pack is to a loader.
//! Notes what is read without having been fetched.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gristmill_engine::store::Claims;
use gristmill_engine::table::FrameTable;
use gristmill_format::bullet::layout;
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};

use crate::boards::{BYTES, board};
use crate::disk::Meanwhile;

#[derive(Debug, Default)]
struct Inner {
    broken: Option<u64>,
    fetched: BTreeSet<u64>,
    met: u64,
    /// How much of that was asked for.
    noted: u64,
    unfetched: Option<u64>,
}

/// A table of boards.
pub(crate) struct Boards {
    rows: u64,
    far: bool,
    inner: Mutex<Inner>,
    world: Weak<dyn Meanwhile>,
}

impl std::fmt::Debug for Boards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boards").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Boards {
    /// `rows` boards, `far` or near, of which row `broken` cannot be read; while one waits for them, `world` runs others.
    pub(crate) fn new(rows: u64, far: bool, broken: Option<u64>, world: Weak<dyn Meanwhile>) -> Arc<Self> {
        Arc::new(Boards { rows, far, inner: Mutex::new(Inner { broken, ..Inner::default() }), world })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the broken row was met.
    pub(crate) fn met(&self) -> u64 {
        self.lock().met
    }

    /// How often it was met since the last call.
    pub(crate) fn newly_met(&self) -> u64 {
        let mut inner = self.lock();
        let since = inner.met - inner.noted;
        inner.noted = inner.met;
        since
    }

    /// A row that was read without having been fetched.
    pub(crate) fn unfetched(&self) -> Option<u64> {
        self.lock().unfetched
    }

    fn hindered(&self, row: u64) -> Result<()> {
        let mut inner = self.lock();
        if inner.broken == Some(row) {
            inner.met += 1;
            return Err(Error::from(std::io::Error::from_raw_os_error(5)).in_source("boards"));
        }
        Ok(())
    }
}

impl FrameTable for Boards {
    fn layout(&self) -> &Layout {
        layout()
    }

    fn len(&self) -> u64 {
        self.rows
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        if out.len() != rows.len() * BYTES {
            return Err(Error::new(Kind::WrongSize, "boards have 32 bytes"));
        }
        for (row, to) in rows.iter().zip(out.chunks_exact_mut(BYTES)) {
            if *row >= self.rows {
                return Err(Error::new(Kind::Missing, format!("row {row} of {}", self.rows)));
            }
            self.hindered(*row)?;
            if self.far && !self.lock().fetched.contains(row) {
                self.lock().unfetched = Some(*row);
            }
            to.copy_from_slice(&board(0, *row as usize));
        }
        if let Some(world) = self.world.upgrade() {
            world.meanwhile();
        }
        Ok(())
    }

    fn want(&self, _start: u64, _end: u64) {}

    fn is_near(&self) -> bool {
        !self.far
    }

    fn claim(&self, rows: &[Range<u64>]) -> Result<Vec<Claims>> {
        for row in rows.iter().cloned().flatten() {
            self.hindered(row)?;
            self.lock().fetched.insert(row);
        }
        Ok(Vec::new())
    }

    fn locate(&self, row: u64) -> (String, u64) {
        ("boards".to_owned(), row)
    }
}
