//! `shares`: an output in, how each of its shares stands out.

use gristmill_jobs::shares::shares;

use crate::args::shares::Shares;
use crate::failure::Result;
use crate::report;

/// What a command that makes a share says when it was stopped.
pub(super) const AGAIN_OF_SHARE: &str = "nothing of the share is left, and the same command makes it";

pub(crate) fn run(args: &Shares) -> Result<()> {
    Ok(report::either(args.json, &shares(&args.out)?, report::shares::text)?)
}
