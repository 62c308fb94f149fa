//! The files of one game -> its sidecar, and its log as stored bytes or as something to be inflated piece by piece.
//! Which of the two depends on the file alone, so that what is found wrong does not depend on the machine.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_engine::store::open_file;
use gristmill_format::container::gzip_stream::GzipStream;
use gristmill_format::g2048::log::{Sidecar, steps_name};
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::sidecar;

/// Longest stored log that is inflated in one go: some 130 000 rows.
const WHOLE_STORED: u64 = 4 << 20;

/// Longest text of a log that is inflated in one go: some 65 000 rows, longer than games get.
pub(super) const WHOLE_TEXT: usize = 16 << 20;

/// Bytes of text in a piece of a longer log, and the longest line there.
pub(super) const PIECE: usize = 2 << 20;

/// A game whose files are there.
pub(super) struct Opened {
    pub(super) sidecar: Arc<Sidecar>,
    /// The sidecar as it was written.
    pub(super) sidecar_text: String,
    pub(super) log: Log,
}

/// The log of a game.
pub(super) enum Log {
    /// Short enough to be inflated whole.
    Whole(Vec<u8>),
    /// To be inflated piece by piece.
    Long(Box<Long>),
}

/// What a log was, as stored: how long, and its hash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) bytes: u64,
    pub(super) xxh3: u128,
}

impl Identity {
    pub(super) fn of(stored: &[u8]) -> Self {
        Identity { bytes: stored.len() as u64, xxh3: xxh3_128(stored) }
    }

    /// The key of the game: of its log and of the facts in its sidecar.
    pub(super) fn key(self, sidecar: &str) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(&self.bytes.to_le_bytes());
        hash.update(&self.xxh3.to_le_bytes());
        hash.update(sidecar.as_bytes());
        hash.digest128()
    }
}

/// Reads the sidecar at `name` below `root`, and opens the log beside it.
///
/// Errors, with the name below `root`: what cannot be read, and what the sidecar's parser refuses.
pub(super) fn open(root: &Path, name: &str) -> Result<Opened> {
    let sidecar = sidecar::read(&root.join(name)).map_err(|e| e.moved_to(name))?;
    let steps = steps_name(name).unwrap_or_default();
    let log = open_log(&root.join(&steps)).map_err(|e| e.moved_to(&steps))?;
    Ok(Opened { sidecar: Arc::new(sidecar.0), sidecar_text: sidecar.1, log })
}

fn open_log(path: &Path) -> Result<Log> {
    let file = open_file(path)?;
    if file.len()? > WHOLE_STORED {
        return Ok(Log::Long(Box::new(Long::new(file))));
    }
    let mut stored = Vec::new();
    read_span(&*file, Span::WHOLE, WHOLE_STORED, &mut stored)?;
    Ok(Log::Whole(stored))
}

/// A log that is being inflated piece by piece.
pub(super) struct Long {
    stream: GzipStream,
    read: Arc<Hashed>,
    /// The beginning of a line whose end was not inflated yet.
    begun: Vec<u8>,
    over: bool,
}

impl Long {
    fn new(file: Arc<dyn ReadAt>) -> Self {
        let read = Arc::new(Hashed { file, hash: Mutex::default() });
        Long { stream: GzipStream::new(read.clone()), read, begun: Vec::new(), over: false }
    }

    /// A log whose stored bytes are at hand.
    pub(super) fn of(stored: Vec<u8>) -> Self {
        Long::new(Arc::new(Held(stored)))
    }

    /// Replaces `text`, which has room for [`PIECE`] bytes, by the next whole lines; `false` when there are no more.
    ///
    /// Errors: what inflating gives; `TooLarge` for a line longer than a piece.
    pub(super) fn next(&mut self, text: &mut Vec<u8>) -> Result<bool> {
        text.clear();
        text.append(&mut self.begun);
        if !self.over {
            self.over = !self.stream.fill(text)?;
        }
        if !self.over {
            let lines = memchr::memrchr(b'\n', text).map_or(0, |end| end + 1);
            if lines == 0 {
                return Err(Error::new(Kind::TooLarge, format!("a line longer than {PIECE} bytes")));
            }
            self.begun.extend_from_slice(&text[lines..]);
            text.truncate(lines);
        }
        Ok(!text.is_empty())
    }

    /// What the log was as stored; reads what follows the last gzip member.
    pub(super) fn identity(&self) -> Result<Identity> {
        self.read.finish()
    }
}

/// Bytes that are read from the first to the last, and hashed on the way.
struct Hashed {
    file: Arc<dyn ReadAt>,
    /// The hash of the bytes so far, and how many.
    hash: Mutex<(Xxh3, u64)>,
}

impl Hashed {
    fn finish(&self) -> Result<Identity> {
        let mut rest = vec![0; 64 << 10];
        loop {
            let at = self.hash.lock().unwrap_or_else(PoisonError::into_inner).1;
            if self.read_at(at, &mut rest)? == 0 {
                let xxh3 = self.hash.lock().unwrap_or_else(PoisonError::into_inner).0.digest128();
                return Ok(Identity { bytes: at, xxh3 });
            }
        }
    }
}

impl ReadAt for Hashed {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let n = self.file.read_at(offset, buf)?;
        let mut hash = self.hash.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == hash.1 {
            hash.0.update(&buf[..n]);
            hash.1 += n as u64;
        }
        Ok(n)
    }
}

struct Held(Vec<u8>);

impl ReadAt for Held {
    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.0[..].read_at(offset, buf)
    }
}
