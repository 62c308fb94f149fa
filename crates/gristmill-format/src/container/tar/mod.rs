//! Tar files: an index of their members by a walk over the headers, and a small deterministic writer.

mod blocks;
mod extended;
mod header;
mod index;
mod members;
mod walk;
mod write;

pub(crate) use blocks::{Blocks, Held, Windows, cut};
pub(crate) use header::Block;
pub use index::{Entry, Slot, TarIndex};
pub(crate) use members::{Member, Members};
pub use walk::{TarLimits, walk};
pub use write::TarWriter;

/// Everything in a tar comes in blocks of so many bytes.
pub(crate) const BLOCK: u64 = 512;
