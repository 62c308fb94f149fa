//! A `.records` file: a schema, then games one after another, each with its checksum -> chunks.
//! A file that was cut keeps the games before the cut; what is wrong after them is a fault of the file.

use std::sync::Arc;

use gristmill_bytes::container::packed::check_room;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::schema::{MOST_TEXT, Schema};
use super::{FACTS, KIND, SCHEMA};

/// How sources call themselves.
pub const FORMAT: &str = "records";
/// What such files are called.
pub const ENDING: &str = ".records";
/// What a file begins with.
pub const MAGIC: [u8; 8] = *b"GMRECS\0\x01";

/// Bytes before the schema, and before the facts of a game.
pub const FIXED: usize = 24;
/// See [`FIXED`].
pub const ENTRY: usize = 16;

/// Most bytes of a game.
pub const MOST_GAME: usize = 1 << 30;

/// Bytes that are read at a time where only lengths are wanted.
const WINDOW: usize = 4 << 10;

/// What a file of such records begins with.
pub fn begin(schema: &Schema) -> Vec<u8> {
    let text = schema.text().as_bytes();
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&xxh3_64(text).to_le_bytes());
    out.extend_from_slice(text);
    out
}

/// A game as it follows in the file: `facts` is JSON, or empty.
///
/// Errors: as [`Schema::count`] and [`Schema::facts`]; `TooLarge` beyond [`MOST_GAME`].
pub fn entry(schema: &Schema, records: &[u8], facts: &str) -> Result<Vec<u8>> {
    let frames = schema.count(records)?;
    schema.facts(facts)?;
    if records.len() > MOST_GAME {
        return Err(Error::new(Kind::TooLarge, format!("a game of {} bytes; the bound is {MOST_GAME}", records.len())));
    }
    let mut out = Vec::with_capacity(ENTRY + facts.len() + records.len());
    out.extend_from_slice(&frames.to_le_bytes());
    out.extend_from_slice(&(facts.len() as u32).to_le_bytes());
    out.extend_from_slice(&sum(&out, &[facts.as_bytes(), records]).to_le_bytes());
    out.extend_from_slice(facts.as_bytes());
    out.extend_from_slice(records);
    Ok(out)
}

fn sum(lengths: &[u8], parts: &[&[u8]]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(lengths);
    parts.iter().for_each(|part| hash.update(part));
    hash.digest()
}

/// Where a game lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    frames: u32,
    facts: u32,
}

/// A file of games.
#[derive(Debug)]
pub struct RecordFile {
    description: Description,
    schema: Arc<Schema>,
    games: Vec<Place>,
    /// The first byte after the last whole game.
    end: u64,
    faults: Vec<Error>,
}

impl RecordFile {
    /// The games of the file called `key` (without directory). No game is read.
    ///
    /// Errors, with the byte: `UnknownFormat`; `Truncated` where not even the schema is whole; `Corrupt`; as
    /// [`Schema::parse`]; `Io`.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let len = from.len()?;
        let mut bytes = Vec::new();
        read_span(from, Span { offset: 0, len: len.min(FIXED as u64) }, FIXED as u64, &mut bytes)?;
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) || bytes.is_empty() {
            return Err(Error::new(Kind::UnknownFormat, "this is no file of records").at_byte(0));
        }
        let cut = || Error::new(Kind::Truncated, "the file ends in its schema").at_byte(len);
        let fixed: [u8; FIXED] = bytes.as_slice().try_into().map_err(|_| cut())?;
        let text = u64::from(word(&fixed, 8));
        if text > MOST_TEXT as u64 {
            let detail = format!("a schema of {text} bytes; the bound is {MOST_TEXT}");
            return Err(Error::new(Kind::TooLarge, detail).at_byte(8));
        }
        let start = FIXED as u64 + text;
        if start > len {
            return Err(cut());
        }
        read_span(from, Span { offset: FIXED as u64, len: text }, text, &mut bytes)?;
        let corrupt = |detail: &str| Error::new(Kind::Corrupt, detail).at_byte(FIXED as u64);
        if xxh3_64(&bytes).to_le_bytes() != fixed[16..] {
            return Err(corrupt("the schema does not have its checksum"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| corrupt("the schema is no UTF-8"))?;
        let schema = Arc::new(Schema::parse(text).map_err(|e| e.at_byte(FIXED as u64))?);
        let description = Description { key: key.into(), format: FORMAT, kind: KIND };
        let mut file = RecordFile { description, schema, games: Vec::new(), end: start, faults: Vec::new() };
        file.walk(from, len)?;
        Ok(file)
    }

    /// Notes where games lie, up to the end or to the first that is not whole.
    fn walk(&mut self, from: &(impl ReadAt + ?Sized), len: u64) -> Result<()> {
        let (size, mut window, mut base) = (self.schema.layout().size() as u64, Vec::new(), 0);
        while self.end < len {
            let at = self.end;
            let left = len - at;
            let fault = |kind, detail: String| Error::new(kind, detail).at_byte(at);
            let before = self.games.len();
            let cut = |need: u64| {
                let detail = format!("game {before} is cut: {left} bytes of {need}; the {before} before it are whole");
                fault(Kind::Truncated, detail)
            };
            if left < ENTRY as u64 {
                self.faults.push(cut(ENTRY as u64));
                break;
            }
            if at < base || at + ENTRY as u64 > base + window.len() as u64 {
                base = at;
                read_span(from, Span { offset: at, len: left.min(WINDOW as u64) }, WINDOW as u64, &mut window)?;
            }
            let within = (at - base) as usize;
            let (frames, facts) = (word(&window, within), word(&window, within + 4));
            let records = u64::from(frames) * size;
            if frames == 0 || facts as usize > MOST_TEXT || records > MOST_GAME as u64 {
                let detail = format!(
                    "game {before} says {frames} rows and {facts} bytes of facts, which cannot be; those after it are not found"
                );
                self.faults.push(fault(Kind::Corrupt, detail));
                break;
            }
            let need = ENTRY as u64 + u64::from(facts) + records;
            if need > left {
                self.faults.push(cut(need));
                break;
            }
            self.games.push(Place { offset: at, frames, facts });
            self.end += need;
        }
        Ok(())
    }

    /// What its records are.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Where a file is to be cut whose writer was killed: before a game that is not whole; none where the last one is.
    ///
    /// Errors: `Io`.
    pub fn torn(&self, from: &(impl ReadAt + ?Sized)) -> Result<Option<u64>> {
        if let Some(fault) = self.faults.first() {
            return Ok((fault.kind() == Kind::Truncated).then_some(self.end));
        }
        let Some(last) = self.games.len().checked_sub(1) else { return Ok(None) };
        let (span, mut bytes) = (self.span(last), Vec::new());
        read_span(from, span, span.len, &mut bytes)?;
        Ok(self.checked(last, &bytes).is_err().then_some(span.offset))
    }

    fn span(&self, i: usize) -> Span {
        let game = self.games[i];
        let len = ENTRY as u64 + u64::from(game.facts) + u64::from(game.frames) * self.schema.layout().size() as u64;
        Span { offset: game.offset, len }
    }

    /// Facts and records of game `i`, held against their checksum.
    fn checked<'a>(&self, i: usize, bytes: &'a [u8]) -> Result<(&'a str, &'a [u8])> {
        let facts = self.games[i].facts as usize;
        let body = bytes.get(ENTRY..).filter(|body| bytes.len() as u64 == self.span(i).len && body.len() >= facts);
        let body = body.ok_or_else(|| Error::new(Kind::WrongSize, format!("{} bytes of a game", bytes.len())))?;
        if sum(&bytes[..8], &[body]).to_le_bytes() != bytes[8..ENTRY] {
            return Err(Error::new(Kind::Corrupt, "the game does not have its checksum"));
        }
        let (facts, records) = body.split_at(facts);
        let facts = std::str::from_utf8(facts).map_err(|_| Error::new(Kind::Corrupt, "facts that are no UTF-8"))?;
        self.schema.facts(facts)?;
        Ok((facts, records))
    }
}

impl ChunkSource for RecordFile {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.games.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.games.get(i).map(|_| (self.span(i), None))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        self.games.get(i).map(|game| game.frames as usize)
    }

    fn limits(&self) -> Limits {
        Limits { max_chunk_bytes: MOST_GAME + ENTRY + MOST_TEXT }
    }

    fn faults(&self) -> &[Error] {
        &self.faults
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let Some(game) = self.games.get(i) else {
            let detail = format!("game {i} of a file of {}", self.games.len());
            return Err(Error::new(Kind::Missing, detail).in_chunk(i));
        };
        let named = |e: Error| e.in_chunk(i).at_byte(game.offset);
        let room =
            check_room(game.frames as usize, self.schema.layout().size(), limits.max_chunk_bytes).map_err(named)?;
        let (facts, records) = self.checked(i, bytes).map_err(named)?;
        out.bytes.reserve_exact(room);
        out.bytes.extend_from_slice(records);
        (out.layout, out.frames) = (Some(Arc::clone(self.schema.layout())), game.frames as usize);
        out.said = said(self.schema.text(), facts);
        Ok(())
    }
}

/// What chunks say beside their records.
pub(super) fn said(schema: &str, facts: &str) -> Vec<(String, String)> {
    vec![(SCHEMA.to_owned(), schema.to_owned()), (FACTS.to_owned(), facts.to_owned())]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}
