//! Lengths of trajectories in, numbers of steps that stand together out; sizes of sources in, the order of their rows out;
//! columns and numbers in, batches out.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::Error as EngineError;
use gristmill_engine::demos::pairs::{Column, Held, Padding, PairSet, Pairs as Table, Picture, Piece, Puzzle, Steps};
use gristmill_engine::pipeline::Counted as Totals;
use gristmill_engine::runtime::cast::Cast;
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::stage::mix::{Exhausted, Mix as Order, Row};
use gristmill_engine::stage::pair::{Pairing, classes, offsets, pairs, windows};
use gristmill_engine::store::publish::write_whole as publish;
use gristmill_format::encode::{Encoder, Provenance, Row as Record, TensorSpec};
use gristmill_format::layout::Scalar;
use pyo3::exceptions::{PyBufferError, PyValueError};
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
        let found = pairs(&spans(&lengths), pairing, offsets(seed, epoch));
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
    py.detach(|| numbers(&classes(steps, count.max(1), seed, epoch)))
}

/// The order of the rows of several sources.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Mix(Order);

#[pymethods]
impl Mix {
    /// Sources of these sizes, from each position of `weights`, the first of which is 0, in proportion to those beside it;
    /// `exhausted` is `restart`, `stop` or `drop`.
    #[new]
    fn new(
        py: Python<'_>,
        sizes: Vec<u64>,
        weights: Vec<(u64, Vec<f64>)>,
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
        let (first, later) = weights.split_first().map_or((&[][..], &[][..]), |((_, own), later)| (own, later));
        if !later.is_empty() && rule != Exhausted::Restart {
            let text = "weights change while sources start over: leave `exhausted` out, or give one set of weights";
            return Err(EngineError::config("weights", text).into());
        }
        let key = Key::new(seed, "mix");
        let order = py.detach(|| match later {
            [] => Order::new(key, &sizes, first, shuffled, rule),
            later => Order::changing(key, &sizes, first, later, shuffled),
        });
        let message = || {
            let detail = "expected one weight of at least 0 for each source, not all 0, and no empty source";
            let weights: Vec<&[f64]> = weights.iter().map(|(_, own)| &**own).collect();
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

/// What stands in one tensor of the pairs of a data set, as Python describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Described {
    /// Rows of equal size; none of a class.
    column: Option<Contiguous>,
    row_bytes: usize,
    /// Numbers of rows (i64), as many for each pair as `each` says; without them a pair has the row of its own number.
    steps: Option<Contiguous>,
    each: usize,
    /// Draws the row instead: the later step and the same within its trajectory (i64), least and greatest offset.
    before: Option<(Contiguous, Contiguous, u64, u64)>,
    /// `same`, `unit` (u8 to f32, divided by 255), `float` (u8 to f32), `single` (f64 to f32).
    cast: String,
    /// Shape of a row, of the tensor's rows, and bytes of an element.
    padding: Option<(Vec<usize>, Vec<usize>, usize)>,
    /// Shape of a picture, bytes of an element, tiles of a side, and their orders.
    puzzle: Option<([usize; 3], usize, usize, Vec<usize>)>,
}

impl std::fmt::Debug for Contiguous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

impl Held for Contiguous {
    fn bytes(&self) -> &[u8] {
        Contiguous::bytes(self)
    }
}

/// Pairs of data sets, of which any can be made at once. It holds the memory of their columns.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Pairs(pub(crate) Arc<Table>);

#[pymethods]
impl Pairs {
    /// Tensors of these names, types and row shapes; of each data set how many pairs it has, and what stands in each tensor.
    ///
    /// Raises FormatError, with data set and tensor, for what does not fit.
    #[new]
    fn new(
        py: Python<'_>,
        outputs: Vec<(String, String, Vec<usize>)>,
        sets: Vec<(u64, Vec<Described>)>,
        seed: u64,
    ) -> Result<Self, Fault> {
        let sets: Vec<PairSet> = sets
            .into_iter()
            .map(|(pairs, pieces)| {
                let pieces = pieces.into_iter().map(|piece| piece.piece(seed)).collect::<Result<_, Fault>>()?;
                Ok(PairSet { pairs, pieces })
            })
            .collect::<Result<_, Fault>>()?;
        py.detach(|| {
            let outputs = outputs.into_iter().map(|(name, dtype, shape)| {
                let scalar = Scalar::from_code(dtype.trim_start_matches(['<', '|', '=']));
                // What is no number travels as its bytes.
                let width = dtype.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
                match scalar {
                    Some(scalar) => TensorSpec::new(name, scalar, &shape),
                    None => TensorSpec::new(name, Scalar::U8, &[shape, vec![width]].concat()),
                }
            });
            Ok(Pairs(Arc::new(Table::new(outputs.collect(), sets)?)))
        })
    }

    /// The tensors of these pairs (i64, counted over all data sets), each in the pass of its data set (i64).
    fn take(&self, py: Python<'_>, pairs: Contiguous<i64>, passes: Contiguous<i64>) -> Result<Vec<Memory>, Fault> {
        py.detach(|| {
            let count = pairs.bytes().len() / 8;
            let room = |output: &TensorSpec| Memory::zeroed(count * output.row_bytes());
            let mut made: Vec<Memory> = self.0.outputs().iter().map(room).collect::<Result<_, Fault>>()?;
            let columns = made.iter_mut().map(Memory::bytes_mut).collect::<Result<_, Fault>>()?;
            self.fill(pairs.bytes(), passes.bytes(), columns)?;
            Ok(made)
        })
    }

    /// The same, into memory of the caller: the whole of each.
    fn take_into(
        &self,
        py: Python<'_>,
        pairs: Contiguous<i64>,
        passes: Contiguous<i64>,
        mut to: Vec<Writable>,
    ) -> Result<(), Fault> {
        py.detach(|| self.fill(pairs.bytes(), passes.bytes(), to.iter_mut().map(Writable::bytes_mut).collect()))
    }
}

impl Pairs {
    fn fill(&self, pairs: &[u8], passes: &[u8], mut to: Vec<&mut [u8]>) -> Result<(), Fault> {
        let (records, passes) = (pairs.as_chunks::<8>().0, passes.as_chunks::<8>().0);
        let sizes = self.0.outputs().iter().map(|output| records.len() * output.row_bytes());
        if passes.len() != records.len() || !sizes.eq(to.iter().map(|column| column.len())) {
            let message = format!("{} pairs in {} passes do not fit this memory", records.len(), passes.len());
            return Err(Fault::Python(PyBufferError::new_err(message)));
        }
        let row = |(record, pass): (&'_ [u8; 8], &[u8; 8])| (*record, u64::from_le_bytes(*pass));
        let all: Vec<([u8; 8], u64)> = records.iter().zip(passes).map(row).collect();
        let rows: Vec<Record<'_>> = all
            .iter()
            .map(|(record, bits)| Record {
                record,
                provenance: Provenance::default(),
                bits: (*bits).into(),
                sparse: None,
            })
            .collect();
        Ok(self.0.encode(&rows, &mut to)?)
    }
}

impl Described {
    fn piece(self, seed: u64) -> Result<Piece, Fault> {
        let cast = match self.cast.as_str() {
            "same" => Cast::Same,
            "unit" => Cast::Unit,
            "float" => Cast::Float,
            "single" => Cast::Single,
            other => return Err(PyValueError::new_err(format!("`{other}` is no cast")).into()),
        };
        let puzzle = match self.puzzle {
            None => None,
            Some((shape, item, side, orders)) => {
                Some(Arc::new(Puzzle::new(Picture { shape, item }, side, orders, seed)?))
            }
        };
        let Some(rows) = self.column else {
            let nothing = || PyValueError::new_err("neither a column nor a class");
            return Ok(Piece::Class(puzzle.ok_or_else(nothing)?));
        };
        let column = Column { rows: Arc::new(rows), row_bytes: self.row_bytes };
        let steps = match (self.before, self.steps) {
            (Some((later, within, least, most)), _) => {
                Steps::Before { later: Arc::new(later), within: Arc::new(within), range: (least, most), seed }
            }
            (None, Some(numbers)) => Steps::Listed { numbers: Arc::new(numbers), each: self.each },
            (None, None) => Steps::Own,
        };
        let padding = self.padding.map(|(from, to, item)| Padding { from, to, item });
        Ok(match puzzle {
            None => Piece::Rows { column, steps, cast, padding },
            Some(puzzle) => Piece::Tiles { column, steps, puzzle, cast, padding },
        })
    }
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
