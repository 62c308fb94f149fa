//! Bytes of containers that stay open while their sources live, so that games outlive the names of their files.
//! At most half of the descriptors that the process may have; a file without one is opened by its name for each read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_format::source::ReadAt;

/// Maximum number of descriptors that are kept, however many the process may have.
const MOST: u64 = 4096;

/// Descriptors that are kept now, by all loaders of the process.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// An open file, and its share of the descriptors.
pub(super) struct Kept {
    bytes: Arc<dyn ReadAt>,
    _share: Share,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Keeps a file open, where there is a descriptor left for it.
    pub(crate) fn new(bytes: Arc<dyn ReadAt>) -> Option<Self> {
        Some(Kept {
            bytes,
            _share: Share::take(most(rustix::process::getrlimit(rustix::process::Resource::Nofile).current))?,
        })
    }

    /// The file.
    pub(super) fn bytes(&self) -> &Arc<dyn ReadAt> {
        &self.bytes
    }
}

/// How many may be kept where a process may have `limit` descriptors.
fn most(limit: Option<u64>) -> u64 {
    limit.map_or(MOST, |limit| (limit / 2).min(MOST))
}

#[derive(Debug)]
struct Share;

impl Share {
    fn take(most: u64) -> Option<Self> {
        KEPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| (kept < most).then_some(kept + 1)).ok()?;
        Some(Share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_descriptors_are_kept_and_given_back() {
        assert_eq!([most(Some(1024)), most(Some(1 << 30)), most(None)], [512, MOST, MOST]);
        let before = KEPT.load(Ordering::Relaxed);
        assert!(Share::take(0).is_none());
        let share = Share::take(MOST).unwrap();
        drop(share);
        assert!(KEPT.load(Ordering::Relaxed) <= before.max(MOST));
    }
}
