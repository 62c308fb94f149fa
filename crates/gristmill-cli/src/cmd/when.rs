//! `when`: in which passes and batches the rows of a game are.

use gristmill_engine::config::{IndexConfig, LastBatch as Left, MixConfig};
use gristmill_engine::pipeline::read_state;
use gristmill_plans::when::{By, Wanted, WhenOptions, when};

use crate::args::places::When;
use crate::args::river::LastBatch;
use crate::failure::Result;
use crate::report::{self, places};

pub(crate) fn run(args: &When) -> Result<()> {
    let by = match &args.state {
        Some(path) => By::State(read_state(path)?),
        None => By::Config { config: Box::new(config(args)), condition: args.condition.clone() },
    };
    let wanted = Wanted {
        game: args.game.clone(),
        source: args.source,
        ply: args.ply,
        epochs: args.epochs.clone(),
        world_size: args.world_size,
        rank: args.rank,
    };
    let found = when(&WhenOptions { packs: args.pack.clone(), by, wanted })?;
    report::either(args.json, &found, places::times)?;
    Ok(())
}

/// The plan that the options tell of; it has no end.
fn config(args: &When) -> IndexConfig {
    let defaults = IndexConfig::default();
    let mix = MixConfig {
        weights: args.weights.clone(),
        exhausted: args.exhausted.unwrap_or_default(),
        length: args.nominal_length,
        ..MixConfig::default()
    };
    IndexConfig {
        batch_size: args.batch_size.unwrap_or(defaults.batch_size),
        seed: args.seed,
        shuffle: args.shuffle.unwrap_or_default(),
        apart: !args.joined,
        last_batch: match args.last_batch {
            None | Some(LastBatch::Keep) => Left::Keep,
            Some(LastBatch::Drop) => Left::Drop,
            Some(LastBatch::Pad) => Left::Pad,
        },
        epochs: None,
        mix: (args.pack.len() > 1 || mix != MixConfig::default()).then_some(mix),
        ..defaults
    }
}
