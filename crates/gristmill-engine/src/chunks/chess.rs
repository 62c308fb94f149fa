//! The records of a chess game -> what a pack says of it in SQL. A column more is a line in [`COLUMNS`].
//! Looks at records alone; what they do not say is not guessed.

use gristmill_format::Result;
use gristmill_format::chess::identity::{Identity, identity};
use gristmill_format::chess::pack::CODEC;
use gristmill_format::chess::{Frame, Version};
use gristmill_format::source::Chunk;

use super::codec::{Codec, Column, names, values};
use crate::pack::select::SqlValue;

/// Packed chess games.
pub const CHESS: Codec = Codec { name: "chess", tag: CODEC, columns: || names(&COLUMNS) };

/// The columns of chess games, behind those of every pack.
const COLUMNS: [Column<Facts>; 7] = [
    Column { name: "version", sql: "INT NOT NULL", value: |game| game.version.number().into() },
    Column { name: "input_format", sql: "INT NOT NULL", value: |game| game.input_format.into() },
    Column { name: "result", sql: "REAL NOT NULL", value: |game| f64::from(game.result).into() },
    Column { name: "draw", sql: "REAL NOT NULL", value: |game| f64::from(game.draw).into() },
    Column { name: "adjudicated", sql: "INT NOT NULL", value: |game| game.adjudicated.into() },
    Column { name: "key_xxh3", sql: "BLOB NOT NULL", value: |game| game.identity.key.to_be_bytes().to_vec().into() },
    Column { name: "mirrored", sql: "INT NOT NULL", value: |game| game.identity.black_first.into() },
];

/// What the records of a game say.
struct Facts {
    version: Version,
    /// Stored value of the input format.
    input_format: u32,
    /// Result for White: 1, 0, -1, or between after rescoring.
    result: f32,
    /// 1 for a draw, else 0, or between after rescoring.
    draw: f32,
    /// Whether the game was adjudicated (bit 5 of `invariance_info`).
    adjudicated: bool,
    /// Who the game is.
    identity: Identity,
}

/// What goes into the columns for a game of at least one record.
///
/// Errors: `Format` for records of an unknown version or format.
pub fn facts(version: Version, game: &Chunk) -> Result<Vec<SqlValue>> {
    let first = Frame::new(game.record(0))?;
    let last = Frame::new(game.record(game.frames - 1))?;
    let canonical = first.input_format()?.is_canonical();
    let black = if canonical { first.invariance_info() >= 128 } else { first.side_to_move_or_enpassant() != 0 };
    let facts = Facts {
        version,
        input_format: first.input_format_value(),
        result: if black { -first.result_q() } else { first.result_q() } + 0.0,
        draw: first.result_d(),
        adjudicated: last.invariance_info() & 1 << 5 != 0,
        identity: identity(game.records(), version.bytes())?,
    };
    Ok(values(&COLUMNS, &facts))
}
