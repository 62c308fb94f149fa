//! Blocks of a twin that are wanted -> which thread brings which. A thread brings what it claimed, and waits for others only if it is
//! asked to. No block is claimed twice at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_format::Result;

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
