//! The words of commands that report on files, for one share of the report -> typed options.

use std::path::PathBuf;

use clap::Args;
use gristmill_jobs::reports::Sharing;
use gristmill_jobs::shares::Share;

use super::shares::one_of;

/// The share to make, and the report that it belongs to.
#[derive(Debug, Args)]
pub(crate) struct Reporting {
    /// Make share N of OF, from 1 on, beside REPORT: for jobs on many machines, each of which takes some of the data. `gristmill
    /// commit REPORT` makes the report of all; `gristmill shares REPORT` lists them.
    #[arg(long, value_name = "N/OF", value_parser = one_of, requires = "output")]
    pub(crate) share: Option<Share>,
    /// The report of all shares: the line that --json prints without --share.
    #[arg(short, long, value_name = "REPORT", requires = "share")]
    pub(crate) output: Option<PathBuf>,
}

impl Reporting {
    /// The share; none for all data.
    pub(crate) fn sharing(&self, dry_run: bool) -> Option<Sharing> {
        Some(Sharing { output: self.output.clone()?, share: self.share?, dry_run })
    }
}
