//! Lengths of trajectories in, numbers of steps that stand together out; sizes of sources in, the order of their rows out;
//! columns and numbers in, batches out.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::Error as EngineError;
use gristmill_engine::pipeline::Counted as Totals;
use gristmill_engine::runtime::collect::{Cast, Part, Wanted};
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::runtime::sheet::SheetPool;
use gristmill_engine::stage::mix::{Exhausted, Mix as Order, Row};
use gristmill_engine::stage::pair::{Pairing, classes, pairs, windows};
use gristmill_engine::store::publish::write_whole as publish;
use pyo3::exceptions::{PyBufferError, PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory, Writable};
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

/// The order of the rows of several sources.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Mix(Order);

#[pymethods]
impl Mix {
    /// Sources of these sizes, in proportion to `weights`; `exhausted` is `restart`, `stop` or `drop`.
    #[new]
    fn new(
        py: Python<'_>,
        sizes: Vec<u64>,
        weights: Vec<f64>,
        seed: u64,
        shuffled: bool,
        exhausted: &str,
    ) -> Result<Self, Fault> {
        let rule = match exhausted {
            "restart" => Exhausted::Restart,
            "stop" => Exhausted::Stop,
            "drop" => Exhausted::Drop,
            _ => {
                let message = format!("`{exhausted}`; expected `restart`, `stop` or `drop`");
                return Err(EngineError::config("exhausted", message).into());
            }
        };
        let order = py.detach(|| Order::new(Key::new(seed, "mix"), &sizes, &weights, shuffled, rule));
        let message = || {
            let detail = "expected one weight of at least 0 for each source, not all 0, and no empty source";
            EngineError::config("weights", format!("{weights:?} for sources of {sizes:?} rows; {detail}"))
        };
        Ok(Mix(order.ok_or_else(message)?))
    }

    /// Rows of a pass; None where there is no end.
    #[getter]
    fn length(&self) -> Option<u64> {
        self.0.length()
    }

    /// How many rows each source gave before a position.
    fn given(&self, position: u64) -> Result<Vec<u64>, Fault> {
        Ok(self.0.given(checked(position)?))
    }

    /// The `count` rows from a position on: source, row of it, and its pass, as u64.
    fn rows(&self, py: Python<'_>, position: u64, count: usize) -> Result<(Memory, Memory, Memory), Fault> {
        let position = checked(position)?;
        Ok(py.detach(|| {
            let rows = self.0.rows(position).read(count);
            let column = |value: fn(&Row) -> u64| numbers(&rows.iter().map(value).collect::<Vec<_>>());
            (column(|row| row.source as u64), column(|row| row.row), column(|row| row.pass))
        }))
    }
}

/// Positions of an order.
fn checked(position: u64) -> Result<u64, Fault> {
    if position < 1 << 62 {
        return Ok(position);
    }
    Err(EngineError::State(format!("position {position}; an order has 2^62")).into())
}

/// Bytes of a column's rows; numbers of the wanted ones, and their places in the batch, as i64.
type ColumnPart = (Contiguous, Contiguous, Option<Contiguous>);

/// Memory for batches of up to `rows` rows, used again when the last array over it is gone.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct BatchMemory(Arc<SheetPool>);

#[pymethods]
impl BatchMemory {
    /// Columns of the given bytes a row, for up to `rows` rows. At most `keep` free batches are kept.
    #[new]
    fn new(rows: usize, row_bytes: Vec<usize>, keep: usize) -> Self {
        BatchMemory(SheetPool::new(rows, row_bytes, keep))
    }

    /// A batch of `rows` rows. Each column is gathered from rows of some bytes, its parts together filling it, and cast:
    /// `same`, `unit` (u8 to f32, divided by 255), `float` (u8 to f32), `single` (f64 to f32).
    ///
    /// Raises IndexError: a row number out of range; BufferError: columns that do not fit.
    fn gather(
        &self,
        py: Python<'_>,
        rows: usize,
        columns: Vec<(usize, String, Vec<ColumnPart>)>,
    ) -> Result<Vec<Memory>, Fault> {
        let wanted: Vec<Wanted<'_>> = columns.iter().map(wanted).collect::<PyResult<_>>()?;
        let sheet = py.detach(|| self.0.take()).map_err(|e| PyMemoryError::new_err(e.to_string()))?;
        if rows > sheet.rows() || wanted.len() != sheet.columns() {
            let message = format!("{rows} rows of {} columns do not fit this memory", wanted.len());
            return Err(Fault::Python(PyBufferError::new_err(message)));
        }
        let filled = py.detach(|| {
            sheet.write(0, rows, |to| wanted.iter().zip(to).try_for_each(|(wanted, column)| wanted.fill(column)))
        });
        filled.map_err(PyIndexError::new_err)?;
        let shared = self.0.share(sheet);
        Ok((0..wanted.len()).map(|column| Memory::of_sheet(&shared, column, rows)).collect())
    }
}

/// Gathers columns as `BatchMemory.gather` does, into memory of the caller: the whole of each.
///
/// Raises IndexError: a row number out of range; BufferError: columns that do not fit.
#[pyfunction]
pub(crate) fn gather_into(
    py: Python<'_>,
    mut to: Vec<Writable>,
    columns: Vec<(usize, String, Vec<ColumnPart>)>,
) -> Result<(), Fault> {
    let wanted: Vec<Wanted<'_>> = columns.iter().map(wanted).collect::<PyResult<_>>()?;
    if wanted.len() != to.len() {
        let message = format!("{} columns do not fit memory for {}", wanted.len(), to.len());
        return Err(Fault::Python(PyBufferError::new_err(message)));
    }
    let filled =
        py.detach(|| wanted.iter().zip(&mut to).try_for_each(|(wanted, column)| wanted.fill(column.bytes_mut())));
    Ok(filled.map_err(PyIndexError::new_err)?)
}

fn wanted((row_bytes, cast, parts): &(usize, String, Vec<ColumnPart>)) -> PyResult<Wanted<'_>> {
    let cast = match cast.as_str() {
        "same" => Cast::Same,
        "unit" => Cast::Unit,
        "float" => Cast::Float,
        "single" => Cast::Single,
        _ => return Err(PyValueError::new_err(format!("`{cast}` is no cast"))),
    };
    let parts = parts.iter().map(|(rows, numbers, places)| Part {
        rows: rows.bytes(),
        numbers: numbers.bytes(),
        places: places.as_ref().map(Contiguous::bytes),
    });
    Ok(Wanted { row_bytes: *row_bytes, cast, parts: parts.collect() })
}

/// What a loader of pairs or steps has given.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Counted(Totals);

#[pymethods]
impl Counted {
    /// Nothing yet; of `pairs` or of steps.
    #[new]
    fn new(pairs: bool, seed: u64, rank: u64, world_size: u64) -> Self {
        Counted(Totals::new(if pairs { "pairs" } else { "steps" }, seed, (rank, world_size)))
    }

    /// A batch was given, for which the consumer waited; the next one is of pass `epoch`.
    fn add(&self, rows: u64, waited_ns: u64, epoch: u64) {
        self.0.add(rows, waited_ns);
        self.0.turn(epoch);
    }

    /// All that is known, in JSON.
    fn metrics(&self) -> Result<String, Fault> {
        let json = serde_json::to_string(&self.0.metrics());
        json.map_err(|e| PyValueError::new_err(e.to_string()).into())
    }

    /// Serves the metrics as Prometheus text and the status as JSON; returns the address, port filled in.
    #[pyo3(signature = (address, token))]
    fn serve_metrics(&self, py: Python<'_>, address: &str, token: Option<&str>) -> Result<String, Fault> {
        py.detach(|| Ok(self.0.serve_metrics(address, token)?.to_string()))
    }
}

/// Writes a small file whole or not at all.
///
/// Raises OSError.
#[pyfunction]
pub(crate) fn write_whole(py: Python<'_>, path: PathBuf, data: &[u8]) -> Result<(), Fault> {
    py.detach(|| Ok(publish(&path, &[data])?))
}
