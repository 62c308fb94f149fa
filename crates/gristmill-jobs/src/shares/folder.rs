//! The folder `OUT.shares` beside an output: the plan of all shares, and a folder for each share that is done, which gets its
//! name when it is whole; in a bucket its marker. Refuses shares of another plan, and says what differs.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::{Plan, Share};
use gristmill_engine::store::depot::{Depot, Sent};
use gristmill_engine::store::files::read_text;
use gristmill_engine::store::outgoing::Outgoing;
use gristmill_engine::store::place::{is_local, resolved};
use gristmill_engine::store::publish::{put_absent, remove_at_once, withdraw, write_whole};
use gristmill_format::{Error as FormatError, Kind};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::attempt::{self, Attempt};
use super::away;

/// The file with the plan.
pub(super) const PLAN: &str = "plan.json";

/// The file of a share with the report of its job.
pub(super) const SAID: &str = "share.json";

/// The ending of the file that says why a share failed, after the name of the share.
pub(super) const FAILED: &str = ".failed.json";

/// The file in which a commit notes the hash of its output before it publishes.
const COMMIT: &str = "commit.json";

/// Tries of a process to write its plan while other processes remove theirs.
const TRIES: usize = 100;

/// Most bytes of a file here: the report of a share that left out many games is long.
pub(super) const MOST: u64 = 256 << 20;

/// The document of a share.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document<T> {
    /// The name of the plan.
    pub(super) plan: String,
    /// The share, as `17/400`.
    pub(super) share: String,
    /// The report of its job.
    pub(super) made: T,
    /// Its files, if they were sent to a bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<Sent>,
}

/// Why a share failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) why: String,
}

/// The note of a commit: the hash of the file that identifies its output.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    xxh3_128: String,
}

/// Checks the place of an output, a path of this machine or a URL. Shares lie beside it.
///
/// Errors: `Config` in `output` for a place that cannot be written.
pub fn place(output: &Path) -> Result<PathBuf> {
    let resolved = resolved(output)?;
    if !is_local(&resolved) {
        Depot::at(&resolved, "output")?;
    }
    Ok(resolved.into_owned())
}

/// Refuses an output in a bucket whose place holds files, or that a writer has claimed.
///
/// Errors: `Config` in `output`; `Format` of reading.
pub(crate) fn check_free(output: &Path) -> Result<()> {
    if is_local(output) { Ok(()) } else { Outgoing::could_be(output, "output").map(drop) }
}

/// The folder of the shares of one output.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The same in a bucket.
    depot: Option<Depot>,
}

impl Folder {
    /// The folder beside `output`, which need not exist.
    ///
    /// Errors: `Config` in `output` if it has no name, or cannot be written.
    pub fn beside(output: &Path) -> Result<Self> {
        let name = output.file_name().ok_or_else(|| {
            let text = format!("{}: shares lie beside the output, under its name; give it one", output.display());
            Error::config("output", text)
        })?;
        let mut name = name.to_owned();
        name.push(".shares");
        let path = output.with_file_name(name);
        let depot = Depot::at(&path, "output")?;
        Ok(Folder { path, depot })
    }

    /// A folder of this machine, wherever the output is.
    pub(crate) fn at(path: PathBuf) -> Self {
        Folder { path, depot: None }
    }

    /// The same in a bucket.
    pub(super) fn depot(&self) -> Option<&Depot> {
        self.depot.as_ref()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The plan of the shares; none where there are no shares.
    ///
    /// Errors: `Path`; `Format` of kind `Corrupt` for a plan that is damaged or of another version.
    pub fn plan(&self) -> Result<Option<Plan>> {
        let path = self.path.join(PLAN);
        let Some(plan) = read::<Plan>(&path)? else { return Ok(None) };
        if !plan.is_whole() {
            return Err(corrupt(&path, "this plan is not as it was written; remove its folder"));
        }
        Ok(Some(plan))
    }

    /// Whether the folder has `plan`; `false` where it has none.
    ///
    /// Errors: `Config` in `share` if it has another plan; `Format` for a damaged plan; `Path`.
    pub fn has(&self, plan: &Plan) -> Result<bool> {
        match self.plan()? {
            Some(theirs) if theirs == *plan => Ok(true),
            Some(theirs) => Err(self.other(plan, &theirs)),
            None => Ok(false),
        }
    }

    /// Writes `plan` into the folder, for all shares. Changes nothing if the folder has this plan.
    ///
    /// Errors: `Config` in `share` if the folder has another plan; `Format` for a damaged plan; `Path`.
    pub fn agree(&self, plan: &Plan) -> Result<()> {
        let text = serde_json::to_vec_pretty(plan).map_err(|e| Error::State(e.to_string()))?;
        if self.depot.is_none() {
            let path = self.shares_of(plan);
            fs::create_dir_all(&path).map_err(|e| Error::path(path, &e))?;
        }
        for _ in 0..TRIES {
            let put = match &self.depot {
                None => put_absent(&self.path.join(PLAN), &text)?,
                Some(depot) => depot.put_new(PLAN, text.clone())?,
            };
            // A plan that is neither written nor there: a commit has just removed it.
            if put || self.has(plan)? {
                return Ok(());
            }
        }
        Err(corrupt(&self.path.join(PLAN), "the name is taken, and nothing can be read there; remove it"))
    }

    /// The error for a plan that differs from the one here.
    fn other(&self, plan: &Plan, theirs: &Plan) -> Error {
        let (shown, differs) = (self.path.display(), plan.differs(theirs));
        if self.depot.is_none() {
            // Another plan came first: this removes our empty folder.
            let _ = fs::remove_dir(self.shares_of(plan));
        }
        let text = format!(
            "{shown} has shares of another plan, {}, not of {}: {differs}; finish those, remove {shown}, or take another output",
            theirs.name, plan.name
        );
        Error::config("share", text)
    }

    /// The folder with the shares of a plan.
    pub(super) fn shares_of(&self, plan: &Plan) -> PathBuf {
        self.path.join(&plan.name)
    }

    /// The folder of a finished share. In a bucket, the folder into which processes send it.
    pub fn of(&self, plan: &Plan, share: Share) -> PathBuf {
        match &self.depot {
            None => self.shares_of(plan).join(share.name()),
            Some(_) => self.path.join(away::rooms(plan).files).join(share.name()),
        }
    }

    /// The file that is there when a share is done.
    pub(crate) fn marker(&self, plan: &Plan, share: Share) -> PathBuf {
        match &self.depot {
            None => self.of(plan, share).join(SAID),
            Some(_) => self.path.join(away::marker(plan, share)),
        }
    }

    /// The files that the share `name` has in a bucket. Returns `None` if the share is not done.
    ///
    /// Errors: as [`Folder::done`].
    pub(super) fn sent_of(&self, plan: &Plan, name: &str) -> Result<Option<Sent>> {
        let said = read::<Document<IgnoredAny>>(&self.path.join(away::marker_of(plan, name)))?;
        Ok(said.and_then(|said| said.sent))
    }

    /// The document of a share; none if the share is not done.
    ///
    /// Errors: `Path`; `Format` of kind `Corrupt` for a document that is damaged or of another plan.
    pub fn done<T: DeserializeOwned>(&self, plan: &Plan, share: Share) -> Result<Option<T>> {
        let path = self.marker(plan, share);
        let Some(said) = read::<Document<T>>(&path)? else { return Ok(None) };
        if said.plan != plan.name || said.share != share.to_string() {
            let Document { plan: theirs, share: other, .. } = said;
            let text = format!("share {other} of plan {theirs}, expected {share} of {}; remove its folder", plan.name);
            return Err(corrupt(&path, text));
        }
        Ok(Some(said.made))
    }

    /// Begins a share. Other processes may work on the same share: the first to finish wins.
    ///
    /// Errors: `Path`.
    pub fn begin(&self, plan: &Plan, share: Share) -> Result<Attempt> {
        match &self.depot {
            None => {
                withdraw(&self.failed(plan, share))?;
                Attempt::begin(self.of(plan, share), None)
            }
            Some(depot) => {
                let deposit = depot.begin(&away::rooms(plan), &share.name())?;
                depot.remove([away::failed(plan, share).as_str()])?;
                let here = depot.here(&share.name())?;
                if let Some(folder) = here.parent() {
                    // What killed processes of this machine left, whatever they made.
                    attempt::remove_dead_in(folder, ".");
                }
                Attempt::begin(here, Some(deposit))
            }
        }
    }

    /// Removes the attempts of killed processes at a share that is done.
    pub fn tidy(&self, plan: &Plan, share: Share) {
        // The commit removes what remains.
        let Some(depot) = &self.depot else {
            let _ = withdraw(&self.failed(plan, share));
            return attempt::remove_dead(&self.of(plan, share));
        };
        let _ = depot.remove([away::failed(plan, share).as_str()]);
        if let Ok(Some(sent)) = self.sent_of(plan, &share.name()) {
            let _ = depot.remove_others(&away::rooms(plan), &share.name(), &sent);
        }
    }

    /// Writes down why a share failed, for `gristmill shares`.
    pub fn fail(&self, plan: &Plan, share: Share, why: &str) {
        let text = serde_json::to_vec(&Failed { why: why.to_owned() }).unwrap_or_default();
        // The process reports its error itself, too.
        let _ = match &self.depot {
            None => write_whole(&self.failed(plan, share), &[&text]),
            Some(depot) => depot.put(&away::failed(plan, share), text),
        };
    }

    fn failed(&self, plan: &Plan, share: Share) -> PathBuf {
        let mut path = self.of(plan, share).into_os_string();
        path.push(FAILED);
        path.into()
    }

    /// Notes the hash of the file that identifies the output, before it is published.
    ///
    /// Errors: `Path`.
    pub fn note_commit(&self, xxh3_128: u128) -> Result<()> {
        let text = serde_json::to_vec(&Noted { xxh3_128: format!("{xxh3_128:032x}") });
        write_whole(&self.path.join(COMMIT), &[&text.map_err(|e| Error::State(e.to_string()))?])
    }

    /// Whether a commit of these shares noted this hash.
    ///
    /// Errors: `Path`.
    pub fn committed(&self, xxh3_128: u128) -> Result<bool> {
        let noted = read::<Noted>(&self.path.join(COMMIT))?;
        Ok(noted.is_some_and(|noted| noted.xxh3_128 == format!("{xxh3_128:032x}")))
    }

    /// Removes all shares; other processes see all of them or none.
    ///
    /// Errors: `Path`.
    pub fn remove(&self) -> Result<()> {
        match &self.depot {
            None => remove_at_once(&self.path),
            Some(depot) => away::remove(depot),
        }
    }
}

/// Reads a document; none if the file does not exist.
///
/// Errors: `Path`; `Format` of kind `Corrupt`.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let Some(text) = read_text(path, MOST)? else { return Ok(None) };
    let parsed = serde_json::from_str(&text);
    parsed.map(Some).map_err(|e| corrupt(path, format!("damaged, or of another version: {e}; remove its folder")))
}

/// The error for a document that is not as it was written.
pub(super) fn corrupt(path: &Path, detail: impl Into<String>) -> Error {
    FormatError::new(Kind::Corrupt, detail).in_source(path.display().to_string()).into()
}
