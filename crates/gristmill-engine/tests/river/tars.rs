//! Tars that leave the disk, grow or are written over while the window has their games: what is drawn, and what is counted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{ControlRequest, DataLoader};
use gristmill_generate::ChessOptions;

use super::arrivals::wait_for;
use super::games::{generate, hashes, loader, next, of_pool, options, preset};

fn live(folder: &Path) -> Lc0Preset {
    Lc0Preset { watch: Some(true), ..preset(folder) }
}

/// Tars of ten games each below a folder, from this game on.
fn tars(folder: &Path, first: u64, tars: u64) -> Vec<PathBuf> {
    generate(ChessOptions { first, games_per_tar: Some(10), ..options(folder, 10 * tars) });
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn since(loader: &DataLoader) -> u64 {
    loader.control(&ControlRequest::QueryChunkAnchor).unwrap()[0].chunks_since_anchor
}

#[test]
fn a_tar_that_leaves_the_disk_keeps_its_games_until_the_window_leaves_them() {
    let folder = tempfile::tempdir().unwrap();
    let paths = tars(folder.path(), 1, 3);
    let run = Lc0Preset { pool: 30, ..live(folder.path()) };
    let plain = hashes(&loader(&run), "", 200);
    let loader = loader(&run);
    assert_eq!(hashes(&loader, "", 3), plain[..3]);
    paths.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(hashes(&loader, "", 197), plain[3..]);
    assert_eq!(["chunks_current", "chunk_sources", "dropped"].map(|name| of_pool(&loader, name)), [30, 3, 0]);
    assert_eq!(deleted(&folder), 3, "they are open");
    let more = tempfile::tempdir().unwrap();
    for path in tars(more.path(), 1001, 3) {
        fs::rename(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    wait_for("three more", &loader, || of_pool(&loader, "chunks_total") == 60);
    while deleted(&folder) > 0 {
        next(&loader, "");
    }
    assert_eq!(of_pool(&loader, "dropped"), 0);
}

/// Files below a folder that this process has open and that have no name any more.
fn deleted(folder: &tempfile::TempDir) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let gone = |path: &PathBuf| path.starts_with(folder.path()) && path.to_str().unwrap().ends_with(" (deleted)");
    links.filter(gone).count()
}

#[test]
fn games_that_cannot_be_had_are_dropped_once_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let tar = tars(folder.path(), 1, 1).remove(0);
    generate(ChessOptions { first: 1001, ..options(folder.path(), 5) });
    // The tar is cut in the midst of its games: those after are no longer there.
    let whole = fs::metadata(&tar).unwrap().len();
    let loader = loader(&Lc0Preset { pool: 15, reservoir: Some(0), ..preset(folder.path()) });
    next(&loader, "");
    fs::remove_file(folder.path().join("training.1003.gz")).unwrap();
    File::options().write(true).open(&tar).unwrap().set_len(whole / 2).unwrap();
    (0..400).for_each(|_| drop(next(&loader, "")));
    let bad = loader.metrics().bad_chunks;
    assert!((3..9).contains(&bad.chunks), "{bad:#?}");
    let counts = ["dropped", "chunks_current"].map(|name| of_pool(&loader, name));
    assert_eq!(counts, [bad.chunks, 15 - bad.chunks], "each once, however often it was drawn");
    let told: Vec<&String> = bad.latest.iter().filter(|text| text.contains(tar.to_str().unwrap())).collect();
    assert!(!told.is_empty() && told.iter().all(|text| text.contains("training.")), "file and member: {bad:#?}");
    assert!(bad.latest.iter().any(|text| text.contains("training.1003.gz")), "{bad:#?}");
}

#[test]
fn a_tar_that_grows_or_is_written_over_counts_once() {
    let (folder, larger) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths = tars(folder.path(), 1, 2);
    let name = paths[1].file_name().unwrap().to_owned();
    generate(ChessOptions { first: 15, games_per_tar: Some(14), ..options(larger.path(), 14) });
    let grown = fs::read_dir(larger.path()).unwrap().next().unwrap().unwrap().path();
    let loader = loader(&Lc0Preset { pool: 100, reservoir: Some(0), ..live(folder.path()) });
    next(&loader, "");
    let counts =
        |loader: &DataLoader| [of_pool(loader, "chunks_current"), of_pool(loader, "chunk_sources"), since(loader)];
    assert_eq!(counts(&loader), [20, 2, 20]);
    let replace = |with: &Path| {
        fs::copy(with, folder.path().join(".new")).unwrap();
        fs::rename(folder.path().join(".new"), folder.path().join(&name)).unwrap();
    };
    let first = larger.path().join("first");
    fs::copy(&paths[1], &first).unwrap();
    replace(&grown);
    wait_for("it grows", &loader, || of_pool(&loader, "chunks_total") == 34);
    assert_eq!(counts(&loader), [24, 2, 24]);
    replace(&first);
    wait_for("it shrinks", &loader, || of_pool(&loader, "chunks_total") == 44);
    assert_eq!(counts(&loader), [20, 2, 24], "what has come has come");
}
