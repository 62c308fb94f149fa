//! Ledgers and packs that an earlier version wrote: what was proven of them still is. `tests/made/kept_files.py` made them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::command::{Ran, ended, gristmill};

/// When every file was changed: states say it, and a checkout does not keep it.
const CHANGED: Duration = Duration::from_nanos(1_760_000_000_123_456_789);

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
        } else {
            fs::copy(&path, &copied).unwrap();
            let file = fs::File::options().write(true).open(copied).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + CHANGED).unwrap();
        }
    }
}

fn run_in(folder: &tempfile::TempDir, words: &[&str]) -> Ran {
    ended(gristmill(words).current_dir(folder.path()))
}

fn kept() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kept"), folder.path());
    folder
}

#[test]
fn ledgers_prove_what_they_proved() {
    let kept = kept();
    let of_rows = ["verify-run", "chunks.ledger", "--pack", "chunks"];
    let of_stream = ["verify-run", "streams/plain/ledger", "--config", "plain.toml"];
    for (words, digests) in [(of_rows, "are the rows of the plan"), (of_stream, "are the frames of the plan")] {
        let out = run_in(&kept, &words).ok().out;
        assert!(out.contains("each batch below 31 was delivered by all ranks exactly once"), "{out}");
        assert!(out.contains(digests), "{out}");
    }
}

#[test]
fn packs_and_games_verify() {
    let kept = kept();
    for place in ["rows48", "rows46", "chunks", "demos", "games", "tars", "logs", "shards"] {
        run_in(&kept, &["verify", place]).ok();
    }
    run_in(&kept, &["verify", "chunks", "--against", "games"]).ok();
    run_in(&kept, &["xray", "--state", "chunks.json", "--pack", "chunks", "--batch", "9"]).ok();
    run_in(
        &kept,
        &["xray", "--config", "plain.toml", "--state", "streams/plain/state.json", "--batch", "9", "--survey"],
    )
    .ok();
}
