//! `verify`: every check over every frame; faults are the exit code 1.

use gristmill_jobs::reports::Sharing;
use gristmill_jobs::verify::{self, Verification, VerifyOptions};

use crate::args::Verify;
use crate::failure::{Failure, Result};
use crate::report::{self, reports, verification};
use crate::stopping;

pub(crate) fn run(args: &Verify) -> Result<()> {
    let mut options = VerifyOptions::new(args.paths.clone());
    options.against.clone_from(&args.against);
    options.max_faults = args.max_faults;
    options.workers = args.threads.map_or(options.workers, usize::from);
    options.stop = stopping::flag()?;
    if let Some(sharing) = args.reporting.sharing(false) {
        return share(args, &options, &sharing);
    }
    let mut progress = report::Progress::open_ended("files", !args.json);
    let found = verify::verify(&options, &mut |so_far, of_pack| show(&mut progress, so_far, of_pack))?;
    progress.end();
    told(args.json, &found)
}

/// Verifies a share. What it found is a matter of the commit.
fn share(args: &Verify, options: &VerifyOptions, sharing: &Sharing) -> Result<()> {
    let mut progress = report::Progress::open_ended("files", !args.json);
    let made = verify::share(options, sharing, &mut |so_far, of_pack| show(&mut progress, so_far, of_pack))?;
    progress.end();
    Ok(report::either(args.json, &made, reports::shared)?)
}

fn show(progress: &mut report::Progress, so_far: &Verification, of_pack: Option<(u64, u64)>) {
    let share = of_pack.map(|(done, total)| format!(", {} % of this pack", done * 100 / total.max(1)));
    let share = share.unwrap_or_default();
    progress.at(so_far.files, &format!("{} frames, {} faults{share}", so_far.checked, so_far.fault_count));
}

/// Says what was found.
pub(super) fn told(json: bool, found: &Verification) -> Result<()> {
    report::either(json, found, verification::text)?;
    if found.ok { Ok(()) } else { Err(Failure::Faults) }
}
