//! Raw logs of 2048 games: a sidecar and lines of JSON in, step rows out.
//! Bad input is an error with line and column, and costs its game, never another one.

mod fixed;
mod game;
mod json;
mod line;
mod names;
mod piece;
mod sidecar;

pub use fixed::parse_fixed;
pub use game::{Game, GameSummary, Remark, parse_game};
pub use json::parse_json;
pub use line::Step;
pub use names::{KNOWN_VALUATIONS, MAX_VALUATIONS, Valuations};
pub use piece::{Piece, RowDefaults, parse_piece, pieces};
pub use sidecar::{Sidecar, is_sidecar, steps_name};

/// How the files that hold the lines of a game end.
pub const STEPS_SUFFIX: &str = ".jsonl.gz";
