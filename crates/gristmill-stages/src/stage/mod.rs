//! The stages, in the order in which data flows. Each is a pure state machine over numbers and rows:
//! no stage knows another, none has a thread, a lock or a path of its own (discover and load excepted).
//!
//! | stage | in -> out |
//! |---|---|
//! | `discover` | store -> numbered files, then changes |
//! | `load` | files -> the log of sources |
//! | `split` | source, chunk index -> side |
//! | `lane` | source, chunk index -> lane |
//! | `pool` | sources -> draws of chunks, shuffled, newest N |
//! | `extract` | sources -> draws of chunks, whole passes |
//! | `validate` | chunk -> the same chunk, or the first rule that it breaks |
//! | `rescore` | chunk -> the same game with better targets, or why it cannot be trusted |
//! | `complete` | chunk -> the same chunk, with what the encoder wants to know of each record's place in its game |
//! | `unpack` | chunk, use count -> rows |
//! | `pair` | trajectories -> steps that stand together |
//! | `join` | several streams of rows -> one |
//! | `sample` | rows -> rows, shuffled through a reservoir |
//! | `gather` | position -> row of a table, epoch by epoch |
//! | `view` | row of a table -> the steps of its game that stand for it |
//! | `weighted` | draw -> chunk by chance, place by weight |
//! | `mix` | sources -> one order of their rows |
//! | `batch` | rows -> numbered batches |

pub mod batch;
pub mod complete;
pub mod discover;
pub mod extract;
pub mod gather;
pub mod join;
pub mod kinds;
pub mod lane;
pub mod load;
pub mod mix;
pub mod pair;
pub mod pool;
mod queue;
pub mod rescore;
pub mod sample;
pub mod split;
mod step;
pub mod unpack;
pub mod validate;
pub mod view;
pub mod weighted;

use std::fmt::Debug;
use std::sync::Arc;

use gristmill_format::source::Chunk;

pub use queue::{Overflow, QueueConfig, Queues};
pub use step::{GaugeOf, Later, Row, RowStage, RowStep, Shared, Standing};

/// What a stage over chunks runs.
#[derive(Debug, Clone)]
pub struct Pass {
    /// What it does to each.
    pub pass: Arc<dyn ChunkPass>,
    /// Numbers that tell apart what it reads besides the games, such as tables.
    pub reads: [Option<u64>; 2],
    /// What of that it does without, because it may be missing and is.
    pub lacks: Vec<String>,
    /// Maximum number of chunks in it at once.
    pub threads: Option<usize>,
}

/// The configuration of a stage over chunks.
pub trait PassStage {
    /// What it runs; `stage` is named in errors.
    ///
    /// Errors: `Config` with the field that cannot be; `Path` and `Format` for what it cannot read.
    fn pass(&self, stage: &str) -> gristmill_runtime::error::Result<Pass>;
}

/// What a [`ChunkPass`] did to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// The records are as they were.
    Unchanged,
    /// The records, their number or their layout changed.
    Changed,
}

/// A stage between the draws and the unpacker: judges or changes the records of one whole chunk.
///
/// A pure function of the records and of its own settings. A chunk is decoded again for every use, on any thread and
/// again after a restart; each time it must come out the same.
pub trait ChunkPass: Debug + Send + Sync {
    /// Names of what it counts; always the same list.
    fn counts(&self) -> &[&'static str] {
        &[]
    }

    /// Passes `chunk` on, in place. `count(i, n)` adds `n` to `counts()[i]`. Buffers for reuse are in `chunk.kept`.
    ///
    /// Errors: why the whole chunk is dropped, with frame and byte; it is then left in any state.
    fn run(&self, chunk: &mut Chunk, count: &mut dyn FnMut(usize, u64)) -> gristmill_format::Result<Passed>;

    /// The same, counting by name; among the names may be some that only the records bring up.
    ///
    /// Errors: as [`ChunkPass::run`].
    fn run_by_name(&self, chunk: &mut Chunk, count: &mut dyn FnMut(&str, u64)) -> gristmill_format::Result<Passed> {
        self.run(chunk, &mut |i, n| count(self.counts()[i], n))
    }
}

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
    /// How often it was drawn before.
    pub use_count: u16,
    /// Its place among all chunks that ever came.
    pub place: u64,
    /// The first place that is still drawn from.
    pub floor: u64,
}
