//! Boards of bulletformat, 32 bytes each, as trainers of small chess networks store them: bytes -> boards -> tensors.
//! Every offset and rule is written out in `docs/format/bulletformat.md`, which a test compares with this code.

pub mod board;
pub mod encode;
pub mod pack;
pub mod source;

pub use board::{BYTES, Board, layout};
pub use encode::BoardEncoder;

/// What sources of such boards say that their frames are of.
pub const KIND: &str = "bullet";
