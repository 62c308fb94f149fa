//! The path of one file -> its chunks, whole: for looking, checking and tests rather than for streaming.
//! Reads only what the caller requests; every error names the file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gristmill_format::detect::detect_alone;
use gristmill_format::layout::Layout;
use gristmill_format::source::{Chunk, ChunkSource, Limits, ReadAt, read_span};
use gristmill_format::{Error, Kind, Result};

use crate::store::files::is_folder;
use crate::store::open_file;
use crate::store::place::resolved;

/// Opens any single file whose name or first bytes [`detect_alone`] knows, within its format's bounds.
///
/// Errors, with the path: `Io`, `UnknownFormat`, `Unsupported` with advice (a folder), and what the format's own opening
/// gives.
pub fn open(path: impl AsRef<Path>) -> Result<OpenSource> {
    opened(path.as_ref(), None)
}

/// Opens a file like [`open`], with other bounds.
///
/// Errors: as [`open`].
pub fn open_within(path: &Path, limits: Limits) -> Result<OpenSource> {
    opened(path, Some(limits))
}

fn opened(path: &Path, limits: Option<Limits>) -> Result<OpenSource> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let path = &*resolved(path).map_err(|e| place(Error::new(Kind::Unsupported, e.to_string())))?;
    if is_folder(path)? {
        let advice = "a folder, not a file; give one file of it, or read the folder with a loader";
        return Err(place(Error::new(Kind::Unsupported, advice)));
    }
    let bytes = open_file(path)?;
    let key = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(format) = detect_alone(&key, &*bytes).map_err(place)? else {
        let detail = "neither the name nor the first bytes belong to a known format";
        return Err(place(Error::new(Kind::UnknownFormat, detail)));
    };
    let chunks = gristmill_format::detect::open(format, &key, &*bytes).map_err(place)?;
    let limits = limits.unwrap_or_else(|| chunks.limits());
    let frames = (0..chunks.len()).map(|_| OnceLock::new()).collect();
    Ok(OpenSource { path: path.to_owned(), bytes, chunks, limits, layout: OnceLock::new(), frames })
}

/// One open file of chunks. Can be read from many threads at once.
pub struct OpenSource {
    path: PathBuf,
    bytes: Arc<dyn ReadAt>,
    chunks: Arc<dyn ChunkSource>,
    limits: Limits,
    layout: OnceLock<Arc<Layout>>,
    /// Frames of each chunk, as far as they were counted.
    frames: Vec<OnceLock<usize>>,
}

impl std::fmt::Debug for OpenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSource").field("path", &self.path).field("chunks", &self.chunks).finish()
    }
}

impl OpenSource {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// File name without directory: the sort key, and the identity that splits hash.
    pub fn key(&self) -> &str {
        &self.chunks.describe().key
    }

    /// Short name of container and format, such as `lc0.gz` or `lc0.tar`.
    pub fn format(&self) -> &'static str {
        self.chunks.describe().format
    }

    /// How many chunks there are.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is wrong with the container as a whole, while its good chunks remain readable.
    pub fn faults(&self) -> &[Error] {
        self.chunks.faults()
    }

    /// The chunk source of the file.
    pub fn chunks(&self) -> &Arc<dyn ChunkSource> {
        &self.chunks
    }

    /// Name of chunk `i` inside the container, if it has one.
    pub fn member(&self, i: usize) -> Option<&str> {
        self.chunks.locate(i).and_then(|(_, member)| member)
    }

    /// The layout of the records: that of the first chunk that can be decoded. Found once.
    ///
    /// Errors: `Empty` where there is no chunk; else the error of the first chunk where none can be decoded.
    pub fn layout(&self) -> Result<Arc<Layout>> {
        if let Some(layout) = self.layout.get() {
            return Ok(layout.clone());
        }
        let mut chunk = Chunk::default();
        let mut first = None;
        for i in 0..self.len() {
            match self.chunk(i, &mut chunk) {
                Ok(()) => {
                    if let Some(layout) = &chunk.layout {
                        return Ok(self.layout.get_or_init(|| layout.clone()).clone());
                    }
                }
                Err(e) => first = first.or(Some(e)),
            }
        }
        Err(first.unwrap_or_else(|| self.place(Error::new(Kind::Empty, "no chunks, hence no records"))))
    }

    /// How many frames chunk `i` has; decodes it the first time.
    ///
    /// Errors: as [`OpenSource::chunk`].
    pub fn frames(&self, i: usize) -> Result<usize> {
        match self.frames.get(i).and_then(OnceLock::get) {
            Some(frames) => Ok(*frames),
            None => {
                let mut chunk = Chunk::default();
                self.chunk(i, &mut chunk)?;
                Ok(chunk.frames)
            }
        }
    }

    /// How many frames all chunks have together; decodes those whose number is not known yet.
    ///
    /// Errors: that of the first chunk that cannot be decoded.
    pub fn num_frames(&self) -> Result<u64> {
        let mut chunk = Chunk::default();
        let mut total = 0;
        for (i, known) in self.frames.iter().enumerate() {
            total += match known.get() {
                Some(frames) => *frames as u64,
                None => {
                    self.chunk(i, &mut chunk)?;
                    chunk.frames as u64
                }
            };
        }
        Ok(total)
    }

    /// Decodes chunk `i` into `out`, replacing what was there.
    ///
    /// Errors, with file, member, chunk and byte: `Missing` for a chunk that does not exist, `Io`, `Truncated`,
    /// `TooLarge`, and what the format's decoder says.
    pub fn chunk(&self, i: usize, out: &mut Chunk) -> Result<()> {
        let decoded = self.decode(i, out);
        match (decoded, self.frames.get(i)) {
            (Ok(()), Some(known)) => {
                known.get_or_init(|| out.frames);
                Ok(())
            }
            (Ok(()), None) => Ok(()),
            (Err(e), _) => {
                let e = self.place(e).in_chunk(i);
                Err(match self.member(i) {
                    Some(member) => e.in_member(member),
                    None => e,
                })
            }
        }
    }

    fn decode(&self, i: usize, out: &mut Chunk) -> Result<()> {
        let Some((span, _)) = self.chunks.locate(i) else {
            return Err(Error::new(Kind::Missing, format!("there are {} chunks", self.len())));
        };
        let mut stored = Vec::new();
        read_span(&*self.bytes, span, self.limits.max_chunk_bytes as u64, &mut stored)?;
        self.chunks.decode(i, &stored, &self.limits, out)
    }

    fn place(&self, e: Error) -> Error {
        e.in_source(self.path.display().to_string())
    }
}
