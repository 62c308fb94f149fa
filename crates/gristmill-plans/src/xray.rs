//! A saved state and the number of a batch -> which row of which game each of its rows is, from the plan alone.
//! Any past or future batch of a pack costs the same, and no row is read; a stream is run again without its bytes.

use std::path::PathBuf;

use gristmill_engine::config::{DataLoaderConfig, IndexConfig};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{Engine, Lookup, Origin, PlacedRow, Sight, SightOptions, Sighted, Standing};
use gristmill_engine::selection::Selection;
use serde::Serialize;

use crate::selected::{self, RowPlace};

/// What to look at.
#[derive(Debug, Clone)]
pub struct XrayOptions {
    /// Text of a state of a loader of rows.
    pub state: String,
    /// The pack that the rows are of.
    pub pack: PathBuf,
    /// The batch.
    pub batch: u64,
    /// One row of it; all when absent.
    pub row: Option<usize>,
    /// Rank and number of ranks, for rows as one of them has them; all rows of the batch when absent.
    pub rank: Option<(u64, u64)>,
}

/// One row of a batch, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenRow {
    /// Number of the batch.
    pub batch: u64,
    /// The row in it, from 0.
    pub row: usize,
    /// Passes completed before it.
    pub epoch: u64,
    /// Number of the pack that it is of, where several are mixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<usize>,
    /// Where it comes from.
    #[serde(flatten)]
    pub place: RowPlace,
}

/// Looks at a batch.
///
/// Errors: `State` for a state that says not how its rows were selected, or of another pack; `Config` in `row` for one that
/// the batch does not have; as the pack's opening.
pub fn xray(options: &XrayOptions) -> Result<Vec<SeenRow>> {
    let Standing { config, data, selection, .. } = Standing::read(&options.state)?;
    let Some(recipe) = selection else {
        let text = "it is of a version that does not say how its rows were selected; save it again".to_owned();
        return Err(Error::State(text));
    };
    let selected = selected::again(&options.pack, &recipe, &data)?;
    let (rank, world_size) = options.rank.unwrap_or((0, 1));
    let seed = config.seed.unwrap_or_default();
    let lookup = Lookup::of(&IndexConfig { rank, world_size, ..config }, seed, &selected::input(&selected, &recipe)?)?;
    seen(&lookup, std::slice::from_ref(&selected), options.batch, options.row)
}

/// Rows of a batch of a plan over packs, which lie one after another.
///
/// Errors: `Config` in `batch` or `row` for one that does not exist.
pub fn seen(lookup: &Lookup, selected: &[Selection], batch: u64, row: Option<usize>) -> Result<Vec<SeenRow>> {
    let rows = lookup.rows(batch);
    if rows == 0 {
        let batches = lookup.batches().map_or("fewer rows than 64 bits count".to_owned(), |n| format!("{n} batches"));
        return Err(Error::config("batch", format!("there is no batch {batch}: the plan has {batches}")));
    }
    if let Some(row) = row.filter(|row| *row >= rows) {
        return Err(Error::config("row", format!("there is no row {row}: batch {batch} has {rows}")));
    }
    let wanted = row.map_or(0..rows, |row| row..row + 1);
    let one = |i| {
        let seen = |placed: PlacedRow| {
            let (source, row) = selected::pack_of(selected, placed.row);
            let place = selected::place(&selected[source], row);
            SeenRow { batch, row: i, epoch: placed.epoch, source: (selected.len() > 1).then_some(source), place }
        };
        Ok(lookup.row(batch, i)?.map(seen))
    };
    wanted.map(one).filter_map(Result::transpose).collect()
}

/// One row of a batch of a stream, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeenFrame {
    /// Number of the batch.
    pub batch: u64,
    /// The row in it, from 0.
    pub row: usize,
    /// Where it comes from.
    #[serde(flatten)]
    pub origin: Origin,
}

/// The origins of the batch `options.first` of a stream, or of one row of it: the stream of a configuration, resumed
/// from the text of a state, or else from its beginning.
///
/// Errors: as [`Sight::new`] and [`Sight::next_batch`]; `Config` in `batch` or `row` for one that does not exist.
pub fn xray_stream(
    config: &DataLoaderConfig,
    state: Option<&str>,
    options: &SightOptions,
    row: Option<usize>,
) -> Result<Vec<SeenFrame>> {
    seen_frames(&Sight::new(config, state, options)?, options.first, row, &mut || true)
}

/// Rows of the next batch of a stream; it calls `goes_on` now and then.
///
/// Errors: as [`xray_stream`]; `Stopped` where `goes_on` says no.
pub fn seen_frames(
    sight: &Sight,
    batch: u64,
    row: Option<usize>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<SeenFrame>> {
    let Some(seen) = sight.next_batch(goes_on)? else {
        return Err(Error::config("batch", format!("there is no batch {batch}: the stream ends before it")));
    };
    let rows = seen.rows.len();
    if let Some(row) = row.filter(|row| *row >= rows) {
        return Err(Error::config("row", format!("there is no row {row}: batch {batch} has {rows}")));
    }
    let wanted = row.map_or(0..rows, |row| row..row + 1);
    Ok(wanted.map(|row| SeenFrame { batch: seen.number, row, origin: sight.origin(seen.rows[row]) }).collect())
}

/// Where a row of a batch of any loader comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Seen {
    /// Of a stream.
    Frame(SeenFrame),
    /// Of rows by number.
    Row(SeenRow),
}

/// Rows of batch `options.first` of any loader, or one of them; `selected` are the rows that one of rows feeds, of each pack. It calls
/// `goes_on` now and then.
///
/// Errors: as [`seen`], [`seen_frames`] and [`Engine::sight`]; `Unsupported` for rows that no pack has.
pub fn seen_by(
    engine: &dyn Engine,
    selected: &[Selection],
    options: &SightOptions,
    row: Option<usize>,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Seen>> {
    match engine.sight(options)? {
        Sighted::Stream(sight) => {
            Ok(seen_frames(&sight, options.first, row, goes_on)?.into_iter().map(Seen::Frame).collect())
        }
        Sighted::Rows(lookup) => {
            if selected.is_empty() {
                return Err(Error::Unsupported("only rows of packs and of streams can be traced".into()));
            }
            let rows = seen(&lookup, selected, options.first, row)?;
            Ok(rows.into_iter().map(Seen::Row).collect())
        }
    }
}
