//! Tables whose rows come in chunks that can be weighed: what sampling by weight asks of them.
//! Nothing here makes tensors or records.

use std::fmt::Debug;
use std::sync::Arc;

use gristmill_format::Result;
use gristmill_format::source::Chunk;
use gristmill_format::weigh::Weigher;

/// The chunks of a table, numbered from 0 in the order of their rows; each has at least one row.
pub trait Weighed: Debug {
    /// The chunk of a row, which must exist.
    fn chunk_at(&self, row: u64) -> u64;

    /// First row of a chunk, which must exist, and the one after its last.
    fn rows_of(&self, chunk: u64) -> (u64, u64);

    /// The weight of each chunk, as [`total`](gristmill_format::weigh::total) counts it; NaN for one that cannot be
    /// weighed, of which [`Weighed::weights`] says why. The result is cached.
    fn totals(&self, weigher: &dyn Weigher) -> Arc<[f32]>;

    /// Replaces `out` by what the rows of a chunk weigh, in order. `scratch` is used again from call to call.
    ///
    /// Errors, with the file: what reading gives; `Unsupported` for records that the weigher does not know.
    fn weights(&self, chunk: u64, weigher: &dyn Weigher, scratch: &mut Chunk, out: &mut Vec<f32>) -> Result<()>;
}
