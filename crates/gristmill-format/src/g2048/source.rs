//! One `.jsonl.gz` -> one chunk of aligned step rows, so that a loader streams raw logs as they are.
//! Inflates in steps: besides the rows it takes one step and one line. Never looks for the sidecar.

use std::sync::Arc;

use gristmill_bytes::container::salvage::inflate_steps;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, Span};
use memchr::memrchr;

use super::KIND;
use super::log::{Game, KNOWN_VALUATIONS, RowDefaults, parse_piece};
use super::row::{ALIGNED_BYTES, at, layout_aligned};

/// Maximum number of bytes of text for each byte of rows; a real line has five. Stops a bomb of blank lines.
const MOST_TEXT: usize = 32;

/// Maximum number of bytes of one line.
const MOST_LINE: usize = 1 << 20;

/// A file that holds the lines of one game. `run_id` is 0 in its rows.
///
/// The sidecar is not read: a row without `seed` or `max_rank` has 0 there, where a pack has what the sidecar says.
/// A valuation type without an id of its own is refused, since other games would give the same id to another name.
#[derive(Debug)]
pub struct LogFile(Description);

impl LogFile {
    /// The game in the file called `key` (without directory).
    pub fn new(key: impl Into<String>) -> Self {
        LogFile(Description { key: key.into(), format: "2048.jsonl.gz", kind: KIND })
    }
}

impl ChunkSource for LogFile {
    fn describe(&self) -> &Description {
        &self.0
    }

    fn len(&self) -> usize {
        1
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        (i == 0).then_some((Span::WHOLE, None))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        out.frames = 0;
        out.trailing = 0;
        if i > 0 {
            return Err(Error::new(Kind::Missing, format!("chunk {i} of a source of 1")).in_chunk(i));
        }
        decode_log(bytes, limits, out).map_err(|e| e.in_chunk(i))
    }
}

/// Errors of the lines say line, column and byte of the text; those of the gzip data the byte of the file.
fn decode_log(bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
    out.bytes.clear();
    let mut stream = Stream { game: Game::default(), rows: &mut out.bytes, line: Vec::new(), limits, text: 0 };
    let mut refused = None;
    // Damaged data may look like bad lines before it fails its checksum: the rest is inflated all the same.
    let trailing = inflate_steps(bytes, |step| {
        if refused.is_none() {
            refused = stream.take(step).err();
        }
        stream.within_bounds(step.len())
    })?;
    match refused {
        Some(e) => return Err(e),
        None => stream.end()?,
    }
    let (rows, text) = (stream.game.rows(), stream.text);
    if rows == 0 {
        return Err(Error::new(Kind::Empty, "the game has no rows").at_byte(0));
    }
    out.layout = Some(Arc::clone(layout_aligned()));
    out.frames = rows as usize;
    out.trailing = trailing;
    out.text = text as u64;
    Ok(())
}

/// Text that comes in steps, cut anywhere.
struct Stream<'a> {
    game: Game,
    rows: &'a mut Vec<u8>,
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    limits: &'a Limits,
    /// Bytes of text so far.
    text: usize,
}

impl Stream<'_> {
    fn most_text(&self) -> usize {
        self.limits.max_chunk_bytes.saturating_mul(MOST_TEXT)
    }

    fn within_bounds(&mut self, step: usize) -> bool {
        self.text = self.text.saturating_add(step);
        self.text <= self.most_text()
    }

    fn take(&mut self, step: &[u8]) -> Result<()> {
        let Some(end) = memrchr(b'\n', step) else { return self.keep(step) };
        let (lines, rest) = step.split_at(end + 1);
        if self.line.is_empty() {
            self.parse(lines)?;
        } else {
            let mut joined = std::mem::take(&mut self.line);
            let first = lines.iter().position(|c| *c == b'\n').map_or(lines.len(), |end| end + 1);
            joined.extend_from_slice(&lines[..first]);
            self.parse(&joined)?;
            self.parse(&lines[first..])?;
            joined.clear();
            self.line = joined;
        }
        self.keep(rest)
    }

    /// Holds the start of a line back.
    fn keep(&mut self, part: &[u8]) -> Result<()> {
        self.line.extend_from_slice(part);
        if self.line.len() <= MOST_LINE {
            return Ok(());
        }
        let e = Error::new(Kind::TooLarge, format!("a line of more than {MOST_LINE} bytes; is this a log of steps?"));
        Err(self.game.place(e.at_line(1, 1)))
    }

    fn parse(&mut self, lines: &[u8]) -> Result<()> {
        let start = self.rows.len();
        let max = self.limits.max_chunk_bytes;
        let piece = parse_piece(lines, &RowDefaults::default(), max, self.rows).map_err(|e| self.game.place(e))?;
        self.game.join(&piece, &mut self.rows[start..])?;
        match self.game.valuations().names().get(KNOWN_VALUATIONS.len()) {
            None => Ok(()),
            Some(name) => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let has_id = |row: &[u8; ALIGNED_BYTES]| usize::from(row[at::VALUATION_TYPE]) >= KNOWN_VALUATIONS.len();
        let frame = self.rows.as_chunks().0.iter().position(has_id).unwrap_or(0);
        let detail = format!(
            "valuation type `{name}`: only {} have the same id in every game; pack the logs, which keeps all names",
            KNOWN_VALUATIONS.join(", ")
        );
        Error::new(Kind::Unsupported, detail).in_frame(frame).at_byte(0)
    }

    /// Parses what follows the last end of a line, and checks the bound on all of it.
    fn end(&mut self) -> Result<()> {
        if self.text > self.most_text() {
            let detail = format!("more than {} bytes of text; raise max_chunk_bytes if it is real", self.most_text());
            return Err(Error::new(Kind::TooLarge, detail).at_byte(0));
        }
        let line = std::mem::take(&mut self.line);
        self.parse(&line)
    }
}
