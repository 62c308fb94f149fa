//! WebDataset shards, of every vintage that demonstrations were kept in and ordinary ones -> trajectories and metadata; and back.
//! Every fault has its member and byte; nothing is skipped in silence, and no shard is read past its bound.

mod group;
mod member;
mod meta;
mod open;
mod reader;
mod write;

pub use group::{Groups, Member, Sample, group};
pub(in crate::demo) use member::npy;
pub use meta::ShardMeta;
pub use open::{Packing, Shard, room, unpack, unpack_into};
pub use write::{ShardWriter, metadata, plain_pickle};
