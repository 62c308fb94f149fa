//! The folder of a pack -> its rows as a table, its runs and the names of its valuations. Takes no longer for more rows.
//! Says what kind of pack it is and never mixes kinds; files are mapped or read into memory, and never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind};
use xxhash_rust::xxh3::Xxh3;

use super::metadata::Metadata;
use super::runs::RunIndex;
use super::shards;
use super::valuation::ValuationTypes;
use super::{METADATA, VALUATION_TYPES};
use crate::error::Result;
use crate::store::Residence;
use crate::table::{FileTable, FrameTable, Part};

/// Longest `valuation_types.json` that is read: 255 names of 4 KiB.
const MOST_VALUATION_BYTES: u64 = 1 << 20;

/// Rows whose bytes are part of a pack's identity.
const SAMPLED_ROWS: u64 = 64;

/// A pack that is open for reading. Shared freely between threads.
#[derive(Debug)]
pub struct Pack {
    folder: PathBuf,
    table: Arc<dyn FrameTable>,
    index: RunIndex,
    valuations: ValuationTypes,
    identity: u64,
}

impl Pack {
    /// Opens the pack in `folder`.
    ///
    /// Errors, with the file: `Path`; `Format`: as [`shards::list`], the database's and the index's; `Unsupported` for
    /// rows that are no step rows, with what they are.
    pub fn open(folder: &Path, residence: Residence) -> Result<Self> {
        let found = shards::list(folder)?;
        let place = |e: Error, path: &Path| e.in_source(path.display().to_string());
        let layout = found[0].layout.clone();
        if let Some(other) = found.iter().find(|shard| shard.layout != layout) {
            let detail = format!(
                "its records differ from those of {}: {} and {} bytes; merge them into one form",
                found[0].path.display(),
                other.layout.size(),
                layout.size()
            );
            return Err(place(Error::new(Kind::Unsupported, detail), &other.path).into());
        }
        recognise(&layout).map_err(|e| place(e, &found[0].path))?;
        let parts = found.into_iter().map(|shard| Part { path: shard.path, offset: shard.offset, rows: shard.rows });
        let table = FileTable::open(layout, parts.collect(), residence)?;
        let metadata = Metadata::open(folder.join(METADATA))?;
        let index = RunIndex::read(&metadata, &table)?;
        let valuations = valuations(folder)?;
        let identity = identity(&table, &index, &valuations)?;
        Ok(Pack { folder: folder.to_owned(), table: Arc::new(table), index, valuations, identity })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The rows.
    pub fn table(&self) -> &Arc<dyn FrameTable> {
        &self.table
    }

    /// Which rows belong to which run.
    pub fn index(&self) -> &RunIndex {
        &self.index
    }

    /// The names of the valuations.
    pub fn valuations(&self) -> &ValuationTypes {
        &self.valuations
    }

    /// The database, opened anew: connections belong to one thread.
    ///
    /// Errors: as [`Metadata::open`].
    pub fn metadata(&self) -> Result<Metadata> {
        Metadata::open(self.folder.join(METADATA))
    }

    /// A hash of what the pack holds: layout, runs, names, and some of its rows. The same wherever the pack lies.
    pub fn identity(&self) -> u64 {
        self.identity
    }
}

/// Refuses records that are not step rows, saying what they are and what to do.
fn recognise(layout: &Layout) -> gristmill_format::Result<()> {
    let has = |name: &str| layout.field(name).is_some();
    let refuse = |detail: String| Err(Error::new(Kind::Unsupported, detail));
    if has("exps") {
        return refuse(
            "self-play rows (`exps`): boards without moves or values, which this reader does not feed".into(),
        );
    }
    if has("board") && has("ev_values") {
        return refuse("a legacy expectimax pack (`ev_values`), which this reader does not feed".into());
    }
    if has("board") && has("branch_evs") && !has("board_eval") {
        return refuse(
            "an early pack without `board_eval`: its moves and values are in the order up, right, down, left, not up, \
             down, left, right; pack the raw logs again"
                .into(),
        );
    }
    let needed = ["run_id", "step_index", "board", "board_eval", "tile_65536_mask", "move_dir", "valuation_type"];
    match needed.into_iter().chain(["ev_legal", "max_rank", "seed", "branch_evs"]).find(|name| !has(name)) {
        None => Ok(()),
        Some(missing) => {
            let found: Vec<&str> = layout.fields().iter().map(|field| &*field.name).collect();
            refuse(format!("no step rows: there is no field `{missing}` among {}", found.join(", ")))
        }
    }
}

/// The names of a pack; the usual ones where it has no file of them.
///
/// Errors, with the file: `Io`, `TooLarge`, as [`ValuationTypes::parse`].
pub fn valuations(folder: &Path) -> Result<ValuationTypes> {
    let path = folder.join(VALUATION_TYPES);
    let place = |e: Error| e.in_source(path.display().to_string());
    match std::fs::metadata(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(ValuationTypes::default()),
        Ok(meta) if meta.len() > MOST_VALUATION_BYTES => {
            let detail = format!("{} bytes, at most {MOST_VALUATION_BYTES} are read", meta.len());
            return Err(place(Error::new(Kind::TooLarge, detail)).into());
        }
        _ => {}
    }
    let text = std::fs::read_to_string(&path).map_err(|e| place(e.into()))?;
    Ok(ValuationTypes::parse(&text).map_err(place)?)
}

fn identity(table: &FileTable, index: &RunIndex, valuations: &ValuationTypes) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(table.layout().to_descr().as_bytes());
    hash.update(valuations.to_json().as_bytes());
    for run in index.runs() {
        for number in [run.id, run.seed.unwrap_or(u64::MAX), run.steps, run.max_score] {
            hash.update(&number.to_le_bytes());
        }
    }
    let last = table.len().saturating_sub(1);
    let rows: Vec<u64> = (0..SAMPLED_ROWS.min(table.len())).map(|i| spread(i, last)).collect();
    let mut records = vec![0; rows.len() * table.layout().size()];
    table.gather(&rows, &mut records)?;
    hash.update(&table.len().to_le_bytes());
    hash.update(&records);
    Ok(hash.digest())
}

/// Row `i` of [`SAMPLED_ROWS`] evenly spread up to `last`.
fn spread(i: u64, last: u64) -> u64 {
    (u128::from(last) * u128::from(i) / u128::from(SAMPLED_ROWS - 1)).min(u128::from(last)) as u64
}
