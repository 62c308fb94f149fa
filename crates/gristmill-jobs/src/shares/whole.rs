//! An output -> all of its shares, for the job that joins them. Refuses shares that are missing, of another version or damaged, and
//! says which. Joins nothing itself.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::parse;
use gristmill_engine::error::{Error, Result};
use gristmill_engine::lineage::WRITER;
use gristmill_engine::shares::{Plan, Share};
use gristmill_format::{Error as FormatError, Kind};
use serde::Deserialize;

use super::folder::{Folder, place};
use super::job::Said;
use super::look::{State, shares};

/// Bytes that are compared at a time.
const PIECE: usize = 1 << 20;

/// At most this many shares are named in an error.
const NAMED: usize = 20;

/// Which shares to join, and how.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommitOptions {
    /// The output, beside which the shares are.
    pub output: PathBuf,
    /// Replace an output that is there.
    pub overwrite: bool,
    /// See whether all shares are there, and write nothing.
    pub dry_run: bool,
    /// Set from another thread to end early.
    #[serde(skip)]
    pub stop: Arc<AtomicBool>,
}

impl CommitOptions {
    /// Reads the options from JSON; what is unknown is refused with the nearest known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }
}

/// How far a commit is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Joining {
    /// Inputs joined, of `all`.
    pub done: u64,
    /// All of them.
    pub all: u64,
}

/// The shares of an output that are to be joined.
#[derive(Debug)]
pub struct Whole {
    /// How; the output is resolved.
    pub options: CommitOptions,
    /// Where the shares are.
    pub folder: Folder,
    /// Their plan.
    pub plan: Plan,
}

impl Whole {
    /// The shares beside the output; none where there is no plan.
    ///
    /// Errors: `Config` in `output` for one that cannot be written, and for shares that another version made; `Format` for a damaged plan.
    pub fn open(options: &CommitOptions) -> Result<Option<Self>> {
        let options = CommitOptions { output: place(&options.output)?, ..options.clone() };
        let folder = Folder::beside(&options.output)?;
        let Some(plan) = folder.plan()? else { return Ok(None) };
        if plan.writer != WRITER {
            let text = format!("{} made the shares in {}, this is {WRITER}", plan.writer, folder.path().display());
            let advice = "commit them with that, or remove them and make them again";
            return Err(Error::config("output", format!("{text}; {advice}")));
        }
        Ok(Some(Whole { options, folder, plan }))
    }

    /// The output.
    pub fn output(&self) -> &Path {
        &self.options.output
    }

    /// Whether the folder has these shares still; not where another process committed them meanwhile.
    ///
    /// Errors: `Format` for a plan that is damaged; `Path`.
    pub fn is_there(&self) -> Result<bool> {
        Ok(self.folder.plan()?.is_some_and(|now| now == self.plan))
    }

    /// The refusal of a commit of shares that are joined already.
    pub fn already(output: &Path) -> Error {
        let text = "it is made, and there are no shares: they were committed already";
        Error::config("output", format!("{}: {text}", output.display()))
    }

    /// All shares in order: the folder of each, and its record.
    ///
    /// Errors: `Config` in `output`, naming the shares that are missing; `Format` for damaged ones.
    pub fn parts<S: Said>(&self) -> Result<Vec<(PathBuf, S)>> {
        let (mut parts, mut inputs, mut bytes) = (Vec::new(), 0u64, 0u64);
        for number in 1..=self.plan.shares {
            let share = Share::new(number, self.plan.shares)?;
            let Some(said) = self.folder.done::<S>(&self.plan, share)? else { return Err(self.missing()) };
            let taken = said.taken();
            (inputs, bytes) = (inputs.saturating_add(taken.0), bytes.saturating_add(taken.1));
            parts.push((self.folder.of(&self.plan, share), said));
        }
        if (inputs, bytes) != (self.plan.inputs, self.plan.bytes) {
            let text = "the shares do not have the inputs of their plan; remove it and make them again";
            let e = FormatError::new(Kind::Corrupt, text).in_source(self.folder.path().display().to_string());
            return Err(e.into());
        }
        Ok(parts)
    }

    /// The refusal that names the shares that are not done.
    pub(crate) fn missing(&self) -> Error {
        let all = match shares(self.output()) {
            Ok(all) => all,
            Err(e) => return e,
        };
        let left: Vec<_> = all.shares.iter().filter(|share| share.state != State::Done).collect();
        let mut said: Vec<String> = left
            .iter()
            .take(NAMED)
            .map(|share| match (&share.why, share.noted) {
                (Some(why), _) => format!("{} failed: {why}", share.share),
                (_, Some(_)) => format!("{} runs", share.share),
                _ => format!("{} is missing", share.share),
            })
            .collect();
        if left.len() > NAMED {
            said.push(format!("and {} more", left.len() - NAMED));
        }
        let (shown, job) = (self.output().display(), &self.plan.job);
        let text = format!("{} of {} shares are done; {}", all.done, all.plan.shares, said.join("; "));
        let advice = format!("`gristmill shares {shown}` lists them, `gristmill {job}` with --share N/OF makes one");
        Error::config("output", format!("{shown}: {text}; {advice}"))
    }
}

/// Whether both readers give the same bytes, up to their ends.
pub(crate) fn is_same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    loop {
        ours.clear();
        theirs.clear();
        one.by_ref().take(PIECE as u64).read_to_end(&mut ours)?;
        other.by_ref().take(PIECE as u64).read_to_end(&mut theirs)?;
        if ours != theirs || ours.is_empty() {
            return Ok(ours == theirs);
        }
    }
}
