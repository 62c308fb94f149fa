//! `shares`: an output in, how each of its shares stands out.

use gristmill_jobs::shares::shares;

use crate::args::shares::Shares;
use crate::failure::Result;
use crate::report;

pub(crate) fn run(args: &Shares) -> Result<()> {
    Ok(report::either(args.json, &shares(&args.out)?, report::shares::text)?)
}
