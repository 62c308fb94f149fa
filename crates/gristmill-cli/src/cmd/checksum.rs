//! `checksum`: checksums for the rows of a pack that has none, beside them.

use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_jobs::checksum::{self, ChecksumOptions};

use crate::args::pack::Checksum;
use crate::failure::{Failure, Result};
use crate::report::{self, packing};
use crate::stopping;

pub(crate) fn run(args: &Checksum) -> Result<()> {
    let stop = stopping::flag()?;
    let options = ChecksumOptions { pack: args.pack.clone(), overwrite: args.overwrite, dry_run: args.dry_run };
    let mut progress = None;
    let done = checksum::checksum(&options, &mut |done, all| {
        progress.get_or_insert_with(|| report::Progress::new(all, "rows", !args.json)).at(done, "");
        if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let done = done.map_err(|e| match e {
        Error::Stopped => Failure::stopped("the same command resumes with the next file"),
        e => e.into(),
    })?;
    Ok(report::either(args.json, &done, packing::checksummed)?)
}
