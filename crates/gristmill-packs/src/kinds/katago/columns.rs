//! The rows of a chunk -> its columns in SQL. A new column is a line in `COLUMNS`.

use gristmill_format::katago::row::board;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::sql::SqlValue;

use crate::chunks::codec::{Column, names, values};

/// The columns of chunks of rows, after those of every pack.
const COLUMNS: [Column<Facts>; 4] = [
    Column { name: "smallest_board", sql: "INT NOT NULL", value: |facts| facts.points.0.into() },
    Column { name: "largest_board", sql: "INT NOT NULL", value: |facts| facts.points.1.into() },
    Column { name: "fewest_stones", sql: "INT NOT NULL", value: |facts| facts.stones.0.into() },
    Column { name: "most_stones", sql: "INT NOT NULL", value: |facts| facts.stones.1.into() },
];

/// Names and SQL types of the columns.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    names(&COLUMNS)
}

/// The least and the most of the points and stones of a chunk's rows.
struct Facts {
    points: (u32, u32),
    stones: (u32, u32),
}

/// The values of the columns for a chunk of at least one row.
///
/// Errors: `Missing` for a chunk without a layout.
pub fn facts(chunk: &Chunk) -> Result<Vec<SqlValue>> {
    let layout = chunk.layout.as_ref().ok_or_else(|| Error::new(Kind::Missing, "rows without a layout"))?;
    let mut facts = Facts { points: (u32::MAX, 0), stones: (u32::MAX, 0) };
    for frame in 0..chunk.frames {
        let board = board(layout, chunk.record(frame));
        let stones = board.own + board.other;
        facts.points = (facts.points.0.min(board.points), facts.points.1.max(board.points));
        facts.stones = (facts.stones.0.min(stones), facts.stones.1.max(stones));
    }
    Ok(values(&COLUMNS, &facts))
}
