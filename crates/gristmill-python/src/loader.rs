//! The engine's loader for Python: batches as named spans of memory, waits that let Ctrl-C through.
//! Everything that can wait or take a lock is called with the GIL released.

use std::time::{Duration, Instant};

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::{Batch, Column, ControlReply, ControlRequest, DataLoader, Next, Output};
use gristmill_format::layout::Order;
use pyo3::prelude::*;

use crate::array::Memory;
use crate::chess::Tensor;
use crate::error::{Fault, end_of_stream};

/// The longest wait between two looks at pending signals.
const SLICE: Duration = Duration::from_millis(50);

/// Alias, rows per batch, and each tensor's name, NumPy type string and row shape.
type OutputDescription = (String, usize, Vec<(String, String, Vec<usize>)>);

/// Number, real rows and columns of a batch.
type RawBatch = (u64, usize, Vec<Tensor>);

/// A loader: made from a configuration, started by `start` or the first `next`.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Loader(DataLoader);

#[pymethods]
impl Loader {
    /// Reads and lowers a configuration in JSON; nothing runs yet.
    #[new]
    fn new(py: Python<'_>, config: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Loader(DataLoader::new(DataLoaderConfig::from_json(config)?)?)))
    }

    /// The configuration in JSON, with the seed that was drawn once it has started.
    fn config(&self) -> String {
        self.0.config().to_json()
    }

    /// Starts the threads, once.
    fn start(&self, py: Python<'_>) -> Result<(), Fault> {
        py.detach(|| Ok(self.0.start()?))
    }

    /// Stops the threads within a second; returns the names of those that hang in a read and were left behind.
    fn stop(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.0.stop())
    }

    /// What the loader delivers.
    fn outputs(&self) -> Vec<OutputDescription> {
        let tensors = |o: &Output| {
            o.tensors.iter().map(|t| (t.name.clone(), t.dtype.type_str(Order::Little), t.row_shape.clone())).collect()
        };
        self.0.outputs().iter().map(|o| (o.alias.clone(), o.batch_size, tensors(o))).collect()
    }

    /// The next batch of an output; `None` when `timeout` seconds have passed. Without a timeout it waits for ever.
    ///
    /// Raises EndOfStream at the end, and KeyboardInterrupt while it waits.
    #[pyo3(signature = (alias, timeout))]
    fn next(&self, py: Python<'_>, alias: &str, timeout: Option<f64>) -> Result<Option<RawBatch>, Fault> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(Duration::try_from_secs_f64(t.max(0.0)).ok()?));
        loop {
            let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()).min(SLICE));
            match py.detach(|| self.0.next(alias, Some(left)))? {
                Next::Batch(batch) => return Ok(Some(raw(batch))),
                Next::End => return Err(end_of_stream(py, alias).into()),
                Next::Pending if deadline.is_some_and(|d| Instant::now() >= d) => return Ok(None),
                Next::Pending => py.check_signals()?,
            }
        }
    }

    /// Load, queues, pool and reservoir, in JSON.
    fn metrics(&self, py: Python<'_>) -> Result<String, Fault> {
        let json = py.detach(|| serde_json::to_string(&self.0.metrics()));
        json.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()).into())
    }

    /// Serves the metrics as Prometheus text; returns the address, port filled in.
    fn serve_metrics(&self, py: Python<'_>, address: &str) -> Result<String, Fault> {
        py.detach(|| Ok(self.0.serve_metrics(address)?.to_string()))
    }

    /// The state after the last batch that was delivered, in JSON.
    fn state(&self, py: Python<'_>) -> Result<String, Fault> {
        py.detach(|| Ok(self.0.state()?))
    }

    /// Takes a state; before `start`.
    fn restore(&self, py: Python<'_>, json: &str) -> Result<(), Fault> {
        py.detach(|| Ok(self.0.restore(json)?))
    }

    /// Asks every pool for its chunk anchor: the stage's name, the key, and the chunks since (before a reset).
    #[pyo3(signature = (reset, anchor))]
    fn control(
        &self,
        py: Python<'_>,
        reset: bool,
        anchor: Option<String>,
    ) -> Result<Vec<(String, String, u64)>, Fault> {
        let request = match (reset, anchor) {
            (true, _) => ControlRequest::ResetChunkAnchor,
            (false, Some(key)) => ControlRequest::SetChunkAnchor(key),
            (false, None) => ControlRequest::QueryChunkAnchor,
        };
        let plain = |reply: ControlReply| (reply.stage, reply.chunk_anchor, reply.chunks_since_anchor);
        py.detach(|| Ok(self.0.control(&request)?.into_iter().map(plain).collect()))
    }

    /// The file, relative to its directory, that a source number in the tensor `ids` stands for.
    fn source_path(&self, source: u64) -> Option<String> {
        self.0.source_path(source)
    }
}

fn raw(batch: Batch) -> RawBatch {
    let column =
        |c: Column| (c.name().to_owned(), c.dtype().type_str(Order::Little), c.shape().to_vec(), Memory::of_column(c));
    (batch.number, batch.rows, batch.columns.into_iter().map(column).collect())
}
