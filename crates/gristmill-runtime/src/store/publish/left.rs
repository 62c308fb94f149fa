//! What jobs left in a folder when they were killed -> what it is, and its end: finished, or given up.
//! Changes nothing that it is not called for, and takes no plan at its word.

use std::ffi::OsString;
use std::path::Path;

use super::folder::{Entry, Folder};
use super::plan::Plan;
use super::staging::{Staging, hidden};
use crate::error::Result;

/// Where Python's writers of folders put what they replace, for a moment.
const REPLACED: &str = "replaced";

/// The file that is staged last.
const LAST: &str = "manifest.json";

/// What was left under a hidden name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// An empty folder.
    Nothing,
    /// Staged files of a job that did not end.
    Unfinished {
        /// The names of these files.
        files: Vec<String>,
    },
    /// A publication that did not end.
    Planned {
        /// Whether files were moved already, so that it can only be finished.
        begun: bool,
        /// How many files take their names, and how many go.
        publish: usize,
        /// See `publish`.
        remove: usize,
    },
    /// The old folder of a publication that was killed before the new one took its place.
    Replaced,
    /// Something that is not carried out, and why.
    Refused(String),
    /// A file that was being written.
    File,
}

/// Something that was left, locked.
#[derive(Debug)]
pub struct Left {
    target: Folder,
    hidden: String,
    staging: Option<Staging>,
    plan: Option<Plan>,
    state: State,
}

impl Left {
    /// What lies in `target` under the hidden name of the job `name`, if anything does.
    ///
    /// Errors: `Path`; of kind `ResourceBusy` when the job is running.
    pub fn of(target: &Path, name: &str) -> Result<Option<Self>> {
        let hidden = hidden(name);
        let folder = Folder::open(target)?;
        let (mut plan, mut staging) = (None, None);
        let state = match folder.entry(&hidden)? {
            None => return Ok(None),
            Some(Entry::Folder) => {
                let Some(held) = Staging::hold(target, &hidden)? else { return Ok(None) };
                let state = match held.plan()? {
                    Some(Err(why)) => State::Refused(why),
                    Some(Ok(read)) if !held.owns(&read) => {
                        State::Refused("its plan does not belong to the job that lies here".to_owned())
                    }
                    Some(Ok(read)) => {
                        let (begun, publish, remove) = (held.begun(&read)?, read.publish.len(), read.gone().count());
                        plan = Some(read);
                        State::Planned { begun, publish, remove }
                    }
                    None => match held.foreign()? {
                        Some((file, what)) => State::Refused(format!("{file}: {what}, which no job here makes")),
                        None if folder.entry(name)?.is_none() && held.path(REPLACED).is_dir() => State::Replaced,
                        None => match held.names()? {
                            files if files.is_empty() => State::Nothing,
                            files => State::Unfinished { files },
                        },
                    },
                };
                staging = Some(held);
                state
            }
            Some(Entry::File) => State::File,
            Some(_) => State::Refused("a link or a device lies where the folder of a job is expected".to_owned()),
        };
        Ok(Some(Left { target: folder, hidden, staging, plan, state }))
    }

    /// What it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the job does, in the word that it gave; empty where none is known.
    pub fn job(&self) -> &str {
        self.staging.as_ref().map_or("", Staging::job)
    }

    /// Whether a job of one of these names staged everything, so that only the publication is missing: the manifest comes last.
    pub fn is_complete(&self, jobs: &[&str]) -> bool {
        let State::Unfinished { files } = &self.state else { return false };
        jobs.contains(&self.job()) && files.iter().any(|name| name == LAST)
    }

    /// Brings a publication to its end; the staging is gone then.
    ///
    /// Errors: `Path`, before the first change where something of the plan is missing.
    pub fn finish(self) -> Result<()> {
        if self.state == State::Replaced {
            return self.give_up();
        }
        let Some(staging) = self.staging else { return self.target.remove_all(&self.hidden) };
        if let Some(plan) = &self.plan {
            staging.carry_out(plan)?;
        }
        staging.discard()
    }

    /// Removes what was left. Of a publication that was killed before the new folder took its place the old one goes back.
    ///
    /// Errors: `Path`.
    pub fn give_up(self) -> Result<()> {
        let Some(staging) = self.staging else {
            self.target.remove_all(&self.hidden)?;
            return self.target.sync();
        };
        if self.state == State::Replaced {
            let name = self.hidden.strip_prefix('.').and_then(|name| name.strip_suffix(".part")).unwrap_or_default();
            self.target.child(&self.hidden)?.rename(REPLACED, &self.target, name)?;
            self.target.sync()?;
        }
        staging.discard()
    }
}

/// Names of the jobs that left something in a folder, sorted.
///
/// Errors: `Path`.
pub fn left_in(target: &Path) -> Result<Vec<String>> {
    let name = |name: OsString| Some(name.to_str()?.strip_prefix('.')?.strip_suffix(".part")?.to_owned());
    Ok(Folder::open(target)?.names()?.into_iter().filter_map(name).filter(|name| !name.is_empty()).collect())
}
