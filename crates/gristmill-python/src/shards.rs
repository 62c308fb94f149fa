//! Frames as pickled fields in, shards out; and pickles rewritten in the form that every reader knows.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gristmill_engine::Error as EngineError;
use gristmill_engine::demos::{ShardFiles as Files, ShardOptions};
use gristmill_format::demo::shard;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Fault;

/// Shards that are being written.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct ShardFiles(Mutex<Option<Files>>);

#[pymethods]
impl ShardFiles {
    /// Shards called `path`; `metadata` is a pickle; `members` says how values are written, `pickle` or `npy`.
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        metadata: Vec<u8>,
        level: i32,
        max_frames: Option<u64>,
        overwrite: bool,
        members: &str,
    ) -> Result<Self, Fault> {
        let unknown = || EngineError::config("members", format!("`{members}`; expected `pickle` or `npy`"));
        let members = shard::Members::named(members).ok_or_else(unknown)?;
        let options = ShardOptions { level, max_frames, members, overwrite };
        py.detach(|| Ok(ShardFiles(Mutex::new(Some(Files::create(&path, metadata, options)?)))))
    }

    /// Adds a frame: fields and their pickled values; whether its trajectory ends with it.
    fn frame(&self, py: Python<'_>, fields: Vec<(String, Vec<u8>)>, last: bool) -> Result<(), Fault> {
        py.detach(|| match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(files) => Ok(files.frame(&fields, last)?),
            None => Err(EngineError::Stopped.into()),
        })
    }

    /// Publishes all shards; gives their paths.
    fn finish(&self, py: Python<'_>) -> Result<Vec<PathBuf>, Fault> {
        py.detach(|| match self.take() {
            Some(files) => Ok(files.finish()?),
            None => Err(EngineError::Stopped.into()),
        })
    }

    /// Gives up what was written; nothing after the end.
    fn abort(&self, py: Python<'_>) -> Result<(), Fault> {
        py.detach(|| Ok(self.take().map_or(Ok(()), Files::abort)?))
    }
}

impl ShardFiles {
    fn take(&self) -> Option<Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A pickle of plain values, rewritten under names that NumPy 1 and 2 both know.
#[pyfunction]
pub(crate) fn plain_pickle<'py>(py: Python<'py>, data: &[u8]) -> Result<Bound<'py, PyBytes>, Fault> {
    Ok(PyBytes::new(py, &shard::plain_pickle(data)?))
}

/// A kind of space, and the pickled dictionary that it is made with.
type SpaceParts = (String, Vec<u8>);

/// The metadata of a shard, as a pickle.
#[pyfunction]
pub(crate) fn shard_metadata<'py>(
    py: Python<'py>,
    env_cfg: &[u8],
    action_space: SpaceParts,
    observation_space: SpaceParts,
    color_space: &str,
) -> Result<Bound<'py, PyBytes>, Fault> {
    let (action, observation) = ((&*action_space.0, &*action_space.1), (&*observation_space.0, &*observation_space.1));
    Ok(PyBytes::new(py, &shard::metadata(env_cfg, action, observation, color_space)?))
}
