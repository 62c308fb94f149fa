//! One object of a bucket -> its bytes at any offset: its beginning came when it was opened, small reads one after the other
//! are fetched ahead, others as they are. An object that was replaced meanwhile is refused, never mixed.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gristmill_format::source::{ReadAt, Span, Take};
use gristmill_format::{Error, Kind, Result};
use object_store::ObjectMeta;
use object_store::path::Path as Key;
use xxhash_rust::xxh3::xxh3_64;

use super::requests::Requests;

/// Bytes that come when an object is opened: all of most games.
const HEAD: u64 = 64 << 10;

/// Bytes that one request asks for at most when it fetches ahead.
const AHEAD: u64 = 8 << 20;

/// An object, as it was when it was opened.
#[derive(Debug)]
pub(super) struct Object {
    requests: Arc<Requests>,
    key: Key,
    meta: ObjectMeta,
    head: Bytes,
    latest: Mutex<Latest>,
}

/// What was fetched last.
#[derive(Debug, Default)]
struct Latest {
    offset: u64,
    bytes: Bytes,
    /// How much was fetched ahead.
    ahead: u64,
}

impl Latest {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl Object {
    /// The object at a key; one request that brings its beginning, too.
    ///
    /// Errors: as [`Requests::beginning`].
    pub(super) fn open(requests: Arc<Requests>, key: Key) -> Result<Self> {
        let (meta, head) = requests.beginning(&key, HEAD)?;
        Ok(Object { requests, key, meta, head, latest: Mutex::default() })
    }

    /// An object as a list has it, without a request; none of one whose versions the list does not tell apart.
    pub(super) fn listed(requests: Arc<Requests>, mut meta: ObjectMeta) -> Option<Self> {
        // Lists of some clouds leave out the quotes that answers about one object have.
        let tag = meta.e_tag.take().filter(|tag| !tag.is_empty())?;
        meta.e_tag = Some(if tag.ends_with('"') { tag } else { format!("\"{tag}\"") });
        let key = meta.location.clone();
        Some(Object { requests, key, meta, head: Bytes::new(), latest: Mutex::default() })
    }

    /// Bytes of it, in one request.
    fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        self.requests.get(&self.key, range, &self.meta)
    }

    /// Reads at least one byte, of those that there are.
    fn read_some(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let n = copied(0, &self.head, offset, buf);
        if n > 0 {
            return Ok(n);
        }
        let latest = || self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = {
            let latest = latest();
            let n = copied(latest.offset, &latest.bytes, offset, buf);
            if n > 0 {
                return Ok(n);
            }
            let end = if latest.bytes.is_empty() { self.head.len() as u64 } else { latest.end() };
            // Headers of a tar are read one after the other, with what they describe between them.
            let follows = offset >= end && offset - end <= latest.ahead.max(HEAD);
            if follows { (latest.ahead * 2).clamp(HEAD, AHEAD) } else { 0 }
        };
        let bytes = self.fetch(offset..(offset + ahead.max(buf.len() as u64)).min(self.meta.size))?;
        let n = copied(offset, &bytes, offset, buf);
        if n == 0 {
            return Err(Error::new(Kind::Truncated, "a request brought no bytes").at_byte(offset));
        }
        if bytes.len() as u64 <= AHEAD {
            *latest() = Latest { offset, bytes, ahead };
        }
        Ok(n)
    }
}

/// Copies what of `bytes`, which begin at `start`, lies from `offset` on; nothing where they do not have that.
fn copied(start: u64, bytes: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let Some(from) = offset.checked_sub(start).and_then(|from| bytes.get(usize::try_from(from).ok()?..)) else {
        return 0;
    };
    let n = from.len().min(buf.len());
    buf[..n].copy_from_slice(&from[..n]);
    n
}

impl ReadAt for Object {
    fn len(&self) -> Result<u64> {
        Ok(self.meta.size)
    }

    fn version(&self) -> Option<u64> {
        let stat = super::stat_of(&self.meta, "");
        Some(xxh3_64(format!("{} {} {}", stat.inode, stat.size, stat.mtime_ns).as_bytes()))
    }

    fn read_spans(&self, spans: &[Span], each: &mut Take<'_>) -> Result<()> {
        self.requests.get_all(&self.key, spans, &self.meta, each)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = (buf.len() as u64).min(self.meta.size.saturating_sub(offset)) as usize;
        let mut done = 0;
        while done < wanted {
            done += self.read_some(offset + done as u64, &mut buf[done..wanted])?;
        }
        Ok(done)
    }
}
