//! A pack and a rule or a mask in, a mark beside the data; and what marks there are, as JSON text.
//! The GIL is free while the engine works; Ctrl-C ends a job between two stretches of frames.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::content::Contents;
use gristmill_engine::job::content::split_keys;
use gristmill_engine::job::dedup::dedup;
use gristmill_engine::job::mark::{MarkOptions, Marked, Which, mark, update};
use gristmill_engine::marks::{self, Markable};
use gristmill_engine::runtime::intervals::Intervals;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

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
    dry_run: bool,
    #[pyo3(item)]
    workers: Option<usize>,
}

/// Marks frames of `pack`; of a mask those of the selection `rows`.
pub(crate) fn run(
    py: Python<'_>,
    pack: &Arc<dyn Markable>,
    rows: &Intervals,
    marking: &Marking,
) -> Result<String, Fault> {
    let mut options = MarkOptions::new(&*marking.name);
    options.replace = marking.replace;
    options.dry_run = marking.dry_run;
    options.workers = marking.workers.unwrap_or(options.workers);
    let which = match (&marking.rule, &marking.mask) {
        (Some(rule), _) => Some(Which::Rule(rule.clone())),
        (None, Some(mask)) => Some(Which::Given(masked(rows, mask.bytes())?)),
        (None, None) => None,
    };
    watched(py, &options.stop, |look| -> gristmill_engine::Result<Marked> {
        match &which {
            Some(which) => mark(pack, which, &options, &mut |_, _| look()),
            None => update(pack, &options, &mut |_, _| look()),
        }
    })
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

/// What is known of the marks of a pack.
pub(crate) fn listed(py: Python<'_>, pack: &Arc<dyn Markable>) -> Result<String, Fault> {
    let listed = py.detach(|| marks::list(&**pack))?;
    serde_json::to_string(&listed).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

/// What a split by content takes for each game of a pack, by its id.
pub(crate) fn keys(py: Python<'_>, pack: &Arc<dyn Contents>) -> Result<HashMap<u64, u64>, Fault> {
    let stop = Arc::default();
    let mut raised = None;
    let keys = py.detach(|| {
        split_keys(pack, &stop, &mut |_, _| {
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

/// Games of a pack that are the same, in JSON; marked where a name is given.
pub(crate) fn duplicates(
    py: Python<'_>,
    pack: &Arc<dyn Contents>,
    name: Option<String>,
    replace: bool,
) -> Result<String, Fault> {
    let mut options = MarkOptions::new(name.unwrap_or_default());
    options.replace = replace;
    watched(py, &options.stop, |look| dedup(pack, &options, &mut |_, _| look()))
}

/// How the pack in `folder` came to be, in JSON: a list of jobs.
pub(crate) fn lineage(folder: &Path) -> Result<String, Fault> {
    let steps = gristmill_engine::lineage::of_manifest(folder).unwrap_or_default();
    serde_json::to_string(&steps).map_err(|e| PyValueError::new_err(e.to_string()).into())
}
