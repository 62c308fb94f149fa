//! Runs of a source and what its rows are like -> the database of the target, the names of valuations, the manifest.

use std::path::PathBuf;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::{self, Step};
use gristmill_engine::pack::manifest::{self, Manifest, RowFile, Sources};
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter, Run};
use gristmill_engine::pack::{self, layout_name};
use gristmill_engine::row_files;
use gristmill_engine::store::publish::{self, Staging};
use gristmill_format::g2048::Form;
use gristmill_format::{Error as FormatError, Kind};
use rusqlite::types::Value;

use super::To;
use super::plan::Plan;
use super::source::{Facts, RunFacts, Source};

/// At most this many remarks about runs are kept.
const REMARKS: usize = 1000;

/// Ids of runs in the source, in order, with their ids in the target.
pub(super) struct Ids(Vec<u64>, bool);

impl Ids {
    /// Of all runs that the database or the rows know.
    pub(super) fn new(source: &Source, facts: &Facts, renumber: bool) -> Self {
        let mut all: Vec<u64> = source.runs.iter().map(|run| run.id).chain(facts.runs.keys().copied()).collect();
        all.sort_unstable();
        all.dedup();
        Ids(all, renumber)
    }

    /// The id in the target.
    pub(super) fn of(&self, id: u64) -> u64 {
        if self.1 { self.0.binary_search(&id).map_or(id, |at| at as u64) } else { id }
    }
}

/// What the database of the target says of a run; none where neither the source's nor any row knows it.
pub(super) fn run(source: &Source, facts: &Facts, id: u64) -> Run {
    let RunFacts { rows, rank } = facts.runs.get(&id).copied().unwrap_or_default();
    match source.runs.binary_search_by_key(&id, |run| run.id) {
        Ok(at) => Run { steps: rows, ..source.runs[at].clone() },
        Err(_) => Run { id, seed: None, steps: rows, max_score: 0, highest_tile: u64::from(rank > 0) << rank },
    }
}

/// Stages everything but the rows. Returns what is odd about runs.
///
/// Errors: `Format` with the database of either side; `Path`.
pub(super) fn write(
    staging: &Staging,
    (source, facts): (&Source, &Facts),
    (plan, ids): (&Plan, &Ids),
    (to, shard_rows, files): (To, Option<u64>, &[RowFile]),
) -> Result<Vec<String>> {
    let old = Metadata::open(source.folder.join(pack::METADATA))?;
    let mut new = MetadataWriter::open(staging.path(pack::METADATA))?;
    let (mut columns, mut remarks) = (old.other_columns()?, Vec::new());
    columns.retain(|(name, _)| name != ORIGINAL);
    new.add_columns(&columns)?;
    if plan.renumber {
        new.add_columns(&[(ORIGINAL.to_owned(), "INTEGER".to_owned())])?;
    }
    let listed = |id: &u64| source.runs.binary_search_by_key(id, |run| run.id).is_ok();
    let lenient = matches!(to.form(), Form::SelfPlay | Form::Exponents);
    for &id in ids.0.iter().filter(|id| listed(id) || !lenient) {
        let run = run(source, facts, id);
        new.put_run(&Run { id: ids.of(id), ..run.clone() })?;
        if plan.renumber {
            let original = [(ORIGINAL.to_owned(), String::new())];
            new.put_others(ids.of(id), &original, vec![Value::Integer(id.cast_signed())])?;
        }
        let said = source.runs.binary_search_by_key(&id, |run| run.id).map_or(run.steps, |at| source.runs[at].steps);
        if said != run.steps {
            remarks.push(format!("run {id} has {} rows, the database of the source says {said}", run.steps));
        }
    }
    if !columns.is_empty() {
        old.others(&columns, &mut |id, values| new.put_others(ids.of(id), &columns, values))?;
    }
    let mut first_row = std::collections::BTreeMap::new();
    let mut at = 0;
    for &id in &ids.0 {
        first_row.insert(id, at);
        at += facts.runs.get(&id).map_or(0, |run| run.rows);
    }
    old.extras(&mut |mut extra| {
        extra.first_row = first_row.get(&extra.run_id).copied().unwrap_or(extra.first_row);
        extra.run_id = ids.of(extra.run_id);
        new.put_extra(&extra)
    })?;
    old.session()?.iter().try_for_each(|(key, value)| new.put_session(key, value))?;
    if to == To::Legacy {
        new.make_legacy()?;
    }
    new.shorten()?;
    new.finish_anew()?;
    if to.form() == Form::Steps || plan.own.field("valuation_type").is_some() {
        publish::write_whole(&staging.path(row_files::VALUATION_TYPES), &[plan.types.to_json().as_bytes()])?;
    }
    let said = Step::new("convert").with("to", to.name()).with("renumber", plan.renumber);
    let lineage = vec![said.made_from(source.lineage.clone())];
    if let Some(form) = to.rows() {
        let before = Manifest::read(&source.folder)?;
        let manifest = Manifest {
            format: manifest::FORMAT.to_owned(),
            version: manifest::VERSION,
            writer: lineage::WRITER.to_owned(),
            layout: layout_name(form).to_owned(),
            rows: at,
            runs: ids.0.len() as u64,
            shard_rows,
            files: files.to_vec(),
            sources: before.as_ref().map_or_else(Sources::default, |before| before.sources.clone()),
            skipped: before.as_ref().map_or_else(Vec::new, |before| before.skipped.clone()),
            remarks: before.map_or_else(Vec::new, |before| before.remarks),
            lineage,
        };
        let manifest = manifest.to_json()?;
        let paths: Vec<PathBuf> = files.iter().map(|file| staging.path(&file.name)).collect();
        pack::opening::write(&staging.path(""), &paths, &plan.types, &manifest)?;
        publish::write_whole(&staging.path(pack::MANIFEST), &[manifest.as_bytes()])?;
    } else {
        lineage::write(&staging.path(""), lineage)?;
    }
    remarks.truncate(REMARKS);
    Ok(remarks)
}

/// The column with the id that a run had before runs were renumbered.
const ORIGINAL: &str = "original_id";

/// Refuses rows whose run the database does not know, where the form of the source does not allow that.
///
/// Errors: `Format`: `Missing` with the database.
pub(super) fn check(source: &Source, facts: &Facts) -> Result<()> {
    let database = || source.folder.join(pack::METADATA).display().to_string();
    let refuse = |kind, detail: String| Err(Error::from(FormatError::new(kind, detail).in_source(database())));
    let recorded = matches!(source.columns.form(), Form::SelfPlay | Form::Exponents);
    for (id, run) in &facts.runs {
        match source.runs.binary_search_by_key(id, |run| run.id) {
            Err(_) if !recorded => {
                return refuse(Kind::Missing, format!("run {id} has {} rows and is not listed", run.rows));
            }
            Ok(at) if run.rows > source.runs[at].steps && !(recorded && source.runs[at].steps == 0) => {
                let steps = source.runs[at].steps;
                let detail = format!(
                    "run {id} has {} rows and {steps} steps: files of another session or pack are among these, or runs \
                     are there twice",
                    run.rows
                );
                return refuse(Kind::Corrupt, detail);
            }
            _ => {}
        }
    }
    Ok(())
}
