//! Rows of a pack in, a tokenizer fitted to them out, as a file; and what such a file has.
//! Everything that reads is called with the GIL released; Ctrl-C ends a fit between two blocks of rows.

use std::path::PathBuf;

use gristmill_format::g2048::encode::FitOptions;
use gristmill_jobs::tokenizer;
use pyo3::prelude::*;

use crate::error::Fault;
use crate::selection::Selection;

/// Bins of a tokenizer's file, and the XXH3-128 of the file in hexadecimal.
#[pyfunction]
pub(crate) fn read_tokenizer(py: Python<'_>, path: PathBuf) -> Result<(usize, String), Fault> {
    py.detach(|| {
        let (tokenizer, hash) = tokenizer::read(&path)?;
        Ok((tokenizer.num_bins(), format!("{hash:032x}")))
    })
}

/// Fits a tokenizer to rows and writes it; what it was made of, in JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the options of one function in Python")]
pub(crate) fn fit_tokenizer(
    py: Python<'_>,
    rows: &Selection,
    output: PathBuf,
    num_bins: usize,
    search_failure_cutoff: i64,
    zero_tolerance: f64,
    valuations: Option<Vec<String>>,
    overwrite: bool,
) -> Result<String, Fault> {
    let kinds = valuations.map_or_else(|| Ok(FitOptions::default().kinds), |names| FitOptions::kinds_named(&names));
    let kinds = kinds.map_err(|e| gristmill_engine::Error::config("valuations", e.detail()))?;
    let options = FitOptions { num_bins, failure_cutoff: search_failure_cutoff, zero_tolerance, kinds };
    py.detach(|| {
        tokenizer::check_output(&output, overwrite)?;
        let mut interrupted = None;
        let fitted = tokenizer::fit(&rows.0, &options, &mut |_, _, _| {
            Python::attach(|py| py.check_signals()).map_err(|signal| {
                interrupted = Some(signal);
                gristmill_engine::Error::Stopped
            })
        });
        if let Some(signal) = interrupted {
            return Err(signal.into());
        }
        let fitted = fitted?;
        tokenizer::write(&fitted.tokenizer, &output, 2)?;
        let json = serde_json::to_string(&fitted.summary);
        json.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()).into())
    })
}
