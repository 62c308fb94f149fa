//! `commit`: the shares of a job in, its output out, as one process would have made it.

use gristmill_jobs::pack::{CommitOptions, commit};

use crate::args::shares::Commit;
use crate::failure::{Failure, Result};
use crate::report::{self, packing};
use crate::stopping;

pub(crate) fn run(args: &Commit) -> Result<()> {
    let options = CommitOptions {
        output: args.out.clone(),
        overwrite: args.overwrite,
        dry_run: args.dry_run,
        stop: stopping::flag()?,
    };
    let mut progress = None;
    let packed = commit(&options, &mut |now| {
        let bar = progress.get_or_insert_with(|| report::Progress::new(now.games, "games", !args.json));
        bar.at(now.done, &format!("{} rows", now.rows));
    });
    if let Some(progress) = progress {
        progress.end();
    }
    let packed = packed?;
    report::either(args.json, &packed, packing::packed)?;
    match packing::left_out(&packed) {
        Some(text) if !args.skip_bad && !packed.dry_run => Err(Failure::LeftOut(text)),
        _ => Ok(()),
    }
}
