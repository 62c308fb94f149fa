//! Tar files: an index of their members by a walk over the headers, and a small deterministic writer.

mod extended;
mod header;
mod index;
mod walk;
mod write;

pub use index::{Entry, Slot, TarIndex};
pub use walk::{TarLimits, walk};
pub use write::TarWriter;

/// Everything in a tar comes in blocks of so many bytes.
pub(crate) const BLOCK: u64 = 512;
