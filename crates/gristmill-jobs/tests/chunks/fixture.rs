//! Small folders of generated games, loose and in a tar, and what is in them.

use std::fs;
use std::path::Path;

use gristmill_engine::open::open;
use gristmill_format::chess::Version;
use gristmill_format::source::Chunk;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::pack::{PackOptions, Packed, pack};

/// Writes `games` games from number `first` on, loose or in tars.
pub(crate) fn games(folder: &Path, first: u64, games: u64, version: Version, games_per_tar: Option<u64>) {
    let folder = folder.to_owned();
    let options = ChessOptions { folder, games, first, seed: 3, plies_max: 30, version, games_per_tar };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

/// Eleven games: six loose, three in a tar, two of V7 in a folder below.
pub(crate) fn input() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 6, Version::V6, None);
    games(&folder.path().join("tars"), 31, 3, Version::V6, Some(3));
    games(&folder.path().join("wide"), 51, 2, Version::V7, None);
    folder
}

/// The records of all games in the files of a folder whose names end so, in order of name.
pub(crate) fn records(folder: &Path, ends: &[&str]) -> Vec<Vec<u8>> {
    let mut paths = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if ends.iter().any(|end| path.to_str().unwrap().ends_with(end)) {
            found.push(path);
        }
    }
    found.sort_by(|a, b| gristmill_engine::key::natural_cmp(a.to_str().unwrap(), b.to_str().unwrap()));
    let mut chunk = Chunk::default();
    let mut records = Vec::new();
    for path in found {
        let source = open(path).unwrap();
        for i in 0..source.len() {
            source.chunk(i, &mut chunk).unwrap();
            records.push(chunk.records().to_vec());
        }
    }
    records
}

/// Packs with one file for 60 frames or a little more.
pub(crate) fn packed(
    input: &Path,
    output: &Path,
    change: impl Fn(&mut PackOptions),
) -> gristmill_engine::Result<Packed> {
    let mut options = PackOptions::new(input, output);
    options.shard_rows = Some(60);
    options.workers = 2;
    change(&mut options);
    pack(&options, &mut |_| {})
}
