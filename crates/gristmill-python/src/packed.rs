//! What every kind of pack has, whatever was selected of it: marks, games that come again, lineage; answers are JSON text.
//! The GIL is free while the engine works; Ctrl-C ends a job between two stretches of frames.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::content::Contents;
use gristmill_engine::marks::{self, Markable};
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_jobs::content::split_keys;
use gristmill_jobs::dedup::dedup;
use gristmill_jobs::mark::{MarkOptions, Marked, Which, mark, update};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::array::Contiguous;
use crate::error::Fault;
use crate::packing::watched;

/// What to mark: `rule` over all frames, else the rows of a selection where `mask` (a byte each) is not 0, else what was added
/// since the mark was made.
#[derive(FromPyObject)]
pub(crate) struct Marking {
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    rule: Option<String>,
    #[pyo3(item)]
    mask: Option<Contiguous>,
    #[pyo3(item)]
    replace: bool,
    #[pyo3(item)]
    workers: Option<usize>,
}

/// A pack, and the frames that were selected of it.
#[pyclass(module = "gristmill._gristmill", frozen)]
pub(crate) struct Packed {
    pack: Arc<dyn Markable>,
    contents: Arc<dyn Contents>,
    rows: Arc<Intervals>,
}

impl Packed {
    pub(crate) fn new<P: Markable + Contents + Clone + 'static>(pack: &P, rows: &Arc<Intervals>) -> Self {
        Packed { pack: Arc::new(pack.clone()), contents: Arc::new(pack.clone()), rows: Arc::clone(rows) }
    }
}

#[pymethods]
impl Packed {
    /// The folder of the pack.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.pack.folder().to_owned()
    }

    /// Frames of the whole pack.
    #[getter]
    fn frames(&self) -> u64 {
        self.pack.total()
    }

    /// Marks frames of the pack; of a mask those that are selected.
    fn mark(&self, py: Python<'_>, marking: Marking) -> Result<String, Fault> {
        let mut options = MarkOptions::new(marking.name);
        options.replace = marking.replace;
        options.workers = marking.workers.unwrap_or(options.workers);
        let which = match (marking.rule, &marking.mask) {
            (Some(rule), _) => Some(Which::Rule(rule)),
            (None, Some(mask)) => Some(Which::Given(masked(&self.rows, mask.bytes())?)),
            (None, None) => None,
        };
        watched(py, &options.stop, |look| -> gristmill_engine::Result<Marked> {
            match &which {
                Some(which) => mark(&self.pack, which, &options, &mut |_, _| look()),
                None => update(&self.pack, &options, &mut |_, _| look()),
            }
        })
    }

    /// What is known of the marks.
    fn marks(&self, py: Python<'_>) -> Result<String, Fault> {
        json(&py.detach(|| marks::list(&*self.pack))?)
    }

    /// Removes a mark.
    fn remove_mark(&self, name: &str) -> Result<(), Fault> {
        Ok(marks::remove(&*self.pack, name)?)
    }

    /// Games that are the same; marked where a name is given.
    fn duplicates(&self, py: Python<'_>, name: Option<String>, replace: bool) -> Result<String, Fault> {
        let mut options = MarkOptions::new(name.unwrap_or_default());
        options.replace = replace;
        watched(py, &options.stop, |look| dedup(&self.contents, &options, &mut |_, _| look()))
    }

    /// How the pack came to be: a list of jobs, empty where nothing tells.
    fn lineage(&self) -> Result<String, Fault> {
        json(&gristmill_engine::lineage::of_folder(self.pack.folder()).unwrap_or_default())
    }
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

fn masked(rows: &Intervals, mask: &[u8]) -> Result<Intervals, Fault> {
    if mask.len() as u64 != rows.len() {
        return Err(PyValueError::new_err(format!("a mask of {} for {} rows", mask.len(), rows.len())).into());
    }
    let mut found = Intervals::default();
    let mut at = mask.iter();
    for (start, end) in rows.iter() {
        for (row, is_in) in (start..end).zip(&mut at) {
            if *is_in != 0 {
                found.push(row, row + 1);
            }
        }
    }
    Ok(found)
}

/// What a split by content takes for each game of a pack, by its id.
pub(crate) fn keys<P: Contents + Clone + 'static>(py: Python<'_>, pack: &P) -> Result<HashMap<u64, u64>, Fault> {
    let (pack, stop): (Arc<dyn Contents>, _) = (Arc::new(pack.clone()), Arc::default());
    let mut raised = None;
    let keys = py.detach(|| {
        split_keys(&pack, &stop, &mut |_, _| {
            if let Err(e) = Python::attach(|py| py.check_signals()) {
                raised = Some(e);
                stop.store(true, Ordering::Relaxed);
            }
        })
    });
    match (raised, keys) {
        (Some(e), Err(_)) => Err(e.into()),
        (_, keys) => Ok(keys?),
    }
}
