//! The words of `commit` and `shares` -> typed options.

use std::path::PathBuf;

use clap::Args;

/// The shares of a job -> its output.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong options, or shares are missing, 3 done, but games were left out (--skip-bad \
makes it 0).\n\nExamples:\n  gristmill commit pack --dry-run\n  gristmill commit pack"
)]
pub(crate) struct Commit {
    /// OUT of the shares: the folder of the pack.
    pub(crate) out: PathBuf,
    /// Replace an existing pack, once the new one is complete.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Exit with 0, not 3, even if games were left out.
    #[arg(long)]
    pub(crate) skip_bad: bool,
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
    /// OUT of the shares: the folder of the pack.
    pub(crate) out: PathBuf,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
