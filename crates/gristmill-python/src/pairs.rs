//! Lengths of trajectories in, numbers of steps that stand together out; sizes of sources in, the order of their rows out.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_engine::Error as EngineError;
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::stage::mix::Mix as Order;
use gristmill_engine::stage::pair::{Pairing, classes, pairs, windows};
use pyo3::prelude::*;

use crate::array::Memory;
use crate::error::Fault;

fn spans(lengths: &[u64]) -> Vec<Range<u64>> {
    let mut end = 0u64;
    let span = |length: &u64| {
        let start = end;
        end = end.saturating_add(*length);
        start..end
    };
    lengths.iter().map(span).collect()
}

fn numbers(values: &[u64]) -> Memory {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let len = bytes.len();
    Memory::of_vec(bytes, len)
}

/// Context, target, trajectory and step of each pair, as u64.
type PairRows = (Memory, Memory, Memory, Memory);

/// The pairs of trajectories of these lengths: `identity`, or by an offset of `least` (`offset`, `reverse`) or from `least`
/// to `most` (`uniform`).
#[pyfunction]
pub(crate) fn pair_rows(
    py: Python<'_>,
    lengths: Vec<u64>,
    kind: &str,
    least: u64,
    most: u64,
    seed: u64,
    epoch: u64,
) -> Result<PairRows, Fault> {
    let pairing = match kind {
        "identity" => Pairing::Identity,
        "offset" if least > 0 => Pairing::Offset { offset: least },
        "reverse" if least > 0 => Pairing::Reverse { offset: least },
        "uniform" if least > 0 && least <= most => Pairing::Uniform { least, most },
        _ => {
            let message = format!("`{kind}` from {least} to {most}; expected offsets of at least 1, in order");
            return Err(EngineError::config("temporal_offset", message).into());
        }
    };
    py.detach(|| {
        let found = pairs(&spans(&lengths), pairing, Key::new(seed, "pair").of(b"epoch", epoch));
        Ok((numbers(&found.context), numbers(&found.target), numbers(&found.trajectory), numbers(&found.step)))
    })
}

/// For each step the `size` steps that end with it (u64), and which of them there are (bool).
#[pyfunction]
pub(crate) fn window_rows(py: Python<'_>, lengths: Vec<u64>, size: usize) -> (Memory, Memory) {
    py.detach(|| {
        let (rows, mask) = windows(&spans(&lengths), size);
        let mask: Vec<u8> = mask.into_iter().map(u8::from).collect();
        let len = mask.len();
        (numbers(&rows), Memory::of_vec(mask, len))
    })
}

/// A class for each step (u64): all of them in an order of this seed and epoch, again and again.
#[pyfunction]
pub(crate) fn class_order(py: Python<'_>, steps: u64, count: u64, seed: u64, epoch: u64) -> Memory {
    py.detach(|| numbers(&classes(steps, count.max(1), Key::new(seed, "jigsaw").of(b"epoch", epoch))))
}

/// Choices that an order looks at before it asks whether to go on: some hundredths of a second.
const CHOICES: u64 = 1 << 20;

/// The order of the rows of several sources.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Mix(Mutex<Order>);

#[pymethods]
impl Mix {
    /// Sources of these sizes, in proportion to `weights`.
    #[new]
    fn new(sizes: Vec<u64>, weights: Vec<f64>, seed: u64, shuffled: bool) -> Result<Self, Fault> {
        let order = Order::new(Key::new(seed, "mix"), &sizes, &weights, shuffled);
        let message = || {
            let detail = "expected one weight of at least 0 for each source, not all 0, and no empty source";
            EngineError::config("weights", format!("{weights:?} for sources of {sizes:?} rows; {detail}"))
        };
        Ok(Mix(Mutex::new(order.ok_or_else(message)?)))
    }

    /// How many rows were given.
    #[getter]
    fn position(&self) -> u64 {
        self.order().position()
    }

    /// The next `count` rows: source, row of it, and its pass, as u64.
    fn take(&self, py: Python<'_>, count: usize) -> (Memory, Memory, Memory) {
        py.detach(|| {
            let mut order = self.order();
            let rows: Vec<(usize, u64, u64)> = (0..count).map(|_| order.next_row()).collect();
            let column = |value: fn(&(usize, u64, u64)) -> u64| numbers(&rows.iter().map(value).collect::<Vec<_>>());
            (column(|row| row.0 as u64), column(|row| row.1), column(|row| row.2))
        })
    }

    /// Goes to where `position` rows were given.
    ///
    /// Raises KeyboardInterrupt: among several sources a far way takes its time.
    fn seek(&self, py: Python<'_>, position: u64) -> PyResult<()> {
        while !py.detach(|| self.order().seek(position, CHOICES)) {
            py.check_signals()?;
        }
        Ok(())
    }
}

impl Mix {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
