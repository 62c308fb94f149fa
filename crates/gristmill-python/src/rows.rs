//! A pack in, selections of its rows out: by SQL, by value, by side of a split; and rows by number.
//! Everything that reads is called with the GIL released.

use std::path::PathBuf;
use std::sync::Arc;

use gristmill_engine::RowEncoder;
use gristmill_engine::config::EncoderConfig;
use gristmill_engine::pack::checksums::Verify;
use gristmill_engine::pack::open::Pack;
use gristmill_engine::pack::select::{Filter, Selection, SqlValue};
use gristmill_engine::store::Residence;
use gristmill_engine::table::FrameTable;
use gristmill_format::encode::TensorSpec;
use gristmill_format::g2048::encode::FitOptions;
use gristmill_format::layout::Order;
use gristmill_jobs::tokenizer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::array::{Contiguous, Memory};
use crate::chess::Tensor;
use crate::error::Fault;
use crate::layout::Layout;
use crate::packed::{self, Packed};

/// Some rows of a pack.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Rows(pub(crate) Selection);

/// Opens the pack in a folder; `memory` reads its rows into memory instead of mapping them, `values` is the folder of its
/// values where they do not lie beside its rows, `verify` says when rows are held against their checksums.
#[pyfunction]
pub(crate) fn open_pack(
    py: Python<'_>,
    path: PathBuf,
    memory: bool,
    values: Option<PathBuf>,
    verify: Option<String>,
) -> Result<Rows, Fault> {
    let residence = if memory { Residence::Memory } else { Residence::Mapped };
    let named = |name: String| {
        let text = format!("`{name}`; expected open, first_touch or off");
        Verify::named(&name).ok_or_else(|| gristmill_engine::Error::config("verify", text))
    };
    let verify = verify.map(named).transpose()?;
    py.detach(|| {
        let pack = Pack::open_with(&path, residence, verify)?;
        Ok(Rows(Selection::all(Arc::new(values.into_iter().fold(pack, Pack::with_values_in)))))
    })
}

/// A value bound to a question mark.
#[derive(FromPyObject)]
pub(crate) enum Parameter {
    /// A whole number.
    Int(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

pub(crate) fn bound(parameters: Vec<Option<Parameter>>) -> Vec<SqlValue> {
    let value = |parameter| match parameter {
        None => SqlValue::Null,
        Some(Parameter::Int(n)) => SqlValue::Integer(n),
        Some(Parameter::Real(x)) => SqlValue::Real(x),
        Some(Parameter::Text(text)) => SqlValue::Text(text),
        Some(Parameter::Blob(bytes)) => SqlValue::Blob(bytes),
    };
    parameters.into_iter().map(value).collect()
}

/// Whole numbers of 64 bits in a buffer.
pub(crate) fn numbers(buffer: &Contiguous) -> Vec<u64> {
    buffer.bytes().as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

type Range = (Option<u64>, Option<u64>);

#[pymethods]
impl Rows {
    /// How many rows there are.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.rows().len()).unwrap_or(usize::MAX)
    }

    /// The pack, with what all kinds of packs have.
    fn packed(&self) -> Packed {
        Packed::new(self.0.pack(), self.0.rows())
    }

    /// Name of the form of the rows.
    #[getter]
    fn form(&self) -> &'static str {
        self.0.pack().form().name()
    }

    /// Numbers in the vector of a row, where rows have one beside them.
    #[getter]
    fn embedding_size(&self) -> Option<usize> {
        self.0.pack().embeddings().map(|vectors| vectors.layout().size() / 4)
    }

    /// Names of the valuations, by id.
    #[getter]
    fn valuations(&self) -> Vec<String> {
        self.0.pack().valuations().names().to_vec()
    }

    /// Ranges of rows that the selection is made of.
    #[getter]
    fn ranges(&self) -> usize {
        self.0.rows().ranges()
    }

    /// Layout of the records.
    fn layout(&self) -> Layout {
        Layout(self.0.layout().clone())
    }

    /// Ids of the runs, ascending.
    fn run_ids(&self) -> Vec<u64> {
        self.0.run_ids().collect()
    }

    /// Those of the runs that a condition or query names.
    fn query(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<Self, Fault> {
        let parameters = bound(parameters);
        py.detach(|| Ok(Rows(self.0.query(sql, &parameters)?)))
    }

    /// Those rows whose values lie within bounds, both inclusive.
    fn filter(
        &self,
        py: Python<'_>,
        step_index: Range,
        max_rank: Range,
        valuation: Option<Vec<String>>,
    ) -> Result<Self, Fault> {
        py.detach(|| Ok(Rows(self.0.filter(&Filter { step_index, max_rank, valuation })?)))
    }

    /// Those frames that a mark of the pack marks.
    fn marked(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Rows(self.0.marked(name)?)))
    }

    /// Those frames that a mark of the pack does not mark.
    fn without(&self, py: Python<'_>, name: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Rows(self.0.without(name)?)))
    }

    /// Two sides, each game on one with its copies and images.
    fn split_by_content(&self, py: Python<'_>, val: f64, seed: u64) -> Result<(Self, Self), Fault> {
        let keys = packed::keys(py, self.0.pack())?;
        let (train, val) = py.detach(|| self.0.split_by_keys(val, seed, &keys))?;
        Ok((Rows(train), Rows(val)))
    }

    /// Two sides by run, at random.
    fn split(&self, py: Python<'_>, val: f64, seed: u64) -> Result<(Self, Self), Fault> {
        py.detach(|| self.0.split(val, seed)).map(sides).map_err(Fault::from)
    }

    /// Three sides by run, at random: train, val, test.
    fn split_three(
        &self,
        py: Python<'_>,
        val: f64,
        test: f64,
        seed: u64,
        by_content: bool,
    ) -> Result<(Self, Self, Self), Fault> {
        let keys = by_content.then(|| packed::keys(py, self.0.pack())).transpose()?;
        let [train, val, test] = py.detach(|| self.0.split_three(val, test, seed, keys.as_ref()))?;
        Ok((Rows(train), Rows(val), Rows(test)))
    }

    /// As many pairs of sides by run, at random; on the second the runs of a fold.
    fn folds(&self, py: Python<'_>, of: u32, seed: u64, by_content: bool) -> Result<Vec<(Self, Self)>, Fault> {
        let keys = by_content.then(|| packed::keys(py, self.0.pack())).transpose()?;
        let folds = py.detach(|| self.0.folds(of, seed, keys.as_ref()))?;
        Ok(folds.into_iter().map(sides).collect())
    }

    /// Two sides by run; on the second those that a condition or query names.
    fn split_by(&self, py: Python<'_>, sql: &str, parameters: Vec<Option<Parameter>>) -> Result<(Self, Self), Fault> {
        let parameters = bound(parameters);
        py.detach(|| self.0.split_by(sql, &parameters)).map(sides).map_err(Fault::from)
    }

    /// Two sides by run; on the second those of these ids.
    fn split_ids(&self, py: Python<'_>, ids: Vec<u64>) -> Result<(Self, Self), Fault> {
        py.detach(|| self.0.split_ids(ids)).map(sides).map_err(Fault::from)
    }

    /// Records of the rows at these places (i64), of which negative ones count from the end.
    fn take(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        let count = self.0.rows().len();
        let from_end = |place: i64| if place < 0 { place.cast_unsigned().wrapping_add(count) } else { place as u64 };
        py.detach(|| {
            let given = places.bytes().as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            let mut rows = Vec::with_capacity(places.bytes().len() / 8);
            for place in given {
                let row = from_end(place);
                if row >= count {
                    return Err(PyIndexError::new_err(format!("row {place} of {count}")).into());
                }
                rows.push(self.0.rows().row(row));
            }
            let records = self.0.gather(&rows)?;
            let len = records.len();
            Ok(Memory::of_vec(records, len))
        })
    }

    /// Vectors (f4) of the rows at these places (u64).
    fn take_embeddings(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        py.detach(|| {
            let vectors = self.0.take_embeddings(&numbers(&places))?;
            let len = vectors.len();
            Ok(Memory::of_vec(vectors, len))
        })
    }

    /// Whether values lie beside the rows.
    fn has_values(&self, py: Python<'_>) -> Result<bool, Fault> {
        py.detach(|| Ok(self.0.pack().values()?.is_some()))
    }

    /// Values, as records, of the rows at these places (u64).
    fn take_values(&self, py: Python<'_>, places: Contiguous) -> Result<Memory, Fault> {
        py.detach(|| {
            let values = self.0.take_values(&numbers(&places))?;
            let len = values.len();
            Ok(Memory::of_vec(values, len))
        })
    }

    /// What makes tensors of these rows; it reads what it needs once.
    fn encoding(&self, py: Python<'_>, encoder: &str) -> Result<RowEncoding, Fault> {
        py.detach(|| {
            let config = EncoderConfig::from_json(encoder)?;
            Ok(RowEncoding(RowEncoder::new(&self.0.input_for(&config)?, &config, &[])?))
        })
    }

    /// The rows from one place to another.
    fn slice(&self, start: u64, stop: u64) -> Self {
        Rows(self.0.slice(start, stop))
    }
}

/// What makes tensors of some rows.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct RowEncoding(RowEncoder);

#[pymethods]
impl RowEncoding {
    /// Tensors of the rows at these places (u64), as they look in an epoch under a seed.
    fn encode(&self, py: Python<'_>, places: Contiguous, seed: u64, epoch: u64) -> Result<Vec<Tensor>, Fault> {
        py.detach(|| encoded(&self.0, &numbers(&places), seed, epoch))
    }
}

/// Bins of a tokenizer's file, and the XXH3-128 of the file in hexadecimal.
#[pyfunction]
pub(crate) fn read_tokenizer(py: Python<'_>, path: PathBuf) -> Result<(usize, String), Fault> {
    py.detach(|| {
        let (tokenizer, hash) = tokenizer::read(&path)?;
        Ok((tokenizer.num_bins(), format!("{hash:032x}")))
    })
}

/// Tensors of the rows at these places, with their names.
pub(crate) fn encoded(encoder: &RowEncoder, places: &[u64], seed: u64, epoch: u64) -> Result<Vec<Tensor>, Fault> {
    let specs = encoder.outputs();
    let zeroed = |spec: &TensorSpec| Memory::zeroed(places.len() * spec.row_bytes());
    let mut out = specs.iter().map(zeroed).collect::<Result<Vec<_>, _>>()?;
    let slices = out.iter_mut().map(Memory::bytes_mut).collect::<Result<Vec<_>, _>>()?;
    encoder.encode(places, seed, epoch, slices)?;
    let tensor = |(spec, memory): (&TensorSpec, Memory)| {
        let shape = [&[places.len()], &spec.row_shape[..]].concat();
        (spec.name.clone(), spec.dtype.type_str(Order::Little), shape, memory)
    };
    Ok(specs.iter().zip(out).map(tensor).collect())
}

/// Fits a tokenizer to rows and writes it; what it was made of, in JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the options of one function in Python")]
pub(crate) fn fit_tokenizer(
    py: Python<'_>,
    rows: &Rows,
    output: PathBuf,
    num_bins: usize,
    search_failure_cutoff: i64,
    zero_tolerance: f64,
    valuations: Option<Vec<String>>,
    overwrite: bool,
) -> Result<String, Fault> {
    let kinds = valuations.map_or_else(|| Ok(FitOptions::default().kinds), |names| FitOptions::kinds_named(&names));
    let kinds = kinds.map_err(|e| gristmill_engine::Error::config("valuations", e.detail()))?;
    let options = FitOptions { num_bins, failure_cutoff: search_failure_cutoff, zero_tolerance, kinds };
    py.detach(|| {
        tokenizer::check_output(&output, overwrite)?;
        let mut interrupted = None;
        let fitted = tokenizer::fit(&rows.0, &options, &mut |_, _, _| {
            Python::attach(|py| py.check_signals()).map_err(|signal| {
                interrupted = Some(signal);
                gristmill_engine::Error::Stopped
            })
        });
        if let Some(signal) = interrupted {
            return Err(signal.into());
        }
        let fitted = fitted?;
        tokenizer::write(&fitted.tokenizer, &output, 2)?;
        let json = serde_json::to_string(&fitted.summary);
        json.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()).into())
    })
}

fn sides((first, second): (Selection, Selection)) -> (Rows, Rows) {
    (Rows(first), Rows(second))
}
