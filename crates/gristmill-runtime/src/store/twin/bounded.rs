//! Frees blocks of a twin. A thread never frees a block that somebody has pinned or fetches. It takes the block out of the journal before
//! it punches out the bytes: a kill in between loses the block, and never shows a hole.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::super::blocks::{BLOCK, bytes, missing};
use super::super::cache::BYTES;
use super::super::pool::Pool;
use super::{Claim, Twin, sized};

/// The state of a twin whose blocks may be freed.
pub(in crate::store) struct Bound {
    /// The pool that frees blocks.
    pool: Weak<Pool>,
    /// For each block, how many readers have pinned it.
    pins: Vec<AtomicU32>,
    /// For each block, how often it came.
    arrivals: Vec<AtomicU32>,
    /// A bit for each block that takes room on the disk, whether it was checked or not.
    taken: Vec<AtomicU64>,
    /// Blocks that are never freed: a reader did not say how long it reads them.
    stays: Mutex<BTreeSet<u64>>,
}

impl Bound {
    /// Keeps the blocks of these ranges for good, since nobody says how long the caller reads them. Leaves out the blocks that this thread
    /// holds: they stay while it holds them.
    pub(super) fn stay(&self, twin: &Twin, ranges: &[(u64, u64)]) -> Result<()> {
        let mut stays = self.stays.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = |block: u64| HOLDS.with_borrow(|holds| holds.contains_key(&(twin.address(), block)));
        let more = missing(ranges, twin.len, |block| stays.contains(&block) || is_held(block));
        if let Some(pool) = self.pool.upgrade() {
            pool.stay(more.iter().map(|block| bytes(*block, block + 1, twin.len)).sum(), &twin.path)?;
        }
        for block in &more {
            self.pins[*block as usize].fetch_add(1, Ordering::SeqCst);
        }
        stays.extend(more);
        Ok(())
    }

    /// Counts the blocks that this thread is about to fetch, and makes room for them.
    pub(super) fn takes(&self, twin: &Twin, blocks: &[u64]) -> Result<()> {
        let take = |block: &&u64| {
            let bit = 1 << (**block % 64);
            self.taken[(**block / 64) as usize].fetch_or(bit, Ordering::SeqCst) & bit == 0
        };
        let more = blocks.iter().filter(take).map(|block| bytes(*block, block + 1, twin.len)).sum();
        self.pool.upgrade().map_or(Ok(()), |pool| pool.make_room(more))
    }

    /// Notes that a block is about to be there.
    pub(super) fn arrived(&self, block: u64) {
        self.arrivals[block as usize].fetch_add(1, Ordering::Release);
    }

    fn is_taken(&self, block: u64) -> bool {
        self.taken[(block / 64) as usize].load(Ordering::SeqCst) >> (block % 64) & 1 == 1
    }
}

impl Twin {
    /// Opens the twin in `folder`, a folder of the cache, and makes its files if they are missing.
    pub(super) fn kept_in(folder: &Path, path: &Path, from: Arc<dyn ReadAt>) -> Result<Self> {
        let open = |name: &str| {
            let path = folder.join(name);
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
            file.map_err(|e| Error::from(e).in_source(path.display().to_string()))
        };
        let journal = open("blocks")?;
        let mut twin = Twin::made(path, from, open(BYTES)?)?;
        sized(&journal, twin.len.div_ceil(BLOCK) * 8)?;
        twin.journal = Some(journal);
        Ok(twin)
    }

    /// Opens the twin in `folder`, a folder of `pool`, which frees its blocks. Returns also how many bytes of its blocks the journal has.
    ///
    /// Errors: as [`Twin::new`](super::Twin::new).
    pub(in crate::store) fn of_pool(
        folder: &Path,
        path: &Path,
        from: Arc<dyn ReadAt>,
        pool: Weak<Pool>,
    ) -> Result<(Self, u64)> {
        let mut twin = Twin::kept_in(folder, path, from)?;
        let kept = twin.there()?;
        let blocks = twin.len.div_ceil(BLOCK);
        let is_kept = |block: &u64| kept[(block / 64) as usize] >> (block % 64) & 1 == 1;
        let there: u64 = (0..blocks).filter(is_kept).map(|block| bytes(block, block + 1, twin.len)).sum();
        // A kill may have left bytes of a block that the journal does not have.
        if twin.file.metadata()?.blocks() * 512 > there {
            (0..blocks).filter(|block| !is_kept(block)).try_for_each(|block| twin.punch(block))?;
        }
        twin.bound = Some(Bound {
            pool,
            pins: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
            arrivals: (0..blocks).map(|_| AtomicU32::new(0)).collect(),
            taken: kept.into_iter().map(AtomicU64::new).collect(),
            stays: Mutex::default(),
        });
        Ok((twin, there))
    }

    /// How often the blocks of a range of bytes came, all together. 0 if nothing frees blocks of this twin.
    pub(in crate::store) fn arrivals(&self, (start, end): (u64, u64)) -> u64 {
        let Some(bound) = &self.bound else { return 0 };
        let blocks = start / BLOCK..end.min(self.len).div_ceil(BLOCK);
        blocks.map(|block| u64::from(bound.arrivals[block as usize].load(Ordering::Acquire))).sum()
    }

    /// The pool that frees blocks of this twin. `None` if nothing frees them.
    pub(in crate::store) fn pool(&self) -> Option<Arc<Pool>> {
        self.bound.as_ref()?.pool.upgrade()
    }

    /// Whether the cache keeps fetched blocks, all of them or a part.
    pub(in crate::store) fn is_kept(&self) -> bool {
        self._place.is_some() || self.bound.is_some()
    }

    /// The number of blocks of the file.
    pub(in crate::store) fn blocks(&self) -> u64 {
        self.len.div_ceil(BLOCK)
    }

    /// Pins the blocks of `ranges` (byte ranges of the file): nobody frees them while the pins live. `None` if nothing frees blocks of this
    /// twin.
    pub(super) fn pinned(self: &Arc<Self>, ranges: &[(u64, u64)]) -> Option<Pins> {
        let bound = self.bound.as_ref()?;
        let blocks = missing(ranges, self.len, |_| false);
        for block in &blocks {
            bound.pins[*block as usize].fetch_add(1, Ordering::SeqCst);
        }
        Some(Pins { twin: Arc::clone(self), blocks })
    }

    /// Frees a block, unless somebody has pinned or fetches it. Returns the bytes that the disk gets back, or 0.
    ///
    /// Errors, with the path: `Io`; `TooLarge` if the disk cannot give back a part of a file.
    pub(in crate::store) fn free(self: &Arc<Self>, block: u64) -> Result<u64> {
        let Some(bound) = self.bound.as_ref().filter(|bound| bound.is_taken(block)) else { return Ok(0) };
        let mut fetched = self.fetching();
        if fetched.contains(&block) || bound.pins[block as usize].load(Ordering::SeqCst) > 0 {
            return Ok(0);
        }
        let (word, bit) = (&self.there[(block / 64) as usize], 1 << (block % 64));
        let was_there = word.fetch_and(!bit, Ordering::SeqCst) & bit != 0;
        if bound.pins[block as usize].load(Ordering::SeqCst) > 0 {
            if was_there {
                word.fetch_or(bit, Ordering::SeqCst);
            }
            return Ok(0);
        }
        if was_there {
            self.missing.fetch_add(1, Ordering::AcqRel);
        }
        // A reader that wants the block waits until it is gone, and then fetches it.
        fetched.insert(block);
        drop(fetched);
        let claim = Claim { twin: Arc::clone(self), blocks: vec![block] };
        self.note(block, 0)?;
        self.punch(block)?;
        bound.taken[(block / 64) as usize].fetch_and(!bit, Ordering::SeqCst);
        drop(claim);
        Ok(bytes(block, block + 1, self.len))
    }

    /// Where this twin lies in memory: an `Arc` does not move it.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn punch(&self, block: u64) -> Result<()> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, how, block * BLOCK, BLOCK).map_err(|e| {
            let error = match e {
                Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => Error::new(
                    Kind::TooLarge,
                    format!(
                        "this disk cannot give back a part of a file ({e}); raise cache_limit until the cache holds the pack, or name \
                         a folder on another disk (cache)"
                    ),
                ),
                e => std::io::Error::from(e).into(),
            };
            error.in_source(self.path.display().to_string())
        })
    }
}

thread_local! {
    /// Blocks that this thread holds now, by the address of their twin and their number; and how many [`Hold`]s have each of them.
    static HOLDS: RefCell<BTreeMap<(usize, u64), u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// Pins of one thread. The thread reads the pinned blocks, and stops reading them before it drops this.
#[derive(Debug)]
#[must_use]
pub struct Hold {
    pins: Pins,
    _of_thread: PhantomData<*const ()>,
}

impl Hold {
    pub(in crate::store) fn of(pins: Pins) -> Self {
        HOLDS.with_borrow_mut(|holds| {
            for block in &pins.blocks {
                *holds.entry((pins.twin.address(), *block)).or_default() += 1;
            }
        });
        Hold { pins, _of_thread: PhantomData }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.with_borrow_mut(|holds| {
            for block in &self.pins.blocks {
                let held = (self.pins.twin.address(), *block);
                match holds.get_mut(&held) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => _ = holds.remove(&held),
                }
            }
        });
    }
}

/// Pinned blocks of a twin. Nobody frees them while this lives.
#[must_use]
pub struct Pins {
    twin: Arc<Twin>,
    blocks: Vec<u64>,
}

impl std::fmt::Debug for Pins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pins").field("path", &self.twin.path).field("blocks", &self.blocks.len()).finish()
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let Some(bound) = &self.twin.bound else { return };
        for block in &self.blocks {
            bound.pins[*block as usize].fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests;
