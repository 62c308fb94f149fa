//! A chunk pack -> what it is as a whole, by its indexes, manifest and database. Decodes no game.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_engine::chunks::manifest::{ChunkFileEntry, Manifest};
use gristmill_engine::chunks::metadata::Games;
use gristmill_engine::error::Result;
use gristmill_engine::kinds;
use gristmill_engine::pack::METADATA;
use gristmill_engine::pack::manifest::Skipped;
use gristmill_engine::sql::refusal;
use rusqlite::Connection;
use serde::Serialize;

/// A pack of whole games.
#[derive(Debug, Clone, Serialize)]
pub struct PackView {
    /// What its chunks hold.
    pub codec: String,
    /// Games.
    pub games: u64,
    /// Bytes that they had where they came from.
    pub stored_bytes: u64,
    /// The files, in order.
    pub chunk_files: Vec<ChunkFileEntry>,
    /// What was found and is not in the pack.
    pub left_out: Vec<Skipped>,
    /// Of chess: games that White won, drawn, that Black won, and of other results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
    /// Of chess: games by version of their records.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<i64, u64>,
    /// Of chess: games by stored value of the input format.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub input_formats: BTreeMap<i64, u64>,
}

/// How games ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Results {
    pub white: u64,
    pub drawn: u64,
    pub black: u64,
    /// Neither: as rescoring may leave them.
    pub other: u64,
}

/// Looks at the pack in a folder.
///
/// Errors: `Format` with the file, for manifest and database.
pub(super) fn view(folder: &Path) -> Result<PackView> {
    let manifest = Manifest::read(folder)?;
    let path = folder.join(METADATA);
    let games = Games::open(&path)?;
    let columns = kinds::codec_named(&manifest.codec).map(|codec| codec.columns()).unwrap_or_default();
    let has = |column: &str| columns.iter().any(|(name, _)| *name == column);
    let asked = |e| refusal(&path, &e);
    let counts = |column| if has(column) { by(games.connection(), column).map_err(asked) } else { Ok(BTreeMap::new()) };
    Ok(PackView {
        results: if has("result") && has("draw") { Some(results(games.connection()).map_err(asked)?) } else { None },
        versions: counts("version")?,
        input_formats: counts("input_format")?,
        codec: manifest.codec,
        games: manifest.games,
        stored_bytes: manifest.stored_bytes,
        chunk_files: manifest.files,
        left_out: manifest.skipped,
    })
}

fn by(db: &Connection, column: &str) -> rusqlite::Result<BTreeMap<i64, u64>> {
    let mut statement = db.prepare(&format!("SELECT {column}, count(*) FROM games GROUP BY 1"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?;
    rows.collect()
}

fn results(db: &Connection) -> rusqlite::Result<Results> {
    let sql = "SELECT total(result = 1), total(result = 0 AND draw = 1), total(result = -1), count(*) FROM games";
    db.query_row(sql, [], |row| {
        let count = |i| row.get::<_, f64>(i).map(|n| n as u64);
        let (white, drawn, black, all) = (count(0)?, count(1)?, count(2)?, row.get::<_, i64>(3)?.cast_unsigned());
        Ok(Results { white, drawn, black, other: all.saturating_sub(white + drawn + black) })
    })
}
