//! A shuffle that is not good -> the smallest changes of its options that make it so. Of rows each is tried on the plan
//! before it is said; of streams it is computed.

use gristmill_engine::config::{DataLoaderConfig, LastBatch, Shuffle};
use gristmill_engine::error::Result;
use gristmill_engine::pipeline::Lookup;
use gristmill_engine::selection::Selection;

use super::figure::FEW;
use super::level::Level;
use super::rows::{self, same_game_of};
use super::stream;

/// What to change of a loader of rows.
///
/// Errors: as measuring.
pub(super) fn of_rows(
    lookup: &Lookup,
    packs: &[Selection],
    measured: &rows::Measured,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<String>> {
    if measured.figures.iter().all(|figure| figure.level == Level::Good) {
        return Ok(Vec::new());
    }
    Ok(match lookup.config().shuffle {
        Shuffle::Off => vec!["shuffle the rows: `shuffle=True`, or `Blocks` for packs beyond memory".to_owned()],
        Shuffle::Blocks { rows, blocks } => vec![more_blocks(lookup, packs, (rows, blocks), measured.mates, goes_on)?],
        Shuffle::Rows => Vec::new(),
    })
}

/// The fewest blocks whose rows have to be shuffled together.
fn more_blocks(
    lookup: &Lookup,
    packs: &[Selection],
    (rows, blocks): (u64, u64),
    mates: f64,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<String> {
    let whole = lookup.pass_rows().div_ceil(rows);
    let all = "shuffle all rows: `shuffle=True`; no smaller number of blocks mixes games enough".to_owned();
    if packs.is_empty() {
        return Ok(all);
    }
    let mut is_good = |blocks: u64| -> Result<bool> {
        let tried = lookup.shuffled(Shuffle::Blocks { rows, blocks }, LastBatch::Keep)?;
        Ok(same_game_of(&tried, packs, goes_on)?.level == Level::Good)
    };
    // Of a group of G rows a row meets (batch - 1) (mates - 1) / (G - 1) of its game: a first guess of what is enough.
    let group = (lookup.config().batch_size as f64 - 1.0) * (mates - 1.0) / FEW + 1.0;
    let mut enough = ((group / rows as f64).ceil() as u64).clamp(blocks + 1, whole.max(blocks + 1));
    while enough < whole && !is_good(enough)? {
        enough = enough.saturating_mul(2).min(whole);
    }
    if enough >= whole {
        return Ok(all);
    }
    let mut few = blocks;
    while enough - few > (enough / 16).max(1) {
        let middle = few + (enough - few) / 2;
        if is_good(middle)? {
            enough = middle;
        } else {
            few = middle;
        }
    }
    let memory = enough * rows;
    Ok(format!(
        "shuffle {enough} blocks together instead of {blocks}: `Blocks({rows}, {enough})`, {memory} rows at a time"
    ))
}

/// What to change of a stream.
pub(super) fn of_stream(config: &DataLoaderConfig, measured: &stream::Measured) -> Vec<String> {
    let bad = |name: &str| measured.figures.iter().any(|figure| figure.name == name && figure.level < Level::Good);
    let mut advice = Vec::new();
    if bad("same_game") || bad("neighbours") {
        // Two rows of a use are some rows of an exponential law apart, whose mean is the reservoir: a row meets
        // (uses - 1) batch / (2 reservoir) of its game.
        let wanted = ((measured.uses - 1.0) * measured.batch as f64 / (2.0 * FEW)).ceil().max(1.0) as u64;
        let sizes = config
            .stage
            .iter()
            .filter_map(|stage| Some(stage.shuffling_frame_sampler.as_ref()?.reservoir_size_per_thread));
        let there = sizes.max().unwrap_or(0) as u64;
        advice.push(match there {
            there if there >= wanted => {
                let window = measured.window.0;
                format!("keep more games than {window} in the pool, or bring more: the reservoir of {there} positions is enough")
            }
            0 => format!("shuffle positions in a reservoir of at least {wanted} (`reservoir={wanted}`): there is none"),
            _ => format!("make the reservoir at least {wanted} positions (`reservoir={wanted}`): it has {there}"),
        });
    }
    if bad("window") {
        let wanted = 4 * measured.batch;
        advice.push(format!(
            "keep at least {wanted} games in the pool (`pool={wanted}`): {} are drawn from",
            measured.window.0
        ));
    }
    advice
}
