//! Tar files: an index of their members by a walk over the headers, and a small deterministic writer.

pub mod blocks;
mod extended;
mod header;
mod index;
mod members;
mod walk;
mod write;

pub use blocks::{Blocks, Held, Windows, cut, set_in};
pub use header::Block;
pub use index::{Entry, Slot, TarIndex};
pub use members::{Member, Members};
pub use walk::{TarLimits, walk};
pub use write::TarWriter;

/// Whether bytes begin with the header of a tar, of any dialect.
pub fn begins(bytes: &[u8]) -> bool {
    let old = || bytes.first_chunk().is_some_and(header::checksum_holds);
    bytes.get(257..262) == Some(b"ustar") || old()
}

/// Everything in a tar comes in blocks of this many bytes.
pub(crate) const BLOCK: u64 = 512;
