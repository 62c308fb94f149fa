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
    /// Errors: as [`SourceLog::is_as_found`] and of the format's own opening; `Unsupported` for what is not streamed.
    pub(super) fn index(&self, format: Format, key: &str, file: &FileStat, held: Option<&Held>) -> Result<Indexed> {
        let bytes = match held {
            Some(held) => held.store.open(&held.file.name)?,
            None => self.store.open(&file.name)?,
        };
        self.is_as_found(&*bytes, file, held.is_some())?;
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
            let (solid, opened) = self.solids.as_ref().ok_or_else(refused)?.open(format, key, &*bytes)?;
            (self.fits)(opened.chunks.describe().kind)?;
            self.note_all(opened.faults.iter().chain(opened.chunks.faults()), file);
            return Ok(Indexed { chunks: opened.chunks, kept: Kept::new(bytes), solid: Some(solid) });
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

    /// Whether an opened file has the bytes that were found: an id is of those, and what the file grew to, or what took its name
    /// since, is found as another.
    ///
    /// Errors: `Io`, as of a file that left, where size, time or identity differ; as of `Store::stat`.
    fn is_as_found(&self, bytes: &dyn ReadAt, file: &FileStat, held: bool) -> Result<()> {
        let size = bytes.len()?;
        let difference = if size != file.size {
            format!("it has {size} bytes, and had {} when it was found", file.size)
        } else if held || self.store.stat(&file.name)?.is_as(file) {
            return Ok(());
        } else {
            "another file of the same size has its name".to_owned()
        };
        let left = Kind::Io(std::io::ErrorKind::NotFound);
        Err(Error::new(left, format!("{difference}: it was written over since")))
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
