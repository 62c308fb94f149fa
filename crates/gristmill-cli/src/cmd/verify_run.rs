//! `verify-run`: whether each row was delivered exactly once; what was not is the exit code 1.

use gristmill_engine::job::verify_run::{Against, VerifyRunOptions, verify_run};

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
    let found = verify_run(&options)?;
    if args.json {
        report::json(&found)?;
    } else {
        report::text_out(&places::verification(&found))?;
    }
    if found.ok { Ok(()) } else { Err(Failure::Faults) }
}
