//! `recover`: what killed jobs left in a folder in, what became of it out. Exits with 1 while something is left.

use gristmill_jobs::recover::{Fate, RecoverOptions, Recovered, recover};

use crate::args::pack::Recover;
use crate::failure::{Failure, Result};
use crate::report;

pub(crate) fn run(args: &Recover) -> Result<()> {
    let (folder, abandon, dry_run) = (args.folder.clone(), args.abandon, args.dry_run);
    done(&RecoverOptions { folder, abandon, only: None, dry_run }, args.json)
}

/// Recovers, and says what became of everything.
pub(super) fn done(options: &RecoverOptions, json: bool) -> Result<()> {
    let recovered = recover(options)?;
    report::either(json, &recovered, text)?;
    if recovered.clean || options.dry_run { Ok(()) } else { Err(Failure::Faults) }
}

fn text(recovered: &Recovered) -> String {
    if recovered.found.is_empty() {
        return format!("{}: no job left anything here", recovered.folder);
    }
    let line = |found: &gristmill_jobs::recover::Recovery| {
        let fate = match (found.fate, recovered.dry_run) {
            (Fate::Finished, false) => "finished",
            (Fate::Finished, true) => "would be finished",
            (Fate::GivenUp, false) => "removed",
            (Fate::GivenUp, true) => "would be removed",
            (Fate::Kept, _) => "left as it is",
        };
        format!("{}: {fate}: {}", found.path, found.detail)
    };
    recovered.found.iter().map(line).collect::<Vec<_>>().join("\n")
}
