//! `metadata.db` of a chunk pack <-> a row for each game, to be asked in SQL.
//! The writer keeps a write-ahead log and leaves none behind; the reader changes nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Result;
use crate::pack::metadata::{open_connection, open_to_write, refusal};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS games (
    id INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    first_frame BIGINT NOT NULL,
    frames INT NOT NULL,
    source TEXT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    content_xxh3 BLOB NOT NULL,
    version INT NOT NULL,
    input_format INT NOT NULL,
    result REAL NOT NULL,
    draw REAL NOT NULL,
    adjudicated INT NOT NULL
);
CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, state TEXT NOT NULL);";

/// What is known of a game without decoding it.
#[derive(Debug, Clone, PartialEq)]
pub struct Game {
    /// Its number in the pack, from 0.
    pub id: u64,
    /// Number of its chunk file, and its number there.
    pub file: u64,
    /// See `file`.
    pub chunk: u64,
    /// Number of its first frame, counted over all files.
    pub first_frame: u64,
    /// Its frames.
    pub frames: u64,
    /// Where it came from: path below the folder that was packed, and member.
    pub source: String,
    /// Bytes that it had there.
    pub stored_bytes: u64,
    /// XXH3-128 of its records.
    pub content: u128,
    /// What the records say.
    pub facts: Facts,
}

/// What the first and last record of a game say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Version of the records, 6 or 7.
    pub version: u32,
    /// Stored value of the input format.
    pub input_format: u32,
    /// Result for White: 1, 0, -1, or between after rescoring.
    pub result: f32,
    /// 1 for a draw, else 0, or between after rescoring.
    pub draw: f32,
    /// Whether the game was adjudicated (bit 5 of `invariance_info`).
    pub adjudicated: bool,
}

/// A database that is being written.
#[derive(Debug)]
pub struct GamesWriter {
    db: Connection,
    path: PathBuf,
}

impl GamesWriter {
    /// Opens the database at `path`, made when it does not exist. Nothing shows before [`GamesWriter::commit`].
    ///
    /// Errors: `Format` with the path.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let db = open_to_write(&path, SCHEMA)?;
        db.execute_batch("BEGIN IMMEDIATE").map_err(|e| refusal(&path, &e))?;
        Ok(GamesWriter { db, path })
    }

    /// Adds a game.
    ///
    /// Errors: `Format` with the path.
    pub fn put(&mut self, game: &Game) -> Result<()> {
        let Facts { version, input_format, result, draw, adjudicated } = game.facts;
        let put = || {
            let statement = "INSERT INTO games VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
            self.db.prepare_cached(statement)?.execute(params![
                game.id.cast_signed(),
                game.file.cast_signed(),
                game.chunk.cast_signed(),
                game.first_frame.cast_signed(),
                game.frames.cast_signed(),
                game.source,
                game.stored_bytes.cast_signed(),
                game.content.to_be_bytes(),
                version,
                input_format,
                f64::from(result),
                f64::from(draw),
                adjudicated,
            ])
        };
        put().map(drop).map_err(|e| refusal(&self.path, &e))
    }

    /// Makes everything so far visible and durable, together with where the job stands.
    ///
    /// Errors: `Format` with the path.
    pub fn commit(&mut self, progress: &str) -> Result<()> {
        let commit = || {
            self.db.execute("INSERT OR REPLACE INTO progress (id, state) VALUES (0, ?1)", [progress])?;
            self.db.execute_batch("COMMIT; BEGIN IMMEDIATE")
        };
        commit().map_err(|e| refusal(&self.path, &e))
    }

    /// Where the job that writes the database stood at the last commit.
    ///
    /// Errors: `Format` with the path.
    pub fn progress(&self) -> Result<Option<String>> {
        let read = self.db.query_row("SELECT state FROM progress WHERE id = 0", [], |row| row.get(0)).optional();
        read.map_err(|e| refusal(&self.path, &e))
    }

    /// Forgets where the job stood and closes: one file remains.
    ///
    /// Errors: `Format` with the path.
    pub fn finish(self) -> Result<()> {
        let done = self.db.execute_batch("DROP TABLE progress; COMMIT");
        done.map_err(|e| refusal(&self.path, &e))?;
        self.db.flush_prepared_statement_cache();
        self.db.close().map_err(|(_, e)| refusal(&self.path, &e))
    }
}

/// The database of a pack, to be asked.
#[derive(Debug)]
pub struct Games {
    db: Connection,
    path: PathBuf,
}

impl Games {
    /// Opens the database at `path`, which may lie on read-only storage.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no database.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Games { db: open_connection(path)?, path: path.to_owned() })
    }

    /// The connection: read-only.
    pub fn connection(&self) -> &Connection {
        &self.db
    }

    /// Gives every game to `each`, by ascending id.
    ///
    /// Errors: `Format` with the path; what `each` says.
    pub fn each(&self, each: &mut dyn FnMut(Game) -> Result<()>) -> Result<()> {
        let refuse = |e| refusal(&self.path, &e);
        let mut statement = self.db.prepare("SELECT * FROM games ORDER BY id").map_err(refuse)?;
        let mut rows = statement.query([]).map_err(refuse)?;
        while let Some(row) = rows.next().map_err(refuse)? {
            let number = |i: usize| row.get::<_, i64>(i).map(i64::cast_unsigned);
            let read = || {
                Ok(Game {
                    id: number(0)?,
                    file: number(1)?,
                    chunk: number(2)?,
                    first_frame: number(3)?,
                    frames: number(4)?,
                    source: row.get(5)?,
                    stored_bytes: number(6)?,
                    content: u128::from_be_bytes(row.get(7)?),
                    facts: Facts {
                        version: row.get(8)?,
                        input_format: row.get(9)?,
                        result: row.get::<_, f64>(10)? as f32,
                        draw: row.get::<_, f64>(11)? as f32,
                        adjudicated: row.get(12)?,
                    },
                })
            };
            each(read().map_err(refuse)?)?;
        }
        Ok(())
    }

    /// The hashes of all games.
    ///
    /// Errors: as [`Games::each`].
    pub fn contents(&self) -> Result<HashSet<u128>> {
        let mut contents = HashSet::new();
        self.each(&mut |game| {
            contents.insert(game.content);
            Ok(())
        })?;
        Ok(contents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_come_back_and_what_was_not_committed_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let facts = Facts { version: 7, input_format: 132, result: -0.25, draw: 0.5, adjudicated: true };
        let game = |id: u64| Game {
            id,
            file: 0,
            chunk: id,
            first_frame: 10 * id,
            frames: 10,
            source: format!("a.tar/training.{id}.gz"),
            stored_bytes: 99,
            content: u128::MAX - u128::from(id),
            facts,
        };
        let mut writer = GamesWriter::open(&path).unwrap();
        writer.put(&game(0)).unwrap();
        writer.commit("here").unwrap();
        writer.put(&game(1)).unwrap();
        drop(writer);
        let mut writer = GamesWriter::open(&path).unwrap();
        assert_eq!(writer.progress().unwrap().as_deref(), Some("here"));
        writer.put(&game(1)).unwrap();
        writer.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no log is left");
        let games = Games::open(&path).unwrap();
        let mut found = Vec::new();
        games
            .each(&mut |game| {
                found.push(game);
                Ok(())
            })
            .unwrap();
        assert_eq!(found, [game(0), game(1)]);
        assert_eq!(games.contents().unwrap(), [0, 1].map(|id| u128::MAX - id).into());
        assert!(games.connection().execute("DELETE FROM games", []).is_err());
        std::fs::write(&path, "no database").unwrap();
        assert!(Games::open(&path).and_then(|games| games.contents()).unwrap_err().to_string().contains("metadata.db"));
    }
}
