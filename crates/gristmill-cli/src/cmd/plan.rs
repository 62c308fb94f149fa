//! `plan`: the certificate of a shuffle before the run, of a stream or of a pack.

use std::path::Path;

use gristmill_engine::config::{IndexConfig, LastBatch as Left};
use gristmill_engine::names::{METADATA, is_pack};
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::newest;
use gristmill_engine::store::place::{is_local, resolved};
use gristmill_plans::certificate::{self, Certificate, Terms};

use super::{page, river};
use crate::args::plan::Plan;
use crate::args::river::{LastBatch, River};
use crate::failure::{Failure, Result};
use crate::report::{self, certificate as words};
use crate::stopping;

pub(crate) fn run(args: &Plan) -> Result<()> {
    page::check(&args.page)?;
    let found = match args.river.inputs.as_slice() {
        [one] if holds_rows(Path::new(one))? => vec![of_pack(args, one)?],
        _ => of_stream(args)?,
    };
    let title = args.river.inputs.join(" ");
    page::write(&args.page, || words::html(&title, &found))?;
    match found.as_slice() {
        [one] => report::either(args.json, one, words::text)?,
        all => report::either(args.json, &all, |all| all.iter().map(words::text).collect::<Vec<_>>().join("\n\n"))?,
    }
    let lacks = args.require.and_then(|level| found.iter().find_map(|one| one.require(level).err()));
    lacks.map_or(Ok(()), |error| Err(Failure::Failed(error.to_string())))
}

/// Whether a pack lies at a place.
///
/// Errors: what keeps a place elsewhere from saying so.
pub(super) fn holds_rows(place: &Path) -> Result<bool> {
    let place = newest(place)?;
    Ok(is_pack(&place)? || is_file(&place.join(METADATA))?)
}

/// The terms on which a pack in a bucket is fetched.
fn terms(args: &Plan) -> Terms {
    let (usual, given) = (Terms::default(), &args.fetched);
    Terms {
        latency: given.latency.map_or(usual.latency, |milliseconds| milliseconds / 1e3),
        bandwidth: given.bandwidth.map_or(usual.bandwidth, |bytes| bytes as f64),
        price_get: given.price_get,
        price_gb: given.price_gb,
    }
}

/// Refuses terms of fetching where nothing is fetched.
fn refuse_terms(args: &Plan, what: &str) -> Result<()> {
    if terms(args) == Terms::default() {
        return Ok(());
    }
    let flags = "--price-get, --price-gb, --latency and --bandwidth";
    Err(Failure::Usage(format!("{flags} go with a pack in a bucket, and {what} is none")))
}

fn of_pack(args: &Plan, pack: &str) -> Result<Certificate> {
    let river = &args.river;
    refuse_options_of_streams(river, pack)?;
    if is_local(&resolved(Path::new(pack))?) {
        refuse_terms(args, pack)?;
    }
    let defaults = IndexConfig::default();
    let config = IndexConfig {
        batch_size: river.batch_size.unwrap_or(defaults.batch_size),
        seed: river.seed,
        shuffle: args.shuffle.unwrap_or_default(),
        apart: !args.joined,
        last_batch: match river.last_batch {
            None | Some(LastBatch::Keep) => Left::Keep,
            Some(LastBatch::Drop) => Left::Drop,
            Some(LastBatch::Pad) => Left::Pad,
        },
        world_size: river.world_size.map_or(1, u64::from),
        rank: river.rank.map_or(0, u64::from),
        epochs: None,
        ..defaults
    };
    let (condition, mut goes_on) = (args.condition.as_deref(), || !stopping::is_raised());
    Ok(certificate::of_pack(Path::new(pack), &config, condition, terms(args), &mut goes_on)?)
}

/// Refuses options that rows of a pack have no use for.
pub(super) fn refuse_options_of_streams(river: &River, pack: &str) -> Result<()> {
    let of_streams = [
        ("--pool", river.pool.is_some()),
        ("--reservoir", river.reservoir.is_some()),
        ("--sampling-rate", river.sampling_rate.is_some()),
        ("--position-count", river.position_count.is_some()),
        ("--watch", river.watch.is_some()),
        ("--events", river.events.is_some()),
        ("--split", river.split.is_some()),
        ("--lanes", river.lanes.is_some()),
    ];
    if let Some((flag, _)) = of_streams.iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("{flag} goes with directories of games, and {pack} is a pack")));
    }
    Ok(())
}

fn of_stream(args: &Plan) -> Result<Vec<Certificate>> {
    if args.shuffle.is_some() || args.condition.is_some() || args.joined {
        let what = args.river.inputs.join(" ");
        return Err(Failure::Usage(format!("--shuffle, --where and --joined go with a pack, and {what} is none")));
    }
    refuse_terms(args, &args.river.inputs.join(" "))?;
    let described = river::config(&args.river)?;
    let loader = described.loader()?;
    let outputs = loader.outputs().iter().map(|output| output.alias.clone());
    let wanted = outputs.filter(|alias| args.output.as_ref().is_none_or(|output| output == alias));
    let wanted: Vec<String> = match (wanted.collect::<Vec<_>>(), &args.output) {
        (none, Some(output)) if none.is_empty() => vec![output.clone()],
        (some, _) => some,
    };
    drop(loader);
    let mut goes_on = || !stopping::is_raised();
    let one = |output: &String| Ok(certificate::of_stream(&described.config, output, &mut goes_on)?);
    wanted.iter().map(one).collect()
}
