//! `tokenizer fit`: rows of packs, read a few times, or the parts that shares made of them -> the edges of a tokenizer. Memory does not
//! grow with the rows. Writes nothing but the artifact, whole or not at all.

mod part;

use std::ops::Range;
use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::Step;
use gristmill_engine::selection::Selection;
use gristmill_engine::store::publish::write_whole;
use gristmill_format::g2048::Form;
use gristmill_format::g2048::StepRow;
use gristmill_format::g2048::encode::{Fit, FitOptions, Found, Tokenizer, Valuation};
use gristmill_format::g2048::row::{ALIGNED_BYTES, layout_aligned};
use gristmill_format::layout::Conform;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(crate) use self::part::{JOB, commit};
pub use self::part::{PartFitted, share};
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

/// Fits one tokenizer to the rows of all `selections`; `progress` gets the pass, the rows read in it, and all rows.
///
/// Errors: `Unfit` for rows that are no step rows; `Format`: `OutOfRange` for the options, `Missing` for a kind of valuation with too few rows, what reading
/// gives; whatever `progress` returns.
pub fn fit(
    selections: &[Selection],
    options: &FitOptions,
    progress: &mut dyn FnMut(u64, u64, u64) -> Result<()>,
) -> Result<Fitted> {
    let mut fit = Fit::new(options.clone())?;
    let rows = Rows::new(selections)?;
    let mut passes = 0;
    loop {
        rows.each(0..rows.total, &mut |done| progress(passes, done, rows.total), &mut |kind, row| {
            fit.add(kind, row);
            Ok(())
        })?;
        passes += 1;
        if !fit.end_pass() {
            break;
        }
    }
    finish(fit, options, passes, metadata(selections, options))
}

/// The step rows of some selections, one after another.
struct Rows<'a> {
    /// With what the valuation ids of each stand for, and its rows in the layout that is read.
    packs: Vec<(&'a Selection, Vec<Option<Valuation>>, Conform)>,
    total: u64,
}

impl<'a> Rows<'a> {
    /// Errors: `Unfit` for rows that are no step rows.
    fn new(selections: &'a [Selection]) -> Result<Self> {
        let mut rows = Rows { packs: Vec::new(), total: 0 };
        for selection in selections {
            let (pack, form) = (selection.pack(), selection.pack().form());
            if form != Form::Steps.name() {
                let at = pack.folder().display();
                let text =
                    format!("a tokenizer is fitted to step rows; {at} has {form} rows: no such values are in them");
                return Err(Error::Unfit(text));
            }
            let kinds = pack.names_of_valuations().iter().map(|name| Valuation::named(name)).collect();
            rows.packs.push((selection, kinds, Conform::new(selection.layout(), layout_aligned())?));
            rows.total += selection.rows().len();
        }
        Ok(rows)
    }

    /// Calls `take` with each row of a range and what its valuation id stands for; before each block `progress` with the rows that are done.
    fn each(
        &self,
        range: Range<u64>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
        take: &mut dyn FnMut(Option<Valuation>, &StepRow) -> Result<()>,
    ) -> Result<()> {
        let (mut start, mut aligned) = (0, [0; ALIGNED_BYTES]);
        for (selection, kinds, conform) in &self.packs {
            let end = start + selection.rows().len();
            let own = range.start.clamp(start, end)..range.end.clamp(start, end);
            for first in own.clone().step_by(ROWS as usize) {
                progress(first - range.start)?;
                let places: Vec<u64> = (first - start..own.end.min(first + ROWS) - start).collect();
                for record in selection.take(&places)?.chunks_exact(selection.layout().size()) {
                    conform.record(record, &mut aligned);
                    let row = StepRow::from_aligned(&aligned);
                    take(kinds.get(usize::from(row.valuation_type)).copied().flatten(), &row)?;
                }
            }
            start = end;
        }
        Ok(())
    }
}

/// The tokenizer of a fit that needs no further pass.
fn finish(fit: Fit, options: &FitOptions, passes: u64, mut metadata: Map<String, Value>) -> Result<Fitted> {
    let found = *fit.found();
    metadata.insert("rows_of_other_valuations".into(), found.other.into());
    metadata.insert("unusable_rows".into(), found.unusable.into());
    let rows = metadata.get("rows").and_then(Value::as_u64).unwrap_or_default();
    let tokenizer = fit.finish(metadata)?;
    let fitted = Valuation::ALL.iter().filter(|kind| options.kinds.contains(kind));
    let valuations = fitted.map(|kind| {
        let counts = found.counts(*kind);
        KindSummary {
            name: kind.name(),
            rows: counts.rows,
            branches: counts.branches,
            failures: counts.failures,
            ties: counts.ties,
            better: counts.better,
            used: counts.used,
            bin_edges: tokenizer.bins(*kind).map(|bins| bins.edges().to_vec()).unwrap_or_default(),
        }
    });
    let summary = Summary {
        rows,
        passes,
        num_bins: options.num_bins,
        valuations: valuations.collect(),
        rows_of_other_valuations: found.other,
        unusable_rows: found.unusable,
    };
    Ok(Fitted { tokenizer, summary })
}

/// What the tokenizer says of the rows before any is read.
fn metadata(selections: &[Selection], options: &FitOptions) -> Map<String, Value> {
    let folders = selections.iter().map(|one| one.pack().folder().display().to_string());
    let mut said = Map::new();
    said.insert("dataset_dir".into(), folders.collect::<Vec<_>>().join(", ").into());
    said.insert("rows".into(), selections.iter().map(|one| one.rows().len()).sum::<u64>().into());
    said.insert("zero_tolerance".into(), options.zero_tolerance.into());
    said.insert("lineage".into(), json!([lineage(selections, options)]));
    said
}

/// How the tokenizer comes to be.
fn lineage(selections: &[Selection], options: &FitOptions) -> Step {
    let made = Step::new("tokenizer fit");
    let names: Vec<&str> = options.kinds.iter().map(|kind| kind.name()).collect();
    let made = if names.len() == Valuation::ALL.len() { made } else { made.with("valuations", names) };
    let selected: Vec<Value> = selections.iter().map(|one| json!(one.recipe().steps)).collect();
    let selected = if let [one] = selected.as_slice() { one.clone() } else { selected.into() };
    made.with("num_bins", options.num_bins)
        .with("failure_cutoff", options.failure_cutoff)
        .with("zero_tolerance", options.zero_tolerance)
        .with("rows", selections.iter().map(|one| one.rows().len()).sum::<u64>())
        .with("selected", selected)
        .made_from(selections.iter().map(|one| known_of(one.pack().folder())).collect())
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
    write_whole(path, &[&bytes(tokenizer, indent)])
}

/// The artifact with `indent` spaces.
fn bytes(tokenizer: &Tokenizer, indent: usize) -> Vec<u8> {
    let mut text = tokenizer.to_json(indent).into_bytes();
    text.push(b'\n');
    text
}
