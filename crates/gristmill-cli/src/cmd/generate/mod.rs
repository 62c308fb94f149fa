//! `generate`: one file for each game. Here is what the games share: the summary, and advice where files stand in the way.

pub(crate) mod chess;
pub(crate) mod g2048;

use std::path::Path;

use gristmill_engine::Error;
use serde::Serialize;

use crate::failure::Failure;
use crate::report;

/// What was (or, in a dry run, would be) written.
#[derive(Debug, Serialize)]
struct Written {
    folder: String,
    files: u64,
    games: u64,
    /// Absent in a dry run, which plays no game.
    frames: Option<u64>,
    bytes: Option<u64>,
    seed: u64,
    first: u64,
    last: u64,
    dry_run: bool,
}

impl Written {
    /// `games` games from number `first` on that are still to be written.
    fn planned(folder: &Path, files: u64, games: u64, first: u64, seed: u64) -> Self {
        let (folder, last) = (folder.display().to_string(), first + games - 1);
        Written { folder, files, games, frames: None, bytes: None, seed, first, last, dry_run: true }
    }

    /// Frames and bytes that were written.
    fn done(&mut self, (frames, bytes): (u64, u64)) {
        (self.frames, self.bytes, self.dry_run) = (Some(frames), Some(bytes), false);
    }

    /// How much that is, in words; a frame is called `frame`.
    fn size(&self, frame: &str) -> String {
        match (self.frames, self.bytes) {
            (Some(frames), Some(bytes)) => format!("{frames} {frame}, {}", report::bytes(bytes)),
            _ => "dry run: nothing was written".to_owned(),
        }
    }
}

/// Says how to continue an earlier run: from game number `next` on.
fn advise(e: Error, next: u64) -> Failure {
    match e {
        Error::Path { kind: std::io::ErrorKind::AlreadyExists, .. } => {
            Failure::Failed(format!("{e}; choose another folder, or resume with --first {next}"))
        }
        e => e.into(),
    }
}
