//! Files that are together larger than the cache -> a folder that keeps some of their blocks, within a bound. A process has one pool for all
//! such files. The pool frees blocks that nobody needs now. A [`Keeper`](super::keeping::Keeper) says which blocks the plan needs last.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};

use super::cache::{self, Fit, Place};
use super::copied::here;
use super::twin::Twin;

/// The folder that keeps blocks of files, and how many bytes they may take.
#[derive(Debug)]
pub struct Pool {
    place: Place,
    /// Bytes that blocks may take.
    budget: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    twins: Vec<Arc<Twin>>,
    /// Bytes that the blocks take now.
    taken: u64,
    /// Bytes of blocks that the pool never frees.
    stays: u64,
    /// Where the next search for a block to free begins: the number of the twin, and of the block.
    hand: (usize, u64),
    /// Whether a loader decides which blocks the pool keeps.
    is_leased: bool,
}

/// The pool of this process.
static POOL: Mutex<Weak<Pool>> = Mutex::new(Weak::new());

impl Pool {
    /// The pool of this process, if the cache does not hold all `files` (each with its path). `None` if the cache holds them all, if it has
    /// less than 1 MiB of room, or if a file is on this machine or has no version.
    ///
    /// Errors: `Io` with the folder of the cache.
    pub fn for_files(files: &[(&Path, &Arc<dyn ReadAt>)]) -> Result<Option<Arc<Self>>> {
        let mut known = Vec::new();
        for (path, from) in files {
            let Some(version) = from.version().filter(|_| here(path).is_none()) else { return Ok(None) };
            known.push((*path, version, from.len().map_err(|e| e.in_source(path.display().to_string()))?));
        }
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let fit = Fit::of_all(known.iter().copied())?;
        if fit.holds() {
            return Ok(None);
        }
        if let Some(pool) = pool.upgrade() {
            return Ok(Some(pool));
        }
        if fit.part().is_none() {
            return Ok(None);
        }
        let names: Vec<(&Path, u64)> = known.iter().map(|(path, version, _)| (*path, *version)).collect();
        let (place, budget) = cache::part_of(&names, fit.needed)?;
        let made = Arc::new(Pool { place, budget, inner: Mutex::default() });
        *pool = Arc::downgrade(&made);
        Ok(Some(made))
    }

    /// The twin of a file. All readers of the file in this process share it.
    ///
    /// Errors: `Io`; `TooLarge` if the disk cannot give back a part of a file.
    pub(super) fn twin(self: &Arc<Self>, path: &Path, from: Arc<dyn ReadAt>) -> Result<Arc<Twin>> {
        let version = from.version();
        let mut inner = self.lock();
        if let Some(twin) = inner.twins.iter().find(|twin| twin.path() == path && twin.version() == version) {
            return Ok(Arc::clone(twin));
        }
        let folder: PathBuf = self.place.folder.join(cache::named(path, version.unwrap_or_default()));
        fs::create_dir_all(&folder).map_err(|e| Error::from(e).in_source(folder.display().to_string()))?;
        let (twin, there) = Twin::of_pool(&folder, path, from, Arc::downgrade(self))?;
        let twin = Arc::new(twin);
        inner.twins.push(Arc::clone(&twin));
        drop(inner);
        self.make_room(there)?;
        Ok(twin)
    }

    /// Bytes that the blocks may take.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `more` new bytes, and frees blocks that nobody needs now until all blocks fit. If too many blocks are needed now, the pool
    /// takes more than its budget for a while.
    pub(super) fn make_room(&self, more: u64) -> Result<()> {
        let mut inner = self.lock();
        inner.taken += more;
        let twins = inner.twins.clone();
        let all: u64 = twins.iter().map(|twin| twin.blocks()).sum();
        let (mut at, mut block) = inner.hand;
        for _ in 0..all + twins.len() as u64 {
            if inner.taken <= self.budget {
                break;
            }
            match twins.get(at) {
                Some(twin) if block < twin.blocks() => {
                    inner.taken -= twin.free(block)?;
                    block += 1;
                }
                Some(_) => (at, block) = (at + 1, 0),
                None => (at, block) = (0, 0),
            }
        }
        inner.hand = (at, block);
        Ok(())
    }

    /// Counts `more` bytes of blocks of the file `path` that the pool never frees.
    ///
    /// Errors: `TooLarge` if such blocks would take more than half of the budget.
    pub(super) fn stay(&self, more: u64, path: &Path) -> Result<()> {
        let mut inner = self.lock();
        if more > 0 && inner.stays + more > self.budget / 2 {
            let detail = format!(
                "what is read of the pack for good takes more than half of the {} bytes that the cache keeps of it; raise cache_limit until the cache holds the \
                 pack, name a folder on a larger disk (cache), or open the pack with memory=True",
                self.budget
            );
            return Err(Error::new(Kind::TooLarge, detail).in_source(path.display().to_string()));
        }
        inner.stays += more;
        Ok(())
    }

    /// Frees these blocks of twins. Passes over a block that somebody has pinned or fetches.
    ///
    /// Errors: as [`Pool::twin`].
    pub(super) fn free<'a>(&self, blocks: impl Iterator<Item = (&'a Arc<Twin>, u64)>) -> Result<()> {
        let mut inner = self.lock();
        for (twin, block) in blocks {
            inner.taken -= twin.free(block)?;
        }
        Ok(())
    }

    /// Lets one loader decide which blocks the pool keeps, until it drops the lease.
    ///
    /// Errors: `TooLarge` if another loader has the lease.
    pub(super) fn lease(self: &Arc<Self>) -> Result<Lease> {
        let mut inner = self.lock();
        if inner.is_leased {
            let detail = "another loader feeds a pack that the cache does not hold; stop that one first, or raise cache_limit until \
                          the cache holds the pack";
            return Err(Error::new(Kind::TooLarge, detail));
        }
        inner.is_leased = true;
        Ok(Lease(Arc::clone(self)))
    }
}

/// While a loader has this, it decides which blocks the pool keeps.
#[derive(Debug)]
pub(super) struct Lease(Arc<Pool>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.lock().is_leased = false;
    }
}
