//! An opened file of data -> its chunks by number, stored or decoded, each error with the place.
//! Keeps no chunk by itself.

use std::sync::Arc;

use gristmill_format::container::tar::{TarLimits, walk as walk_tar};
use gristmill_format::demo::form::DemoFile;
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result, detect};

use super::Work;

/// An opened data file.
pub(crate) struct Opened {
    /// The path, as it was given or found.
    pub(crate) path: String,
    /// Its length in bytes.
    pub(crate) size: u64,
    format: detect::Format,
    /// What the jobs do with its chunks.
    pub(crate) kind: &'static dyn Work,
    pub(crate) source: Arc<dyn ChunkSource>,
    /// The same, where it is a file of demonstrations.
    pub(crate) demo: Option<Arc<DemoFile>>,
    bytes: Arc<dyn ReadAt>,
    limits: Limits,
}

impl Opened {
    /// A file of `size` bytes that was opened as what its kind says.
    pub(crate) fn new(
        path: String,
        (format, kind): (detect::Format, &'static dyn Work),
        (source, demo): (Arc<dyn ChunkSource>, Option<Arc<DemoFile>>),
        (bytes, size): (Arc<dyn ReadAt>, u64),
    ) -> Self {
        let limits = source.limits();
        Opened { path, size, format, kind, source, demo, bytes, limits }
    }

    /// Name of the member that holds chunk `i`, if it has one.
    pub(crate) fn member(&self, i: usize) -> Option<&str> {
        self.source.locate(i)?.1
    }

    /// Whether it is a chunk file, each of whose chunks is read by itself.
    pub(crate) fn is_of_chunks(&self) -> bool {
        self.format == detect::Format::Chunks
    }

    /// Reads the stored bytes of chunk `i`.
    ///
    /// Errors: `Truncated`, `TooLarge`, `Missing` or `Io`, with the place.
    pub(crate) fn fetch(&self, i: usize, stored: &mut Vec<u8>) -> Result<()> {
        let len = self.source.len();
        let Some((span, member)) = self.source.locate(i) else {
            let detail = format!("there is no chunk {i}; there are {len}, counted from 0");
            return Err(Error::new(Kind::Missing, detail).in_source(&self.path));
        };
        read_span(self.bytes.as_ref(), span, self.limits.max_chunk_bytes as u64, stored).map_err(|e| {
            let e = e.in_chunk(i).in_source(&self.path);
            member.map(|name| e.clone().in_member(name)).unwrap_or(e)
        })
    }

    /// Decodes chunk `i` from its stored bytes.
    ///
    /// Errors: what the format finds, with the place.
    pub(crate) fn decode(&self, i: usize, stored: &[u8], chunk: &mut Chunk) -> Result<()> {
        chunk.said.clear();
        self.source.decode(i, stored, &self.limits, chunk).map_err(|e| e.in_chunk(i).in_source(&self.path))
    }

    /// The licences that a tar brings along: name and text.
    pub(crate) fn licences(&self) -> Vec<(String, Vec<u8>)> {
        const MOST: u64 = 1 << 20;
        if self.format != detect::Format::ChessTar {
            return Vec::new();
        }
        let Ok(index) = walk_tar(self.bytes.as_ref(), &TarLimits::default()) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in index.iter().filter(|entry| entry.base_name() == "LICENSE") {
            let mut text = Vec::new();
            let span = Span { offset: entry.offset, len: entry.len };
            if read_span(self.bytes.as_ref(), span, MOST, &mut text).is_ok() {
                found.push((entry.name.to_owned(), text));
            }
        }
        found
    }

    /// Maximum number of bytes of a decoded chunk.
    pub(crate) fn max_chunk_bytes(&self) -> usize {
        self.limits.max_chunk_bytes
    }
}

/// Whether an error says that a file could not be read, rather than that what was read is no game: such a file is left out by
/// no policy, since its content is unknown.
pub fn is_unreadable(e: &gristmill_format::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof, Unsupported};
    match e.kind() {
        Kind::Away => true,
        Kind::Io(kind) => ![InvalidData, InvalidInput, UnexpectedEof, Unsupported].contains(&kind),
        _ => false,
    }
}
