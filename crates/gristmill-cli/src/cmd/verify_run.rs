//! `verify-run`: whether each row was delivered exactly once; what was not is the exit code 1.

use gristmill_plans::verify_run::{Against, VerifyRunOptions, verify_run};

use super::river;
use crate::args::places::VerifyRun;
use crate::failure::{Failure, Result};
use crate::report::{self, places};

pub(crate) fn run(args: &VerifyRun) -> Result<()> {
    let against = match (&args.pack, &args.config) {
        (Some(pack), _) => Against::Pack(pack.clone()),
        (None, Some(config)) => Against::Stream(Box::new(river::read(&config.to_string_lossy())?.0)),
        (None, None) => Against::Nothing,
    };
    let options = VerifyRunOptions { ledgers: args.ledgers.clone(), against, max_rows: args.max_rows };
    let mut bar = None;
    let found = verify_run(&options, &mut |done, all| {
        bar.get_or_insert_with(|| report::Progress::new(all, "batches", !args.json)).at(done, "");
    });
    if let Some(bar) = bar {
        bar.end();
    }
    let found = found?;
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&places::verification(&found))?;
    }
    if found.ok { Ok(()) } else { Err(Failure::Faults) }
}
