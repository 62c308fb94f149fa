//! `verify`: every check over every frame; faults are the exit code 1.

use gristmill_jobs::verify::{self, VerifyOptions};

use crate::args::Verify;
use crate::failure::{Failure, Result};
use crate::report::{self, verification};
use crate::stopping;

pub(crate) fn run(args: &Verify) -> Result<()> {
    let mut options = VerifyOptions::new(args.paths.clone());
    options.against.clone_from(&args.against);
    options.max_faults = args.max_faults;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = verify::verify(&options, &mut |so_far, of_pack| {
        let share = of_pack.map(|(done, total)| format!(", {} % of this pack", done * 100 / total.max(1)));
        let share = share.unwrap_or_default();
        progress.at(so_far.files, &format!("{} frames, {} faults{share}", so_far.checked, so_far.fault_count));
    })?;
    progress.end();
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&verification::text(&found))?;
    }
    if found.ok { Ok(()) } else { Err(Failure::Faults) }
}
