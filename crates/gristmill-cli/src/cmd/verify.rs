//! `verify`: every check over every frame; faults are the exit code 1.

use gristmill_engine::job::verify;

use crate::args::Verify;
use crate::failure::{Failure, Result};
use crate::report::{self, verification};

pub(crate) fn run(args: &Verify) -> Result<()> {
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = verify::verify(&args.paths, args.max_faults, &mut |so_far| {
        progress.at(so_far.files, &format!("{} frames, {} faults", so_far.checked, so_far.fault_count));
    })?;
    progress.end();
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&verification::text(&found))?;
    }
    if found.ok { Ok(()) } else { Err(Failure::Faults) }
}
