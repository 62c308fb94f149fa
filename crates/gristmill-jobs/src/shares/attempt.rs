//! A share -> the work of one process on it: a hidden folder of its own, a lease that says that the process lives, and a rename
//! that makes the folder the share. Two processes at one share do not disturb each other; the second finds the share done.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::shares::{Plan, Share};
use gristmill_engine::store::depot::Deposit;
use gristmill_engine::store::publish::{settle_absent, write_whole};
use serde::Serialize;
use tempfile::TempDir;

use super::away::{DEAD, marker};
use super::folder::{Document, Folder, SAID};
use crate::meter::Meter;

/// The lease of an attempt: a file that its process keeps locked and rewrites now and then.
const LEASE: &str = "lease";

/// The folder that becomes the share.
const SHARE: &str = "share";

/// Seconds between two renewals of the lease.
const NOTED: f64 = 5.0;

/// A share that is being made.
#[derive(Debug)]
pub struct Attempt {
    hidden: TempDir,
    lease: File,
    done: PathBuf,
    meter: Meter,
    noted: f64,
    /// Where the output is in a bucket.
    deposit: Option<Deposit>,
}

impl Attempt {
    /// Begins an attempt at the share whose folder is `done`; of a share in a bucket, where its folder would be on this machine.
    pub(super) fn begin(done: PathBuf, deposit: Option<Deposit>) -> Result<Self> {
        let folder = done.parent().unwrap_or(Path::new("."));
        let refused = |e: std::io::Error| Error::path(&done, &e);
        fs::create_dir_all(folder).map_err(refused)?;
        let hidden = tempfile::Builder::new().prefix(&prefix(&done)).tempdir_in(folder).map_err(refused)?;
        // The file is locked before it gets the name of a lease, which other processes look for.
        let made = hidden.path().join(".lease");
        let lease = File::create_new(&made).map_err(refused)?;
        match lease.lock() {
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {}
            locked => locked.map_err(refused)?,
        }
        fs::rename(made, hidden.path().join(LEASE)).map_err(refused)?;
        fs::create_dir(hidden.path().join(SHARE)).map_err(refused)?;
        Ok(Attempt { hidden, lease, done, meter: Meter::default(), noted: 0.0, deposit })
    }

    /// The folder in which the files of the share are made.
    pub fn folder(&self) -> PathBuf {
        self.hidden.path().join(SHARE)
    }

    /// Renews the lease, if the last renewal is old enough.
    pub fn renew(&mut self) {
        let now = self.meter.now().wall;
        if now - self.noted >= NOTED {
            self.noted = now;
            // Only people read the lease: nothing depends on it.
            let _ = self.lease.write_all_at(b".", 0);
            self.deposit.iter_mut().for_each(Deposit::renew);
        }
    }

    /// Makes the attempt the share in `at`, with the report of its job; `false` if another process was first.
    ///
    /// Errors: `Path`; of a bucket `Format`, and `Config` in `share` where the shares were committed or removed meanwhile.
    pub fn publish(mut self, at: &Folder, plan: &Plan, share: Share, made: impl Serialize) -> Result<bool> {
        let folder = self.folder();
        let sent = self.deposit.as_mut().map(|deposit| deposit.send(&folder)).transpose()?;
        let said = Document { plan: plan.name.clone(), share: share.to_string(), made, sent };
        let text = serde_json::to_vec(&said).map_err(|e| Error::State(e.to_string()))?;
        if let Some(deposit) = self.deposit {
            let is_wanted = || Ok(at.plan()?.is_some_and(|now| now == *plan));
            return deposit.settle(&marker(plan, share), text, &is_wanted);
        }
        write_whole(&folder.join(SAID), &[&text])?;
        settle_absent(&folder, &self.done)
    }
}

/// The prefix of the hidden folders of attempts at a share.
fn prefix(done: &Path) -> String {
    format!(".{}.", done.file_name().unwrap_or_default().to_string_lossy())
}

/// Seconds since the process of an attempt renewed its lease; none if it is dead, or has not begun.
pub(super) fn alive(attempt: &Path) -> Option<u64> {
    let lease = File::open(attempt.join(LEASE)).ok()?;
    let noted = lease.metadata().and_then(|meta| meta.modified()).ok()?;
    // Where this machine's clock is behind, the age of the lease is unknown.
    let age = SystemTime::now().duration_since(noted).unwrap_or_default().as_secs();
    match lease.try_lock() {
        Ok(()) => None,
        Err(TryLockError::WouldBlock) => Some(age),
        Err(TryLockError::Error(_)) => (age < DEAD).then_some(age),
    }
}

/// The share of an attempt, by the name of its hidden folder; as the folder of the share is called.
pub(super) fn share_of(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.split('.').next()
}

/// Removes the attempts of dead processes at the share `done`.
pub(super) fn remove_dead(done: &Path) {
    if let Some(folder) = done.parent() {
        remove_dead_in(folder, &prefix(done));
    }
}

/// Removes the attempts of dead processes in a folder, of those whose names begin with `prefix`.
pub(super) fn remove_dead_in(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if name.to_string_lossy().starts_with(prefix) && path.join(LEASE).exists() && alive(&path).is_none() {
            // The commit removes the folders that remain.
            let _ = fs::remove_dir_all(path);
        }
    }
}
