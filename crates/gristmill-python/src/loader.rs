//! The engine's loader for Python: batches as named spans of memory, waits that let Ctrl-C through.
//! Everything that can wait or take a lock is called with the GIL released.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gristmill_engine::config::parse::options;
use gristmill_engine::config::{DataLoaderConfig, IndexConfig, KeyOrder};
use gristmill_engine::pipeline::{ControlRequest, Reads, SightOptions, Sighted, period_message};
use gristmill_engine::runtime::document;
use gristmill_engine::selection::Selection as Chosen;
use gristmill_engine::{
    Batch, Column, ControlReply, DataLoader, Engine, IndexLoader, Missing, Next, OldestNeeded, Output,
};
use gristmill_format::layout::Order;
use gristmill_plans::certificate::{self, Level, Said};
use gristmill_plans::when::{self, Wanted};
use gristmill_plans::xray;
use pyo3::exceptions::{PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::Memory;
use crate::chess::Tensor;
use crate::error::{Fault, end_of_stream};
use crate::pairs::Pairs;
use crate::selection::Selection;

/// The longest wait between two looks at pending signals.
const SLICE: Duration = Duration::from_millis(50);

/// What cannot be read for so long is warned of.
const MOMENT: Duration = Duration::from_millis(500);

/// Alias, rows per batch, and each tensor's name, NumPy type string and row shape.
type OutputDescription = (String, usize, Vec<(String, String, Vec<usize>)>);

/// A serialized message of metrics, and seconds.
type PeriodMessage = (Py<PyBytes>, f64);

/// Number, real rows and columns of a batch.
type RawBatch = (u64, usize, Vec<Tensor>);

/// A loader of any kind, started by `start` or the first `next`.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Loader {
    engine: Box<dyn Engine>,
    /// The rows that it feeds, of each pack that has them.
    rows: Vec<Chosen>,
    waits: Mutex<Waits>,
}

#[pymethods]
impl Loader {
    /// Reads and lowers the configuration of a stream in JSON; nothing runs yet.
    #[new]
    fn new(py: Python<'_>, config: &str) -> Result<Self, Fault> {
        py.detach(|| Ok(Loader::over(DataLoader::new(options::<DataLoaderConfig>(config)?)?, Vec::new())))
    }

    /// Reads a configuration in JSON and checks it against rows of a pack; nothing runs yet.
    #[staticmethod]
    fn of_rows(py: Python<'_>, rows: &Selection, config: &str) -> Result<Self, Fault> {
        let config = IndexConfig::from_json(config)?;
        let input = rows.0.input_for(&config.encoder)?;
        let selected = vec![rows.0.clone()];
        py.detach(|| Ok(Loader::over(IndexLoader::new(input, config)?, selected)))
    }

    /// The same against rows of several packs, mixed by weight.
    #[staticmethod]
    fn of_several(py: Python<'_>, rows: Vec<PyRef<'_, Selection>>, config: &str) -> Result<Self, Fault> {
        let config = IndexConfig::from_json(config)?;
        let selected: Vec<Chosen> = rows.iter().map(|rows| rows.0.clone()).collect();
        let inputs = selected.iter().map(|rows| rows.input_for(&config.encoder)).collect::<Result<Vec<_>, _>>()?;
        py.detach(|| Ok(Loader::over(IndexLoader::of_several(inputs, config)?, selected)))
    }

    /// Checks a configuration in JSON, of which the encoder does not matter, against pairs; `identity` is a hash of what they
    /// are, `encoding` JSON of what decides their values. Nothing runs yet.
    #[staticmethod]
    fn of_pairs(py: Python<'_>, pairs: &Pairs, identity: u64, encoding: &str, config: &str) -> Result<Self, Fault> {
        let config = IndexConfig::from_json(config)?;
        let encoding = serde_json::from_str(encoding).map_err(|e| PyValueError::new_err(e.to_string()))?;
        py.detach(|| Ok(Loader::over(IndexLoader::of_pairs(&pairs.0, (identity, encoding), config)?, Vec::new())))
    }

    /// Goes to a row of a pass of pairs; before `start`.
    fn seek_row(&self, py: Python<'_>, epoch: u64, row: u64) -> Result<(), Fault> {
        py.detach(|| Ok(self.engine.seek_row(epoch, row)?))
    }

    /// The configuration in JSON, with the seed that was drawn once it has started.
    fn config(&self) -> String {
        self.engine.config()
    }

    /// The configuration of its stages in JSON.
    ///
    /// Raises TypeError for a loader of rows, which has none.
    fn stages(&self) -> Result<String, Fault> {
        Ok(self.engine.stages()?)
    }

    /// Root of every random draw; `None` until one was drawn.
    fn seed(&self) -> Option<u64> {
        self.engine.seed()
    }

    /// Which of how many ranks this is.
    fn ranks(&self) -> (u64, u64) {
        self.engine.ranks()
    }

    /// Rows of an epoch, of all ranks together; `None` of a stream.
    fn rows(&self) -> Option<u64> {
        self.engine.rows()
    }

    /// How many batches there are in all epochs; `None` where there is no known end.
    fn batches(&self) -> Option<u64> {
        self.engine.batches()
    }

    /// The pass that the next batch belongs to; `None` where that is not known from its number.
    fn epoch(&self) -> Option<u64> {
        self.engine.pass()
    }

    /// Batches of that pass that are not left out, or of all where passes are joined.
    fn length(&self) -> Option<u64> {
        self.engine.length()
    }

    /// How many passes ended with batches of an output that were given since the start.
    fn passes_ended(&self, py: Python<'_>, alias: &str) -> u64 {
        py.detach(|| self.engine.passes_ended(alias))
    }

    /// Goes to a batch of rows; before `start`.
    ///
    /// Raises TypeError for a stream.
    fn seek(&self, py: Python<'_>, batch: u64) -> Result<(), Fault> {
        py.detach(|| Ok(self.engine.seek(batch)?))
    }

    /// Starts the threads, once; raises KeyboardInterrupt while it waits for files.
    fn start(&self, py: Python<'_>) -> Result<(), Fault> {
        while !py.detach(|| self.engine.start_within(SLICE))? {
            py.check_signals()?;
            self.warn(py)?;
        }
        Ok(())
    }

    /// Stops the threads within a second; returns the names of those that hang in a read and were left behind.
    fn stop(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.engine.stop())
    }

    /// What the loader delivers.
    fn outputs(&self) -> Vec<OutputDescription> {
        describe(self.engine.outputs())
    }

    /// The next batch of an output; `None` when `timeout` seconds have passed. Without a timeout it waits for ever.
    ///
    /// Raises EndOfStream at the end, and KeyboardInterrupt while it waits.
    #[pyo3(signature = (alias, timeout))]
    fn next(&self, py: Python<'_>, alias: &str, timeout: Option<f64>) -> Result<Option<RawBatch>, Fault> {
        self.handed(py, alias, timeout, true)
    }

    /// [`Loader::next`] of a batch that counts as given when `count` says so.
    #[pyo3(signature = (alias, timeout))]
    fn take(&self, py: Python<'_>, alias: &str, timeout: Option<f64>) -> Result<Option<RawBatch>, Fault> {
        self.handed(py, alias, timeout, false)
    }

    /// Counts the oldest batch of an output as given that was taken and does not count yet.
    fn count(&self, py: Python<'_>, alias: &str) -> Result<(), Fault> {
        py.detach(|| Ok(self.engine.count(alias)?))
    }

    /// Load, queues, pool and reservoir, in JSON.
    fn metrics(&self, py: Python<'_>) -> Result<String, Fault> {
        let json = py.detach(|| serde_json::to_string(&self.engine.metrics()));
        json.map_err(|e| PyValueError::new_err(e.to_string()).into())
    }

    /// What limits, in words.
    fn explain(&self, py: Python<'_>) -> String {
        py.detach(|| self.engine.explain())
    }

    /// A serialized `lczero.DataLoaderMetricsProto` of the latest whole period of 2^`exponent` seconds, and its age.
    fn bucket_metrics(&self, py: Python<'_>, exponent: i32, pending: bool) -> Result<PeriodMessage, Fault> {
        let (message, age) = py.detach(|| -> Result<_, Fault> {
            let (period, age) = self.engine.bucket_metrics(exponent, pending)?;
            Ok((period_message(&period)?, age))
        })?;
        Ok((PyBytes::new(py, &message).unbind(), age))
    }

    /// The same of the last `seconds`, which may be infinite, and the seconds that it covers.
    fn aggregate_metrics(&self, py: Python<'_>, seconds: f64, pending: bool) -> Result<PeriodMessage, Fault> {
        let (message, covered) = py.detach(|| -> Result<_, Fault> {
            let (period, covered) = self.engine.aggregate_metrics(seconds, pending)?;
            Ok((period_message(&period)?, covered))
        })?;
        Ok((PyBytes::new(py, &message).unbind(), covered))
    }

    /// Sends a serialized `lczero.training.StageControlRequest`; names and serialized responses of those that answer.
    fn control_message(&self, py: Python<'_>, request: &[u8]) -> Result<Vec<(String, Py<PyBytes>)>, Fault> {
        let replies = py.detach(|| -> Result<_, Fault> {
            let Some(request) = ControlRequest::from_message(request)? else { return Ok(Vec::new()) };
            let replies = self.engine.control(&request)?.into_iter();
            replies.map(|reply| Ok((reply.to_message()?, reply.stage))).collect::<Result<Vec<_>, Fault>>()
        })?;
        Ok(replies.into_iter().map(|(message, stage)| (stage, PyBytes::new(py, &message).unbind())).collect())
    }

    /// Serves the metrics as Prometheus text and the status as JSON; returns the address, port filled in.
    #[pyo3(signature = (address, token))]
    fn serve_metrics(&self, py: Python<'_>, address: &str, token: Option<&str>) -> Result<String, Fault> {
        py.detach(|| Ok(self.engine.serve_metrics(address, token)?.to_string()))
    }

    /// What happened after event number `after`, in JSON: an array of events (docs/format/status.md).
    fn events(&self, py: Python<'_>, after: u64) -> String {
        py.detach(|| serde_json::to_string(&self.engine.events(after))).unwrap_or_default()
    }

    /// Number of the newest event.
    fn newest_event(&self) -> u64 {
        self.engine.newest_event()
    }

    /// The state after the last batch that was delivered, in JSON.
    fn state(&self, py: Python<'_>) -> Result<String, Fault> {
        py.detach(|| Ok(self.engine.state()?))
    }

    /// Takes a state, with what is done about files that are gone; before `start`.
    fn restore(&self, py: Python<'_>, json: &str, missing: &str) -> Result<(), Fault> {
        let missing = policy(missing)?;
        py.detach(|| Ok(self.engine.restore(json, missing)?))
    }

    /// Writes the state to disk.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Fault> {
        py.detach(|| Ok(self.engine.save(&path)?))
    }

    /// Takes what `save` wrote; before `start`.
    fn load(&self, py: Python<'_>, path: PathBuf, missing: &str) -> Result<(), Fault> {
        let missing = policy(missing)?;
        py.detach(|| Ok(self.engine.load(&path, missing)?))
    }

    /// Where the rows of a batch come from, in JSON; games whose frames were never counted are read with `survey`.
    #[pyo3(signature = (batch, row, output, survey))]
    fn xray(
        &self,
        py: Python<'_>,
        batch: u64,
        row: Option<usize>,
        output: String,
        survey: bool,
    ) -> Result<String, Fault> {
        let reads = if survey { Reads::Uncounted } else { Reads::Nothing };
        let options = SightOptions { output, first: batch, reads };
        let mut interrupted = Ok(());
        let seen = py.detach(|| {
            let mut goes_on = || {
                interrupted = Python::attach(|py| py.check_signals());
                interrupted.is_ok()
            };
            xray::seen_by(&*self.engine, &self.rows, &options, row, &mut goes_on)
        });
        interrupted?;
        let rows = seen?;
        serde_json::to_string(&rows).map_err(|e| PyValueError::new_err(e.to_string()).into())
    }

    /// The certificate of the shuffle of an output, in JSON.
    ///
    /// Raises ConfigError where the loader lacks the output, and in `require` where the shuffle is worse.
    fn certificate(&self, py: Python<'_>, output: String, require: Option<&str>, terms: Said) -> Result<String, Fault> {
        let required = require.map(str::parse::<Level>).transpose()?;
        let mut interrupted = Ok(());
        let made = py.detach(|| {
            let mut goes_on = || {
                interrupted = Python::attach(|py| py.check_signals());
                interrupted.is_ok()
            };
            let made = certificate::of_engine(&*self.engine, &self.rows, &output, terms.into(), &mut goes_on)?;
            required.map_or(Ok(()), |level| made.require(level)).map(|()| made)
        });
        interrupted?;
        serde_json::to_string(&made?).map_err(|e| PyValueError::new_err(e.to_string()).into())
    }

    /// In which passes and batches the rows of a game of a pack come, in JSON.
    ///
    /// Raises ConfigError for a game that the pack does not have, and TypeError where the order has no inverse.
    fn when(
        &self,
        py: Python<'_>,
        game: String,
        source: Option<usize>,
        ply: Option<u64>,
        epochs: Option<(u64, u64)>,
    ) -> Result<String, Fault> {
        let epochs = epochs.map(|(first, end)| first..end);
        let wanted = Wanted { game, source, ply, epochs, ..Wanted::default() };
        let times = py.detach(|| when::when_by(&*self.engine, &self.rows, &wanted))?;
        serde_json::to_string(&times).map_err(|e| PyValueError::new_err(e.to_string()).into())
    }

    /// Pass and number of each row that this rank has of a batch of rows, which need not have been given.
    ///
    /// Raises TypeError for a stream.
    fn placed(&self, py: Python<'_>, batch: u64) -> Result<Vec<(u64, u64)>, Fault> {
        py.detach(|| {
            let options = SightOptions { output: String::new(), first: batch, reads: Reads::Nothing };
            let Sighted::Rows(lookup) = self.engine.sight(&options)? else {
                return Err(gristmill_engine::Error::Unsupported("a stream has no numbers of rows".to_owned()).into());
            };
            let place = |i| lookup.row(batch, i).map(|placed| placed.map(|placed| (placed.epoch, placed.row)));
            let places = (0..lookup.rows(batch)).map(place).filter_map(Result::transpose);
            Ok(places.collect::<gristmill_engine::Result<_>>()?)
        })
    }

    /// Name, why, chunks and rows of the reservoir of each file that it does without.
    fn vanished(&self) -> Vec<(String, String, u64, u64)> {
        self.engine.vanished().into_iter().map(|file| (file.name, file.why, file.chunks, file.rows)).collect()
    }

    /// Per loader stage the oldest file that is still needed: name, key, and the order of keys.
    fn oldest_needed(&self, py: Python<'_>) -> BTreeMap<String, (String, String, &'static str)> {
        let plain = |file: OldestNeeded| (file.name, file.key, file.key_order.name());
        py.detach(|| self.engine.oldest_needed().into_iter().map(|(stage, file)| (stage, plain(file))).collect())
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
        py.detach(|| Ok(self.engine.control(&request)?.into_iter().map(plain).collect()))
    }

    /// What it runs without, a line for each.
    fn warnings(&self) -> Vec<String> {
        self.engine.warnings()
    }

    /// The file, relative to its directory, that a source number in the tensor `ids` stands for.
    fn source_path(&self, source: u64) -> Option<String> {
        self.engine.source_path(source)
    }
}

/// Since when a loader waits for files that cannot be read, and whether that was said.
#[derive(Default)]
struct Waits(Option<Instant>, bool);

impl Loader {
    fn over(engine: impl Engine + 'static, rows: Vec<Chosen>) -> Self {
        Loader { engine: Box::new(engine), rows, waits: Mutex::default() }
    }

    /// Waits in slices, between which Ctrl-C gets through; `None` when `timeout` seconds have passed.
    fn handed(
        &self,
        py: Python<'_>,
        alias: &str,
        timeout: Option<f64>,
        at_once: bool,
    ) -> Result<Option<RawBatch>, Fault> {
        let batch = self.wait(py, alias, timeout, at_once)?;
        if batch.is_some() {
            // The wait is over, even where some files still cannot be read: the next one is warned of again.
            *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = Waits::default();
        }
        Ok(batch)
    }

    fn wait(
        &self,
        py: Python<'_>,
        alias: &str,
        timeout: Option<f64>,
        at_once: bool,
    ) -> Result<Option<RawBatch>, Fault> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(Duration::try_from_secs_f64(t.max(0.0)).ok()?));
        loop {
            let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()).min(SLICE));
            let next =
                || if at_once { self.engine.next(alias, Some(left)) } else { self.engine.take(alias, Some(left)) };
            match py.detach(next)? {
                Next::Batch(batch) => return Ok(Some(raw(batch))),
                Next::End => return Err(end_of_stream(py, alias).into()),
                Next::Pending => self.warn(py)?,
            }
            if deadline.is_some_and(|d| Instant::now() >= d) {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// Warns once of each wait for files that is longer than a moment.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let out = py.detach(|| self.engine.waits());
        let message = {
            let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
            if out.waiting == 0 {
                *waits = Waits::default();
                return Ok(());
            }
            let since = *waits.0.get_or_insert_with(Instant::now);
            if since.elapsed() < MOMENT || std::mem::replace(&mut waits.1, true) {
                return Ok(());
            }
            let why = out.latest.first().map_or("", String::as_str);
            format!("{} files cannot be read, and the loader waits for them: {why}", out.waiting)
        };
        let message = std::ffi::CString::new(message.replace('\0', "?")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 3)
    }
}

/// The state of a whole run, in JSON, of the states of all its ranks.
#[pyfunction]
pub(crate) fn merge_states(py: Python<'_>, states: Vec<String>) -> Result<String, Fault> {
    py.detach(|| Ok(gristmill_engine::merge_states(&states)?))
}

/// The steps that were saved in a folder, the newest first: batches, ranks, and a rank whose part is not there.
#[pyfunction]
pub(crate) fn saved_steps(py: Python<'_>, folder: PathBuf) -> Result<Vec<(u64, u32, Option<u32>)>, Fault> {
    let steps = py.detach(|| gristmill_engine::pipeline::saved_steps(&folder))?;
    Ok(steps.into_iter().map(|saved| (saved.step, saved.world_size, saved.lacks)).collect())
}

/// The checksum of a document: of what it says, whatever the order of its fields, but for `checksum` itself.
#[pyfunction]
pub(crate) fn checksum_of(document: &str) -> PyResult<String> {
    let fields = serde_json::from_str(document).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(document::checksum(&fields))
}

/// Whether a file called `name` is older than one called `than`, keys compared in an order.
#[pyfunction]
pub(crate) fn is_older(name: &str, than: &str, key_order: &str) -> Result<bool, Fault> {
    Ok(KeyOrder::of_name(key_order)?.older(name, than).is_lt())
}

fn describe(outputs: &[Output]) -> Vec<OutputDescription> {
    let tensors = |o: &Output| {
        o.tensors.iter().map(|t| (t.name.clone(), t.dtype.type_str(Order::Little), t.row_shape.clone())).collect()
    };
    outputs.iter().map(|o| (o.alias.clone(), o.batch_size, tensors(o))).collect()
}

fn raw(batch: Batch) -> RawBatch {
    let column =
        |c: Column| (c.name().to_owned(), c.dtype().type_str(Order::Little), c.shape().to_vec(), Memory::of_column(c));
    (batch.number, batch.rows, batch.columns.into_iter().map(column).collect())
}

fn policy(missing: &str) -> Result<Missing, Fault> {
    match missing {
        "refuse" => Ok(Missing::Refuse),
        "skip" => Ok(Missing::Skip),
        "spill" => Ok(Missing::Spill),
        other => {
            let text = format!("missing is '{other}'; expected 'refuse', 'skip' or 'spill'");
            Err(PyValueError::new_err(text).into())
        }
    }
}
