//! What the chunks of a pack hold, and which columns its rows have in `metadata.db` behind those of every pack.
//! One value for each kind of data; nothing here reads or writes.

use gristmill_format::container::chunks;

use crate::pack::select::SqlValue;

/// A kind of chunks.
#[derive(Debug, Clone, Copy)]
pub struct Codec {
    /// What `codec` says in the manifest.
    pub name: &'static str,
    /// What the footers of its chunk files say.
    pub tag: chunks::Codec,
    /// Names and SQL types of the columns that its facts fill, in order.
    pub columns: fn() -> Vec<(&'static str, &'static str)>,
}

/// A column, and how its value follows from the facts of one game.
#[derive(Debug)]
pub struct Column<F> {
    /// Its name.
    pub name: &'static str,
    /// Its type and constraint.
    pub sql: &'static str,
    /// The value of one game.
    pub value: fn(&F) -> SqlValue,
}

/// Names and types of `columns`.
pub(super) fn names<F>(columns: &[Column<F>]) -> Vec<(&'static str, &'static str)> {
    columns.iter().map(|column| (column.name, column.sql)).collect()
}

/// What `columns` have of one game.
pub(super) fn values<F>(columns: &[Column<F>], facts: &F) -> Vec<SqlValue> {
    columns.iter().map(|column| (column.value)(facts)).collect()
}
