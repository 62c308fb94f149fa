//! The shares of an output -> that output, by the job whose shares they are: a row for each job. Removes the shares once the output
//! is whole, and nothing before.

mod bucket;

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::place::is_local;
use serde::Serialize;

use crate::dedup::{self, Duplicates};
use crate::demos::{self, Converted, SplitUp};
use crate::mark::{self, Marked};
use crate::notation::{self, Told};
use crate::pack::{self, Packed};
use crate::reports;
use crate::rewrite::{self, Rewritten};
use crate::shares::{CommitOptions, Folder, Joining, Whole, place, shares};
use crate::stats::{self, Stats};
use crate::tokenizer::{self, Summary};
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
    /// Games that were written again: rescored, filtered, converted, split.
    Games(Box<Rewritten>),
    /// A report on faults.
    Verification(Box<Verification>),
    /// A report with distributions.
    Stats(Box<Stats>),
    /// A mark of a pack.
    Mark(Box<Marked>),
    /// A report on games that are the same, and their mark, if one was asked for.
    Duplicates(Box<Duplicates>),
    /// A tokenizer.
    Tokenizer(Box<Summary>),
    /// Games as one file of text or boards.
    Told(Box<Told>),
    /// Shards of demonstrations.
    Shards(Box<Converted>),
    /// Shards of demonstrations in the folders of a split.
    Sides(Box<SplitUp>),
}

/// What an output is, for one that goes to a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    /// A folder of files.
    Folder,
    /// One file.
    File,
    /// A file in a pack that is there.
    InPlace,
}

/// A job whose shares can be committed.
struct Row {
    /// As plans have it.
    job: &'static str,
    /// What its output is.
    output: Output,
    /// Whether its output is there.
    is_there: fn(&Path) -> Result<bool>,
    /// Makes the output of all shares.
    commit: fn(&Whole, &mut dyn FnMut(Joining)) -> Result<Made>,
}

/// All of them.
static ROWS: [Row; 15] = [
    Row {
        job: verify::JOB,
        output: Output::File,
        is_there: reports::is_there,
        commit: |whole, _| Ok(Made::Verification(Box::new(verify::commit(whole)?))),
    },
    Row {
        job: stats::JOB,
        output: Output::File,
        is_there: reports::is_there,
        commit: |whole, _| Ok(Made::Stats(Box::new(stats::commit(whole)?))),
    },
    Row {
        job: dedup::JOB,
        output: Output::File,
        is_there: reports::is_there,
        commit: |whole, _| Ok(Made::Duplicates(Box::new(dedup::commit(whole)?))),
    },
    Row {
        job: mark::JOB,
        output: Output::InPlace,
        is_there: pack::is_there,
        commit: |whole, _| Ok(Made::Mark(Box::new(mark::commit(whole)?))),
    },
    Row {
        job: tokenizer::JOB,
        output: Output::File,
        is_there: reports::is_there,
        commit: |whole, progress| Ok(Made::Tokenizer(Box::new(tokenizer::commit(whole, progress)?.summary))),
    },
    Row {
        job: pack::JOB,
        output: Output::Folder,
        is_there: pack::is_there,
        commit: |whole, progress| Ok(Made::Pack(Box::new(pack::commit(whole, progress)?))),
    },
    text(notation::PGN),
    text(notation::FEN),
    text(notation::BOARDS),
    Row {
        job: demos::CONVERT,
        output: Output::Folder,
        is_there: demos::is_there,
        commit: |whole, progress| Ok(Made::Shards(Box::new(demos::commit_converted(whole, progress)?))),
    },
    Row {
        job: demos::SPLIT,
        output: Output::Folder,
        is_there: demos::is_there,
        commit: |whole, progress| Ok(Made::Sides(Box::new(demos::commit_split(whole, progress)?))),
    },
    games("rescore", rewrite::is_there),
    games("filter", rewrite::is_there),
    games("convert", rewrite::is_there),
    games("split", rewrite::are_sides_there),
];

/// The row of a job that writes games as one file of text or boards.
const fn text(job: &'static str) -> Row {
    Row {
        job,
        output: Output::File,
        is_there: reports::is_there,
        commit: |whole, progress| Ok(Made::Told(Box::new(notation::commit(whole, progress)?))),
    }
}

/// The row of a job that writes games again.
const fn games(job: &'static str, is_there: fn(&Path) -> Result<bool>) -> Row {
    Row {
        job,
        output: Output::Folder,
        is_there,
        commit: |whole, progress| Ok(Made::Games(Box::new(rewrite::commit(whole, progress)?))),
    }
}

/// Makes the output of all shares beside it, and removes them. It calls `progress` now and then.
///
/// The shares of an output in a bucket are fetched, joined on this machine, and sent.
///
/// Errors: `Config` in `output` where there are no shares, where shares are missing, which it names, where another version made them,
/// for an output that is there, or that another writer has claimed; `Path` of kind `ResourceBusy` where another process commits them now; `Format` for
/// damaged shares; those of the job. After an error the shares are all there, unless another process committed them.
pub fn commit(options: &CommitOptions, progress: &mut dyn FnMut(Joining)) -> Result<Committed> {
    let output = place(&options.output)?;
    if !is_local(&output) {
        return bucket::commit(options, &output, progress);
    }
    let Some(whole) = Whole::open(options)? else {
        for row in &ROWS {
            if (row.is_there)(&output)? {
                // What a commit was about to remove.
                Folder::beside(&output)?.remove()?;
                return Err(Whole::already(&output));
            }
        }
        return shares(&output).and(Err(Error::Stopped));
    };
    let row = row_of(&whole)?;
    let made = match (row.commit)(&whole, progress) {
        // Another process committed them meanwhile, and removed what this one read.
        Err(_) if !whole.is_there()? => return Err(Whole::already(whole.output())),
        made => made?,
    };
    if !whole.options.dry_run {
        whole.folder.remove()?;
    }
    Ok(Committed { job: row.job, paths: reports::paths(&whole.plan), made })
}

/// The row of the job whose shares these are.
///
/// Errors: `Config` in `output` for a job that is none here.
fn row_of(whole: &Whole) -> Result<&'static Row> {
    ROWS.iter().find(|row| row.job == whole.plan.job).ok_or_else(|| {
        let (shown, job) = (whole.folder.path().display(), whole.plan.job.escape_debug());
        Error::config("output", format!("{shown}: these are shares of `{job}`, which is no job here"))
    })
}
