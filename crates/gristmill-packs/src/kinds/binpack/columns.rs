//! The positions of a chain -> what a pack says of them in SQL. A column more is a line in `COLUMNS`.

use gristmill_format::Result;
use gristmill_format::binpack::Position;
use gristmill_format::source::Chunk;
use gristmill_runtime::sql::SqlValue;

use crate::chunks::codec::{Column, names, values};

/// The columns of chains, after those of every pack.
const COLUMNS: [Column<Facts>; 8] = [
    Column { name: "white_result", sql: "INT NOT NULL", value: |facts| facts.result.into() },
    Column { name: "first_ply", sql: "INT NOT NULL", value: |facts| facts.ply.into() },
    Column { name: "unscored", sql: "INT NOT NULL", value: |facts| facts.unscored.into() },
    Column { name: "lowest_score", sql: "INT", value: |facts| facts.lowest.into() },
    Column { name: "highest_score", sql: "INT", value: |facts| facts.highest.into() },
    Column { name: "fewest_men", sql: "INT NOT NULL", value: |facts| facts.fewest.into() },
    Column { name: "most_men", sql: "INT NOT NULL", value: |facts| facts.most.into() },
    Column { name: "repetitions", sql: "INT NOT NULL", value: |facts| facts.repetitions.into() },
];

/// Names and SQL types of the columns.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    names(&COLUMNS)
}

/// What the positions of a chain say.
#[derive(Default)]
struct Facts {
    /// -1, 0 or 1: whether White lost or won.
    result: i64,
    /// The ply of the first position.
    ply: u16,
    /// Positions without a score.
    unscored: u32,
    /// The lowest score of a side to move, if any has one.
    lowest: Option<i64>,
    highest: Option<i64>,
    fewest: u32,
    most: u32,
    /// Positions that stood before in the chain.
    repetitions: u32,
}

/// What goes into the columns for a chain of at least one position.
///
/// Errors: `OutOfRange` for a record that is no position.
pub fn facts(chunk: &Chunk) -> Result<Vec<SqlValue>> {
    let mut facts = Facts { fewest: u32::MAX, ..Facts::default() };
    for frame in 0..chunk.frames {
        let position = Position::new(chunk.record(frame)).map_err(|e| e.in_frame(frame))?;
        let (told, men) = (position.told(), position.board().occ().count_ones());
        if frame == 0 {
            facts.ply = told.ply;
            facts.result = if position.board().black() { -i64::from(told.result) } else { told.result.into() };
        }
        if position.has_score() {
            let score = i64::from(told.score);
            facts.lowest = Some(facts.lowest.map_or(score, |lowest| lowest.min(score)));
            facts.highest = Some(facts.highest.map_or(score, |highest| highest.max(score)));
        } else {
            facts.unscored += 1;
        }
        facts.repetitions += u32::from(position.repeated() > 0);
        (facts.fewest, facts.most) = (facts.fewest.min(men), facts.most.max(men));
    }
    Ok(values(&COLUMNS, &facts))
}
