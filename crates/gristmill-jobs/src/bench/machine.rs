//! This machine -> what its memory and its cores can do, now: copies, fills, rows gathered at random, cores had at once.
//! Bounded in memory and time; measures nothing of the data.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use serde::Serialize;

use super::sample::{Inflation, best};
use super::storage::Storage;
use crate::in_order::InOrder;
use crate::meter::Meter;

/// Most bytes of a buffer: more than caches hold.
const LARGE: usize = 64 << 20;

/// Least bytes of a buffer.
const SMALL: usize = 64 << 10;

/// Most bytes of all buffers of all threads.
const ALL: usize = 256 << 20;

/// Bytes that a pass copies or fills, however small its buffer is.
const PASS: usize = 64 << 20;

/// Passes of which the best counts.
const PASSES: usize = 5;

/// Rows of a batch that is gathered, where they fit into `LARGE` bytes, and most batches of a pass.
const ROWS: usize = 1024;
const BATCHES: usize = 64;

/// Seconds for which each thread computes.
const SPIN: f64 = 0.06;

/// Rows of at most `SHORT` bytes are copied in pieces of `LINE` bytes, a line of a cache.
const LINE: usize = 64;
const SHORT: usize = 512;

/// How fast bytes move through a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Bytes written a second: of processor time on one thread, by the clock on several.
    pub bytes_per_second: f64,
    /// Size of the buffer that they were written to: as large as that of the run, for caches hold small ones.
    pub buffer_bytes: usize,
}

/// How fast rows are copied that lie anywhere in a table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gathering {
    /// Rows a second of processor time, on one thread.
    pub rows_per_second: f64,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Bytes of the table: those of the pack, at most 128 MiB.
    pub table_bytes: usize,
}

/// What this machine can do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// How many threads that only compute ran at once.
    pub cores_had: f64,
    /// Copying, on one thread.
    pub copy: Bandwidth,
    /// Copying, on as many threads as there are cores, all together.
    pub copy_all: Bandwidth,
    /// Writing the same byte, on one thread.
    pub fill: Bandwidth,
    /// Copying rows that lie anywhere; where rows of at most 64 MiB are fed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather: Option<Gathering>,
    /// Inflating the data; where they are compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inflate: Option<Inflation>,
    /// Reading the files of the data; where they are files of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// How large the buffers of a run are: where it copies records to, where it writes tensors to; and rows and bytes of a table
/// that it gathers from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) copied: usize,
    pub(super) filled: usize,
    pub(super) row: usize,
    pub(super) table: usize,
}

impl Machine {
    /// Measures the machine for runs of these sizes; `inflate` and `storage`, which need data, stay empty.
    ///
    /// Errors: the system has no more threads.
    pub(super) fn measure(cores: usize, sizes: &Sizes) -> Result<Self> {
        Ok(Machine {
            cores,
            cores_had: cores_had(cores)?,
            copy: copy(sizes.copied.clamp(SMALL, LARGE))?,
            copy_all: copy_all(cores)?,
            fill: fill(sizes.filled.clamp(SMALL, LARGE))?,
            gather: if (1..=LARGE).contains(&sizes.row) { Some(gather(sizes.row, sizes.table)?) } else { None },
            inflate: None,
            storage: None,
        })
    }
}

fn copy(size: usize) -> Result<Bandwidth> {
    let (from, mut to) = (vec![1u8; size], vec![0u8; size]);
    let times = (PASS / size).max(1);
    let seconds = best(PASSES, || {
        copies(&from, &mut to, times);
        Ok(())
    })?;
    Ok(Bandwidth { bytes_per_second: (times * size) as f64 / seconds, buffer_bytes: size })
}

fn copies(from: &[u8], to: &mut [u8], times: usize) {
    for _ in 0..times {
        to.copy_from_slice(std::hint::black_box(from));
        std::hint::black_box(&mut *to);
    }
}

fn fill(size: usize) -> Result<Bandwidth> {
    let mut to = vec![0u8; size];
    let times = (PASS / size).max(1);
    let seconds = best(PASSES, || {
        for _ in 0..times {
            std::hint::black_box(&mut *to).fill(std::hint::black_box(3));
        }
        Ok(())
    })?;
    Ok(Bandwidth { bytes_per_second: (times * size) as f64 / seconds, buffer_bytes: size })
}

/// All threads copy at once; each has buffers of its own.
fn copy_all(cores: usize) -> Result<Bandwidth> {
    let size = (ALL / (2 * cores)).clamp(SMALL, LARGE / 2);
    let times = (PASS / size).max(1) * 2;
    let seconds = together(cores, move || {
        let (from, mut to) = (vec![1u8; size], vec![0u8; size]);
        // The first copy brings the pages.
        copies(&from, &mut to, 1);
        let meter = Meter::default();
        copies(&from, &mut to, times);
        meter.now().wall
    })?;
    let slowest = seconds.into_iter().fold(1e-9, f64::max);
    Ok(Bandwidth { bytes_per_second: (cores * times * size) as f64 / slowest, buffer_bytes: size })
}

/// Copies rows of a table, each far from the one before, into batches.
fn gather(row: usize, table: usize) -> Result<Gathering> {
    let rows = (table / row).clamp(1, (2 * LARGE / row).max(1));
    let batch = (LARGE / row).clamp(1, ROWS);
    // `copy_row` reads and writes up to a line beyond the last row.
    let from = vec![1u8; rows * row + LINE];
    let mut to = vec![0u8; batch * row + LINE];
    let batches = (PASS / (batch * row)).clamp(1, BATCHES);
    let mut at = 0u64;
    let seconds = best(PASSES, || {
        for _ in 0..batches {
            for i in 0..batch {
                at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let number = ((u128::from(at) * rows as u128) >> 64) as usize;
                copy_row(&from[number * row..], &mut to[i * row..], row);
            }
            std::hint::black_box(&mut to);
        }
        Ok(())
    })?;
    Ok(Gathering { rows_per_second: (batch * batches) as f64 / seconds, row_bytes: row, table_bytes: rows * row })
}

/// Copies the first `row` bytes of `from` into `to`; both need `LINE` bytes more than that.
fn copy_row(from: &[u8], to: &mut [u8], row: usize) {
    if row > SHORT {
        to[..row].copy_from_slice(&from[..row]);
        return;
    }
    for at in (0..row).step_by(LINE) {
        let line: [u8; LINE] = from[at..at + LINE].try_into().unwrap_or([0; LINE]);
        to[at..at + LINE].copy_from_slice(&line);
    }
}

/// How many cores `cores` threads get that all compute at once.
fn cores_had(cores: usize) -> Result<f64> {
    let spin = |turns: u64| {
        let mut x = 1u64;
        for i in 0..turns {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i));
        }
        x
    };
    let mut turns = 1 << 14;
    let alone = loop {
        let seconds = best(1, || {
            spin(turns);
            Ok(())
        })?;
        if seconds >= SPIN {
            break seconds;
        }
        turns *= 2;
    };
    let ends = together(cores, move || {
        let meter = Meter::default();
        spin(turns);
        meter.now().wall
    })?;
    let longest = ends.into_iter().fold(1e-9, f64::max);
    Ok((cores as f64 * alone / longest).min(cores as f64))
}

/// Runs `work` on `threads` threads at once, and gives what each returned.
fn together(threads: usize, work: impl Fn() -> f64 + Send + Sync + 'static) -> Result<Vec<f64>> {
    let begun = move |_| work();
    let mut made = InOrder::start(threads, threads, Arc::new(AtomicBool::new(false)), begun)
        .map_err(|e| Error::Stage { stage: "bench".into(), message: format!("no thread to measure with: {e}") })?;
    let mut all = Vec::new();
    while let Some(one) = made.next()? {
        all.push(one);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_a_number_whatever_the_sizes_are() {
        for (row, table) in [(0, 0), (1, 1), (46, 4600), (200, 100), (70_000, 1 << 40), (LARGE + 1, 1 << 40)] {
            let sizes = Sizes { copied: 1, filled: usize::MAX, row, table };
            let found = Machine::measure(2, &sizes).unwrap();
            assert!((0.0..=2.0).contains(&found.cores_had) && found.cores_had > 0.0, "{found:?}");
            for bandwidth in [found.copy, found.copy_all, found.fill] {
                assert!(bandwidth.bytes_per_second.is_finite() && bandwidth.bytes_per_second > 0.0, "{found:?}");
            }
            assert_eq!((found.copy.buffer_bytes, found.fill.buffer_bytes), (SMALL, LARGE));
            let gathered = if row > LARGE { 0 } else { row };
            assert_eq!(found.gather.map(|gather| gather.row_bytes).unwrap_or_default(), gathered);
            assert!(found.gather.is_none_or(|g| g.rows_per_second > 0.0 && g.table_bytes <= 2 * LARGE), "{found:?}");
        }
    }
}
