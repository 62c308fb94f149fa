//! `xray`: which row of which game the rows of a batch are.

use gristmill_engine::job::xray::{XrayOptions, xray};

use crate::args::places::Xray;
use crate::failure::{Failure, Result};
use crate::report::{self, places};

pub(crate) fn run(args: &Xray) -> Result<()> {
    let state =
        std::fs::read_to_string(&args.state).map_err(|e| Failure::Failed(format!("{}: {e}", args.state.display())))?;
    let options = XrayOptions {
        state,
        pack: args.pack.clone(),
        batch: args.batch,
        row: args.row,
        rank: args.rank.zip(args.world_size),
    };
    let rows = xray(&options)?;
    if args.json { Ok(report::json(&rows)?) } else { Ok(report::text_out(&places::rows(&rows))?) }
}
