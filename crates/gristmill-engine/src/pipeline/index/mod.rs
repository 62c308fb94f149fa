//! Index feeding: rows of a table by number, in an order that is known from the start, as batches. No reservoir, no warm-up.
//!
//! | file | does |
//! |---|---|
//! | `plan` | batch number -> the rows of this rank |
//! | `mixed` | position among the rows of several sources -> the row |
//! | `weighted` | number of a draw -> the row, where rows are drawn by weight |
//! | `assembly` | rows, and the steps that a view shows of them -> tensors |
//! | `only` | some tensors of an encoder |
//! | `fetch` | which batches of a table that is elsewhere were fetched, and which come next |
//! | `rehearse` | what fetching will ask for, from the plan |
//! | `feed` | the tasks: gather, encode, hand out in order |
//! | `lack` | what a batch lacks that a consumer waits for |
//! | `loader` | the public interface |
//! | `encode` | single rows, by number |
//! | `lookup` | which row stands where, without a loader |
//! | `noted` | what a ledger records of a start |
//! | `state` | where a loader stands: a number |
//! | `status` | its stages with their numbers, for views |

mod assembly;
mod bounded;
mod encode;
mod feed;
mod fetch;
mod lack;
mod loader;
mod lookup;
mod mixed;
mod noted;
mod only;
mod plan;
mod rehearse;
mod state;
mod status;
mod weighted;

pub use encode::RowEncoder;
pub use loader::IndexLoader;
pub use lookup::{Lookup, PlacedRow, Standing, Turn};
pub use rehearse::Fetches;
