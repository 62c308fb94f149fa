//! The database of a pack -> games that a condition names, and how the values of columns are spread; read-only, and within bounds
//! of time, of rows and of what SQL may do. Everything that is wrong comes back as words for people.

use std::path::Path;
use std::time::Duration;

use gristmill_engine::error::Result;
use gristmill_engine::pack::METADATA;
use gristmill_engine::sql::{
    Patience, SqlValue, advice, allowed, bound_by, complaint, is_condition, open_connection, refusal,
};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};
use serde::Serialize;

/// The longest that one query may take.
const LONGEST: Duration = Duration::from_secs(2);

/// Functions that make large values out of small ones.
const HEAVY: [&str; 8] =
    ["zeroblob", "printf", "format", "group_concat", "string_agg", "replace", "hex", "load_extension"];

/// Bins of numbers that are spread widely, and values that are listed of others.
const BINS: i64 = 24;
const LISTED: i64 = 12;

/// Columns that say where a pack has its games.
pub(crate) const INNER: [&str; 6] = ["file", "chunk", "first_frame", "first_step_idx", "stored_bytes", "mirrored"];

/// Bytes of a text or a blob that are shown.
const SHOWN: usize = 1000;

/// The table of games of a pack.
pub(crate) struct Database {
    db: Connection,
    patience: Patience,
    table: &'static str,
    /// Names and declared types.
    pub(crate) columns: Vec<(String, String)>,
}

/// Which games.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    /// A condition; empty for all.
    pub(crate) condition: &'a str,
    /// The column to sort by; empty for the number.
    pub(crate) sort: &'a str,
    /// Whether the greatest comes first.
    pub(crate) descending: bool,
    /// How many are left out before the first, and the most that are given.
    pub(crate) first: u64,
    pub(crate) most: u64,
}

/// Games, and how many the condition names.
#[derive(Debug)]
pub(crate) struct Games {
    pub(crate) total: u64,
    /// A value for each column.
    pub(crate) rows: Vec<Vec<SqlValue>>,
}

/// How the values of a column are spread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Values, and those that are NULL.
    pub(crate) known: u64,
    pub(crate) unknown: u64,
    /// Least, greatest and mean number, where there are numbers.
    pub(crate) range: Option<[f64; 3]>,
    /// Each bar: from, to (the same for one value), label, games.
    pub(crate) bars: Vec<Bar>,
    /// Games whose value has no bar.
    pub(crate) others: u64,
}

/// One bar.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) games: u64,
    /// Of numbers the least and the greatest that it is of.
    #[serde(skip)]
    pub(crate) range: Option<[f64; 2]>,
    /// A condition that names these games.
    #[serde(rename = "where")]
    pub(crate) condition: String,
}

impl Database {
    /// Opens the database of the pack in `folder`, whose games are in `table`.
    ///
    /// Errors: those of the database.
    pub(crate) fn open(folder: &Path, table: &'static str) -> Result<Self> {
        Self::open_within(folder, table, LONGEST)
    }

    fn open_within(folder: &Path, table: &'static str, longest: Duration) -> Result<Self> {
        let path = folder.join(METADATA);
        let mut db = open_connection(&path)?;
        let bounded = |db: &mut Connection| {
            let patience = bound_by(db, longest, None)?;
            db.authorizer(Some(|context: AuthContext<'_>| light(&context)))?;
            let mut statement = db.prepare("SELECT name, type FROM pragma_table_info(?1)")?;
            let columns = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let mut columns = columns.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
            // What people look for comes before what the pack itself needs; otherwise the order stays.
            columns.sort_by_key(|(name, kind)| INNER.contains(&name.as_str()) || kind.eq_ignore_ascii_case("blob"));
            Ok((patience, columns))
        };
        let (patience, columns) = bounded(&mut db).map_err(|e: rusqlite::Error| refusal(&path, &e))?;
        Ok(Database { db, patience, table, columns })
    }

    /// Games by their condition.
    ///
    /// Errors: what SQLite says of the condition, or that it took too long.
    pub(crate) fn games(&self, ask: &Ask<'_>) -> Result<Games, String> {
        let read = || {
            let filter = self.filter(ask.condition)?;
            let (sort, way) = (quoted(self.sorted(ask)), if ask.descending { "DESC" } else { "ASC" });
            let names: Vec<String> = self.columns.iter().map(|(name, _)| quoted(name)).collect();
            self.patience.begin();
            let total = self.count(&format!("SELECT count(*) FROM {} {filter}", self.table))?;
            let sql = format!(
                "SELECT {} FROM {} {filter} ORDER BY {sort} {way}, id LIMIT ?1 OFFSET ?2",
                names.join(", "),
                self.table
            );
            self.patience.begin();
            let mut statement = self.db.prepare(&sql)?;
            let bounds = [ask.most, ask.first].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let rows = statement.query_map(bounds, |row| (0..names.len()).map(|i| value(row, i)).collect())?;
            Ok(Games { total, rows: rows.collect::<rusqlite::Result<_>>()? })
        };
        read().map_err(|e| self.said(&e))
    }

    /// What the database says of one game, a value for each column.
    ///
    /// Errors: what SQLite says.
    pub(crate) fn game(&self, id: u64) -> Result<Vec<SqlValue>, String> {
        let condition = format!("id = {id}");
        let games = self.games(&Ask { condition: &condition, most: 1, ..Ask::default() })?;
        Ok(games.rows.into_iter().next().unwrap_or_default())
    }

    /// The games before and after one among those of a condition, in the order of `ask`; none where the condition is wrong.
    pub(crate) fn neighbours(&self, id: u64, ask: &Ask<'_>) -> [Option<u64>; 2] {
        [self.near(id, ask, false), self.near(id, ask, true)].map(|found| found.ok().flatten())
    }

    /// The next game after one, or the one before it.
    fn near(&self, id: u64, ask: &Ask<'_>, after: bool) -> rusqlite::Result<Option<u64>> {
        let (filter, sort, table) = (self.filter(ask.condition)?, quoted(self.sorted(ask)), self.table);
        let id = id.cast_signed();
        self.patience.begin();
        let own = format!("SELECT {sort} FROM {table} WHERE id = ?1");
        let own: SqlValue = self.db.query_row(&own, [id], |row| row.get(0))?;
        // NULL is less than every value.
        let beyond = match (&own, after != ask.descending) {
            (SqlValue::Null, true) => format!("{sort} IS NOT NULL"),
            (SqlValue::Null, false) => "0".to_owned(),
            (_, true) => format!("{sort} > ?1"),
            (_, false) => format!("{sort} < ?1 OR {sort} IS NULL"),
        };
        let (than, way) = if after { (">", "ASC") } else { ("<", "DESC") };
        let across = if after != ask.descending { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT id FROM {table} {filter} {} ({beyond} OR {sort} IS ?1 AND id {than} ?2) ORDER BY {sort} {across}, id {way} LIMIT 1",
            if filter.is_empty() { "WHERE" } else { "AND" }
        );
        let found = self.db.query_row(&sql, (own, id), |row| row.get::<_, i64>(0)).optional()?;
        Ok(found.and_then(|id| u64::try_from(id).ok()))
    }

    /// The column that games are sorted by; a name that is none sorts by number.
    fn sorted<'a>(&'a self, ask: &Ask<'a>) -> &'a str {
        self.columns.iter().find(|(name, _)| name == ask.sort).map_or("id", |(name, _)| name)
    }

    /// How the values of a column are spread over the games that a condition names.
    ///
    /// Errors: as [`Database::games`].
    pub(crate) fn spread(&self, column: &str, condition: &str) -> Result<Spread, String> {
        self.spread_of(column, condition).map_err(|e| self.said(&e))
    }

    fn spread_of(&self, column: &str, condition: &str) -> rusqlite::Result<Spread> {
        let (filter, name, table) = (self.filter(condition)?, quoted(column), self.table);
        self.patience.begin();
        let sql = format!(
            "SELECT count(*), count({name}), min({name}), max({name}), avg({name}), count(DISTINCT {name}), \
             total(typeof({name}) IN ('integer', 'real')) FROM {table} {filter}"
        );
        let (all, known, least, most, mean, kinds, numbers) = self.db.query_row(&sql, [], |row| {
            let number = |i| Ok::<_, rusqlite::Error>(as_number(&value(row, i)?));
            let count = |i| Ok::<_, rusqlite::Error>(row.get::<_, i64>(i)?.cast_unsigned());
            Ok((count(0)?, count(1)?, number(2)?, number(3)?, number(4)?, count(5)?, row.get::<_, f64>(6)? as u64))
        })?;
        let range = match (least, most, mean) {
            (Some(least), Some(most), Some(mean)) if numbers == known => Some([least, most, mean]),
            _ => None,
        };
        self.patience.begin();
        let bars = match range {
            Some([least, most, _]) if kinds > BINS as u64 && most > least && (most - least).is_finite() => {
                self.bins(&name, &filter, [least, most])?
            }
            _ => self.values(&name, &filter, if range.is_some() { BINS } else { LISTED }, range.is_some())?,
        };
        let others = known.saturating_sub(bars.iter().map(|bar| bar.games).sum());
        Ok(Spread { known, unknown: all - known, range, bars, others })
    }

    /// Numbers in bins of one width.
    fn bins(&self, name: &str, filter: &str, [least, most]: [f64; 2]) -> rusqlite::Result<Vec<Bar>> {
        // Whole numbers get bins of whole widths.
        let whole = least.fract() == 0.0 && most.fract() == 0.0 && most - least > BINS as f64;
        let width = (most - least) / BINS as f64;
        let width = if whole { width.ceil() } else { width };
        let sql = format!(
            "SELECT min({}, CAST(({name} - ?1) / ?2 AS INT)), count(*) FROM {} {filter} {} {name} IS NOT NULL GROUP BY 1",
            BINS - 1,
            self.table,
            if filter.is_empty() { "WHERE" } else { "AND" }
        );
        let mut counts = vec![0; BINS as usize];
        let mut statement = self.db.prepare(&sql)?;
        let mut rows = statement.query([least, width])?;
        while let Some(row) = rows.next()? {
            let (bin, games): (i64, i64) = (row.get(0)?, row.get(1)?);
            if let Some(count) = usize::try_from(bin).ok().and_then(|bin| counts.get_mut(bin)) {
                *count += games.cast_unsigned();
            }
        }
        let used = counts.iter().rposition(|games| *games > 0).map_or(0, |last| last + 1);
        let bar = |(i, games): (usize, &u64)| {
            let (from, to) = (least + width * i as f64, least + width * (i + 1) as f64);
            let end = if i + 1 == BINS as usize { "<=" } else { "<" };
            Bar {
                label: format!("{} – {}", crate::html::number(from), crate::html::number(to)),
                games: *games,
                range: Some([from, if whole { to - 1.0 } else { to }]),
                condition: format!("{name} >= {from} AND {name} {end} {to}"),
            }
        };
        Ok(counts[..used].iter().enumerate().map(bar).collect())
    }

    /// Values one by one: numbers in their order, others by how often they come.
    fn values(&self, name: &str, filter: &str, most: i64, in_order: bool) -> rusqlite::Result<Vec<Bar>> {
        let sql = format!(
            "SELECT {name}, count(*) FROM {} {filter} {} {name} IS NOT NULL GROUP BY 1 ORDER BY {} LIMIT {most}",
            self.table,
            if filter.is_empty() { "WHERE" } else { "AND" },
            if in_order { "1" } else { "2 DESC, 1" }
        );
        let mut statement = self.db.prepare(&sql)?;
        let bars = statement.query_map([], |row| {
            let value = value(row, 0)?;
            let condition = match &value {
                SqlValue::Text(text) => format!("{name} = '{}'", text.replace('\'', "''")),
                value => format!("{name} = {}", shown(value)),
            };
            Ok(Bar {
                label: shown(&value).replacen('-', if in_order { "−" } else { "-" }, 1),
                games: row.get::<_, i64>(1)?.cast_unsigned(),
                range: as_number(&value).map(|number| [number; 2]),
                condition,
            })
        })?;
        bars.collect()
    }

    fn count(&self, sql: &str) -> rusqlite::Result<u64> {
        self.db.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
    }

    /// The WHERE of a condition, in line feeds that keep a comment from hiding what follows it; empty for none.
    fn filter(&self, condition: &str) -> rusqlite::Result<String> {
        if condition.trim().is_empty() {
            return Ok(String::new());
        }
        is_condition(&self.db, condition, self.table)?;
        Ok(format!("WHERE (\n{condition}\n)"))
    }

    /// What is wrong, and what to do.
    fn said(&self, e: &rusqlite::Error) -> String {
        if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
            return format!("the query took longer than {} s and was ended; ask for less", LONGEST.as_secs());
        }
        let said = complaint(e);
        let names = || self.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        match said.contains("no such column") {
            true => format!("{said}; `{}` has {}", self.table, names()),
            false => format!("{said}{}", advice(&said)),
        }
    }
}

/// Denies what has no end, and what makes much out of little.
fn light(context: &AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Recursive | AuthAction::Attach { .. } => Authorization::Deny,
        AuthAction::Function { function_name } if HEAVY.iter().any(|name| function_name.eq_ignore_ascii_case(name)) => {
            Authorization::Deny
        }
        _ => allowed(context),
    }
}

/// A name as SQL writes it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value of a row; long texts and blobs are cut.
fn value(row: &Row<'_>, i: usize) -> rusqlite::Result<SqlValue> {
    Ok(match row.get_ref(i)? {
        ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned()),
        ValueRef::Blob(blob) => SqlValue::Blob(blob[..blob.len().min(SHOWN)].to_vec()),
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
    })
}

fn as_number(value: &SqlValue) -> Option<f64> {
    match value {
        SqlValue::Integer(number) => Some(*number as f64),
        SqlValue::Real(number) => Some(*number),
        _ => None,
    }
}

/// A value in words; empty for NULL.
pub(crate) fn shown(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(bytes) => bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of 100 games, and its folder.
    fn made() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let db = Connection::open(folder.path().join(METADATA)).unwrap();
        db.execute_batch(
            "CREATE TABLE games (id INTEGER PRIMARY KEY, length INT NOT NULL, q REAL, name TEXT, key BLOB);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
             INSERT INTO games SELECT i, i % 10, i / 7.0, CASE WHEN i % 3 THEN 'it''s <b>' END, x'00ff' FROM n;",
        )
        .unwrap();
        drop(db);
        let database = Database::open_within(folder.path(), "games", Duration::from_millis(100)).unwrap();
        (folder, database)
    }

    #[test]
    fn games_come_in_pages_and_in_order() {
        let (_folder, database) = made();
        let ask = Ask { condition: "length = 3", sort: "q", descending: true, first: 1, most: 2 };
        let games = database.games(&ask).unwrap();
        let ids: Vec<&SqlValue> = games.rows.iter().map(|row| &row[0]).collect();
        assert_eq!((games.total, ids), (10, vec![&SqlValue::Integer(83), &SqlValue::Integer(73)]));
        assert_eq!(shown(&games.rows[0][4]), "00ff");
        assert_eq!(database.games(&Ask { first: 1 << 60, most: u64::MAX, ..Ask::default() }).unwrap().rows.len(), 0);
        assert_eq!(database.game(7).unwrap()[1], SqlValue::Integer(7));
        // A name that is no column sorts nothing.
        assert_eq!(database.games(&Ask { sort: "q; DROP TABLE games", most: 1, ..Ask::default() }).unwrap().total, 100);
    }

    #[test]
    fn neighbours_stand_as_in_the_table() {
        let (_folder, database) = made();
        for condition in ["", "id < 40", "length IN (2, 5)"] {
            for (sort, descending) in
                [("", false), ("length", false), ("length", true), ("name", false), ("name", true)]
            {
                let ask = Ask { condition, sort, descending, first: 0, most: 100 };
                let number = |row: &Vec<SqlValue>| shown(&row[0]).parse::<u64>().unwrap();
                let ids: Vec<u64> = database.games(&ask).unwrap().rows.iter().map(number).collect();
                for (i, id) in ids.iter().enumerate() {
                    let near = [i.checked_sub(1).map(|i| ids[i]), ids.get(i + 1).copied()];
                    assert_eq!(database.neighbours(*id, &ask), near, "{id} of {ask:?}");
                }
            }
        }
        let wrong = Ask { condition: "nought = 1", ..Ask::default() };
        assert_eq!(database.neighbours(3, &wrong), [None, None]);
    }

    #[test]
    fn values_are_spread() {
        let (_folder, database) = made();
        let lengths = database.spread("length", "").unwrap();
        assert_eq!((lengths.bars.len(), lengths.known, lengths.range), (10, 100, Some([0.0, 9.0, 4.5])));
        for (column, condition) in [("q", ""), ("q", "length < 5"), ("name", ""), ("length", "id > 50")] {
            let spread = database.spread(column, condition).unwrap();
            for bar in &spread.bars {
                let own = if condition.is_empty() { "1" } else { condition };
                let both = format!("({own}) AND ({})", bar.condition);
                let ask = Ask { condition: &both, most: 0, ..Ask::default() };
                assert_eq!(database.games(&ask).unwrap().total, bar.games, "{both}");
            }
            assert_eq!(spread.bars.iter().map(|bar| bar.games).sum::<u64>() + spread.others, spread.known);
        }
        assert_eq!(database.spread("name", "").unwrap().unknown, 34);
    }

    #[test]
    fn what_is_no_condition_or_too_much_is_refused_in_words() {
        let (_folder, database) = made();
        let endless = "id IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)";
        let slow = "(SELECT count(*) FROM games a, games b, games c, games d, games e, games f) > 0";
        for (condition, said) in [
            ("nought = 1", "`games` has id, length, q, name, key"),
            ("1) OR (1", "syntax error"),
            ("1; DROP TABLE games", "syntax error"),
            ("SELECT 1", "syntax error"),
            ("length >", "syntax error"),
            ("random() > 0", "not authorized"),
            ("zeroblob(1000000000) IS NULL", "not authorized"),
            (endless, "not authorized"),
            (slow, "longer than 2 s"),
        ] {
            let refused = database.games(&Ask { condition, most: 1, ..Ask::default() }).unwrap_err();
            assert!(refused.contains(said), "{condition}: {refused}");
            assert!(database.spread("length", condition).is_err());
        }
        assert!(database.db.execute_batch("DELETE FROM games").is_err());
        assert_eq!(database.games(&Ask { most: 1, ..Ask::default() }).unwrap().total, 100);
    }
}
