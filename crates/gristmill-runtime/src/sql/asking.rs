//! SQL of the user -> whether it is one condition with a repeatable result; and a limit to the time that it takes.
//! Reads no row itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode};

use crate::error::Error;
use crate::runtime::metrics::Rates;

/// Functions of SQLite whose result may differ the next time or elsewhere: a selection must be repeatable.
const FICKLE: [&str; 15] = [
    "changes",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "julianday",
    "last_insert_rowid",
    "random",
    "randomblob",
    "strftime",
    "time",
    "timediff",
    "total_changes",
    "unixepoch",
];

/// Steps of SQLite's machine between two checks: some milliseconds.
const STEPS: i32 = 200_000;

/// The longest that one query may take, unless the variable sets another time.
const LONGEST: Duration = Duration::from_secs(3600);

/// Names another time, in seconds.
const VARIABLE: &str = "GRISTMILL_SQL_SECONDS";

type Look = Box<dyn Fn() -> bool + Send + Sync>;

static LOOK: OnceLock<Look> = OnceLock::new();

/// Sets how running SQL learns that the user wants the process to end. Only the first call counts.
pub fn ends_when(look: impl Fn() -> bool + Send + Sync + 'static) {
    // A later call sets the same.
    let _ = LOOK.set(Box::new(look));
}

/// Whether the user wants the process to end.
pub fn ended() -> bool {
    LOOK.get().is_some_and(|look| look())
}

/// Denies a statement the functions whose result differs from call to call.
pub fn allowed(context: &AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Function { function_name }
            if FICKLE.iter().any(|name| function_name.eq_ignore_ascii_case(name)) =>
        {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }
}

/// Ends the statements of a connection when `stop` is set, when the user ends the process, or when they take too long.
pub fn bound(db: &mut Connection, stop: Option<Arc<AtomicBool>>) -> rusqlite::Result<Patience> {
    let seconds = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    bound_by(db, seconds.map_or(LONGEST, Duration::from_secs), stop)
}

/// As [`bound`], with the longest time that one query may take.
pub fn bound_by(db: &mut Connection, longest: Duration, stop: Option<Arc<AtomicBool>>) -> rusqlite::Result<Patience> {
    let patience = Patience { asked: Arc::default(), longest, stop };
    let own = patience.clone();
    db.progress_handler(STEPS, Some(move || own.is_over()))?;
    Ok(patience)
}

/// When a running statement is ended.
#[derive(Debug, Clone)]
pub struct Patience {
    asked: Arc<std::sync::Mutex<Rates>>,
    longest: Duration,
    stop: Option<Arc<AtomicBool>>,
}

impl Patience {
    /// Starts the time of a new query.
    pub fn begin(&self) {
        *self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Rates::default();
    }

    fn is_over(&self) -> bool {
        let taken = || self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).uptime();
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) || ended() || taken() > self.longest
    }
}

/// The error of a statement that was ended; `None` for every other error.
pub fn given_up(e: &rusqlite::Error, stop: Option<&AtomicBool>) -> Option<Error> {
    if e.sqlite_error_code() != Some(ErrorCode::OperationInterrupted) {
        return None;
    }
    if ended() || stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Some(Error::Stopped);
    }
    let text =
        format!("SQL took too long, perhaps without an end; {VARIABLE} is the number of seconds that it may take");
    Some(Error::config("sql", text))
}

/// What a refused function means; empty for other errors.
pub fn advice(said: &str) -> &'static str {
    if said.contains("not authorized to use function") {
        " (it may say something else each time; what is selected must be the same again: use stored numbers)"
    } else {
        ""
    }
}

/// Whether `text` is one condition on rows of `from`, and nothing that closes what stands around it.
///
/// Errors: what SQLite says where it is not.
pub fn is_condition(db: &Connection, text: &str, from: &str) -> rusqlite::Result<()> {
    // No bracket stands open around it: one that it closes without opening it is refused.
    db.prepare(&format!("SELECT CASE WHEN\n{text}\nTHEN 1 END FROM {from}")).map(drop)
}
