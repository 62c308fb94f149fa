//! Training rows of KataGo, as its shards (`.npz`) have them: bytes -> records -> tensors, in any of the eight images of a board.
//! Every member and rule is written out in `docs/format/katago.md`, which a test compares with this code.

pub mod encode;
pub mod form;
pub mod pack;
pub mod row;
pub mod shard;
pub mod turn;

pub use encode::RowEncoder;
pub use form::Form;
pub use shard::{Shard, is_shard};

/// The kind of the frames of such sources.
pub const KIND: &str = "katago";
