//! Demonstrations on disk: reading a file or a folder of shards, writing shards.

mod open;
mod write;

pub use open::{holds, open_demos, shards};
pub use write::{SHARD_ENDINGS, ShardFiles, ShardOptions, shard_ending};
