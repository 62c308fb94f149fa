//! The records of a chess game -> what a pack says of it in SQL. A column more is a line in `COLUMNS`.
//! Looks at records, and at tags where the file has them; what they do not say is not guessed.

use gristmill_format::Result;
use gristmill_format::chess::identity::{Identity, identity};
use gristmill_format::chess::{DiffFocus, Frame, Version};
use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Weigher, total};
use gristmill_runtime::sql::SqlValue;

use crate::chunks::codec::{Column, names, values};

/// The columns of chess games, after those of every pack.
const COLUMNS: [Column<Facts>; 12] = [
    Column { name: "version", sql: "INT NOT NULL", value: |game| game.version.number().into() },
    Column { name: "input_format", sql: "INT NOT NULL", value: |game| game.input_format.into() },
    Column { name: "result", sql: "REAL NOT NULL", value: |game| f64::from(game.result).into() },
    Column { name: "draw", sql: "REAL NOT NULL", value: |game| f64::from(game.draw).into() },
    Column { name: "adjudicated", sql: "INT NOT NULL", value: |game| game.adjudicated.into() },
    Column { name: "key_xxh3", sql: "BLOB NOT NULL", value: |game| game.identity.key.to_be_bytes().to_vec().into() },
    Column { name: "mirrored", sql: "INT NOT NULL", value: |game| game.identity.black_first.into() },
    Column { name: "max_length", sql: "INT NOT NULL", value: |game| game.max_length.into() },
    Column { name: "proven", sql: "INT NOT NULL", value: |game| game.proven.into() },
    Column { name: "fewest_men", sql: "INT NOT NULL", value: |game| game.fewest_men.into() },
    Column { name: "few_men", sql: "INT NOT NULL", value: |game| game.few_men.into() },
    Column { name: WEIGHT, sql: "REAL NOT NULL", value: |game| f64::from(game.weight).into() },
];

/// The columns behind those, of what files in PGN say of a game, and the tags that they are of: NULL where the file that was packed
/// did not say it.
const SAID: [(&str, &str, &str); 11] = [
    ("white", "TEXT", "White"),
    ("black", "TEXT", "Black"),
    ("white_elo", "INT", "WhiteElo"),
    ("black_elo", "INT", "BlackElo"),
    ("eco", "TEXT", "ECO"),
    ("opening", "TEXT", "Opening"),
    ("event", "TEXT", "Event"),
    ("site", "TEXT", "Site"),
    ("date", "TEXT", "Date"),
    ("time_control", "TEXT", "TimeControl"),
    ("termination", "TEXT", "Termination"),
];

/// What a tag says, of a column of this type; NULL where it is absent, says that nobody knows, or is no number.
fn said(game: &Chunk, (_, sql, tag): &(&str, &str, &str)) -> SqlValue {
    let known = game.said(tag).map(str::trim).filter(|said| !said.trim_matches(['?', '-', '.']).is_empty());
    match known {
        None => SqlValue::Null,
        Some(said) if *sql == "INT" => said.parse::<u32>().map_or(SqlValue::Null, |number| i64::from(number).into()),
        Some(said) => said.to_owned().into(),
    }
}

/// The tags behind the values of all columns of a game.
pub fn tags(facts: &[SqlValue]) -> Vec<(String, String)> {
    let values = facts.get(COLUMNS.len()..).unwrap_or_default();
    let tag = |((_, _, tag), value): (&(&str, &str, &str), &SqlValue)| match value {
        SqlValue::Text(text) => Some(((*tag).to_owned(), text.clone())),
        SqlValue::Integer(number) => Some(((*tag).to_owned(), number.to_string())),
        _ => None,
    };
    SAID.iter().zip(values).filter_map(tag).collect()
}

/// Names and SQL types of the columns.
pub fn columns() -> Vec<(&'static str, &'static str)> {
    [names(&COLUMNS), SAID.map(|(name, sql, _)| (name, sql)).to_vec()].concat()
}

/// How many of the columns, the last ones, no record says.
pub const BESIDE: usize = SAID.len();

/// The column that has what a game weighs by [`WEIGHER`].
pub const WEIGHT: &str = "weight";

/// What games are weighed by when they are packed: difference focus with the published defaults. Another rule
/// would be another column.
pub const WEIGHER: DiffFocus =
    DiffFocus { q_weight: 6.0, pol_scale: 3.5, alpha: 1.0, beta: 0.0, gamma: 1.0, tau: 1.0, unknown: 1.0 };

/// Men on the board for which there are tables of the results.
const TABLE_MEN: u32 = 7;

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
    /// Whether it was ended at the greatest length (bit 4 of the last record).
    max_length: bool,
    /// Frames whose best move is proven (bit 3), by search or by tablebase.
    proven: u32,
    /// Men in the position that has the fewest.
    fewest_men: u32,
    /// Frames with no more than [`TABLE_MEN`].
    few_men: u32,
    /// What the game weighs by [`WEIGHER`].
    weight: f32,
}

/// The result of a game of at least one record, for White.
///
/// Errors: `Format` for records of an unknown version or format.
pub fn result(game: &Chunk) -> Result<f32> {
    let first = Frame::new(game.record(0))?;
    let canonical = first.input_format()?.is_canonical();
    let black = if canonical { first.invariance_info() >= 128 } else { first.side_to_move_or_enpassant() != 0 };
    Ok(if black { -first.result_q() } else { first.result_q() } + 0.0)
}

/// What goes into the columns for a game of at least one record.
///
/// Errors: `Format` for records of an unknown version or format.
pub fn facts(version: Version, game: &Chunk) -> Result<Vec<SqlValue>> {
    let first = Frame::new(game.record(0))?;
    let last = Frame::new(game.record(game.frames - 1))?;
    let mut weights = Vec::new();
    WEIGHER.weigh(game, &mut weights)?;
    let (mut proven, mut few_men, mut fewest_men) = (0, 0, u32::MAX);
    for i in 0..game.frames {
        let frame = Frame::new(game.record(i))?;
        let men = (0..12).map(|plane| frame.plane(plane).count_ones()).sum();
        proven += u32::from(frame.invariance_info() & 1 << 3 != 0);
        few_men += u32::from(men <= TABLE_MEN);
        fewest_men = fewest_men.min(men);
    }
    let facts = Facts {
        version,
        input_format: first.input_format_value(),
        result: result(game)?,
        draw: first.result_d(),
        adjudicated: last.invariance_info() & 1 << 5 != 0,
        identity: identity(game.records(), version.bytes())?,
        max_length: last.invariance_info() & 1 << 4 != 0,
        proven,
        fewest_men,
        few_men,
        weight: total(weights),
    };
    Ok([values(&COLUMNS, &facts), SAID.iter().map(|column| said(game, column)).collect()].concat())
}
