//! Games of records in a chunk file: each with its schema and facts before its records, which lie as they are.
//! Any record lies at a place that its number gives; nothing is unpacked.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::described::{Described, FIXED};
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, Limits};

use super::log::{MOST_GAME, said};
use super::schema::{MOST_TEXT, Schema};
use super::{FACTS, KIND, SCHEMA};

/// What a chunk file of records says that it holds.
pub const CODEC: Codec = *b"records\x01";

/// How sources call chunk files of records.
pub const PACKED: &str = "records.chunks";

/// The schema of the chunk that was read last.
pub type Last = gristmill_bytes::container::described::Last<Schema>;

/// A chunk file of records.
pub type PackedRecords = PackedFile<Records>;

/// Games of records, as chunks.
#[derive(Debug)]
pub struct Records;

/// A packed game.
#[derive(Debug, Clone, Copy)]
pub struct PackedGame<'a>(Described<'a>);

impl<'a> PackedGame<'a> {
    /// Looks at a packed game.
    ///
    /// Errors: as [`Described::new`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Described::new(bytes, [MOST_TEXT; 2]).map(PackedGame)
    }

    /// How many records it has, at least one.
    pub fn frames(&self) -> usize {
        self.0.frames
    }

    /// The text of its schema.
    pub fn schema(&self) -> &'a str {
        self.0.texts[0]
    }

    /// Its facts: JSON, or empty.
    pub fn facts(&self) -> &'a str {
        self.0.texts[1]
    }

    /// Its records, back to back.
    pub fn records(&self) -> &'a [u8] {
        self.0.records
    }

    /// What its records are.
    ///
    /// Errors: as [`Schema::parse`]; `Corrupt` where the records have another size.
    pub fn parse(&self) -> Result<Schema> {
        let schema = schema(self.schema())?;
        self.0.sized(schema.layout().size())?;
        Ok(schema)
    }

    /// The same, out of `last` where its text says the same.
    ///
    /// Errors: as [`PackedGame::parse`].
    pub fn parse_with(&self, last: &mut Last) -> Result<Arc<Schema>> {
        let schema = last.of(self.schema(), schema)?;
        self.0.sized(schema.layout().size())?;
        Ok(schema)
    }
}

fn schema(text: &str) -> Result<Schema> {
    Schema::parse(text).map_err(|e| e.at_byte(FIXED as u64))
}

/// Packs a chunk that says its schema, to the end of `out`.
///
/// Errors: `Missing` for a chunk of something else; `TooLarge`.
pub fn pack(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let (schema, facts) = (chunk.said(SCHEMA), chunk.said(FACTS).unwrap_or_default());
    let schema = schema.ok_or_else(|| Error::new(Kind::Missing, "records that do not say what they are"))?;
    Described { frames: chunk.frames, texts: [schema, facts], records: chunk.records() }.write(out)
}

impl Packing for Records {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "games of records";

    fn limits() -> Limits {
        Limits { max_chunk_bytes: MOST_GAME + FIXED + 2 * MOST_TEXT }
    }

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        let game = PackedGame::new(bytes)?;
        agree(game.0.frames, frames)?;
        let schema = game.parse_with(out.kept.tool::<Last>())?;
        schema.facts(game.facts())?;
        game.0.copy(wanted, max, out)?;
        out.layout = Some(Arc::clone(schema.layout()));
        out.said = said(game.schema(), game.facts());
        Ok(())
    }
}
