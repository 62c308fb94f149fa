//! `inspect`: what a file or directory is.

use gristmill_engine::job::inspect;

use crate::args::Inspect;
use crate::failure::Result;
use crate::report::{self, inspection};

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let frame = (args.chunk.is_some() || args.frame.is_some())
        .then(|| (args.chunk.unwrap_or_default(), args.frame.unwrap_or_default()));
    let seen = inspect::inspect(&args.path, frame)?;
    if args.json { Ok(report::json(&seen)?) } else { Ok(report::text_out(&inspection::text(&seen, args.ascii))?) }
}
