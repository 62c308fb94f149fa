//! The folder of a pack -> its rows as a table, its runs and the names of its valuations. Takes no longer for more rows.
//! Says which form its rows have and never mixes forms; files are mapped or read into memory, and never changed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub(super) use gristmill_format::g2048::form::{Columns, Form};
use gristmill_format::layout::Conform;
use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::store::Residence;
use gristmill_runtime::store::files::read_text;
use gristmill_runtime::table::{FileTable, FrameTable, Guarding, Part};
use xxhash_rust::xxh3::Xxh3;

use super::checksums::{Guard, Verify};
use super::games::RunTable;
use super::metadata::Metadata;
use super::opening::{self, Opened};
use super::runs::RunIndex;
use super::shards::{self, Shard};
use super::valuation::ValuationTypes;
use super::{METADATA, embeddings, values};
use crate::opening::From;
use crate::pack_table::Values;
use crate::row_files::VALUATION_TYPES;

/// Longest `valuation_types.json` that is read: 255 names of 4 KiB.
const MOST_VALUATION_BYTES: u64 = 1 << 20;

/// Rows whose bytes are part of a pack's identity.
const SAMPLED_ROWS: u64 = 64;

/// A pack that is open for reading. Shared freely between threads.
#[derive(Debug)]
pub struct RowPack {
    folder: PathBuf,
    columns: Columns,
    table: Arc<dyn FrameTable>,
    embeddings: Option<FileTable>,
    residence: Residence,
    values_in: PathBuf,
    /// Opened at the first use.
    values: OnceLock<Values>,
    index: Arc<RunIndex>,
    valuations: ValuationTypes,
    identity: u64,
    /// Opened at the first request for the source of a run.
    sources: OnceLock<Mutex<Option<Metadata>>>,
}

impl RowPack {
    /// Opens the pack in `folder`, whatever the form of its rows, which are held against checksums where there are some.
    ///
    /// Errors, with the file: `Path`; `Format`: as [`shards::list`], [`recognise`], [`embeddings::list`], the database's
    /// and the index's, [`Guard::open`].
    pub fn open(folder: &Path, residence: Residence) -> Result<Self> {
        RowPack::open_with(folder, residence, None)
    }

    /// The same, with a choice of what to check of the rows, and when; `None` checks rows with checksums at the first
    /// touch.
    ///
    /// Errors: as [`RowPack::open`]; `Config` in `verify` for a check of rows without checksums.
    pub fn open_with(folder: &Path, residence: Residence, verify: Option<Verify>) -> Result<Self> {
        let from = From::of(folder, residence)?;
        let (folder, known) = (&*from.folder, opening::open(&from, residence, verify)?);
        let Opened { columns, shards, table, index, valuations, identity, vectors } = match known {
            Some(known) => known,
            None => read(folder, residence, verify)?,
        };
        let vectors = if vectors { embeddings::list(folder, &shards)? } else { None };
        let embeddings = vectors.map(|vectors| embeddings::table(vectors, residence)).transpose()?;
        if verify == Some(Verify::Open) {
            table.check_all()?;
        }
        let index = Arc::new(index);
        let (folder, table) = (folder.to_owned(), Arc::new(RunTable::new(table, Arc::clone(&index))));
        let (values_in, values) = (folder.clone(), OnceLock::new());
        let sources = OnceLock::new();
        Ok(RowPack {
            folder,
            columns,
            table,
            embeddings,
            residence,
            values_in,
            values,
            index,
            valuations,
            identity,
            sources,
        })
    }

    /// The same with values that lie in another folder.
    #[must_use]
    pub fn with_values_in(self, folder: PathBuf) -> Self {
        RowPack { values_in: folder, values: OnceLock::new(), ..self }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The form of the rows.
    pub fn form(&self) -> Form {
        self.columns.form()
    }

    /// The columns of the rows.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// Vectors of the rows, by the same numbers, where the pack has some.
    pub fn embeddings(&self) -> Option<&FileTable> {
        self.embeddings.as_ref()
    }

    /// Rewards and returns of the rows, by the same numbers; none where there is no `values.npy`. Values must agree
    /// with the rows; the first use checks that.
    ///
    /// Errors, with the file: as [`values::list`] and [`values::table`].
    pub fn values(&self) -> Result<Option<&Values>> {
        if let Some(values) = self.values.get() {
            return Ok(Some(values));
        }
        if self.form() != Form::Steps {
            return Ok(None);
        }
        let Some(parts) = values::list(&self.values_in, &shards::list(&self.folder)?)? else { return Ok(None) };
        let said = self.index.runs().iter().fold(0u64, |sum, run| sum.saturating_add(run.steps));
        let table = values::table(parts, self.residence, &*self.table, said)?;
        let mut hash = Xxh3::new();
        sample(&table, &mut hash)?;
        Ok(Some(self.values.get_or_init(|| Values { table: Arc::new(table), identity: hash.digest() })))
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

    /// The database, reopened: connections belong to one thread.
    ///
    /// Errors: as [`Metadata::open`].
    pub fn metadata(&self) -> Result<Metadata> {
        Metadata::open(self.folder.join(METADATA))
    }

    /// The log that a run was packed from, by its path below the folder that was packed; `None` where the pack does not say.
    pub fn source(&self, run: u64) -> Option<String> {
        if self.sources.get().is_none() {
            // If the database cannot be opened now, the next call tries again.
            let metadata = self.metadata().ok()?;
            let has = metadata.has_extras().ok()?;
            let _ = self.sources.set(Mutex::new(has.then_some(metadata)));
        }
        let asked = self.sources.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        asked.as_ref()?.source(run).ok()?
    }

    /// A hash of what the pack holds: layout, runs, names, and some of its rows. The same wherever the pack lies.
    pub fn identity(&self) -> u64 {
        self.identity
    }
}

/// The pack in a folder by its own files.
fn read(folder: &Path, residence: Residence, verify: Option<Verify>) -> Result<Opened> {
    let found = shards::list(folder)?;
    let columns = recognise(&found)?;
    let layout = found[0].layout.clone();
    let guards = guards(&found, verify)?;
    let part = |shard: &Shard| Part { path: shard.path.clone(), offset: shard.offset, rows: shard.rows };
    let table = FileTable::open(layout, found.iter().map(part).collect(), residence)?.guarded(guards);
    let metadata = Metadata::open(folder.join(METADATA))?;
    let index = RunIndex::read(&metadata, &table, columns.form())?;
    let valuations = valuations(folder)?;
    let identity = identity(&table, &index, &valuations)?;
    Ok(Opened { columns, shards: found, table, index, valuations, identity, vectors: true })
}

/// What guards each file of rows.
fn guards(files: &[Shard], verify: Option<Verify>) -> Result<Vec<Option<Box<dyn Guarding>>>> {
    let guard = |file: &Shard| -> Result<Option<Box<dyn Guarding>>> {
        if verify == Some(Verify::Off) {
            return Ok(None);
        }
        match Guard::open(file)? {
            None if verify.is_some() => Err(unguarded(&file.path)),
            guard => Ok(guard.map(|guard| Box::new(guard) as Box<dyn Guarding>)),
        }
    };
    files.iter().map(guard).collect()
}

/// The refusal of a check of rows without checksums.
pub(super) fn unguarded(rows: &Path) -> gristmill_runtime::Error {
    let text = format!("{} has no checksums beside it: `gristmill checksum PACK` makes them, once", rows.display());
    gristmill_runtime::Error::config("verify", text)
}

/// The columns of the rows in the files of a pack. It must have at least one file.
///
/// Errors: `Unsupported` with the file: rows of no known form, with what they look like; files whose rows differ.
pub fn recognise(files: &[Shard]) -> gristmill_format::Result<Columns> {
    let place = |e: Error, file: &Shard| e.in_source(file.path.display().to_string());
    let (first, rest) = files.split_first().ok_or_else(|| Error::new(Kind::Missing, "no files of rows"))?;
    let columns = Columns::of(&first.layout).map_err(|e| place(e, first))?;
    if let Some(other) = rest.iter().find(|file| file.layout != first.layout) {
        let (one, two) = (columns.form(), Columns::of(&other.layout).map_err(|e| place(e, other))?.form());
        let advice = if one == two { "merge them into one form" } else { "move each form to a folder of its own" };
        let detail = format!(
            "its {} rows differ from the {} rows of {}: {} and {} bytes; {advice}",
            two.name(),
            one.name(),
            first.path.display(),
            other.layout.size(),
            first.layout.size()
        );
        return Err(place(Error::new(Kind::Unsupported, detail), other));
    }
    // Fields of other types than their names stand for are found before the first row is read.
    Conform::new(&first.layout, columns.form().layout()).map_err(|e| place(e, first))?;
    Ok(columns)
}

/// The names of a pack; the usual ones where it has no file of them.
///
/// Errors, with the file: `Io`, `TooLarge`, as [`ValuationTypes::parse`].
pub fn valuations(folder: &Path) -> Result<ValuationTypes> {
    let path = folder.join(VALUATION_TYPES);
    let place = |e: Error| e.in_source(path.display().to_string());
    let Some(text) = read_text(&path, MOST_VALUATION_BYTES)? else { return Ok(ValuationTypes::default()) };
    Ok(ValuationTypes::parse(&text).map_err(place)?)
}

/// A hash of what a pack holds.
pub(super) fn identity(table: &FileTable, index: &RunIndex, valuations: &ValuationTypes) -> Result<u64> {
    let mut hash = Xxh3::new();
    hash.update(table.layout().to_descr().as_bytes());
    hash.update(valuations.to_json().as_bytes());
    for run in index.runs() {
        for number in [run.id, run.seed.unwrap_or(u64::MAX), run.steps, run.max_score] {
            hash.update(&number.to_le_bytes());
        }
    }
    sample(table, &mut hash)?;
    Ok(hash.digest())
}

/// Adds the number of records of a table and some of them.
fn sample(table: &FileTable, hash: &mut Xxh3) -> Result<()> {
    Ok(sample_up_to(table, table.len(), hash)?)
}

/// Adds `len` and some of the first `len` records of a table.
pub(super) fn sample_up_to(table: &dyn FrameTable, len: u64, hash: &mut Xxh3) -> gristmill_format::Result<()> {
    let last = len.saturating_sub(1);
    let rows: Vec<u64> = (0..SAMPLED_ROWS.min(len)).map(|i| spread(i, last)).collect();
    let mut records = vec![0; rows.len() * table.layout().size()];
    table.gather(&rows, &mut records)?;
    hash.update(&len.to_le_bytes());
    hash.update(&records);
    Ok(())
}

/// Row `i` of [`SAMPLED_ROWS`] evenly spread up to `last`.
fn spread(i: u64, last: u64) -> u64 {
    (u128::from(last) * u128::from(i) / u128::from(SAMPLED_ROWS - 1)).min(u128::from(last)) as u64
}
