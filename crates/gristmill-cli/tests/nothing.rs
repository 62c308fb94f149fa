//! Nothing found is never a success: each command says what lies there, what it expected, and which command or call takes it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::command::{generate, gristmill, run, text};

/// Logs and a pack of 2048 games below `folder`.
fn rows(folder: &Path) -> (PathBuf, PathBuf) {
    let (logs, pack) = (folder.join("logs"), folder.join("pack"));
    run(&["generate", "2048", text(&logs), "--games", "2", "--moves-max", "40", "--seed", "1"]).ok();
    run(&["pack", "--input", text(&logs), "--output", text(&pack)]).ok();
    (logs, pack)
}

/// Folders without a game of chess, and what is said of each.
fn folders(base: &Path) -> Vec<(PathBuf, &'static str)> {
    let made = |name: &str, file: Option<(&str, &[u8])>| {
        let folder = base.join(name);
        fs::create_dir_all(&folder).unwrap();
        if let Some((name, bytes)) = file {
            fs::write(folder.join(name), bytes).unwrap();
        }
        folder
    };
    let (logs, pack) = rows(base);
    run(&["values", text(&pack)]).ok();
    let values = fs::read(pack.join("values.npy")).unwrap();
    vec![
        (made("empty", None), "is empty"),
        (made("texts", Some(("notes.txt", b"nothing"))), "no format here claims (notes.txt)"),
        (made("demos", Some(("a.npz", b"PK"))), "a file of demonstrations (a.npz): gristmill.PairLoader"),
        (made("values", Some(("values.npy", &values))), "without the rows (values.npy)"),
        (pack, "a pack of 2048 rows: gristmill.DataLoader(gristmill.open("),
        (logs, "2 raw logs of 2048 games"),
    ]
}

#[test]
fn feeding_a_folder_without_games_says_what_lies_there() {
    let base = tempfile::tempdir().unwrap();
    for (folder, told) in folders(base.path()) {
        for more in [&["--batches", "1"][..], &["--epochs", "1"], &["--batches", "1", "--watch", "false"]] {
            let fed = run(&[&["feed", text(&folder), "--reservoir", "0", "--json"], more].concat());
            assert_eq!(fed.code, 1, "{more:?} {fed:?}");
            assert!(fed.err.contains(told), "{more:?} {}", fed.err);
        }
    }
}

#[test]
fn values_without_rows_are_no_values_to_replace() {
    let base = tempfile::tempdir().unwrap();
    let lone = folders(base.path()).into_iter().find(|(_, told)| told.contains("values.npy")).unwrap();
    for more in [&[][..], &["--overwrite"], &["--dry-run"]] {
        let done = run(&[&["values", text(&lone.0)], more].concat());
        assert!(done.code == 1 && done.err.contains(lone.1) && !done.err.contains("already"), "{more:?} {done:?}");
    }
}

#[test]
fn a_configuration_waits_only_where_it_says_so() {
    let base = tempfile::tempdir().unwrap();
    let empty = base.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let printed = run(&["feed", text(&empty), "--dry-run"]).ok().out;
    assert!(!printed.contains("watch"), "{printed}");
    let file = base.path().join("loader.toml");
    fs::write(&file, printed).unwrap();
    let fed = run(&["feed", text(&file), "--batches", "1"]);
    assert!(fed.code == 1 && fed.err.contains("--wait"), "{fed:?}");
    let waits = run(&["feed", text(&empty), "--dry-run", "--wait"]).ok().out;
    assert!(waits.contains("watch = true"), "{waits}");
}

#[test]
fn waiting_is_a_wish_and_is_told() {
    let base = tempfile::tempdir().unwrap();
    let games = base.path().join("games");
    fs::create_dir(&games).unwrap();
    let words = ["feed", text(&games), "--wait", "--batches", "1", "--batch-size", "8", "--reservoir", "0", "--json"];
    let mut child = gristmill(&words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    assert!(told.contains("is empty. Waiting for games to come"), "{told}");
    generate(&games, "2", &[]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn verifying_and_inspecting_nothing_are_no_success() {
    let base = tempfile::tempdir().unwrap();
    for (folder, told) in folders(base.path()).into_iter().take(4).filter(|(folder, _)| !folder.ends_with("demos")) {
        for command in ["verify", "inspect", "stats"] {
            let ran = run(&[command, text(&folder)]);
            let said = format!("{}{}", ran.out, ran.err);
            assert_eq!(ran.code, 1, "{command} {ran:?}");
            assert!(said.contains(told), "{command} {said}");
        }
    }
    let empty = base.path().join("empty");
    let report = run(&["verify", text(&empty), "--json"]);
    assert_eq!((report.code, report.json()["faults"][0]["kind"].as_str()), (1, Some("empty")));
    // The other path that is given does not hide it.
    let games = base.path().join("games");
    generate(&games, "1", &[]);
    assert_eq!(run(&["verify", text(&games), text(&empty)]).code, 1);
}

#[test]
fn a_folder_between_two_packs_is_no_success() {
    let base = tempfile::tempdir().unwrap();
    let between = base.path().join("between");
    // Killed when the old files were gone and the new ones had not taken their places.
    fs::create_dir_all(between.join(".pack.part")).unwrap();
    for command in ["verify", "inspect", "stats"] {
        let ran = run(&[command, text(&between)]);
        assert_eq!(ran.code, 1, "{command} {ran:?}");
        assert!(format!("{}{}", ran.out, ran.err).contains("gristmill recover"), "{command} {ran:?}");
    }
}

#[test]
fn a_path_that_does_not_exist_is_called_so() {
    let base = tempfile::tempdir().unwrap();
    let nowhere = base.path().join("nowhere");
    for command in ["verify", "inspect", "stats", "feed"] {
        let ran = run(&[command, text(&nowhere)]);
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, 1, "{command} {ran:?}");
        assert!(said.contains("No such file") && !said.contains("vanished"), "{command} {said}");
    }
}

#[test]
fn a_file_that_is_no_game_is_named_for_what_it_is() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().join(name);
    fs::write(at("notes.txt"), b"nothing").unwrap();
    fs::write(at("a.npz"), b"PK").unwrap();
    let pattern = at("*.zip");
    for (place, told) in [
        (at("notes.txt"), "it is one file that no format here claims (notes.txt)"),
        (at("a.npz"), "it is a file of demonstrations (a.npz): gristmill.PairLoader"),
        (pattern, "it names no file"),
    ] {
        let fed = run(&["feed", text(&place), "--batches", "1"]);
        assert!(
            fed.code == 1 && fed.err.contains(&format!("no games of chess in {}: {told}", text(&place))),
            "{fed:?}"
        );
    }
}

#[test]
fn every_command_names_what_lies_where_its_data_is_missing() {
    let base = tempfile::tempdir().unwrap();
    let to = base.path().join("to");
    for (folder, told) in folders(base.path()) {
        let (path, to) = (text(&folder), text(&to));
        let mut lines = vec![(vec!["filter", path, to], 2), (vec!["rescore", path, to], 2)];
        // It measures packs as it does games.
        if !folder.ends_with("pack") {
            lines.push((vec!["bench", path], 1));
        }
        // What these take is among the folders.
        if !["demos", "logs", "pack"].iter().any(|name| folder.ends_with(name)) {
            lines.extend([(vec!["pack", path, to], 1), (vec!["dedup", path], 1), (vec!["checksum", path], 1)]);
        }
        for (words, code) in lines {
            let done = run(&words);
            assert!(done.code == code && done.err.contains(told), "{words:?} {done:?}");
            assert!(!base.path().join("to").exists(), "{words:?}");
        }
    }
    let nowhere = base.path().join("nowhere");
    for words in
        [&["bench"][..], &["feed"], &["verify"], &["inspect"], &["stats"], &["values"], &["dedup"], &["recover"]]
    {
        let done = run(&[words, &[text(&nowhere)]].concat());
        assert!(done.code != 0 && done.err.contains("nowhere") | done.out.contains("nowhere"), "{words:?} {done:?}");
        assert!((done.err.clone() + &done.out).contains("No such file or directory"), "{words:?} {done:?}");
    }
}
