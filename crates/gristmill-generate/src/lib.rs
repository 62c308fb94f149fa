//! A seed -> games in files: something real to run on a machine that has no data.
//! One folder for each game; none of them knows another.

mod chess;
mod g2048;
mod publish;

use std::path::PathBuf;

pub use chess::{ChessGenerator, ChessOptions};
pub use g2048::{G2048Generator, G2048Options};
use serde::Serialize;

/// One file that was (or, in a dry run, would be) written.
#[derive(Debug, Clone, Serialize)]
pub struct Generated {
    /// Where.
    pub path: PathBuf,
    /// Games in it.
    pub games: u64,
    /// Positions in it.
    pub frames: u64,
    /// Its size in bytes.
    pub bytes: u64,
}
