//! Marks of a pack, and games that come again; answers are JSON text.
//! The GIL is free while the engine works; Ctrl-C ends a job between two stretches of frames.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_engine::marks;
use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::intervals::Intervals;
use gristmill_engine::selection::Selection;
use gristmill_engine::selection::sides::Keys;
use gristmill_jobs::content::split_keys;
use gristmill_jobs::dedup;
use gristmill_jobs::mark::{self, MarkOptions, Marked, Which};
use gristmill_jobs::shares::Share;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::array::Contiguous;
use crate::error::Fault;
use crate::looking::{OfReport, sharing};
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
    /// A share of the frames, as `17/400`; of a rule only.
    #[pyo3(item)]
    share: Option<String>,
    #[pyo3(item)]
    dry_run: bool,
}

impl Marking {
    /// Marks frames of the pack of a selection. What came of it, in JSON.
    pub(crate) fn done(self, py: Python<'_>, selection: &Selection) -> Result<String, Fault> {
        let mut options = MarkOptions::new(self.name);
        (options.replace, options.dry_run) = (self.replace, self.dry_run);
        options.workers = self.workers.unwrap_or(options.workers);
        if let Some(share) = self.share {
            let (share, rule) = (share.parse::<Share>()?, self.rule.ok_or_else(no_rule)?);
            return watched(py, &options.stop, |look| {
                mark::share(selection.pack(), &rule, &options, share, &mut |_, _| look())
            });
        }
        let which = match (self.rule, &self.mask) {
            (Some(rule), _) => Some(Which::Rule(rule)),
            (None, Some(mask)) => Some(Which::Given(masked(selection.rows(), mask.bytes())?)),
            (None, None) => None,
        };
        watched(py, &options.stop, |look| -> gristmill_engine::Result<Marked> {
            match &which {
                Some(which) => mark::mark(selection.pack(), which, &options, &mut |_, _| look()),
                None => mark::update(selection.pack(), &options, &mut |_, _| look()),
            }
        })
    }
}

/// The refusal of a share of frames that were given.
fn no_rule() -> gristmill_engine::Error {
    gristmill_engine::Error::config("share", "only a rule is applied in shares: a mask is there already")
}

/// What is known of the marks of a pack.
pub(crate) fn listed(py: Python<'_>, pack: &Arc<dyn PackTable>) -> Result<String, Fault> {
    json(&py.detach(|| marks::list(&**pack))?)
}

/// Which games are the same: their mark, where it has a name, and how they are found.
#[derive(FromPyObject)]
pub(crate) struct Finding {
    #[pyo3(item)]
    mark: Option<String>,
    #[pyo3(item)]
    replace: bool,
    #[pyo3(item)]
    workers: Option<usize>,
    /// A share of the games.
    #[pyo3(item)]
    share: Option<OfReport>,
}

impl Finding {
    /// Finds games that are the same, or the keys of a share. What came of it, in JSON.
    pub(crate) fn done(self, py: Python<'_>, pack: &Arc<dyn PackTable>) -> Result<String, Fault> {
        let mut options = MarkOptions::new(self.mark.unwrap_or_default());
        options.replace = self.replace;
        options.workers = self.workers.unwrap_or(options.workers);
        match self.share {
            Some(share) => {
                let sharing = sharing(share)?;
                watched(py, &options.stop, |look| dedup::share(pack, &options, &sharing, &mut |_, _| look()))
            }
            None => watched(py, &options.stop, |look| dedup::dedup(pack, &options, &mut |_, _| look())),
        }
    }
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, Fault> {
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
pub(crate) fn keys(py: Python<'_>, pack: &Arc<dyn PackTable>) -> Result<Keys, Fault> {
    let (stop, mut raised) = (Arc::default(), None);
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
