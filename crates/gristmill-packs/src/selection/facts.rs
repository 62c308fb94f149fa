//! Games of a pack -> what its database says of them, a list for each column; frames of a selection -> which game each is of.
//! Reads the database and changes nothing; knows no column by name but `id`.

use gristmill_format::{Error as FormatError, Kind, Result as FormatResult};
use gristmill_runtime::error::Result;
use gristmill_runtime::names::METADATA;
use gristmill_runtime::sql::{SqlValue, open_connection, refusal};
use rusqlite::Connection;

use super::Selection;

/// A column of the database's table of games.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its type, as the table declares it.
    pub declared: String,
    /// What it says of each game.
    pub values: Vec<SqlValue>,
}

/// Frames of a selection that follow each other in the pack, too, and are of one game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Id of the game.
    pub game: u64,
    /// Number of the first frame in the pack.
    pub first: u64,
    /// How many there are.
    pub frames: u64,
}

impl Selection {
    /// What the database says of games, in the order in which their ids are given: all columns that where-conditions know.
    ///
    /// Errors: `Format` for the database, and `Missing` for an id that it does not have.
    pub fn facts(&self, games: &[u64]) -> Result<Vec<Fact>> {
        self.facts_by(games, &|_| true)
    }

    /// How games ended, in the order in which their ids are given; none where no column of the database says it.
    ///
    /// Errors: as [`Selection::facts`].
    pub fn classes(&self, games: &[u64]) -> Result<Option<Vec<SqlValue>>> {
        let Some(class) = self.pack.class_column() else { return Ok(None) };
        Ok(self.facts_by(games, &|name| name == class)?.pop().map(|fact| fact.values))
    }

    fn facts_by(&self, games: &[u64], is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Fact>> {
        let path = self.pack.folder().join(METADATA);
        let (db, table) = (open_connection(&path)?, self.pack.games_table());
        let refuse = |e| refusal(&path, &e);
        let mut facts = declared(&db, table).map_err(refuse)?;
        facts.retain(|fact| is_wanted(&fact.name));
        if facts.is_empty() {
            return Ok(facts);
        }
        let names: Vec<String> = facts.iter().map(|fact| format!("\"{}\"", fact.name.replace('"', "\"\""))).collect();
        let sql = format!("SELECT {} FROM {table} WHERE id = ?1", names.join(", "));
        let mut statement = db.prepare(&sql).map_err(refuse)?;
        for game in games {
            let mut rows = statement.query([game.cast_signed()]).map_err(refuse)?;
            let missing = || FormatError::new(Kind::Missing, format!("game {game} in `{table}`"));
            let row = rows.next().map_err(refuse)?;
            let row = row.ok_or_else(|| missing().in_source(path.display().to_string()))?;
            for (i, fact) in facts.iter_mut().enumerate() {
                fact.values.push(row.get(i).map_err(refuse)?);
            }
        }
        Ok(facts)
    }

    /// The frames from place `from` to place `to`, game by game.
    ///
    /// Errors: `Format`: `Missing` for a place beyond the last, and as the pack's.
    pub fn stretches(&self, from: u64, to: u64) -> FormatResult<Vec<Stretch>> {
        if to > self.rows.len() {
            return Err(FormatError::new(Kind::Missing, format!("frame {to} of {}", self.rows.len())));
        }
        let (mut found, mut end) = (Vec::<Stretch>::new(), 0);
        for row in (from..to).map(|place| self.rows.row(place)) {
            match found.last_mut() {
                Some(last) if row < end && row == last.first + last.frames => last.frames += 1,
                _ => {
                    let place = self.pack.place(row)?;
                    end = place.end;
                    found.push(Stretch { game: place.game, first: row, frames: 1 });
                }
            }
        }
        Ok(found)
    }
}

fn declared(db: &Connection, table: &str) -> rusqlite::Result<Vec<Fact>> {
    let mut statement = db.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
    let facts = statement
        .query_map([table], |row| Ok(Fact { name: row.get(0)?, declared: row.get(1)?, values: Vec::new() }))?;
    facts.collect()
}
