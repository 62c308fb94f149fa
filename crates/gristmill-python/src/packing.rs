//! Raw games and packs in, a pack out: options and results as JSON text, which `gristmill.jobs.packing` reads and writes.
//! The GIL is free while the engine works; Ctrl-C ends a job between two games or blocks.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_jobs::checksum::{ChecksumOptions, checksum};
use gristmill_jobs::commit::commit;
use gristmill_jobs::delivery::{Delivery, Earlier};
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::{PackOptions, pack};
use gristmill_jobs::recover::{RecoverOptions, recover};
use gristmill_jobs::shares::{CommitOptions, shares};
use gristmill_jobs::values::{ValuesOptions, values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Fault;

/// Packs a folder of raw games.
#[pyfunction]
pub(crate) fn pack_games(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let options = PackOptions::from_json(options)?;
    watched(py, &options.stop, |look| {
        if options.share.is_some() {
            return pack(&options, &mut |_| look());
        }
        let delivery = options.existing.delivery(&options.output, options.dry_run)?;
        let (output, grows) = (delivery.folder(), delivery.grows());
        let mut packed = pack(&PackOptions { output, grows, ..options.clone() }, &mut |_| look())?;
        packed.pack = delivery.deliver(&options.stop, &mut |_, _| look())?;
        Ok(packed)
    })
}

/// Makes the output of all shares: the name of their job, and what came of it.
#[pyfunction]
pub(crate) fn commit_shares(py: Python<'_>, options: &str) -> Result<(&'static str, String), Fault> {
    let options = CommitOptions::from_json(options)?;
    let mut job = "";
    let made = watched(py, &options.stop, |look| {
        let committed = commit(&options, &mut |_| look())?;
        job = committed.job;
        Ok(committed.made)
    })?;
    Ok((job, made))
}

/// How the shares of an output stand.
#[pyfunction]
pub(crate) fn shares_of(py: Python<'_>, output: PathBuf) -> Result<String, Fault> {
    let all = py.detach(|| shares(&output))?;
    serde_json::to_string(&all).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

/// Merges packs.
#[pyfunction]
pub(crate) fn merge_packs(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let options = MergeOptions::from_json(options)?;
    watched(py, &options.stop, |look| {
        let delivery = Delivery::to(&options.output, Earlier::Removed, options.dry_run)?;
        delivery.keeps_inputs("delete_inputs", options.delete_inputs)?;
        let mut merged = merge(&MergeOptions { output: delivery.folder(), ..options.clone() }, &mut |_, _| look())?;
        merged.pack = delivery.deliver(&options.stop, &mut |_, _| look())?;
        Ok(merged)
    })
}

/// Finishes or gives up what killed jobs left in a folder.
#[pyfunction]
pub(crate) fn recover_folder(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let options = RecoverOptions::from_json(options)?;
    let done = py.detach(|| recover(&options))?;
    serde_json::to_string(&done).map_err(|e| PyValueError::new_err(e.to_string()).into())
}

/// Makes the values of a pack.
#[pyfunction]
pub(crate) fn value_rows(py: Python<'_>, options: &str) -> Result<String, Fault> {
    let options = ValuesOptions::from_json(options)?;
    watched(py, &options.stop, |look| values(&options, &mut |_, _| look()))
}

/// Makes the checksums that a pack of rows lacks, or all of them.
#[pyfunction]
pub(crate) fn checksum_rows(py: Python<'_>, pack: PathBuf, overwrite: bool, dry_run: bool) -> Result<String, Fault> {
    let stop = AtomicBool::new(false);
    watched(py, &stop, |look| {
        checksum(&ChecksumOptions { pack: pack.clone(), overwrite, dry_run }, &mut |_, _| {
            look();
            if stop.load(Ordering::Relaxed) { Err(gristmill_engine::Error::Stopped) } else { Ok(()) }
        })
    })
}

/// Runs a job that calls `look` now and then, which sets `stop` when Python wants to raise.
pub(crate) fn watched<T: serde::Serialize + Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    job: impl FnOnce(&mut dyn FnMut()) -> gristmill_engine::Result<T> + Send,
) -> Result<String, Fault> {
    let mut raised = None;
    let done = py.detach(|| {
        job(&mut || {
            if let Err(e) = Python::attach(|py| py.check_signals()) {
                raised = Some(e);
                stop.store(true, Ordering::Relaxed);
            }
        })
    });
    if let Some(e) = raised {
        // Some jobs end early with what they have so far, and no error: what Python raised must not be lost.
        return Err(e.into());
    }
    serde_json::to_string(&done?).map_err(|e| PyValueError::new_err(e.to_string()).into())
}
