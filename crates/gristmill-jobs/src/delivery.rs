//! The output that a user names -> a folder that a job can write: that folder, or one of this machine whose files are sent to a bucket
//! once the job is done. Knows no job.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::outgoing::Outgoing;

/// What to do with the files that an earlier run of the job left on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// Keep them: the job resumes.
    Resumed,
    /// Remove them: the job begins again.
    Removed,
}

/// The way of a job's output to its place.
#[derive(Debug)]
pub enum Delivery {
    /// The job writes the place itself.
    Here(PathBuf),
    /// The job writes a folder of this machine, whose files are sent to a bucket.
    Elsewhere(Box<Outgoing>),
    /// A dry run: the output would go to a bucket, and nothing is written. With the folder of the pack that would be added to.
    Dry(PathBuf, Option<PathBuf>),
}

impl Delivery {
    /// Prepares the way to `place`.
    ///
    /// Errors: `Config` in `output` for a place in a bucket that cannot be written, that holds files, or that another writer has claimed;
    /// those of reading there.
    pub fn to(place: &Path, earlier: Earlier, dry_run: bool) -> Result<Self> {
        if dry_run {
            return Ok(match Outgoing::could_be(place, "output")? {
                true => Delivery::Dry(place.to_owned(), None),
                false => Delivery::Here(place.to_owned()),
            });
        }
        Self::through(Outgoing::to(place, "output")?, place, earlier)
    }

    /// Prepares the way of new games to the pack at `place`.
    ///
    /// Errors: as [`Delivery::to`], but for the pack; `Config` in `output` for a place in a bucket that has none.
    pub fn onto(place: &Path, dry_run: bool) -> Result<Self> {
        if dry_run {
            return Ok(match Outgoing::could_grow(place, "output")? {
                Some(pack) => Delivery::Dry(place.to_owned(), Some(pack)),
                None => Delivery::Here(place.to_owned()),
            });
        }
        Self::through(Outgoing::onto(place, "output")?, place, Earlier::Removed)
    }

    /// Prepares the way of an earlier run again, whether that made a pack or added to one.
    ///
    /// Errors: as [`Delivery::to`]; `Config` in `output` for a pack in a bucket that has changed since.
    pub fn again(place: &Path, dry_run: bool) -> Result<Self> {
        match dry_run {
            true => Self::to(place, Earlier::Resumed, true),
            false => Self::through(Outgoing::again(place, "output")?, place, Earlier::Resumed),
        }
    }

    fn through(outgoing: Option<Outgoing>, place: &Path, earlier: Earlier) -> Result<Self> {
        let Some(outgoing) = outgoing else { return Ok(Delivery::Here(place.to_owned())) };
        let folder = outgoing.folder();
        if earlier == Earlier::Removed && folder.exists() {
            fs::remove_dir_all(&folder).map_err(|e| Error::path(&folder, &e))?;
        }
        Ok(Delivery::Elsewhere(Box::new(outgoing)))
    }

    /// The folder of the pack in a bucket that the job adds to. `None` where it adds to none, or to one of this machine.
    pub fn grows(&self) -> Option<PathBuf> {
        match self {
            Delivery::Here(_) => None,
            Delivery::Elsewhere(outgoing) => outgoing.pack().map(Path::to_owned),
            Delivery::Dry(_, pack) => pack.clone(),
        }
    }

    /// The folder that the job writes.
    pub fn folder(&self) -> PathBuf {
        match self {
            Delivery::Here(place) => place.clone(),
            Delivery::Elsewhere(outgoing) => outgoing.folder(),
            // A dry run must find no output: nothing has this name.
            Delivery::Dry(place, _) => {
                std::env::temp_dir().join(".gristmill-dry-run").join(place.file_name().unwrap_or_default())
            }
        }
    }

    /// Refuses an option by which the job changes its inputs: it would do so before its output has reached the bucket.
    ///
    /// Errors: `Config` in `option` where it is given and the output goes to a bucket.
    pub fn keeps_inputs(&self, option: &str, given: bool) -> Result<()> {
        match self {
            Delivery::Elsewhere(_) | Delivery::Dry(..) if given => {
                let detail = "does not go with an output in a bucket, which the job sends when it is done; remove the inputs then";
                Err(Error::config(option, detail))
            }
            _ => Ok(()),
        }
    }

    /// Sends what the job made to its place, and returns the name of the place for people. `progress` gets the bytes sent so far, and
    /// all bytes.
    ///
    /// Errors: as [`Outgoing::send`]; `Stopped`.
    pub fn deliver(self, stop: &AtomicBool, progress: &mut dyn FnMut(u64, u64)) -> Result<String> {
        match self {
            Delivery::Here(place) | Delivery::Dry(place, _) => Ok(place.display().to_string()),
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
