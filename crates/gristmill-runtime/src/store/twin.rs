//! A file that is elsewhere -> a sparse file in memory of the same length, filled in blocks as they are wanted, and mapped like any other.
//! A block is fetched once; nothing reads a byte of a block that was not fetched.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error, Kind, Result};
use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes of a block.
const BLOCK: u64 = 256 << 10;

/// Bytes that one request asks for at most.
const REQUEST: u64 = 8 << 20;

/// The sparse file, and which of its blocks are there.
pub(super) struct Twin {
    path: PathBuf,
    from: Arc<dyn ReadAt>,
    len: u64,
    file: File,
    /// A bit for each block that is there.
    there: Vec<AtomicU64>,
    /// Blocks that are not.
    missing: AtomicU64,
    /// Held by the one thread that fetches.
    fetching: Mutex<Vec<u8>>,
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twin").field("path", &self.path).field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl Twin {
    /// A twin of the bytes of `from`, which people call `path`. Nothing is fetched yet.
    ///
    /// Errors: `Io`; `TooLarge` where there is no file of that length.
    pub(super) fn new(path: &Path, from: Arc<dyn ReadAt>) -> Result<Self> {
        let len = from.len()?;
        let made = memfd_create("gristmill", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let file = File::from(made);
        file.set_len(len).map_err(|e| Error::new(Kind::TooLarge, format!("no room for {len} bytes: {e}")))?;
        let blocks = len.div_ceil(BLOCK);
        let there = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let missing = AtomicU64::new(blocks);
        Ok(Twin { path: path.to_owned(), from, len, file, there, missing, fetching: Mutex::default() })
    }

    /// The sparse file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Sees to it that bytes `start..end` are there, as far as the file reaches.
    ///
    /// Errors, with the path: those of reading; `Truncated` where the file became shorter.
    pub(super) fn have(&self, start: u64, end: u64) -> Result<()> {
        let end = end.min(self.len);
        if start >= end || self.missing.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let blocks = start / BLOCK..end.div_ceil(BLOCK);
        if blocks.clone().all(|block| self.is_there(block)) {
            return Ok(());
        }
        let mut buffer = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = blocks.start;
        while next < blocks.end {
            if self.is_there(next) {
                next += 1;
                continue;
            }
            let most = blocks.end.min(next + REQUEST / BLOCK);
            let behind = (next..most).find(|block| self.is_there(*block)).unwrap_or(most);
            self.fetch(next, behind, &mut buffer).map_err(|e| e.in_source(self.path.display().to_string()))?;
            next = behind;
        }
        Ok(())
    }

    fn is_there(&self, block: u64) -> bool {
        self.there[(block / 64) as usize].load(Ordering::Acquire) >> (block % 64) & 1 == 1
    }

    /// Fetches blocks that are not there, in one request.
    fn fetch(&self, first: u64, behind: u64, buffer: &mut Vec<u8>) -> Result<()> {
        let offset = first * BLOCK;
        let len = (behind * BLOCK).min(self.len) - offset;
        read_span(&*self.from, Span { offset, len }, REQUEST, buffer)?;
        self.file.write_all_at(buffer, offset)?;
        for block in first..behind {
            self.there[(block / 64) as usize].fetch_or(1 << (block % 64), Ordering::Release);
            self.missing.fetch_sub(1, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Bytes whose reads are counted, and fail while they are to.
    struct Far {
        bytes: Vec<u8>,
        reads: AtomicUsize,
        fails: AtomicU64,
    }

    impl ReadAt for Far {
        fn len(&self) -> Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
            if self.fails.load(Ordering::Relaxed) > 0 {
                return Err(Error::new(Kind::Io(std::io::ErrorKind::TimedOut), "no answer"));
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.bytes.read_at(offset, buf)
        }
    }

    #[test]
    fn a_block_is_fetched_once_and_a_failed_one_again() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 100).map(|i| (i / 1000) as u8).collect();
        let far = Arc::new(Far { bytes: bytes.clone(), reads: AtomicUsize::new(0), fails: AtomicU64::new(0) });
        let twin = Twin::new(Path::new("memory://x/rows"), far.clone()).unwrap();
        let holds = |start: u64, end: u64| {
            twin.have(start, end).unwrap();
            let mut got = vec![0; (end - start) as usize];
            twin.file().read_exact_at(&mut got, start).unwrap();
            assert_eq!(got, bytes[start as usize..end as usize]);
        };
        holds(BLOCK - 1, BLOCK + 1);
        assert_eq!(far.reads.load(Ordering::Relaxed), 1, "two blocks, one request");
        holds(0, 2 * BLOCK);
        assert_eq!(far.reads.load(Ordering::Relaxed), 1);
        far.fails.store(1, Ordering::Relaxed);
        let e = twin.have(0, u64::MAX).unwrap_err();
        assert!(e.to_string().contains("memory://x/rows") && e.to_string().contains("no answer"), "{e}");
        far.fails.store(0, Ordering::Relaxed);
        holds(0, 3 * BLOCK + 100);
        holds(5, 6);
        assert_eq!(far.reads.load(Ordering::Relaxed), 2);
        assert!(twin.have(7 * BLOCK, 9 * BLOCK).is_ok(), "nothing is beyond the end");
    }
}
