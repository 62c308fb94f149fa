//! `stats`: distributions over files and directories.

use gristmill_engine::job::stats;

use crate::args::Stats;
use crate::failure::{Failure, Result};
use crate::report::{self, distributions};

pub(crate) fn run(args: &Stats) -> Result<()> {
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = stats::stats(&args.paths, &mut |so_far| {
        progress.at(so_far.files, &format!("{} frames", so_far.frames));
    })?;
    progress.end();
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&distributions::text(&found))?;
    }
    match found.chunks {
        0 => Err(Failure::Failed("no games here".to_owned())),
        _ => Ok(()),
    }
}
