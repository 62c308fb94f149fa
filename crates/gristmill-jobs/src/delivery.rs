//! Where the output of a job is to be -> a folder that the job can write: that place, or one of this machine whose files then go to
//! a bucket, whole or not at all. Knows no job.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::outgoing::Outgoing;

/// What becomes of what an earlier run of the job left on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// The job resumes it.
    Resumed,
    /// It begins again.
    Removed,
}

/// The output of a job, on its way.
#[derive(Debug)]
pub enum Delivery {
    /// It is made where it is to be.
    Here(PathBuf),
    /// It is made here, and goes to a bucket.
    Elsewhere(Box<Outgoing>),
    /// It would go to a bucket; nothing is made.
    Dry(PathBuf),
}

impl Delivery {
    /// The way to `place`.
    ///
    /// Errors: `Config` in `output` for a place elsewhere that cannot be written, where something is, or where another writer is;
    /// those of reading there.
    pub fn to(place: &Path, earlier: Earlier, dry_run: bool) -> Result<Self> {
        if dry_run {
            return Ok(match Outgoing::could_be(place, "output")? {
                true => Delivery::Dry(place.to_owned()),
                false => Delivery::Here(place.to_owned()),
            });
        }
        let Some(outgoing) = Outgoing::to(place, "output")? else { return Ok(Delivery::Here(place.to_owned())) };
        let folder = outgoing.folder();
        if earlier == Earlier::Removed && folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| Error::path(&folder, &e))?;
        }
        Ok(Delivery::Elsewhere(Box::new(outgoing)))
    }

    /// The folder that the job writes.
    pub fn folder(&self) -> PathBuf {
        match self {
            Delivery::Here(place) => place.clone(),
            Delivery::Elsewhere(outgoing) => outgoing.folder(),
            // A name that nothing has: a dry run finds an output that is not there.
            Delivery::Dry(place) => {
                std::env::temp_dir().join(".gristmill-dry-run").join(place.file_name().unwrap_or_default())
            }
        }
    }

    /// Whether it goes to a bucket.
    pub fn is_sent(&self) -> bool {
        matches!(self, Delivery::Elsewhere(_))
    }

    /// Brings what the job made to its place, which it gives for people. `progress` gets bytes that have come, and all.
    ///
    /// Errors: as [`Outgoing::send`]; `Stopped`.
    pub fn deliver(self, stop: &AtomicBool, progress: &mut dyn FnMut(u64, u64)) -> Result<String> {
        match self {
            Delivery::Here(place) | Delivery::Dry(place) => Ok(place.display().to_string()),
            Delivery::Elsewhere(outgoing) => {
                let place = outgoing.place().display().to_string();
                outgoing.send(&mut |done, all| {
                    progress(done, all);
                    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
                })?;
                Ok(place)
            }
        }
    }
}
