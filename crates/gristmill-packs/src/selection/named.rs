//! A condition on the games of a pack, or a whole query -> the ids that it names.
//! Reads the database and nothing else; what SQLite refuses is said in its words.

use rusqlite::{Connection, params_from_iter};

use crate::pack_table::PackTable;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::names::METADATA;
use gristmill_runtime::sql::{SqlValue, advice, columns, complaint, given_up, is_condition, open_connection};

/// Ids that a condition on the table of games, or a whole query, gives.
pub(super) fn ids(pack: &dyn PackTable, sql: &str, params: &[SqlValue]) -> Result<Vec<u64>> {
    let (db, table) = (open_connection(&pack.folder().join(METADATA))?, pack.games_table());
    ask(&db, table, sql, params).map_err(|e| {
        if let Some(ended) = given_up(&e, None) {
            return ended;
        }
        let said = complaint(&e);
        let said = format!("{said}{}", advice(&said));
        let there = columns(&db, table).ok().filter(|_| said.contains("no such column"));
        let there = there.map_or(String::new(), |names| format!("; `{table}` has {}", names.join(", ")));
        Error::config("where", format!("{said}{there}, in `{sql}`"))
    })
}

fn ask(db: &Connection, table: &str, sql: &str, params: &[SqlValue]) -> rusqlite::Result<Vec<u64>> {
    let start = sql.trim_start().get(..6).unwrap_or_default().to_ascii_lowercase();
    let whole = start.starts_with("select") || start.starts_with("with") && !start.starts_with("within");
    // The line feeds keep a comment at the end of the condition from hiding what follows it.
    let text = if whole { sql.to_owned() } else { format!("SELECT id FROM {table} WHERE (\n{sql}\n)") };
    let mut statement = db.prepare(&text)?;
    if !whole {
        is_condition(db, sql, table)?;
    }
    let mut rows = statement.query(params_from_iter(params))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(u64::try_from(row.get::<_, i64>(0)?));
    }
    Ok(found)
}
