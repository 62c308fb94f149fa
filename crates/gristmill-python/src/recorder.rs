//! Steps and games while a model plays them in, self-play shards and their database or files of records out.
//! Everything that writes is called with the GIL released; a finished recorder refuses more.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gristmill_engine::pack::metadata::{MetadataWriter, Run};
use gristmill_engine::pack::recorder::{Recorder as Recording, RecorderOptions};
use gristmill_engine::recording::GameWriter as Writing;
use gristmill_format::records::Schema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::array::Contiguous;
use crate::error::Fault;

/// Something that is open until it is finished.
struct Open<T>(Mutex<Option<T>>);

impl<T: Send> Open<T> {
    fn new(value: T) -> Self {
        Open(Mutex::new(Some(value)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> gristmill_engine::Result<R> + Send,
    ) -> Result<R, Fault> {
        py.detach(|| match self.lock().as_mut() {
            Some(open) => Ok(act(open)?),
            None => Err(PyValueError::new_err("it is finished: open another one").into()),
        })
    }

    /// Ends it once; later calls do nothing.
    fn end(&self, py: Python<'_>, end: impl FnOnce(T) -> gristmill_engine::Result<()> + Send) -> Result<(), Fault> {
        py.detach(|| Ok(self.lock().take().map_or(Ok(()), end)?))
    }
}

/// A game as the database has it: id, seed, steps, score, highest tile.
type Game = (u64, u64, u64, u64, u64);

fn run((id, seed, steps, max_score, highest_tile): Game) -> Run {
    Run { id, seed: Some(seed), steps, max_score, highest_tile }
}

/// Shards of self-play with their database.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Recorder(Open<Recording>);

#[pymethods]
impl Recorder {
    #[new]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        shard_max_steps: u64,
        embedding_size: Option<usize>,
        append: bool,
    ) -> Result<Self, Fault> {
        let options = RecorderOptions { shard_max_steps, embedding_size, append };
        py.detach(|| Ok(Recorder(Open::new(Recording::open(&folder, options)?))))
    }

    /// Steps that were taken up from a recorder that was killed.
    fn recovered(&self, py: Python<'_>) -> Result<u64, Fault> {
        self.0.with(py, |recording| Ok(recording.recovered()))
    }

    /// Records of 28 bytes and vectors of little-endian `f4`.
    fn write(&self, py: Python<'_>, records: Contiguous, vectors: Contiguous) -> Result<(), Fault> {
        self.0.with(py, |recording| recording.write(records.bytes(), vectors.bytes()))
    }

    /// Writes a game into the database.
    fn put_run(&self, py: Python<'_>, game: Game) -> Result<(), Fault> {
        self.0.with(py, |recording| recording.put_run(&run(game)))
    }

    /// Writes an entry of the session.
    fn put_session(&self, py: Python<'_>, key: &str, value: &str) -> Result<(), Fault> {
        self.0.with(py, |recording| recording.put_session(key, value))
    }

    /// An entry of the session.
    fn session(&self, py: Python<'_>, key: &str) -> Result<Option<String>, Fault> {
        self.0.with(py, |recording| recording.session(key))
    }

    /// Completes the shard that is being written.
    fn rotate(&self, py: Python<'_>) -> Result<(), Fault> {
        self.0.with(py, Recording::rotate)
    }

    /// Completes everything.
    fn finish(&self, py: Python<'_>) -> Result<(), Fault> {
        self.0.end(py, Recording::finish)
    }
}

/// A database of games and session entries.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Session(Open<MetadataWriter>);

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> Result<Self, Fault> {
        py.detach(|| Ok(Session(Open::new(MetadataWriter::open(path)?))))
    }

    /// Writes a game.
    fn put_run(&self, py: Python<'_>, game: Game) -> Result<(), Fault> {
        self.0.with(py, |database| database.put_run(&run(game)).and_then(|()| database.commit()))
    }

    /// Writes an entry of the session.
    fn put_session(&self, py: Python<'_>, key: &str, value: &str) -> Result<(), Fault> {
        self.0.with(py, |database| database.put_session(key, value).and_then(|()| database.commit()))
    }

    /// An entry of the session.
    fn session(&self, py: Python<'_>, key: &str) -> Result<Option<String>, Fault> {
        self.0.with(py, |database| database.session(key))
    }

    /// Closes it.
    fn finish(&self, py: Python<'_>) -> Result<(), Fault> {
        self.0.end(py, MetadataWriter::finish)
    }
}

/// Files of games of records.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct GameWriter(Open<Writing>);

#[pymethods]
impl GameWriter {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, schema: &str, file_bytes: u64) -> Result<Self, Fault> {
        py.detach(|| Ok(GameWriter(Open::new(Writing::open(&folder, Schema::parse(schema)?, file_bytes)?))))
    }

    /// Games of killed writers that were put in place.
    fn adopted(&self, py: Python<'_>) -> Result<u64, Fault> {
        self.0.with(py, |writing| Ok(writing.adopted()))
    }

    /// Records, back to back, and facts as JSON.
    fn write(&self, py: Python<'_>, records: Contiguous, facts: &str) -> Result<(), Fault> {
        self.0.with(py, |writing| writing.write(records.bytes(), facts))
    }

    /// Puts the file that is being written in place.
    fn flush(&self, py: Python<'_>) -> Result<(), Fault> {
        self.0.with(py, Writing::flush)
    }

    /// Puts it in place, and ends.
    fn finish(&self, py: Python<'_>) -> Result<(), Fault> {
        self.0.end(py, Writing::finish)
    }
}
