//! Positions of Stockfish's binpack: chains of moves and scores in blocks -> positions -> tensors, and back to chains.
//! Every byte and rule is written out in `docs/format/binpack.md`, which a test compares with this code.

pub mod bits;
pub mod board;
pub mod boards;
pub mod chain;
pub mod encode;
pub mod fen;
pub mod men;
pub mod pack;
pub mod record;
pub mod source;
pub mod write;

pub use board::Board;
pub use encode::PositionEncoder;
pub use men::{Men, Move, Sort};
pub use record::{BYTES, Position, layout};

/// What sources of such positions say that their frames are of.
pub const KIND: &str = "binpack";
