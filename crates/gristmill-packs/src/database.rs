//! `metadata.db` of a pack of any layout: transactions, how far the job that writes it is, and queries of what reads it.
//! Writers use a write-ahead log and leave none behind; readers change nothing and open on read-only storage.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gristmill_format::Kind;
use gristmill_runtime::error::Result;
use gristmill_runtime::sql::{close, close_anew, has_table, open_connection, open_to_write, refusal};
use rusqlite::{Connection, OptionalExtension, Params, Row};

/// The table of how far a job is.
pub(crate) const PROGRESS: &str = "CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, state TEXT NOT NULL);";

/// A database that is being written. What was put since the last commit is lost when it is dropped.
#[derive(Debug)]
pub struct Writer {
    pub(crate) db: Connection,
    pub(crate) path: PathBuf,
    /// Whether a transaction is open.
    open: bool,
}

impl Writer {
    /// Opens the database at `path`, made with the tables of `schema` when it does not exist.
    ///
    /// Errors: `Format` with the path when it is no database or cannot be written.
    pub(crate) fn with(path: impl Into<PathBuf>, schema: &str) -> Result<Self> {
        let path = path.into();
        let db = open_to_write(&path, schema)?;
        Ok(Writer { db, path, open: false })
    }

    fn begin(&mut self) -> Result<()> {
        if !self.open {
            self.db.execute_batch("BEGIN IMMEDIATE").map_err(|e| refusal(&self.path, &e))?;
            self.open = true;
        }
        Ok(())
    }

    /// Runs statements.
    ///
    /// Errors: `Format` with the path.
    pub(crate) fn batch(&mut self, statements: &str) -> Result<()> {
        self.begin()?;
        self.db.execute_batch(statements).map_err(|e| refusal(&self.path, &e))
    }

    /// Runs a statement with values.
    ///
    /// Errors: `Format` with the path.
    pub(crate) fn put(&mut self, statement: &str, values: impl Params) -> Result<()> {
        self.begin()?;
        let put = || self.db.prepare_cached(statement)?.execute(values);
        put().map(drop).map_err(|e| refusal(&self.path, &e))
    }

    /// Makes everything that was put visible, all at once.
    ///
    /// Errors: `Format` with the path.
    pub fn commit(&mut self) -> Result<()> {
        if std::mem::take(&mut self.open) {
            self.db.execute_batch("COMMIT").map_err(|e| refusal(&self.path, &e))?;
        }
        Ok(())
    }

    /// Commits, and forces everything that was committed to the disk. A commit alone survives the end of the process, but not a power
    /// failure: SQLite forces its log later. No other process may read the database, or SQLite may not force all of it.
    ///
    /// Errors: `Format` with the path.
    pub fn force(&mut self) -> Result<()> {
        self.commit()?;
        let folded = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        folded.map_err(|e| refusal(&self.path, &e))
    }

    /// Notes how far the job that writes the database is, in the same transaction as what was put.
    ///
    /// Errors: `Format` with the path.
    pub fn put_progress(&mut self, progress: &str) -> Result<()> {
        self.batch(PROGRESS)?;
        self.put("INSERT OR REPLACE INTO progress (id, state) VALUES (0, ?1)", [progress])
    }

    /// What [`Writer::put_progress`] noted last.
    ///
    /// Errors: `Format` with the path.
    pub fn progress(&self) -> Result<Option<String>> {
        stood(&self.db, &self.path)
    }

    /// Forgets the notes on progress, writes the database again and closes it: its bytes do not say in how many steps a job that
    /// was killed and resumed wrote it. One file remains.
    ///
    /// Errors: `Format` with the path; `Path`.
    pub fn finish_anew(mut self) -> Result<()> {
        self.end()?;
        close_anew(self.db, &self.path)
    }

    /// Forgets the notes on progress, commits and closes: one file remains, without a log beside it.
    ///
    /// Errors: `Format` with the path.
    pub fn finish(mut self) -> Result<()> {
        self.end()?;
        close(self.db, &self.path)
    }

    /// The job is done: where it stood is forgotten.
    fn end(&mut self) -> Result<()> {
        self.batch("DROP TABLE IF EXISTS progress")?;
        self.commit()
    }
}

/// Where the job that writes the database at `path` stood at its last commit, if it came to one: none where there is no
/// database, or not yet one. Nothing is changed.
///
/// Errors: `Format` with the path where it cannot be read.
pub fn progress_of(path: &Path) -> Result<Option<String>> {
    match open_connection(path).and_then(|db| stood(&db, path)) {
        Err(gristmill_runtime::Error::Format(e))
            if matches!(e.kind(), Kind::Corrupt | Kind::Io(ErrorKind::NotFound)) =>
        {
            Ok(None)
        }
        read => read,
    }
}

/// A database opened for reading.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) db: Connection,
    pub(crate) path: PathBuf,
}

impl Reader {
    /// Opens the database at `path`. Nothing is written beside it, and it may lie on read-only storage: a file without
    /// a write-ahead log is taken as finished and opened as immutable.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no database.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        Ok(Reader { db: open_connection(&path)?, path })
    }

    /// Gives every row of a query to `take`.
    ///
    /// Errors: `Format` with the path; what `take` says.
    pub(crate) fn each(
        &self,
        query: &str,
        values: impl Params,
        take: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let refuse = |e| refusal(&self.path, &e);
        let mut statement = self.db.prepare(query).map_err(refuse)?;
        let mut rows = statement.query(values).map_err(refuse)?;
        while let Some(row) = rows.next().map_err(refuse)? {
            take(row)?;
        }
        Ok(())
    }
}

fn stood(db: &Connection, path: &Path) -> Result<Option<String>> {
    let read = || match has_table(db, "progress")? {
        true => db.query_row("SELECT state FROM progress WHERE id = 0", [], |row| row.get(0)).optional(),
        false => Ok(None),
    };
    read().map_err(|e| refusal(path, &e))
}
