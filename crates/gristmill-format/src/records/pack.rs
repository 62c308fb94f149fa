//! Games of records in a chunk file: each with its schema and facts before its records, which lie as they are.
//! Any record lies at a place that its number gives; nothing is unpacked.

use std::ops::Range;
use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, check_room};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, Limits};

use super::log::{MOST_GAME, said};
use super::schema::{MOST_TEXT, Schema};
use super::{FACTS, KIND, SCHEMA};

/// What a chunk file of records says that it holds.
pub const CODEC: Codec = *b"records\x01";

/// How sources call chunk files of records.
pub const PACKED: &str = "records.chunks";

/// The form that is written, and the only one that is read.
pub const FORM: u8 = 1;

/// Bytes before the schema.
pub const FIXED: usize = 16;

/// A chunk file of records.
pub type PackedRecords = PackedFile<Records>;

/// Games of records, as chunks.
#[derive(Debug)]
pub struct Records;

/// A packed game.
#[derive(Debug, Clone, Copy)]
pub struct PackedGame<'a> {
    /// How many records it has, at least one.
    pub frames: usize,
    /// The text of its schema.
    pub schema: &'a str,
    /// Its facts: JSON, or empty.
    pub facts: &'a str,
    /// Its records, back to back.
    pub records: &'a [u8],
}

impl<'a> PackedGame<'a> {
    /// Looks at a packed game.
    ///
    /// Errors, with the byte: `Truncated`, `UnknownVersion`, `Corrupt`.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let cut = || {
            Error::new(Kind::Truncated, format!("a packed game of {} bytes", bytes.len())).at_byte(bytes.len() as u64)
        };
        let fixed = bytes.get(..FIXED).ok_or_else(cut)?;
        if fixed[0] != FORM {
            let detail = format!("a packed game of form {}, expected {FORM}; a newer gristmill wrote it", fixed[0]);
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(0));
        }
        let word = |at: usize| fixed[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)) as usize;
        let text = |range: Range<usize>| {
            let at = range.start as u64;
            let found = bytes.get(range).ok_or_else(cut)?;
            std::str::from_utf8(found).map_err(|_| Error::new(Kind::Corrupt, "a text that is no UTF-8").at_byte(at))
        };
        let (frames, facts) = (word(4), FIXED.saturating_add(word(8)));
        let records = facts.saturating_add(word(12));
        let (schema, facts) = (text(FIXED..facts)?, text(facts..records)?);
        let records = bytes.get(records..).ok_or_else(cut)?;
        if frames == 0 || records.is_empty() || !records.len().is_multiple_of(frames) {
            let detail = format!("{} bytes of {frames} records", records.len());
            return Err(Error::new(Kind::Corrupt, detail).at_byte(4));
        }
        Ok(PackedGame { frames, schema, facts, records })
    }

    /// What its records are.
    ///
    /// Errors: as [`Schema::parse`]; `Corrupt` where the records have another size.
    pub fn parse(&self) -> Result<Schema> {
        let schema = Schema::parse(self.schema).map_err(|e| e.at_byte(FIXED as u64))?;
        self.sized(&schema)?;
        Ok(schema)
    }

    fn sized(&self, schema: &Schema) -> Result<()> {
        let (found, size) = (self.records.len() / self.frames, schema.layout().size());
        if found == size {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, format!("records of {found} bytes, the layout has {size}")).at_byte(4))
    }
}

/// Packs a chunk that says its schema, to the end of `out`.
///
/// Errors: `Missing` for a chunk of something else; `TooLarge`.
pub fn pack(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let (schema, facts) = (chunk.said(SCHEMA), chunk.said(FACTS).unwrap_or_default());
    let schema = schema.ok_or_else(|| Error::new(Kind::Missing, "records that do not say what they are"))?;
    let lengths = [chunk.frames, schema.len(), facts.len()].map(u32::try_from);
    out.extend_from_slice(&[FORM, 0, 0, 0]);
    for length in lengths {
        let length = length.map_err(|_| Error::new(Kind::TooLarge, "more than 32 bits count"))?;
        out.extend_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(schema.as_bytes());
    out.extend_from_slice(facts.as_bytes());
    out.extend_from_slice(chunk.records());
    Ok(())
}

/// The schema of the last chunk, which the next one says again.
#[derive(Debug, Default)]
pub struct Last(Option<Arc<Schema>>);

impl Last {
    /// The schema of this text.
    ///
    /// Errors: as [`Schema::parse`].
    pub fn of(&mut self, text: &str) -> Result<Arc<Schema>> {
        match &self.0 {
            Some(schema) if schema.text() == text => Ok(Arc::clone(schema)),
            _ => {
                let schema = Arc::new(Schema::parse(text)?);
                self.0 = Some(Arc::clone(&schema));
                Ok(schema)
            }
        }
    }
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
        agree(game.frames, frames)?;
        let schema = out.kept.tool::<Last>().of(game.schema).map_err(|e| e.at_byte(FIXED as u64))?;
        game.sized(&schema)?;
        schema.facts(game.facts)?;
        let size = schema.layout().size();
        let many = if let Wanted::Rows(rows) = wanted { rows.len() } else { frames };
        let room = check_room(many, size, max)?;
        out.bytes.reserve_exact(room);
        match wanted {
            Wanted::All | Wanted::Judged => out.bytes.extend_from_slice(game.records),
            Wanted::Rows(rows) => {
                for row in rows {
                    let record = game.records.chunks_exact(size).nth(*row as usize);
                    let missing = || Error::new(Kind::Missing, format!("frame {row} of {frames}"));
                    out.bytes.extend_from_slice(record.ok_or_else(missing)?);
                }
            }
        }
        (out.layout, out.frames) = (Some(Arc::clone(schema.layout())), many);
        out.said = said(game.schema, game.facts);
        Ok(())
    }
}
