//! A game of records -> what a pack says of it in SQL: who it is, then the columns that its schema names.

use gristmill_format::records::schema::Fact;
use gristmill_format::records::{FACTS, SCHEMA, Schema};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::sql::SqlValue;

/// Names and SQL types of the columns of every such pack: who a game is, by which duplicates are found. No image of a game is
/// known, so that none is mirrored.
pub(super) fn columns() -> Vec<(&'static str, &'static str)> {
    vec![("key_xxh3", "BLOB NOT NULL"), ("mirrored", "INT NOT NULL")]
}

/// What goes into all columns for a game.
///
/// Errors: `Missing` for a chunk of something else; as [`Schema::parse`] and [`Schema::values`].
pub(super) fn facts(chunk: &Chunk) -> Result<Vec<SqlValue>> {
    let missing = || Error::new(Kind::Missing, "records that do not say what they are");
    let schema = Schema::parse(chunk.said(SCHEMA).ok_or_else(missing)?)?;
    let values = schema.values(chunk.records(), chunk.said(FACTS).unwrap_or_default())?;
    let key = SqlValue::Blob(schema.key(chunk.records()).to_be_bytes().to_vec());
    Ok([key, SqlValue::Integer(0)].into_iter().chain(values.into_iter().map(value)).collect())
}

fn value(fact: Fact) -> SqlValue {
    match fact {
        Fact::Null => SqlValue::Null,
        Fact::Truth(truth) => SqlValue::Integer(truth.into()),
        Fact::Whole(whole) => SqlValue::Integer(whole),
        Fact::Real(real) => SqlValue::Real(real),
        Fact::Text(text) => SqlValue::Text(text),
    }
}
