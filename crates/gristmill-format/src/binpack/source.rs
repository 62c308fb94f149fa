//! A binpack as a source of chunks: each chain is one, its positions made when it is decoded.
//! Opening reads the file once, block by block, for where chains lie; memory keeps six bytes of each. What follows a broken chain
//! in its block cannot be found: it is one chunk with that chain, which is refused with its place.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};

use super::KIND;
use super::chain::{play, records};
use super::record::{BYTES, layout};

/// How sources call themselves.
pub const FORMAT: &str = "stockfish.binpack";
/// What begins each block.
pub const MAGIC: [u8; 4] = *b"BINP";
/// Bytes before the chains of a block: what begins it, and its length.
pub const HEADER: usize = 8;
/// Maximum number of bytes of the chains of a block.
pub const MAX_BLOCK: u32 = 100 << 20;

/// Whether a file begins as binpacks do.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Where the chains of a block lie.
#[derive(Debug)]
struct Block {
    /// Its first chain.
    first: usize,
    /// The first byte of its chains, in the file.
    start: u64,
    /// Their bytes.
    len: u32,
}

/// A binpack.
#[derive(Debug)]
pub struct Binpack {
    description: Description,
    blocks: Vec<Block>,
    /// Where each chain begins, in the chains of its block.
    starts: Vec<u32>,
    /// The plies after its first position; none that are known of a broken one, which has 0.
    plies: Vec<u16>,
    /// Numbers of the broken chains.
    broken: Vec<usize>,
    faults: Vec<Error>,
}

impl Binpack {
    /// The chains of the file called `key` (without directory), which is read once.
    ///
    /// Errors: `Io`; `Truncated` where the file shrinks; `Corrupt` for a file that does not begin with a block, `TooLarge` for one
    /// whose first block says that it is larger than any.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let description = Description { key: key.into(), format: FORMAT, kind: KIND };
        let mut file = Binpack {
            description,
            blocks: Vec::new(),
            starts: Vec::new(),
            plies: Vec::new(),
            broken: Vec::new(),
            faults: Vec::new(),
        };
        let (end, mut at, mut bytes) = (from.len()?, 0, Vec::new());
        while at < end {
            let start = at + HEADER as u64;
            let len = match header(from, at, end, &mut bytes) {
                Ok(len) => u64::from(len),
                Err(e) if e.kind().is_of_reading() || file.blocks.is_empty() => return Err(e),
                Err(e) => {
                    let lost = format!("; the {} bytes from here on are not read", end - at);
                    file.faults.push(e.and(&lost));
                    break;
                }
            };
            let there = len.min(end - start);
            read_span(from, Span { offset: start, len: there }, MAX_BLOCK.into(), &mut bytes)?;
            let whole = file.block(start, &bytes);
            if there < len && whole {
                let detail = format!("a block of {len} bytes, the file ends after {there} of them");
                file.faults.push(Error::new(Kind::Truncated, detail).at_byte(end));
            }
            at = start + there;
        }
        file.starts.shrink_to_fit();
        file.plies.shrink_to_fit();
        Ok(file)
    }

    /// Adds the chains of a block; whether all are whole.
    fn block(&mut self, start: u64, bytes: &[u8]) -> bool {
        let len = bytes.len() as u32;
        self.blocks.push(Block { first: self.starts.len(), start, len });
        let mut at = 0;
        while at < bytes.len() {
            self.starts.push(at as u32);
            match play(&bytes[at..], &mut |_, _| {}) {
                Ok(played) => {
                    self.plies.push((played.frames - 1) as u16);
                    at += played.bytes;
                }
                Err(_) => {
                    self.broken.push(self.plies.len());
                    self.plies.push(0);
                    return false;
                }
            }
        }
        true
    }

    fn span(&self, i: usize) -> Option<Span> {
        let start = *self.starts.get(i)?;
        let number = self.blocks.partition_point(|block| block.first <= i).checked_sub(1)?;
        let block = self.blocks.get(number)?;
        let next = self.blocks.get(number + 1).map_or(self.starts.len(), |block| block.first);
        let end = if i + 1 < next { *self.starts.get(i + 1)? } else { block.len };
        Some(Span { offset: block.start + u64::from(start), len: u64::from(end - start) })
    }
}

/// How long the chains of the block are whose header is at `at`.
fn header(from: &(impl ReadAt + ?Sized), at: u64, end: u64, bytes: &mut Vec<u8>) -> Result<u32> {
    let there = (end - at).min(HEADER as u64);
    read_span(from, Span { offset: at, len: there }, HEADER as u64, bytes)?;
    let refuse = |kind: Kind, detail: String| Err(Error::new(kind, detail).at_byte(at));
    match bytes.first_chunk::<HEADER>() {
        Some([b'B', b'I', b'N', b'P', size @ ..]) => match u32::from_le_bytes(*size) {
            size if size > MAX_BLOCK => {
                refuse(Kind::TooLarge, format!("a block of {size} bytes, expected at most {MAX_BLOCK}"))
            }
            size => Ok(size),
        },
        None if MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) => {
            refuse(Kind::Truncated, format!("{there} bytes, expected the {HEADER} before a block"))
        }
        _ => refuse(Kind::Corrupt, "expected a block, which begins with BINP".to_owned()),
    }
}

impl ChunkSource for Binpack {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.span(i).map(|span| (span, None))
    }

    fn frames(&self, i: usize) -> Option<usize> {
        let plies = self.plies.get(i)?;
        self.broken.binary_search(&i).is_err().then_some(1 + usize::from(*plies))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let missing = || Error::new(Kind::Missing, format!("chain {i} of a file of {}", self.len()));
        let span = self.span(i).ok_or_else(missing).map_err(|e| e.in_chunk(i))?;
        let played = records(bytes, limits.max_chunk_bytes / BYTES, &mut out.bytes).and_then(|played| {
            if played.bytes as u64 == span.len && bytes.len() as u64 == span.len {
                return Ok(played);
            }
            let detail = format!("a chain of {} bytes, expected {}: the file was changed", played.bytes, span.len);
            Err(Error::new(Kind::WrongSize, detail).at_byte(0))
        });
        let played = played.map_err(|e| {
            out.bytes.clear();
            let behind = span.len.saturating_sub(e.place().offset.unwrap_or(0));
            let lost = format!("; with it, {behind} bytes up to the end of its block are not read");
            let e = if self.broken.binary_search(&i).is_ok() { e.and(&lost) } else { e };
            e.after_lines(0, span.offset).in_chunk(i)
        })?;
        (out.layout, out.frames) = (Some(Arc::clone(layout())), played.frames);
        Ok(())
    }

    fn faults(&self) -> &[Error] {
        &self.faults
    }
}
