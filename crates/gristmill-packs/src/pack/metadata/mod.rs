//! `metadata.db` <-> runs, session and extras: a SQLite database that existing trainers read too.
//! What databases of all layouts have in common, [`database`](crate::database) says.

pub mod columns;
mod short;

use std::collections::BTreeMap;
use std::path::PathBuf;

use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::sql::{columns, has_table, refusal};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::database::Reader;
pub use crate::database::{Writer as MetadataWriter, progress_of};

/// One game, as table `runs` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The `run_id` of its rows.
    pub id: u64,
    /// Seed of the game; none in packs that have no such column.
    pub seed: Option<u64>,
    /// Rows of the game.
    pub steps: u64,
    /// Its score.
    pub max_score: u64,
    /// Its highest tile, as a value (32768).
    pub highest_tile: u64,
}

/// Where the rows of a game are and where they came from: table `extras`, which only gristmill writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// The run that it belongs to.
    pub run_id: u64,
    /// Number of its first row in the pack, counted over all shards.
    pub first_row: u64,
    /// Path of the log below the folder that was packed, with `/`.
    pub source: String,
    /// Bytes of the log as stored.
    pub stored_bytes: u64,
    /// XXH3-128 of these bytes: the identity of the game.
    pub stored_xxh3: u128,
    /// Everything that the sidecar said, as a JSON object.
    pub sidecar: String,
}

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY,
    seed BIGINT NOT NULL,
    steps INT NOT NULL,
    max_score INT NOT NULL,
    highest_tile INT NOT NULL
);
CREATE TABLE IF NOT EXISTS session (
    meta_key TEXT PRIMARY KEY,
    meta_value TEXT NOT NULL
);";

const EXTRAS: &str = "
CREATE TABLE IF NOT EXISTS extras (
    run_id INTEGER PRIMARY KEY,
    first_row BIGINT NOT NULL,
    source TEXT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    stored_xxh3 BLOB NOT NULL,
    sidecar TEXT NOT NULL
);";

impl MetadataWriter {
    /// Opens the database of a pack of rows at `path`, made with its tables when it does not exist.
    /// Table `extras` is then as it takes rows, until [`MetadataWriter::shorten`].
    ///
    /// Errors: `Format` with the path when it is no database or cannot be written.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let mut writer = Self::with(path, SCHEMA)?;
        writer.lengthen()?;
        Ok(writer)
    }

    /// Writes a run, over what was there under its id. An unknown seed is stored as 0.
    ///
    /// Errors: `Format` with the path.
    pub fn put_run(&mut self, run: &Run) -> Result<()> {
        self.put(
            "INSERT INTO runs (id, seed, steps, max_score, highest_tile) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET seed = excluded.seed, steps = excluded.steps,
             max_score = excluded.max_score, highest_tile = excluded.highest_tile",
            params![
                run.id.cast_signed(),
                run.seed.unwrap_or(0).cast_signed(),
                run.steps.cast_signed(),
                run.max_score.cast_signed(),
                run.highest_tile.cast_signed()
            ],
        )
    }

    /// Writes a session entry, over what was there under its key.
    ///
    /// Errors: `Format` with the path.
    pub fn put_session(&mut self, key: &str, value: &str) -> Result<()> {
        self.put(
            "INSERT INTO session (meta_key, meta_value) VALUES (?1, ?2)
             ON CONFLICT (meta_key) DO UPDATE SET meta_value = excluded.meta_value",
            params![key, value],
        )
    }

    /// Writes the extras of a run, over what was there; the table is made with the first.
    ///
    /// Errors: `Format` with the path.
    pub fn put_extra(&mut self, extra: &Extra) -> Result<()> {
        let statement = "INSERT OR REPLACE INTO extras (run_id, first_row, source, stored_bytes, stored_xxh3, sidecar)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![
            extra.run_id.cast_signed(),
            extra.first_row.cast_signed(),
            extra.source,
            extra.stored_bytes.cast_signed(),
            extra.stored_xxh3.to_be_bytes(),
            extra.sidecar
        ];
        if !has_table(&self.db, "extras").map_err(|e| refusal(&self.path, &e))? {
            self.batch(EXTRAS)?;
        }
        self.put(statement, values)
    }

    /// The value of a session entry.
    ///
    /// Errors: `Format` with the path.
    pub fn session(&self, key: &str) -> Result<Option<String>> {
        let query = "SELECT meta_value FROM session WHERE meta_key = ?1";
        let found = self.db.query_row(query, [key], |row| row.get(0)).optional();
        found.map_err(|e| refusal(&self.path, &e))
    }
}

/// A database opened for reading.
#[derive(Debug)]
pub struct Metadata {
    read: Reader,
    /// The select list for [`Run`], as the existing columns allow.
    columns: String,
}

impl Metadata {
    /// Opens the database at `path`. Nothing is written beside it, and it may lie on read-only storage: a file without
    /// a write-ahead log is taken as finished and opened as immutable.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no database, `Missing` for a table `runs` or one of
    /// its columns.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let read = Reader::open(path)?;
        let found = columns(&read.db, "runs").map_err(|e| refusal(&read.path, &e))?;
        let columns = run_columns(&found).map_err(|e| e.in_source(read.path.display().to_string()))?;
        Ok(Metadata { read, columns })
    }

    /// The connection: read-only.
    pub fn connection(&self) -> &Connection {
        &self.read.db
    }

    /// How many runs there are.
    ///
    /// Errors: `Format` with the path.
    pub fn run_count(&self) -> Result<u64> {
        let count = self.read.db.query_row("SELECT COUNT(*) FROM runs", [], |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned).map_err(|e| refusal(&self.read.path, &e))
    }

    /// Gives every run to `each`, by ascending id.
    ///
    /// Errors: `Format` with the path, `OutOfRange` naming the run and column; what `each` says.
    pub fn runs(&self, each: &mut dyn FnMut(Run) -> Result<()>) -> Result<()> {
        self.read.each(&format!("SELECT {} FROM runs ORDER BY id", self.columns), [], &mut |row| each(self.run(row)?))
    }

    /// Session entries by key; none where the table is missing.
    ///
    /// Errors: `Format` with the path.
    pub fn session(&self) -> Result<BTreeMap<String, String>> {
        let mut entries = BTreeMap::new();
        if has_table(&self.read.db, "session").map_err(|e| refusal(&self.read.path, &e))? {
            self.read.each("SELECT meta_key, meta_value FROM session", [], &mut |row| {
                let entry =
                    row.get(0).and_then(|key| Ok((key, row.get(1)?))).map_err(|e| refusal(&self.read.path, &e))?;
                entries.extend([entry]);
                Ok(())
            })?;
        }
        Ok(entries)
    }

    /// Whether the pack says where its games came from.
    ///
    /// Errors: `Format` with the path.
    pub fn has_extras(&self) -> Result<bool> {
        has_table(&self.read.db, "extras").map_err(|e| refusal(&self.read.path, &e))
    }

    /// The log that a run was packed from; only where [`Metadata::has_extras`].
    ///
    /// Errors: `Format` with the path.
    pub fn source(&self, run: u64) -> Result<Option<String>> {
        let asked = self.read.db.prepare_cached("SELECT source FROM extras WHERE run_id = ?1");
        let found = asked.and_then(|mut asked| asked.query_row([run.cast_signed()], |row| row.get(0)).optional());
        found.map_err(|e| refusal(&self.read.path, &e))
    }

    /// Gives the extras of every run that has some to `each`, by ascending run id.
    ///
    /// Errors: `Format` with the path; what `each` says.
    pub fn extras(&self, each: &mut dyn FnMut(Extra) -> Result<()>) -> Result<()> {
        if !self.has_extras()? {
            return Ok(());
        }
        let query = "SELECT run_id, first_row, source, stored_bytes, stored_xxh3, sidecar FROM extras ORDER BY run_id";
        self.read.each(query, [], &mut |row| {
            let read = || {
                Ok(Extra {
                    run_id: row.get::<_, i64>(0)?.cast_unsigned(),
                    first_row: row.get::<_, i64>(1)?.cast_unsigned(),
                    source: row.get(2)?,
                    stored_bytes: row.get::<_, i64>(3)?.cast_unsigned(),
                    stored_xxh3: u128::from_be_bytes(row.get(4)?),
                    sidecar: row.get(5)?,
                })
            };
            each(read().map_err(|e| refusal(&self.read.path, &e))?)
        })
    }

    fn run(&self, row: &Row<'_>) -> Result<Run> {
        let refuse = |e| refusal(&self.read.path, &e);
        let id: i64 = row.get(0).map_err(refuse)?;
        let seed: Option<i64> = row.get(1).map_err(refuse)?;
        let count = |i: usize, name: &str| -> Result<u64> {
            let value: i64 = row.get(i).map_err(refuse)?;
            u64::try_from(value).map_err(|_| {
                let detail = format!("run {id}: {name} is {value}, expected 0 or more");
                Error::new(Kind::OutOfRange, detail).in_source(self.read.path.display().to_string()).into()
            })
        };
        Ok(Run {
            id: count(0, "the id")?,
            seed: seed.map(i64::cast_unsigned),
            steps: count(2, "the number of steps")?,
            max_score: count(3, "max_score")?,
            highest_tile: count(4, "highest_tile")?,
        })
    }
}

/// Names that the number of rows of a run has in packs of different ages, newest first.
const STEPS: [&str; 3] = ["steps", "num_steps", "num_moves"];

fn run_columns(found: &[String]) -> gristmill_format::Result<String> {
    let has = |name: &str| found.iter().any(|column| column.eq_ignore_ascii_case(name));
    let missing = |what: &str| Error::new(Kind::Missing, format!("{what}; there are: {}", found.join(", ")));
    if found.is_empty() {
        return Err(Error::new(Kind::Missing, "there is no table `runs`; this is not the database of a pack"));
    }
    let steps = STEPS.into_iter().find(|name| has(name));
    let steps = steps.ok_or_else(|| missing("table `runs` has no column steps, num_steps or num_moves"))?;
    for column in ["id", "max_score", "highest_tile"] {
        if !has(column) {
            return Err(missing(&format!("table `runs` has no column {column}")));
        }
    }
    let seed = if has("seed") { "seed" } else { "NULL" };
    Ok(format!("id, {seed}, {steps}, max_score, highest_tile"))
}

#[cfg(test)]
mod tests;
