//! A folder -> games of chess in it, a `.gz` each, played from a seed: what benchmarks read where no folder is given.

use std::path::{Path, PathBuf};

use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};

/// Writes `games` games of at most 200 plies, and returns the folder.
pub(crate) fn write(folder: &Path, games: u64, seed: u64) -> PathBuf {
    let options = ChessOptions {
        folder: folder.to_owned(),
        games,
        first: 1,
        seed,
        plies_max: 200,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(options).expect("options");
    while generator.write_next().expect("written").is_some() {}
    folder.to_owned()
}
