//! One game of V6 or V7 records <-> packed bytes: every record comes back to the bit, any position by itself.
//! The layout is `docs/format/chess-pack.md`; what no rule predicts is stored as it is, so nothing is ever refused or lost.
//!
//! | file | does |
//! |---|---|
//! | `header` | what a game says once, and where its parts lie |
//! | `line` | the boards of a game as steps from one to the next |
//! | `scalars` | values and moves of a record against what predicts them |
//! | `legal` | the moves of a position, which need not be stored |
//! | `visits` | the policy: which moves, how many visits |
//! | `patch` | what is left: the bytes that differ from the prediction |
//! | `judged` | what weighs a frame, without the rest of it |
//! | `cursor` | bounded reading |
//! | `encode`, `decode` | whole games in, positions out |
//! | `source` | a file of them as chunks |

mod cursor;
mod decode;
mod encode;
mod header;
mod judged;
mod legal;
mod line;
mod patch;
mod scalars;
mod source;
mod visits;

#[cfg(test)]
mod tests;

pub use decode::{PackedGame, Position, Wanted};
pub use encode::Packer;
pub use source::{CODEC, Chess, PACKED, PackedGames};
