//! The words of `dedup` -> typed options.

use std::path::PathBuf;

use clap::Args;

use super::reports::Reporting;

/// A pack -> its repeated games.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill dedup pack --report\n  gristmill dedup pack --mark again\n  \
gristmill dedup pack --mark again --share 1/400 --output report.json\n  \
gristmill dedup pack --report --json | jq '.groups[].games | map(.source)'")]
pub(crate) struct Dedup {
    /// Folder of the pack.
    pub(crate) pack: PathBuf,
    /// Say which games are the same: to the byte, recorded otherwise, or images of each other (colours exchanged in chess,
    /// the eight turns and mirrors in 2048). What is done without --mark.
    #[arg(long, conflicts_with = "share")]
    pub(crate) report: bool,
    /// Mark the frames of all but the first of each group under this name, for selections to leave out.
    #[arg(long, value_name = "NAME")]
    pub(crate) mark: Option<String>,
    /// Replace a mark of this name.
    #[arg(long, alias = "replace", requires = "mark", conflicts_with = "share")]
    pub(crate) overwrite: bool,
    #[command(flatten)]
    pub(crate) reporting: Reporting,
    /// Worker threads; never changes what is found [default: the number of cores].
    #[arg(short = 'j', long, alias = "workers", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Find repeated games, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
