//! The words of `commit` and `shares` -> typed options.

use std::path::PathBuf;

use clap::Args;
use gristmill_engine::error::Error;
use gristmill_jobs::shares::Share;

/// The shares of a job -> its output.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong options, or shares are missing, 3 done, but games were left out (--skip-bad \
makes it 0); \
of games that were written again, and of reports, those of their command.\n\nExamples:\n  gristmill commit pack --dry-run\n  gristmill commit pack\n  \
gristmill commit s3://games/pack"
)]
pub(crate) struct Commit {
    /// OUT of the shares: a folder or file, or a URL in a bucket.
    pub(crate) out: PathBuf,
    /// Replace an existing pack, report, mark or tokenizer, once the new one is complete; refused for other jobs, and for a pack in a bucket.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Exit with 0, not 3, even if games were left out of a pack.
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Also write the page of a report of `stats`.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Check that all shares are there, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The shares of a job -> how each stands.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill shares pack\n  gristmill shares pack --json")]
pub(crate) struct Shares {
    /// OUT of the shares: a folder or file, or a URL in a bucket.
    pub(crate) out: PathBuf,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a share such as `3/40`. Errors name the option.
pub(super) fn one_of(words: &str) -> Result<Share, String> {
    words.parse().map_err(|e| match e {
        Error::Config { message, .. } => message,
        e => e.to_string(),
    })
}
