//! Syzygy tablebases: the bytes of table files -> the value of a position and the plies to the next capture or pawn move.
//! Written from the format (docs/format/syzygy.md), without `unsafe` and without state that probes share.

mod coverage;
mod index;
mod material;
mod pairs;
mod prober;
mod squares;
mod table;
mod wdl;

pub use coverage::Coverage;
pub use material::{MAX_MEN, Material};
pub use prober::Tables;
pub use table::{Table, TableKind};
pub use wdl::{Unprobed, Wdl};
