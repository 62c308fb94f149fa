//! Blocks of a twin that are wanted -> which thread brings which. A thread brings what it claimed, and waits for others only if it is
//! asked to. No block is claimed twice at once.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use gristmill_format::Result;

use super::super::blocks::{BLOCK, missing};
use super::{Pins, Twin};

/// Blocks that a thread brings; others wait for them until this ends, however it does.
pub(super) struct Claim {
    pub(super) twin: Arc<Twin>,
    pub(super) blocks: Vec<u64>,
}

impl Claim {
    pub(super) fn bring(self) -> Result<()> {
        let unknown = self.twin.known(&self.blocks)?;
        self.twin.fetch(&unknown)
    }
}

/// Blocks of a file that are wanted, of which a thread has claimed those that nobody brought: claims that are made in order ask for
/// the same, however quick each thread is afterwards.
#[must_use]
pub struct Claims {
    pub(super) twin: Arc<Twin>,
    pub(super) ours: Option<Claim>,
    pub(super) wanted: Vec<u64>,
    pub(super) pins: Option<Pins>,
}

impl Claims {
    /// Brings the blocks that these claims have claimed, and waits for no other thread. Returns whether all blocks are there, of which
    /// other threads may bring some.
    ///
    /// Errors, with the path: as [`HeldFile::have`](crate::store::HeldFile::have).
    pub fn bring_ours(all: &mut [Self]) -> Result<bool> {
        for claims in &mut *all {
            let brought = claims.ours.take().map_or(Ok(()), Claim::bring);
            brought.map_err(|e| e.in_source(claims.twin.path.display().to_string()))?;
        }
        Ok(Claims::are_there(all))
    }

    /// Whether all blocks are there.
    pub fn are_there(all: &mut [Self]) -> bool {
        all.iter_mut().all(|Claims { twin, wanted, .. }| {
            while wanted.last().is_some_and(|block| twin.is_there(*block)) {
                wanted.pop();
            }
            wanted.is_empty()
        })
    }

    /// Waits while other threads bring any of the blocks, and brings none. Returns whether all are there: a thread may give up its claim.
    pub fn wait(all: &mut [Self]) -> bool {
        for Claims { twin, wanted, .. } in &mut *all {
            let mut fetched = twin.fetching();
            while wanted.iter().any(|block| fetched.contains(block)) {
                fetched = twin.arrived.wait(fetched).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Claims::are_there(all)
    }

    /// Brings the blocks of all claims, and waits for those that other threads bring. Returns their pins: nobody frees these blocks while
    /// the pins live.
    ///
    /// Errors: as [`Claims::bring_ours`].
    pub fn bring(mut all: Vec<Self>) -> Result<Vec<Pins>> {
        // What was claimed first: nobody waits for a thread that waits.
        if !Claims::bring_ours(&mut all)? {
            for Claims { twin, wanted, .. } in &mut all {
                let brought = twin.bring(std::mem::take(wanted));
                brought.map_err(|e| e.in_source(twin.path.display().to_string()))?;
            }
        }
        Ok(all.into_iter().filter_map(|claims| claims.pins).collect())
    }
}

impl Twin {
    /// Whether all blocks are there, and nothing frees them: nobody has anything to claim.
    pub(in crate::store) fn has_all(&self) -> bool {
        self.bound.is_none() && self.missing.load(Ordering::Acquire) == 0
    }

    /// Claims nothing of `ranges` (byte ranges, cut at the end of the file): waits for the blocks that other threads bring. `None` if there
    /// is a block to claim, or if blocks of this twin may be freed.
    pub(in crate::store) fn awaited(self: &Arc<Self>, ranges: &[(u64, u64)]) -> Option<Claims> {
        let fetched = self.fetching();
        // A long file has many blocks to look at, and readers mostly want all of it.
        let is_all = |(start, end): &(u64, u64)| *start < BLOCK && *end >= self.len;
        if ranges.iter().any(is_all) && (fetched.len() as u64) < self.missing.load(Ordering::Acquire) {
            return None;
        }
        let wanted = missing(ranges, self.len, |block| self.is_there(block));
        let are_claimed = self.bound.is_none() && wanted.iter().all(|block| fetched.contains(block));
        are_claimed.then(|| Claims { twin: Arc::clone(self), ours: None, wanted, pins: None })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut fetched = self.twin.fetching();
        self.blocks.iter().for_each(|block| {
            fetched.remove(block);
        });
        self.twin.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gristmill_format::source::ReadAt;

    use super::*;

    /// As many bytes.
    struct Sevens(u64);

    impl ReadAt for Sevens {
        fn len(&self) -> Result<u64> {
            Ok(self.0)
        }

        fn read_at(&self, _offset: u64, buf: &mut [u8]) -> Result<usize> {
            buf.fill(7);
            Ok(buf.len())
        }
    }

    #[test]
    fn what_is_claimed_or_there_is_awaited_and_nothing_else() {
        let far = Arc::new(Sevens(5 * BLOCK));
        let twin = Arc::new(Twin::new(Path::new("memory://x/rows"), far).unwrap());
        let two = [(0, 2 * BLOCK)];
        assert!(twin.awaited(&two).is_none(), "nobody brings them");
        let first = twin.claim(&[(0, BLOCK)]).unwrap();
        assert!(twin.awaited(&two).is_none(), "nobody brings the second one");
        let second = twin.claim(&two).unwrap();
        let mut awaited = [twin.awaited(&two).unwrap()];
        assert!(!Claims::bring_ours(&mut awaited).unwrap(), "it has nothing to bring");
        Claims::bring(vec![first]).unwrap();
        assert!(!Claims::are_there(&mut awaited) && twin.awaited(&two).is_some(), "one is there, and one on its way");
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| Claims::wait(&mut awaited));
            drop(second);
            assert!(!waits.join().unwrap() && twin.awaited(&two).is_none(), "who claimed it gave it up");
        });
        Claims::bring(vec![twin.claim(&two).unwrap()]).unwrap();
        assert!(Claims::wait(&mut awaited));
        assert!(twin.awaited(&two).is_some() && twin.awaited(&[(0, u64::MAX)]).is_none());
    }
}
