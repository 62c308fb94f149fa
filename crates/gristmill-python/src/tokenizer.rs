//! Rows of packs in, a tokenizer fitted to them out, as a file, or a share of it; and what such a file has.
//! Everything that reads is called with the GIL released; Ctrl-C ends a fit between two blocks of rows.

use std::path::PathBuf;

use gristmill_format::g2048::encode::FitOptions;
use gristmill_jobs::shares::Share;
use gristmill_jobs::tokenizer;
use pyo3::exceptions::PyValueError;
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

/// How to fit, as Python says it.
#[derive(FromPyObject)]
pub(crate) struct Fitting {
    #[pyo3(item)]
    num_bins: usize,
    #[pyo3(item)]
    search_failure_cutoff: i64,
    #[pyo3(item)]
    zero_tolerance: f64,
    #[pyo3(item)]
    valuations: Option<Vec<String>>,
    #[pyo3(item)]
    overwrite: bool,
    /// A share of the rows, as `17/400`.
    #[pyo3(item)]
    share: Option<String>,
    #[pyo3(item)]
    dry_run: bool,
}

/// Fits a tokenizer to rows of some packs and writes it, or makes a share of it; what it was made of, or the share, in JSON.
#[pyfunction]
pub(crate) fn fit_tokenizer(
    py: Python<'_>,
    rows: Vec<PyRef<'_, Selection>>,
    output: PathBuf,
    fitting: Fitting,
) -> Result<String, Fault> {
    let names = fitting.valuations;
    let kinds = names.map_or_else(|| Ok(FitOptions::default().kinds), |names| FitOptions::kinds_named(&names));
    let kinds = kinds.map_err(|e| gristmill_engine::Error::config("valuations", e.detail()))?;
    let (failure_cutoff, zero_tolerance) = (fitting.search_failure_cutoff, fitting.zero_tolerance);
    let options = FitOptions { num_bins: fitting.num_bins, failure_cutoff, zero_tolerance, kinds };
    let share = fitting.share.map(|share| share.parse::<Share>()).transpose()?;
    let rows: Vec<_> = rows.iter().map(|rows| rows.0.clone()).collect();
    py.detach(|| {
        let mut interrupted = None;
        let mut look = || {
            Python::attach(|py| py.check_signals()).map_err(|signal| {
                interrupted = Some(signal);
                gristmill_engine::Error::Stopped
            })
        };
        let json = |text: serde_json::Result<String>| text.map_err(|e| PyValueError::new_err(e.to_string()).into());
        let indent = 2;
        let done = match share {
            Some(share) => {
                let which = (share, fitting.dry_run);
                let made = tokenizer::share(&rows, &options, (&output, indent), which, &mut |_, _| look());
                made.map(|made| json(serde_json::to_string(&made)))
            }
            None => {
                tokenizer::check_output(&output, fitting.overwrite)?;
                let fitted = tokenizer::fit(&rows, &options, &mut |_, _, _| look());
                fitted.and_then(|fitted| {
                    tokenizer::write(&fitted.tokenizer, &output, indent)?;
                    Ok(json(serde_json::to_string(&fitted.summary)))
                })
            }
        };
        match interrupted {
            Some(signal) => Err(signal.into()),
            None => done?,
        }
    })
}
