//! `xray`: which row of which game the rows of a batch are.

use std::path::Path;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::pipeline::{Reads, SightOptions, read_state};
use gristmill_plans::xray::{XrayOptions, xray, xray_stream};

use super::river;
use crate::args::places::Xray;
use crate::failure::{Failure, Result};
use crate::report::{self, places};

pub(crate) fn run(args: &Xray) -> Result<()> {
    let state = args.state.as_deref().map(read_state).transpose()?;
    match (&args.config, &args.pack, state) {
        (Some(config), _, state) => stream(args, config, state.as_deref()),
        (None, Some(pack), Some(state)) => rows(args, pack, state),
        _ => Err(Failure::Usage("expected --state and --pack, or --config".to_owned())),
    }
}

fn rows(args: &Xray, pack: &Path, state: String) -> Result<()> {
    let (batch, row, rank) = (args.batch, args.row, args.rank.zip(args.world_size));
    let rows = xray(&XrayOptions { state, pack: pack.to_owned(), batch, row, rank })?;
    if args.json { Ok(report::json(&rows)?) } else { Ok(report::text_out(&places::rows(&rows))?) }
}

fn stream(args: &Xray, config: &Path, state: Option<&str>) -> Result<()> {
    let (config, ..) = river::read(&config.to_string_lossy())?;
    let ranks = [args.rank, args.world_size].map(|number| number.and_then(|number| u32::try_from(number).ok()));
    let config = DataLoaderConfig { rank: ranks[0], world_size: ranks[1], ..config };
    let index = if args.dry_run { Some("off".into()) } else { config.index.clone() };
    let config = DataLoaderConfig { index, ..config };
    let options = SightOptions {
        output: args.output.clone().unwrap_or_default(),
        first: args.batch,
        reads: if args.survey { Reads::Uncounted } else { Reads::Nothing },
    };
    let rows = xray_stream(&config, state, &options, args.row)?;
    if args.json { Ok(report::json(&rows)?) } else { Ok(report::text_out(&places::frames(&rows))?) }
}
