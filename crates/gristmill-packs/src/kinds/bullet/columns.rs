//! The boards of a chunk -> what a pack says of them in SQL. A column more is a line in `COLUMNS`.

use gristmill_format::Result;
use gristmill_format::bullet::Board;
use gristmill_format::source::Chunk;
use gristmill_runtime::sql::SqlValue;

use crate::chunks::codec::{Column, names, values};

/// The columns of chunks of boards, after those of every pack.
const COLUMNS: [Column<Facts>; 7] = [
    Column { name: "wins", sql: "INT NOT NULL", value: |facts| facts.results[2].into() },
    Column { name: "draws", sql: "INT NOT NULL", value: |facts| facts.results[1].into() },
    Column { name: "losses", sql: "INT NOT NULL", value: |facts| facts.results[0].into() },
    Column { name: "lowest_score", sql: "INT NOT NULL", value: |facts| i64::from(facts.lowest).into() },
    Column { name: "highest_score", sql: "INT NOT NULL", value: |facts| i64::from(facts.highest).into() },
    Column { name: "fewest_men", sql: "INT NOT NULL", value: |facts| facts.fewest.into() },
    Column { name: "most_men", sql: "INT NOT NULL", value: |facts| facts.most.into() },
];

/// Names and SQL types of the columns.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    names(&COLUMNS)
}

/// What the boards of a chunk say.
struct Facts {
    /// Boards by result: losses, draws, wins of the side to move.
    results: [u32; 3],
    lowest: i16,
    highest: i16,
    fewest: u32,
    most: u32,
}

/// What goes into the columns for a chunk of at least one board.
///
/// Errors: `OutOfRange` for what is no board.
pub fn facts(chunk: &Chunk) -> Result<Vec<SqlValue>> {
    let mut facts = Facts { results: [0; 3], lowest: i16::MAX, highest: i16::MIN, fewest: u32::MAX, most: 0 };
    for frame in 0..chunk.frames {
        let board = Board::new(chunk.record(frame)).map_err(|e| e.in_frame(frame))?;
        facts.results[usize::from(board.result()).min(2)] += 1;
        (facts.lowest, facts.highest) = (facts.lowest.min(board.score()), facts.highest.max(board.score()));
        (facts.fewest, facts.most) = (facts.fewest.min(board.men()), facts.most.max(board.men()));
    }
    Ok(values(&COLUMNS, &facts))
}
