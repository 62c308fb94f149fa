//! The twin of a file that is elsewhere, in memory: no version, and so no cache.

#[allow(dead_code, reason = "what the cache has is no part of the models")]
#[path = "../../crates/gristmill-runtime/src/store/blocks.rs"]
mod blocks;
#[allow(dead_code, reason = "as above")]
#[path = "../../crates/gristmill-runtime/src/store/twin.rs"]
mod twin;

use std::path::Path;
use std::sync::Arc;

use gristmill_format::Result;
use gristmill_format::source::ReadAt;

/// Bytes of a block.
pub const BLOCK: u64 = blocks::BLOCK;

/// A twin, as threads of this process use it.
#[derive(Debug)]
pub struct Twin(twin::Twin);

impl Twin {
    /// Of the bytes of `from`, which have no version.
    pub fn new(from: Arc<dyn ReadAt>) -> Result<Self> {
        twin::Twin::new(Path::new("model"), from).map(Twin)
    }

    /// Brings what is not there of the ranges.
    pub fn have(&self, ranges: &[(u64, u64)]) -> Result<()> {
        self.0.have(ranges)
    }

    /// Brings the ranges again.
    pub fn again(&self, ranges: &[(u64, u64)]) -> Result<()> {
        self.0.again(ranges)
    }

    /// Claims ranges one after another, then brings them all.
    pub fn claim_and_bring(&self, ranges: &[(u64, u64)]) -> Result<()> {
        let claims = ranges.iter().filter_map(|range| self.0.claim(&[*range])).collect();
        twin::Claims::bring(claims)
    }

    /// A bit for each block that is there.
    pub fn there(&self) -> Result<Vec<u64>> {
        self.0.there()
    }
}

mod cache {
    use std::path::{Path, PathBuf};

    use gristmill_format::Result;

    pub(crate) struct Place {
        pub(crate) folder: PathBuf,
    }

    pub(crate) fn place(_: &Path, version: u64, _: u64) -> Result<Place> {
        unreachable!("version {version} in a model")
    }

    pub(crate) fn found(_: &Path, _: u64) -> Option<PathBuf> {
        None
    }
}
