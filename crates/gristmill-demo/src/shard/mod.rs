//! WebDataset shards, of every vintage that demonstrations were kept in and ordinary ones -> trajectories and metadata; and back.
//! Every fault has its member and byte; nothing is skipped in silence, and no shard is read past its bound.

mod from_json;
mod group;
mod index;
mod kind;
mod member;
mod meta;
mod open;
mod reader;
mod stream;
mod to_json;
mod write;

pub use group::{Groups, Member, Sample, group};
pub use index::{ShardIndex, read_frames};
pub use kind::is_shard;
pub(crate) use member::npy;
pub use meta::ShardMeta;
pub use open::{Packing, Shard, Unpacked, room, unpack, unpack_into};
pub use stream::{Streamed, shard_head, stream};
pub use write::{Members, ShardWriter, metadata, plain_pickle};
