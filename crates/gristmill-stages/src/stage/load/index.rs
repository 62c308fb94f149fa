//! A file of a known format -> what is in it: a tar from the side index, a solid file read whole, others by their own opening.
//! Decides nothing by a format's name but which index the side index has: how chunks are reached, the table of formats says.

use std::sync::Arc;

use gristmill_format::chess::source::GameTar;
use gristmill_format::detect::{self, Format};
use gristmill_format::source::{Access, ChunkSource, ReadAt};
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::{FileStat, Held};

use super::kept::Kept;
use super::log::SourceLog;
use super::solid::{Solid, refused};

/// What is in a file and, of a container, the open file; of a solid one, what reads it.
pub(super) struct Indexed {
    pub(super) chunks: Arc<dyn ChunkSource>,
    pub(super) kept: Option<Kept>,
    pub(super) solid: Option<Solid>,
}

impl SourceLog {
    /// Opens a container, or reads a solid file.
    ///
    /// Errors: `Io`, as of a file that left where it has another size than when it was found: an id is of the bytes that were
    /// found, and what it grew to is found as another; what the format's own opening gives; `Unsupported` for what is not
    /// streamed.
    pub(super) fn index(&self, format: Format, key: &str, file: &FileStat, held: Option<&Held>) -> Result<Indexed> {
        let bytes = match held {
            Some(held) => held.store.open(&held.file.name)?,
            None => self.store.open(&file.name)?,
        };
        let size = bytes.len()?;
        if size != file.size {
            let detail =
                format!("it has {size} bytes, and had {} when it was found: it was written over since", file.size);
            return Err(Error::new(Kind::Io(std::io::ErrorKind::NotFound), detail));
        }
        // Members decide what a plain tar is: shards are read whole.
        let format = match &self.solids {
            Some(_) => detect::detect_alone(key, &*bytes)?.unwrap_or(format),
            None => format,
        };
        let facts = self.facts.as_deref().filter(|_| format == Format::ChessTar);
        if let Some(index) = facts.and_then(|facts| facts.tar(file)) {
            return Ok(Indexed { chunks: Arc::new(GameTar::new(key, &index)), kept: Kept::new(bytes), solid: None });
        }
        if detect::access(format) == Access::Solid {
            let (solid, whole) = self.solids.as_ref().ok_or_else(refused)?.open(format, key, &*bytes)?;
            (self.fits)(whole.chunks.describe().kind)?;
            self.note_all(whole.faults.iter().chain(whole.chunks.faults()), file);
            return Ok(Indexed { chunks: whole.chunks, kept: Kept::new(bytes), solid: Some(solid) });
        }
        let chunks: Arc<dyn ChunkSource> = match facts {
            Some(facts) => {
                let tar = GameTar::open(key, &*bytes)?;
                facts.record_tar(file, tar.index());
                Arc::new(tar)
            }
            None => detect::open(format, key, &*bytes)?,
        };
        (self.fits)(chunks.describe().kind)?;
        self.note_all(chunks.faults().iter(), file);
        Ok(Indexed { chunks, kept: Kept::new(bytes), solid: None })
    }

    /// Counts what was wrong with a file and left its chunks.
    fn note_all<'a>(&self, faults: impl Iterator<Item = &'a Error>, file: &FileStat) {
        faults.for_each(|fault| self.note(&fault.clone().in_source(file.name.to_string())));
    }
}

/// Stands for the bytes of a file that is not to be touched.
pub(super) struct Untouched;

impl ReadAt for Untouched {
    fn len(&self) -> Result<u64> {
        Err(Error::new(Kind::Unsupported, "this file is not read before its chunks are"))
    }

    fn read_at(&self, _offset: u64, _buf: &mut [u8]) -> Result<usize> {
        Err(Error::new(Kind::Unsupported, "this file is not read before its chunks are"))
    }
}
