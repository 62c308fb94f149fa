//! SQLite as packs and marks use it: a path -> a database to read or write; the user's SQL -> whether it is one repeatable
//! condition, and a limit to the time that it takes. Knows no table.

mod asking;
mod database;

pub use rusqlite::types::Value as SqlValue;

pub use self::asking::{Patience, advice, allowed, bound, bound_by, given_up, is_condition};
pub use self::asking::{ended, ends_when};
pub use self::database::refusal;
pub use self::database::{close, close_anew, columns, complaint, has_table, open_connection, open_to_write};
