//! What a user calls a place -> how the engine names it; and the files of `memory:` places, read and written from Python.
//! Decides nothing itself: `gristmill_engine::store::place` does.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::store::{MemoryStore, Store, files, place};
use pyo3::exceptions::PyKeyError;
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
pub(crate) fn is_folder(path: PathBuf) -> bool {
    files::is_folder(&path)
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
