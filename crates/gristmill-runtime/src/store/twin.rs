//! A file that is elsewhere -> a sparse file of this machine of the same length, filled in blocks as they are wanted, and mapped
//! like any other. A journal beside it has the checksum of each block that is there; nothing reads a block that was not held
//! against it in this process, so that no other process, kill or hole makes a wrong byte.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use rustix::fs::{MemfdFlags, memfd_create};

use super::blocks::{BLOCK, missing};
use super::cache::{self, BYTES, Place};
use crate::runtime::sync::atomic::{AtomicU64, Ordering};
use crate::runtime::sync::{Condvar, Mutex, MutexGuard};

mod arriving;
mod bounded;
mod claims;

pub(super) use arriving::write_pieces;
use bounded::Bound;
pub use bounded::{Hold, Pins};
use claims::Claim;
pub use claims::Claims;

/// The sparse file, and which of its blocks are there.
pub(super) struct Twin {
    path: PathBuf,
    from: Arc<dyn ReadAt>,
    len: u64,
    version: Option<u64>,
    file: File,
    /// Checksums of blocks, 8 bytes each, where several processes share them; none for a twin in memory.
    journal: Option<File>,
    /// Of a twin that is not kept the file in the cache, to whose journal nothing is written; blocks are copied from it.
    kept: Option<File>,
    /// A bit for each block that is there, and was held against its checksum.
    there: Vec<AtomicU64>,
    /// Blocks that are not.
    missing: AtomicU64,
    /// Blocks that a thread of this process fetches.
    fetched: Mutex<BTreeSet<u64>>,
    arrived: Condvar,
    /// Kept while the twin lives.
    _place: Option<Place>,
    /// The pins of blocks. `None` if nothing frees blocks of this twin.
    bound: Option<Bound>,
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twin").field("path", &self.path).field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl Twin {
    /// A twin of the bytes of `from`, which people call `path`: in the cache of this machine where they have a version, else in
    /// memory. Nothing is fetched yet.
    ///
    /// Errors: `Io`; `TooLarge` where there is no room for a file of that length.
    pub(super) fn new(path: &Path, from: Arc<dyn ReadAt>) -> Result<Self> {
        let Some(version) = from.version() else { return Twin::unkept(path, from) };
        let len = from.len()?;
        let place = cache::place(path, version, len)?;
        let mut twin = Twin::kept_in(&place.folder, path, from)?;
        twin._place = Some(place);
        Ok(twin)
    }

    /// The same in memory, for those who look at a small part: it takes what the cache has and changes nothing there.
    ///
    /// Errors: as [`Twin::new`].
    pub(super) fn unkept(path: &Path, from: Arc<dyn ReadAt>) -> Result<Self> {
        let made = memfd_create("gristmill", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let mut twin = Twin::made(path, from, File::from(made))?;
        if let Some(folder) = twin.version.and_then(|version| cache::found(path, version)) {
            (twin.journal, twin.kept) = (File::open(folder.join("blocks")).ok(), File::open(folder.join(BYTES)).ok());
            let whole = |file: &Option<File>, len| file.as_ref().is_some_and(|file| has_len(file, len));
            if !whole(&twin.journal, twin.len.div_ceil(BLOCK) * 8) || !whole(&twin.kept, twin.len) {
                (twin.journal, twin.kept) = (None, None);
            }
        }
        Ok(twin)
    }

    /// A twin in `file`, of which nothing is there.
    fn made(path: &Path, from: Arc<dyn ReadAt>, file: File) -> Result<Self> {
        let (len, version) = (from.len()?, from.version());
        sized(&file, len)?;
        let blocks = len.div_ceil(BLOCK);
        Ok(Twin {
            path: path.to_owned(),
            from,
            len,
            version,
            file,
            journal: None,
            kept: None,
            there: (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            missing: AtomicU64::new(blocks),
            fetched: Mutex::default(),
            arrived: Condvar::new(),
            _place: None,
            bound: None,
        })
    }

    /// What it is a twin of.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the whole file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Which version of the file it is, where it has one: such a file is kept in the cache.
    pub(super) fn version(&self) -> Option<u64> {
        self.version
    }

    /// A bit for each block that is there, and for each that the journal has, in this process or another.
    ///
    /// Errors, with the path: `Io`.
    pub(super) fn there(&self) -> Result<Vec<u64>> {
        let mut bits: Vec<u64> = self.there.iter().map(|bits| bits.load(Ordering::Acquire)).collect();
        let Some(journal) = &self.journal else { return Ok(bits) };
        let mut noted = vec![0; self.len.div_ceil(BLOCK) as usize * 8];
        let refused = |e: std::io::Error| Error::from(e).in_source(self.path.display().to_string());
        journal.read_exact_at(&mut noted, 0).map_err(refused)?;
        for (block, sum) in noted.chunks_exact(8).enumerate() {
            if sum.iter().any(|byte| *byte != 0) {
                bits[block / 64] |= 1 << (block % 64);
            }
        }
        Ok(bits)
    }

    /// The sparse file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Sees to it that the bytes of these ranges are there, as far as the file reaches: each block is fetched once.
    ///
    /// Errors, with the path: those of reading; `Truncated` where the file became shorter.
    pub(super) fn have(self: &Arc<Self>, ranges: &[(u64, u64)]) -> Result<()> {
        if let Some(bound) = &self.bound {
            bound.stay(self, ranges)?;
        } else if self.has(ranges) {
            return Ok(());
        }
        let wanted = missing(ranges, self.len, |block| self.is_there(block));
        self.bring(wanted).map_err(|e| e.in_source(self.path.display().to_string()))
    }

    /// Whether the bytes of these ranges are there, as far as the file reaches. They stay, unless something frees blocks of this twin.
    pub(super) fn has(&self, ranges: &[(u64, u64)]) -> bool {
        let has_all = |(start, end): &(u64, u64)| {
            let end = (*end).min(self.len);
            *start >= end || (start / BLOCK..end.div_ceil(BLOCK)).all(|block| self.is_there(block))
        };
        self.missing.load(Ordering::Acquire) == 0 || ranges.iter().all(has_all)
    }

    /// Fetches again what is there of these ranges: it was found to be wrong. Waits for what another thread fetches again already.
    ///
    /// Errors: as [`Twin::have`].
    pub(super) fn again(self: &Arc<Self>, ranges: &[(u64, u64)]) -> Result<()> {
        let mut fetched = self.fetching();
        let others = missing(ranges, self.len, |block| !fetched.contains(&block));
        let wrong = missing(ranges, self.len, |block| fetched.contains(&block) || !self.is_there(block));
        // Another thread finds them claimed and missing, or there and not claimed.
        for block in &wrong {
            let bit = 1 << (block % 64);
            if self.there[(block / 64) as usize].fetch_and(!bit, Ordering::AcqRel) & bit != 0 {
                self.missing.fetch_add(1, Ordering::AcqRel);
            }
        }
        fetched.extend(&wrong);
        drop(fetched);
        let claim = Claim { twin: Arc::clone(self), blocks: wrong };
        claim.blocks.iter().try_for_each(|block| self.note(*block, 0))?;
        let fetched = self.fetch(&claim.blocks);
        drop(claim);
        fetched.and_then(|()| self.bring(others)).map_err(|e| e.in_source(self.path.display().to_string()))
    }

    /// Brings blocks that were not there: those that nobody brings now; waits for the others.
    fn bring(self: &Arc<Self>, mut wanted: Vec<u64>) -> Result<()> {
        while !wanted.is_empty() {
            let fetched = self.fetching();
            wanted.retain(|block| !self.is_there(*block));
            let claim = self.claimed(fetched, &wanted);
            match claim {
                Ok(claim) => claim.bring()?,
                Err(fetched) if !wanted.is_empty() => drop(self.arrived.wait(fetched)),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Claims those blocks that nobody brings now; gives the lock back where there is none.
    fn claimed<'a>(
        self: &Arc<Self>,
        mut fetched: MutexGuard<'a, BTreeSet<u64>>,
        wanted: &[u64],
    ) -> std::result::Result<Claim, MutexGuard<'a, BTreeSet<u64>>> {
        let blocks: Vec<u64> = wanted.iter().filter(|block| !fetched.contains(block)).copied().collect();
        if blocks.is_empty() {
            return Err(fetched);
        }
        fetched.extend(&blocks);
        Ok(Claim { twin: Arc::clone(self), blocks })
    }

    /// Claims the missing blocks of `ranges` (byte ranges, cut at the end of the file). Pins all blocks of `ranges` if they may be freed.
    /// `None` if all these blocks are there and nothing frees blocks of this twin.
    pub(super) fn claim(self: &Arc<Self>, ranges: &[(u64, u64)]) -> Option<Claims> {
        let pins = self.pinned(ranges);
        if pins.is_none() && self.missing.load(Ordering::Acquire) == 0 {
            return None;
        }
        let fetched = self.fetching();
        let wanted = missing(ranges, self.len, |block| self.is_there(block));
        let ours = self.claimed(fetched, &wanted).ok();
        (pins.is_some() || !wanted.is_empty()).then(|| Claims { twin: Arc::clone(self), ours, wanted, pins })
    }

    fn fetching(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_there(&self, block: u64) -> bool {
        // This read and the pins have one order: a thread that frees a block sees the pin, or the thread that pins it sees that it is gone.
        self.there[(block / 64) as usize].load(Ordering::SeqCst) >> (block % 64) & 1 == 1
    }

    fn arrive(&self, block: u64) {
        if let Some(bound) = &self.bound {
            bound.arrived(block);
        }
        self.there[(block / 64) as usize].fetch_or(1 << (block % 64), Ordering::Release);
        self.missing.fetch_sub(1, Ordering::Release);
    }
}

fn sized(file: &File, len: u64) -> Result<()> {
    file.set_len(len).map_err(|e| Error::new(Kind::TooLarge, format!("no room for {len} bytes: {e}")))
}

fn has_len(file: &File, len: u64) -> bool {
    file.metadata().is_ok_and(|meta| meta.len() == len)
}

#[cfg(test)]
mod tests {
    use super::super::cache::tests::Own;
    use super::*;
    use std::fs::OpenOptions;
    use std::sync::atomic::AtomicUsize;

    /// Bytes whose reads are counted, and fail while they are to.
    struct Far {
        bytes: Vec<u8>,
        version: Option<u64>,
        reads: AtomicUsize,
        fails: AtomicU64,
    }

    impl Far {
        fn new(len: u64, version: Option<u64>) -> Arc<Far> {
            let bytes = (0..len).map(|i| (i / 1000) as u8).collect();
            Arc::new(Far { bytes, version, reads: AtomicUsize::new(0), fails: AtomicU64::new(0) })
        }

        fn reads(&self) -> usize {
            self.reads.load(Ordering::Relaxed)
        }
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

        fn version(&self) -> Option<u64> {
            self.version
        }
    }

    fn holds(twin: &Arc<Twin>, far: &Far, start: u64, end: u64) {
        twin.have(&[(start, end)]).unwrap();
        let mut got = vec![0; (end - start) as usize];
        twin.file().read_exact_at(&mut got, start).unwrap();
        assert!(got == far.bytes[start as usize..end as usize], "{start}..{end}");
    }

    #[test]
    fn a_block_is_fetched_once_and_a_failed_one_again() {
        let far = Far::new(3 * BLOCK + 100, None);
        let twin = Arc::new(Twin::new(Path::new("memory://x/rows"), far.clone()).unwrap());
        holds(&twin, &far, BLOCK - 1, BLOCK + 1);
        assert_eq!(far.reads(), 1, "two blocks, one request");
        holds(&twin, &far, 0, 2 * BLOCK);
        assert_eq!(far.reads(), 1);
        far.fails.store(1, Ordering::Relaxed);
        let e = twin.have(&[(0, u64::MAX)]).unwrap_err();
        assert!(e.to_string().contains("memory://x/rows") && e.to_string().contains("no answer"), "{e}");
        far.fails.store(0, Ordering::Relaxed);
        holds(&twin, &far, 0, 3 * BLOCK + 100);
        holds(&twin, &far, 5, 6);
        assert_eq!(far.reads(), 2);
        assert!(twin.have(&[(7 * BLOCK, 9 * BLOCK)]).is_ok(), "nothing is beyond the end");
    }

    #[test]
    fn many_threads_fetch_each_block_once() {
        let far = Far::new(40 * BLOCK, None);
        let twin = Arc::new(Twin::new(Path::new("memory://x/rows"), far.clone()).unwrap());
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (twin, far) = (&twin, &far);
                threads.spawn(move || {
                    (0..40).for_each(|i| {
                        holds(twin, far, (i * 7 + thread) % 40 * BLOCK, (i * 7 + thread) % 40 * BLOCK + 9)
                    })
                });
            }
        });
        assert_eq!((far.reads(), twin.has_all()), (40, true));
    }

    #[test]
    fn claims_in_order_ask_for_the_same_in_whatever_order_they_are_brought() {
        let far = Far::new(9 * BLOCK, None);
        let twin = Arc::new(Twin::new(Path::new("memory://x/rows"), far.clone()).unwrap());
        let first = twin.claim(&[(0, BLOCK), (4 * BLOCK, 5 * BLOCK)]).unwrap();
        let second = twin.claim(&[(0, 6 * BLOCK)]).unwrap();
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| Claims::bring(vec![second]));
            while far.reads() < 2 {
                std::thread::yield_now();
            }
            assert!(!waits.is_finished(), "blocks 0 and 4 are the first one's");
            let mut third = [twin.claim(&[(0, 6 * BLOCK)]).unwrap()];
            assert!(!Claims::bring_ours(&mut third).unwrap(), "it waits for no other");
            Claims::bring(vec![first]).unwrap();
            waits.join().unwrap().unwrap();
            assert!(Claims::are_there(&mut third));
        });
        assert_eq!(far.reads(), 4);
        assert!(twin.claim(&[(0, 6 * BLOCK)]).is_none() && !twin.has_all());
        drop(twin.claim(&[(6 * BLOCK, 8 * BLOCK)]));
        holds(&twin, &far, 6 * BLOCK, 8 * BLOCK);
        assert_eq!(far.reads(), 5, "a claim that is given up is no one's");
    }

    #[test]
    fn what_one_process_fetched_another_has_and_wrong_blocks_are_fetched_again() {
        let cache = Own::new(None);
        let path = Path::new("s3://x/rows");
        let far = Far::new(5 * BLOCK + 10, Some(7));
        let first = Arc::new(Twin::new(path, far.clone()).unwrap());
        holds(&first, &far, 0, 3 * BLOCK);
        let second = Arc::new(Twin::new(path, far.clone()).unwrap());
        holds(&second, &far, 0, 3 * BLOCK);
        assert_eq!(far.reads(), 1, "it was there");
        holds(&second, &far, 4 * BLOCK, 5 * BLOCK + 10);
        holds(&first, &far, 0, 5 * BLOCK + 10);
        assert_eq!(far.reads(), 3);
        drop((first, second));
        // A hole, a torn block and a block that was never noted, as a machine leaves them that lost its power.
        let kept = std::fs::read_dir(cache.folder()).unwrap().next().unwrap().unwrap().path();
        let open = |name: &str| OpenOptions::new().write(true).open(kept.join(name)).unwrap();
        open("bytes").write_all_at(&vec![0; BLOCK as usize], BLOCK).unwrap();
        open("bytes").write_all_at(&[9; 100], 3 * BLOCK - 50).unwrap();
        open("blocks").write_all_at(&[0; 8], 32).unwrap();
        let third = Arc::new(Twin::new(path, far.clone()).unwrap());
        holds(&third, &far, 0, 5 * BLOCK + 10);
        assert_eq!(far.reads(), 4, "blocks 1 to 4, in one request");
        let other = Twin::new(path, Far::new(5 * BLOCK + 10, Some(8))).unwrap();
        assert_eq!(other.missing.load(Ordering::Relaxed), 6, "another version is another file");
        let unkept = Arc::new(Twin::unkept(path, far.clone()).unwrap());
        assert_eq!(unkept.there().unwrap(), [0b11_1111]);
        holds(&unkept, &far, 0, 5 * BLOCK + 10);
        assert_eq!(far.reads(), 4, "a twin that is not kept has what is");
        unkept.again(&[(0, 10)]).unwrap();
        assert_eq!((far.reads(), third.there().unwrap()), (5, vec![0b11_1111]), "and leaves it");
    }

    #[test]
    fn a_block_that_comes_again_is_missing_until_then_and_makes_no_other_block_count_as_there() {
        let far = Far::new(2 * BLOCK, None);
        let twin = Arc::new(Twin::new(Path::new("memory://x/rows"), far.clone()).unwrap());
        holds(&twin, &far, 0, BLOCK);
        twin.again(&[(0, BLOCK)]).unwrap();
        assert!(twin.has(&[(0, BLOCK)]) && !twin.has(&[(BLOCK, BLOCK + 1)]), "block 1 never came");
        far.fails.store(1, Ordering::Relaxed);
        assert!(twin.again(&[(0, BLOCK)]).is_err());
        assert!(!twin.has(&[(0, 1)]), "its bytes were wrong");
        far.fails.store(0, Ordering::Relaxed);
        holds(&twin, &far, 0, 2 * BLOCK);
        assert!(twin.claim(&[(0, 2 * BLOCK)]).is_none());
    }

    #[test]
    fn a_kept_file_of_another_length_is_not_read() {
        let cache = Own::new(None);
        let path = Path::new("s3://x/rows");
        let far = Far::new(3 * BLOCK, Some(7));
        holds(&Arc::new(Twin::new(path, far.clone()).unwrap()), &far, 0, 3 * BLOCK);
        let kept = std::fs::read_dir(cache.folder()).unwrap().next().unwrap().unwrap().path();
        let cut = |name: &str, len: u64| OpenOptions::new().write(true).open(kept.join(name)).unwrap().set_len(len);
        for (name, len) in [("bytes", 3 * BLOCK), ("blocks", 24)] {
            cut(name, len - 1).unwrap();
            let reads = far.reads();
            let unkept = Arc::new(Twin::unkept(path, far.clone()).unwrap());
            assert_eq!(unkept.there().unwrap(), [0], "{name}");
            holds(&unkept, &far, 0, 3 * BLOCK);
            assert_eq!(far.reads(), reads + 1, "{name}");
            cut(name, len).unwrap();
        }
    }
}
