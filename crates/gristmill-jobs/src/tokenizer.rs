//! `tokenizer fit`: rows of a pack, read a few times -> the edges of a tokenizer. Memory does not grow with the rows.
//! Writes nothing but the artifact, whole or not at all.

use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::Step;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::publish::write_whole;
use gristmill_format::g2048::Form;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::encode::{Fit, FitOptions, Tokenizer, Valuation};
use gristmill_format::g2048::row::{ALIGNED_BYTES, layout_aligned};
use gristmill_format::layout::Conform;
use serde::Serialize;
use serde_json::{Map, json};

use super::pack::known_of;

/// Rows read at a time.
const ROWS: u64 = 8192;

/// What was fitted, and to what.
#[derive(Debug)]
pub struct Fitted {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// What it was made of.
    pub summary: Summary,
}

/// What a fit was made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Rows that were selected.
    pub rows: u64,
    /// Times that they were read.
    pub passes: u64,
    /// Bins of each kind.
    pub num_bins: usize,
    /// By kind of valuation.
    pub valuations: Vec<KindSummary>,
    /// Rows left out because the tokenizer does not know their valuation, or is not to be fitted to it.
    pub rows_of_other_valuations: u64,
    /// Rows left out because no class fits them: a move that is not legal, values that are not finite.
    pub unusable_rows: u64,
}

/// What a fit found of one kind of valuation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "as in `gristmill_format::g2048::encode::Counts`")]
pub struct KindSummary {
    pub name: &'static str,
    pub rows: u64,
    pub branches: u64,
    pub failures: u64,
    pub ties: u64,
    pub better: u64,
    pub used: u64,
    pub bin_edges: Vec<f64>,
}

/// Fits a tokenizer to the rows of `selection`; `progress` gets the pass, the rows read in it, and all rows.
///
/// Errors: `Unfit` for rows that are no step rows; `Format`: `OutOfRange` for the options, `Missing` for a kind of valuation with too few rows, what reading
/// gives; whatever `progress` returns.
pub fn fit(
    selection: &Selection,
    options: &FitOptions,
    progress: &mut dyn FnMut(u64, u64, u64) -> Result<()>,
) -> Result<Fitted> {
    let mut fit = Fit::new(options.clone())?;
    let form = selection.pack().form();
    if form != Form::Steps.name() {
        let text = format!("a tokenizer is fitted to step rows; these are {form} rows: no such values are in them");
        return Err(Error::Unfit(text));
    }
    let names = selection.pack().names_of_valuations();
    let kinds: Vec<Option<Valuation>> = names.iter().map(|name| Valuation::named(name)).collect();
    let conform = Conform::new(selection.layout(), layout_aligned())?;
    let total = selection.rows().len();
    let mut aligned = [0; ALIGNED_BYTES];
    let mut passes = 0;
    loop {
        for first in (0..total).step_by(ROWS as usize) {
            progress(passes, first, total)?;
            let places: Vec<u64> = (first..total.min(first + ROWS)).collect();
            for record in selection.take(&places)?.chunks_exact(selection.layout().size()) {
                conform.record(record, &mut aligned);
                let row = StepRow::from_aligned(&aligned);
                fit.add(kinds.get(usize::from(row.valuation_type)).copied().flatten(), &row);
            }
        }
        passes += 1;
        if !fit.end_pass() {
            break;
        }
    }
    let counts = Valuation::ALL.map(|kind| fit.counts(kind));
    let (rows_of_other_valuations, unusable_rows) = fit.left_out();
    let metadata = json!({
        "dataset_dir": selection.pack().folder().display().to_string(),
        "rows": total,
        "rows_of_other_valuations": rows_of_other_valuations,
        "unusable_rows": unusable_rows,
        "zero_tolerance": options.zero_tolerance,
        "lineage": [lineage(selection, options)],
    });
    let tokenizer = fit.finish(metadata.as_object().cloned().unwrap_or_else(Map::new))?;
    let fitted = Valuation::ALL.iter().zip(counts).filter(|(kind, _)| options.kinds.contains(kind));
    let valuations = fitted.map(|(kind, counts)| KindSummary {
        name: kind.name(),
        rows: counts.rows,
        branches: counts.branches,
        failures: counts.failures,
        ties: counts.ties,
        better: counts.better,
        used: counts.used,
        bin_edges: tokenizer.bins(*kind).map(|bins| bins.edges().to_vec()).unwrap_or_default(),
    });
    let num_bins = options.num_bins;
    let valuations = valuations.collect();
    let summary = Summary { rows: total, passes, num_bins, valuations, rows_of_other_valuations, unusable_rows };
    Ok(Fitted { tokenizer, summary })
}

/// How the tokenizer comes to be.
fn lineage(selection: &Selection, options: &FitOptions) -> Step {
    let made = Step::new("tokenizer fit");
    let names: Vec<&str> = options.kinds.iter().map(|kind| kind.name()).collect();
    let made = if names.len() == Valuation::ALL.len() { made } else { made.with("valuations", names) };
    made.with("num_bins", options.num_bins)
        .with("failure_cutoff", options.failure_cutoff)
        .with("zero_tolerance", options.zero_tolerance)
        .with("rows", selection.rows().len())
        .with("selected", json!(selection.recipe().steps))
        .made_from(vec![known_of(selection.pack().folder())])
}

pub use gristmill_engine::kinds::g2048::tokenizer as read;

/// Refuses an existing file, unless it may be replaced.
///
/// Errors: `Path` of kind `AlreadyExists`.
pub fn check_output(path: &Path, overwrite: bool) -> Result<()> {
    if !overwrite && path.exists() {
        let there =
            std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it is there already; replace it with --overwrite");
        return Err(Error::path(path, &there));
    }
    Ok(())
}

/// Writes the artifact with `indent` spaces, whole or not at all.
///
/// Errors: `Path`.
pub fn write(tokenizer: &Tokenizer, path: &Path, indent: usize) -> Result<()> {
    write_whole(path, &[tokenizer.to_json(indent).as_bytes(), b"\n"])
}
