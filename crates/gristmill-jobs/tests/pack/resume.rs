//! A job that ends at any game leaves the old pack, and what `resume` makes the very same new pack of.

use std::path::Path;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_jobs::pack::{Existing, OnError, PackOptions, pack};

use crate::drops::*;

/// Runs a job and stops it after `games` games.
fn stopped(options: &PackOptions, games: u64) {
    let options = PackOptions { stop: Default::default(), ..options.clone() };
    let ended = pack(&options, &mut |now| {
        if now.done >= games {
            options.stop.store(true, Ordering::Relaxed);
        }
    });
    assert!(matches!(ended, Err(Error::Stopped)), "{ended:?}");
}

fn expected(options: &PackOptions, folder: &Path) -> Vec<(String, Vec<u8>)> {
    let target = folder.join("expected");
    let checkpoint_rows = PackOptions::new("", "").checkpoint_rows;
    packed(&PackOptions { output: target.clone(), existing: Existing::Refuse, checkpoint_rows, ..options.clone() });
    files(&target)
}

/// Every byte of every file, the database and the checksums included.
fn same_bytes(target: &Path, expected: &[(String, Vec<u8>)]) {
    let found = files(target);
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected));
    for (mine, theirs) in found.iter().zip(expected) {
        assert!(mine == theirs, "{} differs", mine.0);
    }
}

#[test]
fn wherever_it_stops_it_goes_on() {
    let drop = drop_of(12);
    game(drop.path(), "game003bad", &(text(9) + "nonsense"));
    game(drop.path(), "game004named", &text(3).replace("search", "plan"));
    for (shard_rows, checkpoint_rows) in [(None, 1), (Some(10), 20), (Some(5), 1)] {
        let out = tempfile::tempdir().unwrap();
        let target = out.path().join("pack");
        let base = PackOptions { shard_rows, checkpoint_rows, ..options(drop.path(), &target) };
        let whole = expected(&base, out.path());
        stopped(&base, 2);
        let resume = PackOptions { existing: Existing::Resume, ..base.clone() };
        for games in [4, 5, 9] {
            stopped(&resume, games);
            assert!(!target.join("manifest.json").exists() && !target.join("steps.npy").exists());
        }
        let refused = pack(&base, &mut |_| {}).unwrap_err().to_string();
        assert!(refused.contains("--resume"), "{refused}");
        let done = packed(&resume);
        assert!(done.resumed >= 7 && done.runs == 13, "{done:?}");
        same_bytes(&target, &whole);
        let again = packed(&resume);
        assert_eq!((again.runs, again.rows), (done.runs, done.rows), "there is nothing to resume");
        same_bytes(&target, &whole);
    }
}

#[test]
fn a_bad_game_that_is_mended_goes_in_on_resume() {
    let (drop, out) = (drop_of(6), tempfile::tempdir().unwrap());
    let target = out.path().join("pack");
    let base = PackOptions { on_error: OnError::Raise, checkpoint_rows: 1, ..options(drop.path(), &target) };
    let whole = expected(&base, out.path());
    let good = std::fs::read(drop.path().join("game003.jsonl.gz")).unwrap();
    put(drop.path(), "game003.jsonl.gz", b"damaged");
    assert!(pack(&base, &mut |_| {}).unwrap_err().to_string().contains("game003"));
    put(drop.path(), "game003.jsonl.gz", &good);
    assert_eq!(packed(&PackOptions { existing: Existing::Resume, ..base }).resumed, 3);
    same_bytes(&target, &whole);
}

#[test]
fn an_overwrite_and_an_append_that_stop_leave_the_old_pack() {
    let (drop, out) = (drop_of(5), tempfile::tempdir().unwrap());
    let target = out.path().join("pack");
    packed(&PackOptions { shard_rows: Some(8), ..options(drop.path(), &target) });
    let old = content(&target).0;
    let visible = || {
        let mut found = files_without_staging(&target);
        found.retain(|(name, _)| name != "metadata.db");
        found
    };
    for i in 5..11 {
        game(drop.path(), &format!("game{i:03}"), &text(20 + i));
    }
    let append = PackOptions { existing: Existing::Append, checkpoint_rows: 1, ..options(drop.path(), &target) };
    stopped(&append, 8);
    assert_eq!(visible(), old);
    assert!(pack(&append, &mut |_| {}).unwrap_err().to_string().contains("--resume"));
    let resume = PackOptions { existing: Existing::Resume, ..append };
    let done = packed(&resume);
    assert_eq!((done.known, done.runs), (5, 11));
    let fresh = PackOptions { shard_rows: Some(8), ..options(drop.path(), &out.path().join("fresh")) };
    packed(&fresh);
    assert_eq!(rows(&target), rows(&fresh.output));

    let old = content(&target).0;
    let overwrite = PackOptions { existing: Existing::Overwrite, checkpoint_rows: 1, ..options(drop.path(), &target) };
    stopped(&overwrite, 3);
    assert_eq!(visible(), old);
    packed(&PackOptions { existing: Existing::Resume, ..overwrite });
    assert!(target.join("steps.npy").exists() && !target.join("steps-00000.npy").exists());
    assert_eq!(rows(&target), rows(&fresh.output));
}

/// What is in the folder of a pack beside the staging of a job.
fn files_without_staging(pack: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir(pack)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn an_input_that_changed_is_refused() {
    let change: [(&str, &dyn Fn(&Path)); 3] = [
        ("added", &|drop| game(drop, "game000a", &text(3))),
        ("removed", &|drop| std::fs::remove_file(drop.join("game001.meta.json")).unwrap()),
        ("log game001", &|drop| game(drop, "game001", &text(300))),
    ];
    for (word, change) in change {
        let (drop, out) = (drop_of(6), tempfile::tempdir().unwrap());
        let target = out.path().join("pack");
        let base = PackOptions { checkpoint_rows: 1, ..options(drop.path(), &target) };
        stopped(&base, 4);
        change(drop.path());
        let e = pack(&PackOptions { existing: Existing::Resume, ..base.clone() }, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains(word) && e.contains("--overwrite"), "{e}");
        packed(&PackOptions { existing: Existing::Overwrite, ..base });
        assert_eq!(files_without_staging(&target).len(), 6);
    }
}
