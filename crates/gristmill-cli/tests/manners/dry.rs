//! `--dry-run` of everything that writes: the disk stays as it was, to the byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::command::{generate, gristmill, run, text};
use crate::demos::files::{shard, steps as frames};

/// Every file below a folder with its bytes, and every folder.
fn disk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            disk(&path, found);
            found.insert(path, None);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
}

#[test]
fn a_dry_run_leaves_the_disk_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let [games, logs, pack, again, steps, demos, out] =
        ["games", "logs", "pack", "again", "steps", "demos.tar.zst", "out"].map(place);
    generate(Path::new(&games), "3", &[]);
    run(&["generate", "2048", &logs, "--games", "2", "--seed", "1", "--moves-max", "30"]).ok();
    run(&["pack", &games, &pack]).ok();
    run(&["pack", &games, &again]).ok();
    run(&["pack", &logs, &steps]).ok();
    run(&["mark", &pack, "late", "--rule", "plies_left < 5"]).ok();
    shard(Path::new(&demos), &frames(&[5, 3]));
    let png = place("strip.png");
    let html = place("page.html");
    let config = place("run.toml");
    let stream = run(&["feed", &games, "--seed", "1", "--epochs", "1", "--batch-size", "4", "--dry-run"]).ok().out;
    std::fs::write(&config, stream).unwrap();
    let cases: &[&[&str]] = &[
        &["generate", "chess", &out, "--games", "2"],
        &["generate", "2048", &out, "--games", "2"],
        &["inspect", &demos, "--png", &png],
        &["inspect", &demos, "--png", &out],
        &["stats", &games, "--html", &html],
        &["bench", &games, "--batches", "4", "--batch-size", "8", "--threads", "1", "--html", &html],
        &["pack", &games, &out],
        &["pack", &games, &pack, "--append"],
        &["pack", &games, &pack, "--overwrite"],
        &["pack", &pack, "--abandon"],
        &["pack", &logs, &out],
        &["merge", &pack, &again, "--out", &out],
        &["recover", &pack],
        &["values", &steps],
        &["checksum", &steps, "--overwrite"],
        &["mark", &pack, "early", "--rule", "plies_left > 5"],
        &["mark", &pack, "--remove", "late"],
        &["mark", &pack, "late", "--update"],
        &["dedup", &pack, "--mark", "again"],
        &["tokenizer", "fit", &steps, &out, "--num-bins", "2", "--valuations", "search"],
        &["rescore", &games, &out],
        &["filter", &games, &out],
        &["split", &games, &out, "--into", "a:1,b:1"],
        &["split", &demos, &out, "--into", "a:1,b:1"],
        &["convert", &games, &out, "--version", "7"],
        &["convert", &steps, &out, "--to", "packed46"],
        &["convert", &demos, &out, "--max-frames", "3"],
        &["feed", &games, "--epochs", "1", "--out", &out],
        &["xray", "--config", &config, "--batch", "0", "--survey"],
    ];
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let mut before = BTreeMap::new();
    disk(folder.path(), &mut before);
    for words in cases {
        let ran = gristmill(&[words, &["--dry-run"][..]].concat()).env("XDG_CACHE_HOME", &cache).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        let mut after = BTreeMap::new();
        disk(folder.path(), &mut after);
        assert!(before == after, "{words:?} changed the disk: {:?}", after.keys().collect::<Vec<_>>());
    }
}

#[test]
fn what_is_there_is_replaced_only_with_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| text(&folder.path().join(name)).to_owned();
    let [games, logs, steps, out, batches] = ["games", "logs", "steps", "bins.json", "batches"].map(place);
    let logged = ["generate", "2048", &logs, "--games", "1", "--seed", "1", "--moves-max", "30"];
    let played = ["generate", "chess", &games, "--games", "3", "--seed", "5", "--plies-max", "40"];
    let fed =
        ["feed", &games, "--epochs", "1", "--seed", "1", "--batch-size", "8", "--batches", "2", "--out", &batches];
    let fitted = ["tokenizer", "fit", &steps, &out, "--num-bins", "2", "--valuations", "search"];
    let packed = ["pack", &logs, &steps];
    for words in [&played[..], &logged, &packed, &fitted, &fed] {
        run(words).ok();
        let refused = run(words);
        assert!(refused.code != 0 && refused.err.contains("--overwrite"), "{words:?}: {refused:?}");
        run(&[words, &["--overwrite"][..]].concat()).ok();
    }
}
