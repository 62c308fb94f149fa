//! Solid files -> their plain bytes: read whole once, kept while there is room, and read again after that.
//! One is read at a time, and what is kept has a bound. Which bytes a chunk has never depends on what is kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::detect::{self, Format};
use gristmill_format::source::{ReadAt, Span, Whole, read_span};
use gristmill_format::{Error, Kind, Result};
use xxhash_rust::xxh3::xxh3_64;

/// How many times its bound the reading of one file takes: stored, unpacked, parsed, and records that grow.
const READING: u64 = 6;

/// How many times the bound of one file is kept.
const KEPT: u64 = 4;

/// What is said of a file whose bytes are others than when it was first read.
const CHANGED: &str = "its bytes are others than when it was first read: it was written over in place; write a new file and rename \
                       it, and it is taken in as a new one";

/// The solid files of one loader.
#[derive(Debug)]
pub struct Solids {
    /// Most bytes of one file, stored and plain.
    most: u64,
    next: AtomicU64,
    /// Held while a file is read.
    reading: Mutex<()>,
    kept: Mutex<Kept>,
}

/// Plain bytes, by the number of their file: those that were used last come last.
#[derive(Debug, Default)]
struct Kept {
    files: VecDeque<(u64, Vec<u8>)>,
    bytes: u64,
}

impl Kept {
    fn remove(&mut self, number: u64) -> Option<Vec<u8>> {
        let at = self.files.iter().position(|(other, _)| *other == number)?;
        let (_, plain) = self.files.remove(at)?;
        self.bytes -= plain.len() as u64;
        Some(plain)
    }

    fn keep(&mut self, number: u64, plain: Vec<u8>, most: u64) {
        self.remove(number);
        let len = plain.len() as u64;
        while self.bytes.saturating_add(len) > most
            && let Some((_, oldest)) = self.files.pop_front()
        {
            self.bytes -= oldest.len() as u64;
        }
        self.bytes += len;
        self.files.push_back((number, plain));
    }
}

impl Solids {
    /// Files of at most `most` bytes each, stored and plain.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Solids { most, next: AtomicU64::default(), reading: Mutex::default(), kept: Mutex::default() })
    }

    /// Bytes of memory that files of at most `most` bytes can take, however many there are.
    pub const fn promised(most: u64) -> u64 {
        most.saturating_mul(READING + KEPT)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a file whole for the first time: what it is, where its chunks are, and the errors that left them whole.
    ///
    /// Errors: `TooLarge` beyond the bound, with what to do; as of [`detect::read_whole`].
    pub(super) fn open(self: &Arc<Self>, format: Format, key: &str, from: &dyn ReadAt) -> Result<(Solid, Whole)> {
        let _one = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut whole = self.read(format, key, from)?;
        let plain = std::mem::take(&mut whole.plain);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let solid = Solid { solids: Arc::clone(self), format, key: key.to_owned(), number, sum: xxh3_64(&plain) };
        self.kept().keep(number, plain, self.most.saturating_mul(KEPT));
        Ok((solid, whole))
    }

    fn read(&self, format: Format, key: &str, from: &dyn ReadAt) -> Result<Whole> {
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        let whole = detect::read_whole(format, key, from, most)
            .and_then(|whole| if whole.plain.len() > most { Err(Error::new(Kind::TooLarge, "")) } else { Ok(whole) });
        whole.map_err(|e| match e.kind() {
            Kind::TooLarge => Error::new(Kind::TooLarge, self.refusal(from.len().unwrap_or(0))),
            _ => e,
        })
    }

    fn refusal(&self, stored: u64) -> String {
        format!(
            "a file of {stored} bytes that is read whole, of which at most {} are taken, stored and unpacked (max_solid_bytes): raise \
             that, split the file, or write it in a form whose chunks are reached alone: {FORMS}",
            self.most
        )
    }
}

/// Forms whose chunks are reached alone, and how files become such.
const FORMS: &str = "games as a plain .tar or .pgn, all else as a pack (`gristmill pack`)";

/// The refusal of a solid file where none are taken.
pub(super) fn refused() -> Error {
    let detail = format!(
        "a file that is read whole: say how large one may be, such as max_solid_bytes = \"256MiB\", of which memory takes ten \
         times as much; or write it in a form whose chunks are reached alone: {FORMS}"
    );
    Error::new(Kind::Unsupported, detail)
}

/// One solid file that was read, and can be read again.
#[derive(Debug)]
pub(super) struct Solid {
    solids: Arc<Solids>,
    format: Format,
    key: String,
    number: u64,
    /// Hash of its plain bytes.
    sum: u64,
}

impl Solid {
    /// What tells its bytes.
    pub(super) fn digest(&self) -> u64 {
        self.sum
    }

    /// Reads a span of its plain bytes into `buf`; from the file, which is `from`, where they are not kept.
    ///
    /// Errors: `Corrupt` where the file is another one now; as of [`read_span`] and of its first reading.
    pub(super) fn read(&self, from: &dyn ReadAt, span: Span, most: u64, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(read) = self.read_kept(span, most, buf) {
            return read;
        }
        let _one = self.solids.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = self.read_kept(span, most, buf) {
            return read;
        }
        let again = self.solids.read(self.format, &self.key, from);
        let changed = |e: Error| if e.kind().is_of_reading() { e } else { e.and("; ").and(CHANGED) };
        let plain = again.map_err(changed)?.plain;
        if xxh3_64(&plain) != self.sum {
            return Err(Error::new(Kind::Corrupt, CHANGED));
        }
        let read = read_span(plain.as_slice(), span, most, buf);
        self.solids.kept().keep(self.number, plain, self.solids.most.saturating_mul(KEPT));
        read
    }

    /// Reads a span of what is kept, and keeps it as what was used last.
    fn read_kept(&self, span: Span, most: u64, buf: &mut Vec<u8>) -> Option<Result<()>> {
        let mut kept = self.solids.kept();
        let plain = kept.remove(self.number)?;
        let read = read_span(plain.as_slice(), span, most, buf);
        kept.keep(self.number, plain, u64::MAX);
        Some(read)
    }
}

impl Drop for Solid {
    fn drop(&mut self) {
        self.solids.kept().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_within_its_bound_and_the_last_used_stays_longest() {
        let mut kept = Kept::default();
        for number in 0..4 {
            kept.keep(number, vec![0; 10], 40);
        }
        let first = kept.remove(0).unwrap();
        kept.keep(0, first, 40);
        kept.keep(9, vec![0; 15], 40);
        assert_eq!(kept.files.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [3, 0, 9]);
        assert_eq!(kept.bytes, 35);
        kept.keep(9, vec![0; 41], 41);
        assert_eq!((kept.files.len(), kept.bytes), (1, 41));
    }
}
