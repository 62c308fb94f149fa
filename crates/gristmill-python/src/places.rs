//! What a user calls a place -> how the engine names it; and the files of `memory:` places, read and written from Python.
//! Decides nothing itself: `gristmill_engine::store::place` does.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gristmill_engine::store::bucket::{self, Options};
use gristmill_engine::store::{self, Cache, MemoryStore, Store, files, place};
use gristmill_jobs::shares;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Fault;

/// A place as the engine takes it: `file:` URLs are paths.
#[pyfunction]
pub(crate) fn resolved_place(path: PathBuf) -> Result<OsString, Fault> {
    Ok(place::resolved(&path)?.into_owned().into())
}

/// Whether a resolved place is of this machine's files.
#[pyfunction]
pub(crate) fn is_local(path: PathBuf) -> bool {
    place::is_local(&path)
}

/// Whether a resolved place is a folder, wherever it is.
#[pyfunction]
pub(crate) fn is_folder(py: Python<'_>, path: PathBuf) -> Result<bool, Fault> {
    Ok(py.detach(|| files::is_folder(&path))?)
}

/// Says how a bucket, or every bucket of a scheme, is reached from now on.
#[pyfunction]
#[pyo3(signature = (url, endpoint, anonymous, allow_http, patience, settings))]
pub(crate) fn set_bucket(
    url: &str,
    endpoint: Option<String>,
    anonymous: bool,
    allow_http: bool,
    patience: Option<f64>,
    settings: Vec<(String, String)>,
) {
    let patience = patience.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    bucket::set_options(url, Options { endpoint, anonymous, allow_http, patience, settings });
}

/// Says where what is fetched of packs is kept from now on, and how many bytes at most.
#[pyfunction]
pub(crate) fn set_cache(folder: Option<PathBuf>, limit: Option<u64>) {
    store::set_cache(Cache { folder, limit });
}

/// What was asked of the buckets of this process: for each URL requests, retries, hedges, failures and bytes.
#[pyfunction]
pub(crate) fn bucket_counts() -> Vec<(String, [u64; 5])> {
    let of = |counts: &bucket::Counts| {
        [&counts.requests, &counts.retries, &counts.hedges, &counts.failures, &counts.bytes]
            .map(|n| n.load(Ordering::Relaxed))
    };
    bucket::counts().into_iter().map(|(url, counts)| (url, of(&counts))).collect()
}

/// What killed jobs left at a place in a bucket, and beside it of shares, as JSON; it is removed unless the run is dry.
#[pyfunction]
pub(crate) fn clean_place(py: Python<'_>, place: PathBuf, dead: bool, dry_run: bool) -> Result<String, Fault> {
    let left = py.detach(|| {
        let left = shares::left(&place, dead)?;
        if dry_run { Ok(left) } else { shares::clean(&left, dead).map(|()| left) }
    })?;
    serde_json::to_string(&left).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

/// The files of one `memory:` place.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct MemoryFiles(Arc<MemoryStore>);

#[pymethods]
impl MemoryFiles {
    #[new]
    fn new(name: &str) -> Self {
        MemoryFiles(MemoryStore::named(name))
    }

    /// Writes a file whole.
    fn write(&self, name: &str, data: Vec<u8>) {
        self.0.write(name, data);
    }

    /// The bytes of a file.
    fn read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let path = PathBuf::from(format!("{}/{name}", self.0.root()));
        match files::read(Path::new(&path), u64::MAX).map_err(Fault::from)? {
            Some(bytes) => Ok(PyBytes::new(py, &bytes)),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }

    /// Removes a file; says whether it was there.
    fn remove(&self, name: &str) -> bool {
        let there = self.0.stat(name).is_ok();
        self.0.remove(name);
        there
    }

    /// Names of the files, sorted; hidden ones are not listed.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.0.list(&mut |stat| {
            names.push(stat.name.to_string());
            ControlFlow::Continue(())
        });
        names.sort_unstable();
        names
    }
}
