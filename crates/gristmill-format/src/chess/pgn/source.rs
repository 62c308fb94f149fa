//! A file of PGN as a source of chunks: each game is one, its records made when it is decoded.
//! Opening reads the file once, for where games lie; memory keeps twelve bytes of each.

use std::sync::Arc;

use gristmill_bytes::container::gzip::{self, Inflater};
use gristmill_bytes::container::zstd;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::plain::Whole;
use gristmill_bytes::source::{Chunk, ChunkSource, Description, Limits, ReadAt, Span, read_span};

use super::game::read;
use super::records::{usual_format, write};
use super::split::Splitter;
use crate::chess::KIND;
use crate::chess::record::{V6_BYTES, layout_v6};
use crate::chess::rescore::Played;

/// How sources call themselves.
pub const FORMAT: &str = "pgn";
/// What files are called whose text is plain.
pub const PLAIN: [&str; 1] = [".pgn"];
/// What files are called that are compressed as a whole.
pub const PACKED: [&str; 3] = [".pgn.gz", ".pgn.zst", ".pgn.zstd"];

/// Maximum number of bytes of a compressed file, unpacked, that is read into memory.
const MAX_BYTES: usize = 2 << 30;

/// Bytes that are read at a time.
const WINDOW: usize = 256 << 10;

/// Whether a file begins as files of PGN do.
pub fn begins(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().starts_with(b"[Event ")
}

/// Where the games of a file lie.
#[derive(Debug)]
pub struct PgnFile {
    description: Description,
    starts: Vec<u64>,
    /// Their lengths; at most what 32 bits hold, which is beyond every bound.
    lens: Vec<u32>,
    faults: Vec<Error>,
}

impl PgnFile {
    /// The games of the file called `key` (without directory), which is read once.
    ///
    /// Errors: `Io`; `Truncated` where the file shrinks.
    pub fn open(key: impl Into<String>, from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let description = Description { key: key.into(), format: FORMAT, kind: KIND };
        let mut file = PgnFile { description, starts: Vec::new(), lens: Vec::new(), faults: Vec::new() };
        let (mut splitter, mut at, mut window) = (Splitter::default(), 0, vec![0; WINDOW]);
        loop {
            let n = from.read_at(at, &mut window)?;
            splitter.feed(&window[..n], &mut |start, end| file.add(start, end));
            at += n as u64;
            if n == 0 {
                break;
            }
        }
        splitter.finish(&mut |start, end| file.add(start, end));
        Ok(file)
    }

    /// The same, with a fault of what was around its text.
    #[must_use]
    pub fn noting(mut self, fault: Option<Error>) -> Self {
        self.faults.extend(fault);
        self
    }

    fn add(&mut self, start: u64, end: u64) {
        self.starts.push(start);
        self.lens.push(u32::try_from(end - start).unwrap_or(u32::MAX));
    }

    fn span(&self, i: usize) -> Option<Span> {
        let (offset, len) = self.starts.get(i).zip(self.lens.get(i))?;
        Some(Span { offset: *offset, len: u64::from(*len) })
    }

    fn decode_at(&self, start: u64, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let game = read(bytes).map_err(|e| e.after_lines(0, start))?;
        let (frames, most) = (game.plies.len(), limits.max_chunk_bytes);
        if frames.saturating_mul(V6_BYTES) > most {
            let detail =
                format!("{frames} positions of {V6_BYTES} bytes; the bound is {most} bytes: raise max_chunk_bytes");
            return Err(Error::new(Kind::TooLarge, detail).at_byte(start));
        }
        let format = usual_format(&game);
        let mut played = std::mem::take(out.kept.tool::<Played>());
        let written = write(&game, format, &mut played, &mut out.bytes);
        *out.kept.tool() = played;
        written.map_err(|e| e.at_byte(start))?;
        (out.layout, out.frames, out.said) = (Some(Arc::clone(layout_v6())), frames, game.tags);
        Ok(())
    }
}

impl ChunkSource for PgnFile {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        self.span(i).map(|span| (span, None))
    }

    fn decode(&self, i: usize, bytes: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        (out.frames, out.trailing) = (0, 0);
        out.bytes.clear();
        let missing = || Error::new(Kind::Missing, format!("game {i} of a file of {}", self.len()));
        let span = self.span(i).ok_or_else(missing).map_err(|e| e.in_chunk(i))?;
        self.decode_at(span.offset, bytes, limits, out).map_err(|e| {
            out.bytes.clear();
            e.in_chunk(i)
        })
    }

    fn faults(&self) -> &[Error] {
        &self.faults
    }
}

/// A compressed file, of at most `max` bytes unpacked, as plain bytes and the games in them.
///
/// Errors: what the decompressor says; `TooLarge` beyond the bound.
pub fn whole(key: &str, stored: Vec<u8>, max: usize) -> Result<Whole> {
    let (mut plain, faults) = unpacked(stored, max)?;
    plain.shrink_to_fit();
    let chunks = Arc::new(PgnFile::open(key, plain.as_slice())?);
    Ok(Whole { chunks, plain: Box::new(plain), faults })
}

fn unpacked(stored: Vec<u8>, max: usize) -> Result<(Vec<u8>, Vec<Error>)> {
    let mut plain = Vec::new();
    if !stored.starts_with(&gzip::MAGIC) {
        zstd::decompress(&stored, max, &mut plain)?;
        return Ok((plain, Vec::new()));
    }
    let behind = Inflater::default().inflate(&stored, max, &mut plain)?.trailing;
    let at = stored.len() - behind;
    let fault = (behind > 0 && stored[at..].iter().any(|byte| *byte != 0)).then(|| {
        let detail =
            "bytes after the gzip stream that are not gzip data: something was joined to it, or a part is lost";
        Error::new(Kind::Corrupt, detail).at_byte(at as u64)
    });
    Ok((plain, fault.into_iter().collect()))
}

/// A compressed file that is kept unpacked.
#[derive(Debug)]
pub struct PackedPgn {
    games: PgnFile,
    plain: Vec<u8>,
}

impl PackedPgn {
    /// Unpacks the file called `key`.
    ///
    /// Errors: as [`whole`].
    pub fn open(key: &str, from: &dyn ReadAt) -> Result<Self> {
        let mut stored = Vec::new();
        read_span(from, Span::WHOLE, MAX_BYTES as u64, &mut stored)?;
        let (plain, faults) = unpacked(stored, MAX_BYTES)?;
        let games = PgnFile::open(key, plain.as_slice())?.noting(faults.into_iter().next());
        Ok(PackedPgn { games, plain })
    }
}

impl ChunkSource for PackedPgn {
    fn describe(&self) -> &Description {
        self.games.describe()
    }

    fn len(&self) -> usize {
        self.games.len()
    }

    /// Nothing needs to be fetched: an empty span.
    fn locate(&self, i: usize) -> Option<(Span, Option<&str>)> {
        (i < self.len()).then_some((Span { offset: 0, len: 0 }, None))
    }

    fn decode(&self, i: usize, _: &[u8], limits: &Limits, out: &mut Chunk) -> Result<()> {
        let span = self.games.span(i).unwrap_or_default();
        let bytes = self.plain.get(span.offset as usize..(span.offset + span.len) as usize).unwrap_or_default();
        self.games.decode(i, bytes, limits, out)
    }

    fn faults(&self) -> &[Error] {
        self.games.faults()
    }
}
