//! The shares of an output -> that output, by the job whose shares they are: a row for each job. Removes the shares once the output
//! is whole, and nothing before.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use serde::Serialize;

use crate::mark::{self, Marked};
use crate::pack::{self, Packed};
use crate::reports;
use crate::rewrite::{self, Rewritten};
use crate::shares::{CommitOptions, Folder, Joining, Whole, place, shares};
use crate::stats::{self, Stats};
use crate::verify::{self, Verification};

/// What came of a commit.
#[derive(Debug)]
pub struct Committed {
    /// The job whose shares they were, such as `pack`.
    pub job: &'static str,
    /// The paths that a report is of, as the shares were given them; none of other jobs.
    pub paths: Vec<PathBuf>,
    /// What it made.
    pub made: Made,
}

/// What a job made of its shares: as one process would report it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Made {
    /// A pack.
    Pack(Box<Packed>),
    /// Games that were written again: rescored, filtered, converted.
    Games(Box<Rewritten>),
    /// A report on faults.
    Verification(Box<Verification>),
    /// A report with distributions.
    Stats(Box<Stats>),
    /// A mark of a pack.
    Mark(Box<Marked>),
}

/// A job whose shares can be committed.
struct Row {
    /// As plans have it.
    job: &'static str,
    /// Whether its output is there.
    is_there: fn(&Path) -> Result<bool>,
    /// Makes the output of all shares.
    commit: fn(&Whole, &mut dyn FnMut(Joining)) -> Result<Made>,
}

/// All of them.
const ROWS: [Row; 7] = [
    Row {
        job: verify::JOB,
        is_there: reports::is_there,
        commit: |whole, _| Ok(Made::Verification(Box::new(verify::commit(whole)?))),
    },
    Row {
        job: stats::JOB,
        is_there: reports::is_there,
        commit: |whole, _| Ok(Made::Stats(Box::new(stats::commit(whole)?))),
    },
    Row { job: mark::JOB, is_there: pack::is_there, commit: |whole, _| Ok(Made::Mark(Box::new(mark::commit(whole)?))) },
    Row {
        job: pack::JOB,
        is_there: pack::is_there,
        commit: |whole, progress| Ok(Made::Pack(Box::new(pack::commit(whole, progress)?))),
    },
    games("rescore"),
    games("filter"),
    games("convert"),
];

/// The row of a job that writes games again.
const fn games(job: &'static str) -> Row {
    Row {
        job,
        is_there: rewrite::is_there,
        commit: |whole, progress| Ok(Made::Games(Box::new(rewrite::commit(whole, progress)?))),
    }
}

/// Makes the output of all shares beside it, and removes them. It calls `progress` now and then.
///
/// Errors: `Config` in `output` where there are no shares, where shares are missing, which it names, where another version made them,
/// for an output in a bucket, or that is there; `Path` of kind `ResourceBusy` where another process commits them now; `Format` for
/// damaged shares; those of the job. After an error the shares are all there, unless another process committed them.
pub fn commit(options: &CommitOptions, progress: &mut dyn FnMut(Joining)) -> Result<Committed> {
    let Some(whole) = Whole::open(options)? else {
        let output = place(&options.output)?;
        for row in &ROWS {
            if (row.is_there)(&output)? {
                // What a commit was about to remove.
                Folder::beside(&output)?.remove()?;
                return Err(Whole::already(&output));
            }
        }
        return shares(&output).and(Err(Error::Stopped));
    };
    let Some(row) = ROWS.iter().find(|row| row.job == whole.plan.job) else {
        let (shown, job) = (whole.folder.path().display(), whole.plan.job.escape_debug());
        return Err(Error::config("output", format!("{shown}: these are shares of `{job}`, which is no job here")));
    };
    let made = (row.commit)(&whole, progress)?;
    if !whole.options.dry_run {
        whole.folder.remove()?;
    }
    Ok(Committed { job: row.job, paths: reports::paths(&whole.plan), made })
}
