//! One share of a job that writes games again: some of its units, written into a folder of their own with their ledger, as one process
//! writes them. What a share is, and how it is made once, is a matter of `shares`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ledger::{self, BY, BY_BEFORE, Ledger};
use super::plan::{Container, Plan};
use super::{Done, Rewrite, RewriteOptions, Rewritten, run_units};
use crate::shares::{self, Attempt, Job, Share, Shared, Unit, make};

/// The folder of a share with its files and their ledger.
pub(super) const FILES: &str = "files";

/// The option with the names of the sides.
pub(super) const SIDES: &str = "into";

/// What a share records beside its files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Said {
    /// Its inputs and their bytes.
    inputs: u64,
    bytes: u64,
    /// Files with and without games, of all inputs.
    pub(super) files: u64,
    pub(super) skipped: u64,
    /// What could not be listed, of all inputs: by kind, and messages.
    pub(super) unlisted: BTreeMap<String, u64>,
    pub(super) unlisted_faults: Vec<String>,
    /// Its own: files done, sums, and messages about damage.
    pub(super) files_done: u64,
    pub(super) done: Done,
    pub(super) faults: Vec<String>,
}

impl shares::Said for Said {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// Writes the units of a share, beside the output.
///
/// Errors: as [`rewrite`](super::rewrite), and [`make`]; `Stopped`.
pub(super) fn rewrite(
    what: Arc<dyn Rewrite>,
    (options, plan): (&RewriteOptions, Plan),
    share: Share,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Rewritten),
) -> Result<Rewritten> {
    let settings = what.settings();
    let units = plan.units.iter().map(|unit| unit.share_of()).collect();
    let job = Writing { what, options, settings, units, plan, stop, progress };
    let made = make(job, share, options.dry_run)?;
    let report = match made.said {
        Some(said) if !options.dry_run => {
            Rewritten { files_done: said.files_done, done: said.done, faults: said.faults, ..Rewritten::default() }
        }
        _ => Rewritten { dry_run: options.dry_run, ..Rewritten::default() },
    };
    Ok(Rewritten { files: made.shared.inputs, share: Some(made.shared), folders: vec![made.folder], ..report })
}

/// A job of writing that is cut into shares.
struct Writing<'a> {
    what: Arc<dyn Rewrite>,
    options: &'a RewriteOptions,
    settings: Value,
    units: Vec<Unit>,
    plan: Plan,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(&Rewritten),
}

impl Job for Writing<'_> {
    type Said = Said;

    fn name(&self) -> &'static str {
        ledger::command(&self.settings)
    }

    fn input(&self) -> &Path {
        &self.options.path
    }

    fn output(&self) -> &Path {
        &self.options.out
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        let mut recorded: BTreeMap<String, Value> = flat(&self.settings).into_iter().collect();
        let container = match self.options.container {
            Container::Same => json!("same"),
            Container::Loose => json!("loose"),
            Container::Tars(games) => json!({ "games_per_tar": games }),
        };
        recorded.insert("container".to_owned(), container);
        if !self.options.sides.is_empty() {
            recorded.insert(SIDES.to_owned(), json!(self.options.sides));
            recorded.entry(BY.to_owned()).or_insert_with(|| json!(BY_BEFORE));
        }
        Ok(recorded)
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn check_output(&self) -> Result<()> {
        let outs = self.options.outs();
        for out in &outs {
            if ledger::is_there(out)? {
                let text = "a run wrote here already, or its shares were committed; choose a new or empty folder";
                return Err(Error::config("output", format!("{}: {text}", out.display())));
            }
        }
        if self.options.out.is_file() {
            let e = std::io::Error::new(std::io::ErrorKind::NotADirectory, "expected a folder, or nothing yet");
            return Err(Error::path(&self.options.out, &e));
        }
        shares::check_free(&self.options.out)?;
        ledger::free(&outs)
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Said> {
        let Writing { what, options, settings, mut plan, stop, progress, .. } = self;
        let options = &RewriteOptions { out: attempt.folder().join(FILES), ..options.clone() };
        plan.units = plan.units.drain(units).collect();
        let mut ledger = Ledger::open(settings, options)?;
        let mut report = Rewritten { files: of.inputs, ..Rewritten::default() };
        run_units(what, options, &plan, &mut ledger, stop, &mut report, &mut |now| {
            attempt.renew();
            progress(now);
        })?;
        if report.interrupted {
            return Err(Error::Stopped);
        }
        Ok(Said {
            inputs: of.inputs,
            bytes: of.bytes,
            files: plan.files,
            skipped: plan.skipped,
            unlisted: plan.unlisted,
            unlisted_faults: plan.faults,
            files_done: report.files_done,
            done: report.done,
            faults: report.faults,
        })
    }
}

/// Settings as options by their names: those of an inner object are options, too.
fn flat(settings: &Value) -> Map<String, Value> {
    let mut flat = Map::new();
    for (name, value) in settings.as_object().into_iter().flatten() {
        match value {
            Value::Object(inner) => flat.extend(inner.clone()),
            value => _ = flat.insert(name.clone(), value.clone()),
        }
    }
    flat
}
