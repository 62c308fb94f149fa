//! A job over many files and one of its shares -> that share, made once: whatever is there already, fails or is killed. Knows of
//! the job what its trait says, and takes away nothing that another process makes.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::{Plan, Share, Unit, cut};
use gristmill_engine::store::place::{is_local, resolved};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::Attempt;
use super::folder::Folder;

/// A job that can be cut into shares: its options were checked, and its inputs are listed.
pub trait Job: Sized {
    /// What a share records beside its files: for the commit, and for a second process at this share.
    type Said: Said;

    /// Its name, in plans and in the table of commits.
    fn name(&self) -> &'static str;

    /// Where its inputs are.
    fn input(&self) -> &Path;

    /// Where its output goes, beside which shares are made.
    fn output(&self) -> &Path;

    /// The options that change a byte of the output.
    ///
    /// Errors: `Config` for options that cannot be recorded.
    fn options(&self) -> Result<BTreeMap<String, Value>>;

    /// The inputs, in the order in which one process takes them; a share never cuts one.
    fn units(&self) -> &[Unit];

    /// Refuses an output that is there already, where the share is not done.
    ///
    /// Errors: `Config` in `output`; `Path`.
    fn check_output(&self) -> Result<()>;

    /// Makes the files of the share from these units, in the folder of the attempt, and renews its lease now and then.
    ///
    /// Errors: those of the job.
    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Self::Said>;
}

/// The record of a share.
pub trait Said: Serialize + DeserializeOwned {
    /// How many inputs it took, and their bytes.
    fn taken(&self) -> (u64, u64);
}

/// A share that was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Which, as `17/400`.
    pub share: String,
    /// The plan that it goes by.
    pub plan: String,
    /// How many inputs of the plan it has.
    pub inputs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether it was there already, by this process at another time or by another one.
    pub there: bool,
}

/// What came of a share.
#[derive(Debug)]
pub struct Outcome<S> {
    /// Which share it is.
    pub shared: Shared,
    /// Its folder, which the commit removes.
    pub folder: PathBuf,
    /// Its record; none in a dry run of a share that is not done.
    pub said: Option<S>,
}

/// Makes a share of a job beside its output, unless it is done. A dry run only refuses what would be refused.
///
/// Errors: `Config` in `output` for one within the inputs, or that is there already; in `share` where the shares there have another
/// plan; `Format` for shares or a plan that are damaged; those of the job, which are written down for `gristmill shares`.
pub fn make<J: Job>(job: J, share: Share, dry_run: bool) -> Result<Outcome<J::Said>> {
    if is_below(job.output(), job.input()) {
        let (input, output) = (job.input().display(), job.output().display());
        let text = format!(
            "{output}: lies within {input}, where shares would be inputs of other shares; take a folder elsewhere"
        );
        return Err(Error::config("output", text));
    }
    let folder = Folder::beside(job.output())?;
    let plan = Plan::new(job.name(), job.options()?, job.units(), share.of());
    let range = cut(job.units(), share);
    let units = &job.units()[range.clone()];
    let shared = Shared {
        share: share.to_string(),
        plan: plan.name.clone(),
        inputs: units.iter().map(|unit| unit.inputs).sum(),
        bytes: units.iter().map(|unit| unit.bytes).sum(),
        there: false,
    };
    let outcome = |there: bool, said: Option<J::Said>| Outcome {
        shared: Shared { there, ..shared.clone() },
        folder: folder.of(&plan, share),
        said,
    };
    let done = if folder.has(&plan)? { folder.done::<J::Said>(&plan, share)? } else { None };
    if done.is_none() {
        job.check_output()?;
    }
    if dry_run {
        return Ok(outcome(done.is_some(), done));
    }
    if done.is_some() {
        folder.tidy(&plan, share);
        return Ok(outcome(true, done));
    }
    folder.agree(&plan)?;
    let mut attempt = folder.begin(&plan, share)?;
    match job.take(range, &shared, &mut attempt) {
        Ok(said) => {
            attempt.publish(&folder, &plan, share, &said)?;
            folder.tidy(&plan, share);
            // Where another process was done first, its share counts.
            let said = folder.done(&plan, share)?.unwrap_or(said);
            Ok(outcome(false, Some(said)))
        }
        Err(e) => {
            // Another process made this share meanwhile: our error stops nobody.
            if let Ok(Some(said)) = folder.done(&plan, share) {
                folder.tidy(&plan, share);
                return Ok(outcome(true, Some(said)));
            }
            if !matches!(e, Error::Stopped) && folder.plan().is_ok_and(|now| now.is_some()) {
                folder.fail(&plan, share, &e.to_string());
            }
            Err(e)
        }
    }
}

/// Whether shares beside `output` would lie in the folder `input` or below it.
pub(crate) fn is_below(output: &Path, input: &Path) -> bool {
    if !is_local(output) {
        return resolved(input)
            .is_ok_and(|input| !is_local(&input) && output.parent().is_some_and(|at| at.starts_with(input)));
    }
    let whole = |path: &Path| fs::canonicalize(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok();
    // The first folder that is there: those below it are made.
    let folder = output.ancestors().skip(1).find_map(whole);
    folder.zip(whole(input)).is_some_and(|(folder, input)| folder.starts_with(input))
}
