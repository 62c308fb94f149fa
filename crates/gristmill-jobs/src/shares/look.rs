//! The folder of shares -> the state of each share: done, running, failed (and why) or missing. Reads names and leases, never
//! data.

use std::fs;
use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::{Plan, Share};
use serde::Serialize;

use super::attempt::{alive, share_of};
use super::away::{self, Stand};
use super::folder::{FAILED, Failed, Folder, SAID, place, read};

/// The state of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The share is whole.
    Done,
    /// A process works on it.
    Running,
    /// Its process ended with an error.
    Failed,
    /// No process works on it: none was started, or it was killed.
    Missing,
}

/// A share and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// As `17/400`.
    pub share: String,
    /// Its state.
    pub state: State,
    /// Seconds since its process renewed the lease; none for a share that is not running.
    pub noted: Option<u64>,
    /// Why it failed.
    pub why: Option<String>,
}

/// All shares of an output.
#[derive(Debug, Clone, Serialize)]
pub struct Shares {
    /// The folder of the shares.
    pub folder: String,
    /// Their plan.
    pub plan: Plan,
    /// How many are done.
    pub done: u32,
    /// How many are running.
    pub running: u32,
    /// How many failed.
    pub failed: u32,
    /// How many are missing.
    pub missing: u32,
    /// Each of them, in order.
    pub shares: Vec<Status>,
}

/// The states of the shares of `output`.
///
/// Errors: `Config` in `output` if it has no shares, or cannot be written; `Path`; `Format` of kind `Corrupt` for a plan that is damaged.
pub fn shares(output: &Path) -> Result<Shares> {
    let folder = Folder::beside(&place(output)?)?;
    let Some(plan) = folder.plan()? else {
        let shown = folder.path().display();
        let text = format!("there are no shares in {shown}; `gristmill pack IN OUT --share 1/N` makes the first");
        return Err(Error::config("output", text));
    };
    look(&folder, plan)
}

/// The states of the shares of a plan.
fn look(folder: &Folder, plan: Plan) -> Result<Shares> {
    let Stand { done, mut failed, running } = match folder.depot() {
        Some(depot) => away::stand(depot, &plan)?,
        None => listed(folder, &plan)?,
    };
    let count = plan.shares;
    let mut all = Shares {
        folder: folder.path().display().to_string(),
        plan,
        done: 0,
        running: 0,
        failed: 0,
        missing: 0,
        shares: Vec::new(),
    };
    for number in 1..=count {
        let share = Share::new(number, count)?;
        let name = share.name();
        let (noted, why) =
            (running.get(&name).copied(), failed.remove(&name).map(|file| why(&folder.path().join(file))));
        let (state, counted) = match (done.contains_key(&name), noted, &why) {
            (true, ..) => (State::Done, &mut all.done),
            (_, Some(_), _) => (State::Running, &mut all.running),
            (.., Some(_)) => (State::Failed, &mut all.failed),
            _ => (State::Missing, &mut all.missing),
        };
        *counted += 1;
        let noted = noted.filter(|_| state == State::Running);
        let why = why.filter(|_| state == State::Failed);
        all.shares.push(Status { share: share.to_string(), state, noted, why });
    }
    Ok(all)
}

/// What a folder of this machine has of the shares of a plan.
fn listed(folder: &Folder, plan: &Plan) -> Result<Stand> {
    let at = folder.shares_of(plan);
    let Stand { mut done, mut failed, mut running } = Stand::default();
    for entry in fs::read_dir(&at).map_err(|e| Error::path(&at, &e))? {
        let entry = entry.map_err(|e| Error::path(&at, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(share) = name.strip_suffix(FAILED) {
            failed.insert(share.to_owned(), format!("{}/{name}", plan.name));
        } else if let Some(share) = share_of(&name) {
            if let Some(noted) = alive(&entry.path()) {
                let least = running.get(share).map_or(noted, |before| noted.min(*before));
                running.insert(share.to_owned(), least);
            }
        } else if entry.path().join(SAID).is_file() {
            done.insert(name, ());
        }
    }
    Ok(Stand { done, failed, running })
}

/// The reason of a failure, from its file.
fn why(path: &Path) -> String {
    let said = read::<Failed>(path).ok().flatten();
    said.map_or_else(|| "it is not known why".to_owned(), |failed| failed.why)
}
