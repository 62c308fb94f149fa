//! Leela Chess Zero records: bytes to V6/V7 frames, frames to tensors.
//! Every offset, order and rule is written out in `docs/format/chess.md`, which a test compares with this code.

pub mod board;
pub mod check;
pub mod encode;
pub mod frame;
pub mod game;
pub mod identity;
pub mod pack;
pub mod pgn;
pub mod policy;
pub mod record;
pub mod rescore;
pub mod source;
pub mod syzygy;
pub mod transform;
pub mod weight;

pub use board::Board;
pub use encode::{ChessEncoder, Output, Outputs};
pub use frame::{Frame, FrameMut};
pub use record::{InputFormat, Version, layout_v6, layout_v7};
pub use weight::DiffFocus;

/// What sources of chess games say that their frames are of.
pub const KIND: &str = "chess";
