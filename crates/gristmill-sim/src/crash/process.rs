//! What a process does below a folder, as words -> the same done by a process of its own that is traced. `gristmill-sim job` is such a
//! process: it says by its code how it ended. Judges nothing.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::facts::Learning;
use super::record::{Failing, Recorded, record};
use super::task::Task;
use super::training::Training;
use super::twins::Reading;

/// How a process ended that did not do what it was to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It said what went wrong.
    Refused(String),
    /// It found something wrong, and nothing had said so.
    Wrong(String),
}

impl Ended {
    /// The code of a process that said what went wrong, and of one that found something wrong.
    pub(super) const CODES: [u8; 2] = [1, 3];

    fn code(&self) -> u8 {
        match self {
            Ended::Refused(_) => Ended::CODES[0],
            Ended::Wrong(_) => Ended::CODES[1],
        }
    }
}

/// What a process does.
pub trait Deed: Serialize + DeserializeOwned {
    /// Its name on the command line.
    const NAME: &'static str;

    /// Does it below a folder. `again`: as the process after a crash, which finds what another left.
    fn does(&self, root: &Path, again: bool) -> Result<(), Ended>;
}

/// Does it in a process that is traced. `(program, root)`: the program is that of `gristmill-sim`.
pub(super) fn traced<D: Deed>(
    deed: &D,
    (program, root): (&Path, &Path),
    failing: Option<&Failing>,
    again: bool,
) -> Result<Recorded, String> {
    let words = serde_json::to_string(deed).map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["job", D::NAME, if again { "again" } else { "fresh" }]).arg(root).arg(words);
    let mut said = tempfile::tempfile().map_err(|e| e.to_string())?;
    let words = said.try_clone().map_err(|e| e.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(words);
    let mut done = record(root, &mut command, failing).map_err(|e| format!("tracing: {e}"))?;
    let read = said.rewind().and_then(|()| said.read_to_string(&mut done.said));
    read.map_err(|e| e.to_string())?;
    Ok(done)
}

/// The process of the words `job NAME fresh|again ROOT DEED`: how it ended, and why.
pub fn run(words: &[PathBuf]) -> (ExitCode, String) {
    let unknown = || (ExitCode::from(2), "these are no words of a job".to_owned());
    let [_, name, how, root, deed] = words else { return unknown() };
    let (again, deed) = (how == Path::new("again"), deed.to_string_lossy());
    match name.to_str() {
        Some(Task::NAME) => done::<Task>(&deed, root, again),
        Some(Reading::NAME) => done::<Reading>(&deed, root, again),
        Some(Learning::NAME) => done::<Learning>(&deed, root, again),
        Some(Training::NAME) => done::<Training>(&deed, root, again),
        _ => unknown(),
    }
}

fn done<D: Deed>(words: &str, root: &Path, again: bool) -> (ExitCode, String) {
    match serde_json::from_str::<D>(words).map(|deed| deed.does(root, again)) {
        Ok(Ok(())) => (ExitCode::SUCCESS, String::new()),
        Ok(Err(ended)) => (ExitCode::from(ended.code()), format!("{ended:?}")),
        Err(e) => (ExitCode::from(2), e.to_string()),
    }
}
