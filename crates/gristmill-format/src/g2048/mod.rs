//! 2048: raw logs and step rows, the board, its rules and its heuristic value.
//! Every field, rule and defined result is written out in `docs/format/g2048.md`.

pub mod board;
pub mod check;
pub mod encode;
pub mod form;
pub mod heuristic;
pub mod identity;
pub mod log;
pub mod moves;
pub mod played;
pub mod row;
pub mod source;
pub mod value;

pub use board::{Board, Packed};
pub use form::Form;
pub use moves::Move;
pub use row::{RowForm, StepRow};

/// What sources of 2048 games say that their frames are of.
pub const KIND: &str = "g2048";
