//! Demonstrations on disk: reading a file or a folder of shards, writing shards; and pairs of their steps.

pub mod columns;
mod data;
mod indexed;
mod manifest;
mod open;
mod origin;
mod packed;
pub mod pairs;
mod spill;
mod write;

pub use data::{Demonstrations, Extras};
pub use open::{DemosOptions, holds, how, open, open_demos, shards};
pub use packed::Packed;
pub use spill::{Spill, Spilled};
pub use write::{SHARD_ENDINGS, ShardFiles, ShardOptions, shard_ending};
