//! An SQL condition -> the frames of a stretch that it accepts, and the columns that it reads. One connection, for one thread;
//! it changes nothing.
//! Frames are `frame`, the row of their game is `game`; what only one of the two has needs no prefix.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::names::METADATA;
use gristmill_runtime::sql::{Patience, advice, allowed, bound, complaint, given_up, is_condition, open_connection};
use rusqlite::hooks::{AuthAction, AuthContext};
use rusqlite::{Connection, params};

use super::frames::{NAME, Scan};
use crate::pack_table::PackTable;

/// A prepared rule.
pub struct Asker {
    db: Connection,
    scan: Arc<Scan>,
    statement: String,
    rule: String,
    patience: Patience,
    stop: Arc<AtomicBool>,
}

impl Asker {
    /// Opens the database of `pack` and compiles `rule`, which ends early once `stop` is set.
    ///
    /// Errors: `Config` in `rule` with what SQLite says, for what is more than one condition, and for functions that say
    /// something else each time; `Format` for the database and what lies beside the frames.
    pub fn new(pack: Arc<dyn PackTable>, rule: &str, stop: &Arc<AtomicBool>) -> Result<Self> {
        let mut db = open_connection(&pack.folder().join(METADATA))?;
        let games = pack.games_table();
        let scan = Scan::new(pack)?;
        let refuse = |e: rusqlite::Error| told(rule, &e);
        scan.join(&db).map_err(refuse)?;
        // The line feeds keep a comment at the end of the rule from hiding what follows it. A left join keeps frames whose
        // game the database has lost, and costs nothing where the rule does not ask the game.
        let from = format!("{NAME} AS frame LEFT JOIN {games} AS game ON game.id = frame.game_id");
        let statement = format!("SELECT frame.frame FROM {from} WHERE (\n{rule}\n)");
        let patience = bound(&mut db, Some(Arc::clone(stop))).map_err(refuse)?;
        let asker = Asker { db, scan, statement, rule: rule.to_owned(), patience, stop: Arc::clone(stop) };
        let compiled = asker.db.prepare_cached(&asker.statement).map_err(refuse)?;
        if compiled.parameter_count() > 0 {
            return Err(Error::config("rule", format!("there are no values for the question marks of `{rule}`")));
        }
        if !compiled.readonly() {
            return Err(Error::config("rule", format!("`{rule}` is no condition")));
        }
        drop(compiled);
        is_condition(&asker.db, rule, &from).map_err(refuse)?;
        Ok(asker)
    }

    /// The frames of `from..to` that the rule accepts, ascending; for one that says neither yes nor no (NULL), no.
    ///
    /// Errors: `Config` in `rule` with what SQLite says; `Format` for a frame that cannot be read.
    pub fn ask(&self, from: u64, to: u64) -> Result<Vec<u64>> {
        self.scan.set(from, to);
        self.patience.begin();
        let found = || -> rusqlite::Result<Vec<u64>> {
            let mut statement = self.db.prepare_cached(&self.statement)?;
            let rows = statement.query_map(params![], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))?;
            rows.collect()
        };
        let mut found = found().map_err(|e| match (self.scan.fault(), given_up(&e, Some(&self.stop))) {
            (Some(fault), _) => Error::Format(fault),
            (None, Some(ended)) => ended,
            (None, None) => told(&self.rule, &e),
        })?;
        found.sort_unstable();
        Ok(found)
    }
}

/// The columns that a rule reads, as `frame.NAME` and `game.NAME`; none for one that has a `SELECT`, and so may read anything.
///
/// Errors: as [`Asker::new`].
pub fn columns(pack: &Arc<dyn PackTable>, rule: &str) -> Result<Option<BTreeSet<String>>> {
    let mut db = open_connection(&pack.folder().join(METADATA))?;
    let games = pack.games_table();
    let refuse = |e: rusqlite::Error| told(rule, &e);
    Scan::new(Arc::clone(pack))?.join(&db).map_err(refuse)?;
    let read = Arc::new(Mutex::new((BTreeSet::new(), 0)));
    let note = Arc::clone(&read);
    // SQLite asks whether a statement may read what it reads.
    let ask = move |context: AuthContext<'_>| {
        let mut noted = note.lock().unwrap_or_else(PoisonError::into_inner);
        match context.action {
            AuthAction::Read { table_name: NAME, column_name } => _ = noted.0.insert(format!("frame.{column_name}")),
            AuthAction::Read { column_name, .. } => _ = noted.0.insert(format!("game.{column_name}")),
            AuthAction::Select => noted.1 += 1,
            _ => {}
        }
        allowed(&context)
    };
    db.authorizer(Some(ask)).map_err(refuse)?;
    // Joined by nothing, so that what is read is read by the rule.
    is_condition(&db, rule, &format!("{NAME} AS frame, {games} AS game")).map_err(refuse)?;
    let mut noted = read.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((noted.1 <= 1).then(|| std::mem::take(&mut noted.0)))
}

/// What SQLite says of a rule.
fn told(rule: &str, e: &rusqlite::Error) -> Error {
    let said = complaint(e);
    let advice = if said.contains("ambiguous") {
        "; say `frame.` or `game.` before the name"
    } else if said.contains("no such column") {
        "; frames have the fields of their records, `game.` the columns of their games"
    } else {
        advice(&said)
    };
    Error::config("rule", format!("{said}{advice}, in `{rule}`"))
}
