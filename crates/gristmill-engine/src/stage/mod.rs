//! The stages, in the order in which data flows. Each is a pure state machine over numbers and rows:
//! no stage knows another, none has a thread, a lock or a path of its own (discover and load excepted).
//!
//! | stage | in -> out |
//! |---|---|
//! | `discover` | store -> numbered files, then changes |
//! | `load` | files -> the log of sources |
//! | `split` | source, chunk index -> side |
//! | `pool` | sources -> draws of chunks, shuffled, newest N |
//! | `extract` | sources -> draws of chunks, whole passes |
//! | `unpack` | chunk, use count -> rows |
//! | `join` | several streams of rows -> one |
//! | `sample` | rows -> rows, shuffled through a reservoir |
//! | `gather` | position -> row of a table, epoch by epoch |
//! | `batch` | rows -> numbered batches |

pub mod batch;
pub mod discover;
pub mod extract;
pub mod gather;
pub mod join;
pub mod load;
pub mod pool;
pub mod sample;
pub mod split;
pub mod unpack;

/// A chunk in a plan: the number of its source in the plan's own list, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRef {
    /// Number of the source in the plan's list.
    pub source: u32,
    /// Chunk index within the source.
    pub chunk: u32,
}

/// One drawn chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Which chunk.
    pub at: ChunkRef,
    /// How often it was drawn before (spec lc0 §1.4.4).
    pub use_count: u16,
}
