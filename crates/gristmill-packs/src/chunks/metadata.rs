//! `metadata.db` of a chunk pack <-> a row for each game, for SQL.
//! What databases of all layouts have in common, [`database`](crate::database) says.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::sql::{SqlValue, refusal};
use rusqlite::{Connection, params_from_iter};

use crate::database::{PROGRESS, Reader, Writer};
use crate::pack_table::Content;

/// The columns that every pack has.
const COMMON: [(&str, &str); 8] = [
    ("id", "INTEGER PRIMARY KEY"),
    ("file", "INTEGER NOT NULL"),
    ("chunk", "INTEGER NOT NULL"),
    ("first_frame", "BIGINT NOT NULL"),
    ("frames", "INT NOT NULL"),
    ("source", "TEXT NOT NULL"),
    ("stored_bytes", "BIGINT NOT NULL"),
    ("content_xxh3", "BLOB NOT NULL"),
];

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
    /// What its codec says of it: a value for each of [`Codec::columns`](super::codec::Codec::columns).
    pub facts: Vec<SqlValue>,
}

impl Writer {
    /// Opens the database of a chunk pack at `path`, made when it does not exist, for games with these facts: the columns of
    /// their codec, and those that the pack has beyond them.
    ///
    /// Errors: `Format` with the path; `UnknownVersion` for one whose table has other columns.
    pub fn of_games(
        path: impl Into<PathBuf>,
        facts: &[(&'static str, &'static str)],
        own: &[(String, &'static str)],
    ) -> Result<Self> {
        let fixed = COMMON.into_iter().chain(facts.iter().copied());
        let columns: Vec<(&str, &str)> = fixed.chain(own.iter().map(|(name, sql)| (&**name, *sql))).collect();
        // Names that people chose may be words of SQL.
        let word =
            |i: usize, name: &str| if i < COMMON.len() + facts.len() { name.to_owned() } else { format!("\"{name}\"") };
        let defined = columns.iter().enumerate().map(|(i, (name, sql))| format!("{} {sql}", word(i, name)));
        let defined: Vec<String> = defined.collect();
        let schema = format!("CREATE TABLE IF NOT EXISTS games ({}); {PROGRESS}", defined.join(", "));
        let writer = Writer::with(path, &schema)?;
        let refuse = |e| refusal(&writer.path, &e);
        let found: Vec<String> = {
            let statement = writer.db.prepare("SELECT * FROM games").map_err(refuse)?;
            statement.column_names().map(str::to_owned).collect()
        };
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        // A pack of before lacks what may be unknown: it gets the columns, and its games stay unknown.
        let lacks = columns.get(found.len()..).unwrap_or_default();
        if names.starts_with(&found.iter().map(String::as_str).collect::<Vec<_>>())
            && lacks.iter().all(|(_, sql)| !sql.contains("NOT NULL"))
        {
            for (name, sql) in lacks {
                writer.db.execute_batch(&format!("ALTER TABLE games ADD COLUMN {name} {sql}")).map_err(refuse)?;
            }
        } else {
            let detail = format!(
                "the table `games` has the columns {found:?}, expected {names:?}: another version wrote it; pack it again"
            );
            return Err(Error::new(Kind::UnknownVersion, detail).in_source(writer.path.display().to_string()).into());
        }
        Ok(writer)
    }

    /// Adds a game.
    ///
    /// Errors: `Format` with the path.
    pub fn put_game(&mut self, game: &Game) -> Result<()> {
        let number = |n: u64| SqlValue::from(n.cast_signed());
        let common = [
            number(game.id),
            number(game.file),
            number(game.chunk),
            number(game.first_frame),
            number(game.frames),
            game.source.clone().into(),
            number(game.stored_bytes),
            game.content.to_be_bytes().to_vec().into(),
        ];
        let values = common.iter().chain(&game.facts);
        let marks: Vec<String> = (1..=common.len() + game.facts.len()).map(|i| format!("?{i}")).collect();
        self.put(&format!("INSERT INTO games VALUES ({})", marks.join(", ")), params_from_iter(values))
    }
}

/// The database of a pack, for queries.
#[derive(Debug)]
pub struct Games(Reader);

impl Games {
    /// Opens the database at `path`, which may lie on read-only storage.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no database.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Games(Reader::open(path)?))
    }

    /// The connection: read-only.
    pub fn connection(&self) -> &Connection {
        &self.0.db
    }

    /// Names of the columns that [`Game::facts`] has values of, in order.
    ///
    /// Errors: `Format` with the path.
    pub fn columns(&self) -> Result<Vec<String>> {
        let statement = self.0.db.prepare("SELECT * FROM games").map_err(|e| refusal(&self.0.path, &e))?;
        Ok(statement.column_names().skip(COMMON.len()).map(str::to_owned).collect())
    }

    /// Gives every game to `each`, by ascending id.
    ///
    /// Errors: `Format` with the path; what `each` says.
    pub fn each(&self, each: &mut dyn FnMut(Game) -> Result<()>) -> Result<()> {
        self.of(0..i64::MAX.cast_unsigned(), each)
    }

    /// Gives the games of these ids to `each`, in order.
    ///
    /// Errors: as [`Games::each`].
    pub fn of(&self, ids: Range<u64>, each: &mut dyn FnMut(Game) -> Result<()>) -> Result<()> {
        let refuse = |e| refusal(&self.0.path, &e);
        let common = COMMON.map(|(name, _)| name).join(", ");
        let sql = format!("SELECT {common}, * FROM games WHERE id >= ?1 AND id < ?2 ORDER BY id");
        self.0.each(&sql, [ids.start.cast_signed(), ids.end.cast_signed()], &mut |row| {
            let number = |i: usize| {
                let stored = row.get::<_, i64>(i)?;
                u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(i, stored))
            };
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
                    facts: (2 * COMMON.len()..row.as_ref().column_count())
                        .map(|i| row.get(i))
                        .collect::<rusqlite::Result<_>>()?,
                })
            };
            each(read().map_err(refuse)?)
        })
    }

    /// The identities of the games with these ids, in order. `None` if the table does not have them.
    ///
    /// Errors: as [`Games::each`].
    pub fn identities(&self, ids: Range<u64>) -> Result<Option<Vec<Content>>> {
        let refuse = |e| refusal(&self.0.path, &e);
        let sql = "SELECT id, key_xxh3, mirrored, content_xxh3 FROM games WHERE id >= ?1 AND id < ?2 ORDER BY id";
        let Ok(mut statement) = self.0.db.prepare(sql) else { return Ok(None) };
        let found = statement.query_map([ids.start.cast_signed(), ids.end.cast_signed()], |row| {
            Ok(Content {
                game: row.get::<_, i64>(0)?.cast_unsigned(),
                key: u128::from_be_bytes(row.get(1)?),
                image: row.get(2)?,
                records: u128::from_be_bytes(row.get(3)?),
            })
        });
        found.and_then(Iterator::collect).map(Some).map_err(refuse)
    }

    /// One column of all games, by ascending id: numbers.
    ///
    /// Errors: `Format` with the path, also where there is no such column or it holds something else.
    pub fn column(&self, name: &str) -> Result<Vec<f64>> {
        let refuse = |e| refusal(&self.0.path, &e);
        let mut statement = self.0.db.prepare(&format!("SELECT \"{name}\" FROM games ORDER BY id")).map_err(refuse)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(refuse)?;
        rows.collect::<rusqlite::Result<_>>().map_err(refuse)
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
        let columns = [("colour", "TEXT NOT NULL"), ("score", "REAL")];
        let game = |id: u64| Game {
            id,
            file: 0,
            chunk: id,
            first_frame: 10 * id,
            frames: 10,
            source: format!("a.tar/training.{id}.gz"),
            stored_bytes: 99,
            content: u128::MAX - u128::from(id),
            facts: vec!["red".to_owned().into(), if id == 0 { SqlValue::Null } else { 0.5.into() }],
        };
        let mut writer = Writer::of_games(&path, &columns, &[]).unwrap();
        writer.put_game(&game(0)).unwrap();
        writer.put_progress("here").unwrap();
        writer.commit().unwrap();
        writer.put_game(&game(1)).unwrap();
        drop(writer);
        let refused = Writer::of_games(&path, &[], &[]).unwrap_err().to_string();
        assert!(refused.contains("\"colour\"") && refused.contains("pack it again"), "{refused}");
        let mut writer = Writer::of_games(&path, &columns, &[]).unwrap();
        assert_eq!(writer.progress().unwrap().as_deref(), Some("here"));
        writer.put_game(&game(1)).unwrap();
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

    #[test]
    fn a_table_of_before_gets_columns_that_may_be_unknown_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metadata.db");
        let columns = [("colour", "TEXT NOT NULL"), ("shape", "TEXT"), ("size", "INT")];
        Writer::of_games(&path, &columns[..1], &[]).unwrap().finish().unwrap();
        let refused = Writer::of_games(&path, &[columns[0], ("size", "INT NOT NULL")], &[]).unwrap_err().to_string();
        assert!(refused.contains("\"size\"") && refused.contains("pack it again"), "{refused}");
        for _ in 0..2 {
            Writer::of_games(&path, &columns, &[]).unwrap().finish().unwrap();
        }
        assert!(Games::open(&path).unwrap().connection().prepare("SELECT colour, shape, size FROM games").is_ok());
    }
}
