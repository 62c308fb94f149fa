//! Columns of table `runs` beyond those that every pack has, from one database into another; and the table as legacy
//! packs have it.

use gristmill_runtime::error::Result;
use gristmill_runtime::sql::{self, refusal};
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::{Metadata, MetadataWriter, STEPS};

/// Columns that are rewritten wherever runs go.
const OWN: [&str; 5] = ["id", "seed", "max_score", "highest_tile", "first_step_idx"];

/// A column: its name and the type that it was declared with.
type Column = (String, String);

impl Metadata {
    /// The columns of `runs` that are not those of every pack.
    ///
    /// Errors: `Format` with the path.
    pub fn other_columns(&self) -> Result<Vec<Column>> {
        let mut found = Vec::new();
        self.read.each("SELECT name, type FROM pragma_table_info('runs')", [], &mut |row| {
            let column: rusqlite::Result<Column> = row.get(0).and_then(|name| Ok((name, row.get(1)?)));
            found.push(column.map_err(|e| refusal(&self.read.path, &e))?);
            Ok(())
        })?;
        let is_own = |name: &str| OWN.iter().chain(&STEPS).any(|own| name.eq_ignore_ascii_case(own));
        found.retain(|(name, _)| !is_own(name));
        Ok(found)
    }

    /// Gives the values of `columns` of every run to `each`, by ascending id.
    ///
    /// Errors: `Format` with the path; what `each` says.
    pub fn others(&self, columns: &[Column], each: &mut dyn FnMut(u64, Vec<Value>) -> Result<()>) -> Result<()> {
        let names: String = columns.iter().map(|(name, _)| format!(", {}", quoted(name))).collect();
        self.read.each(&format!("SELECT id{names} FROM runs ORDER BY id"), [], &mut |row| {
            let read = || {
                let values = (1..=columns.len()).map(|i| row.get(i)).collect::<rusqlite::Result<Vec<Value>>>()?;
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), values))
            };
            let (id, values) = read().map_err(|e| refusal(&self.read.path, &e))?;
            each(id, values)
        })
    }

    /// The number of the first row of each run, by ascending id, where the database says it: legacy packs do.
    ///
    /// Errors: `Format` with the path.
    pub fn first_rows(&self) -> Result<Option<Vec<(u64, u64)>>> {
        let known = sql::columns(&self.read.db, "runs").map_err(|e| refusal(&self.read.path, &e))?;
        if !known.iter().any(|name| name.eq_ignore_ascii_case("first_step_idx")) {
            return Ok(None);
        }
        let mut found = Vec::new();
        self.read.each("SELECT id, first_step_idx FROM runs ORDER BY id", [], &mut |row| {
            let pair = row.get::<_, i64>(0).and_then(|id| Ok((id, row.get::<_, i64>(1)?)));
            let (id, first) = pair.map_err(|e| refusal(&self.read.path, &e))?;
            found.push((id.cast_unsigned(), first.cast_unsigned()));
            Ok(())
        })?;
        Ok(Some(found))
    }
}

impl MetadataWriter {
    /// Adds columns to `runs`.
    ///
    /// Errors: `Format` with the path.
    pub fn add_columns(&mut self, columns: &[Column]) -> Result<()> {
        columns.iter().try_for_each(|(name, declared)| {
            // A declaration is words and numbers; anything else is no type.
            let plain = |c: char| c.is_ascii_alphanumeric() || " (),_".contains(c);
            let declared = if declared.chars().all(plain) { declared } else { "" };
            self.batch(&format!("ALTER TABLE runs ADD COLUMN {} {declared}", quoted(name)))
        })
    }

    /// Writes the values of `columns` of an existing run.
    ///
    /// Errors: `Format` with the path.
    pub fn put_others(&mut self, id: u64, columns: &[Column], values: Vec<Value>) -> Result<()> {
        let names: Vec<String> = columns.iter().map(|(name, _)| format!("{} = ?", quoted(name))).collect();
        let statement = format!("UPDATE runs SET {} WHERE id = ?", names.join(", "));
        let values = values.into_iter().chain([Value::Integer(id.cast_signed())]);
        self.put(&statement, params_from_iter(values))
    }

    /// Makes `runs` the table of a legacy pack, whose rows follow each other in order of id.
    ///
    /// Errors: `Format` with the path.
    pub fn make_legacy(&mut self) -> Result<()> {
        self.batch(
            "ALTER TABLE runs RENAME COLUMN steps TO num_steps;
             ALTER TABLE runs ADD COLUMN first_step_idx INTEGER NOT NULL DEFAULT 0;
             UPDATE runs SET first_step_idx = placed.first FROM
                 (SELECT id, sum(num_steps) OVER (ORDER BY id) - num_steps AS first FROM runs) AS placed
                 WHERE placed.id = runs.id;",
        )?;
        for (name, declared) in [("engine", "TEXT"), ("start_time", "TEXT"), ("elapsed_s", "REAL")] {
            let there = sql::columns(&self.db, "runs").map_err(|e| refusal(&self.path, &e))?;
            if !there.iter().any(|column| column.eq_ignore_ascii_case(name)) {
                self.batch(&format!("ALTER TABLE runs ADD COLUMN {name} {declared}"))?;
            }
        }
        self.batch(
            "CREATE INDEX idx_runs_max_score ON runs(max_score); CREATE INDEX idx_runs_num_steps ON runs(num_steps);",
        )?;
        let count = self.db.query_row("SELECT count(*) FROM session", [], |row| row.get(0));
        let entries: i64 = count.map_err(|e| refusal(&self.path, &e))?;
        if entries == 0 { self.batch("DROP TABLE session") } else { Ok(()) }
    }
}

/// A name as SQL writes it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
