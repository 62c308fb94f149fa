//! `convert` of 2048 rows as a command: what it says, its exit codes, and what a kill leaves.

use std::fs;
use std::path::Path;

use crate::command::{gristmill, run, text};

/// A pack of `games` generated games.
fn pack(root: &Path, games: &str) -> std::path::PathBuf {
    let (logs, pack) = (root.join("logs"), root.join("pack"));
    let words = ["--games", games, "--seed", "3", "--depth", "0", "--moves-max", "60", "--json"];
    run(&[&["generate", "2048", text(&logs)], &words[..]].concat()).ok();
    run(&["pack", "--input", text(&logs), "--output", text(&pack), "--json"]).ok();
    pack
}

#[test]
fn rows_are_converted_there_and_back() {
    let root = tempfile::tempdir().unwrap();
    let pack = pack(root.path(), "5");
    let at = |name: &str| root.path().join(name);
    let convert = |from: &Path, to: &str, more: &[&str]| {
        let to = at(to);
        let words = ["convert", text(from), text(&to), "--to"];
        run(&[&words, more].concat())
    };
    let plan = convert(&pack, "exponents", &["exponents", "--dry-run", "--json"]).ok().json();
    assert!(plan["rows"].as_u64().unwrap() > 50 && plan["dry_run"] == true && !at("exponents").exists());
    let said = convert(&pack, "exponents", &["exponents"]).ok().out;
    assert!(said.contains("rows of 5 games as exponents, from steps"), "{said}");
    convert(&at("exponents"), "back", &["aligned48"]).ok();
    for name in ["steps.npy", "valuation_types.json"] {
        assert_eq!(fs::read(pack.join(name)).unwrap(), fs::read(at("back").join(name)).unwrap(), "{name}");
    }
    run(&["verify", text(&at("back")), "--json"]).ok();

    let refused = convert(&pack, "play", &["self-play"]);
    assert!(refused.code == 2 && refused.err.contains("`move_dir`") && refused.err.contains("--lossy"), "{refused:?}");
    let done = convert(&pack, "play", &["self-play", "--lossy", "--json"]).ok().json();
    assert_eq!((done["to"].as_str(), done["lost"].as_array().map(Vec::len)), (Some("self-play"), Some(4)));
    assert!(at("play").join("steps-000001.npy").exists());
    let refused = convert(&at("play"), "again", &["packed46"]);
    assert!(refused.code == 2 && refused.err.contains("--defaults"), "{refused:?}");
    let said = convert(&at("play"), "again", &["packed46", "--defaults"]).ok().out;
    assert!(said.contains("made up: `move_dir`: 255"), "{said}");

    for (words, word) in [
        (vec!["--to", "exponents", "--version", "7"], "options of chess games"),
        (vec![], "--to FORM"),
        (vec!["--to", "exponents", "--inner"], "--join"),
    ] {
        let refused = run(&[&["convert", text(&pack), text(&at("x"))], &words[..]].concat());
        assert!(refused.code == 2 && refused.err.contains(word), "{refused:?}");
    }
    let damaged = fs::read(pack.join("steps.npy")).unwrap();
    fs::write(pack.join("steps.npy"), &damaged[..damaged.len() - 1]).unwrap();
    let refused = convert(&pack, "x", &["exponents"]);
    assert!(refused.code == 1 && refused.err.contains("steps.npy"), "{refused:?}");
    assert!(!at("x").exists());
}

/// Killed at some moment: the output is what it was, or the whole result; the same command then ends well.
#[test]
fn a_kill_leaves_what_was_there() {
    let root = tempfile::tempdir().unwrap();
    let pack = pack(root.path(), "40");
    let out = root.path().join("out");
    let words = ["convert", text(&pack), text(&out), "--to", "packed46", "--overwrite", "--json"];
    run(&words).ok();
    let before = fs::read(out.join("steps.npy")).unwrap();
    let words = ["convert", text(&pack), text(&out), "--to", "exponents", "--overwrite", "--json"];
    let mut child = gristmill(&words).stdout(std::process::Stdio::null()).spawn().unwrap();
    let staged = out.join(".pack.part");
    while child.try_wait().unwrap().is_none() && !staged.exists() {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    // Files that wait in the staging, and no plan that they go: nothing was changed yet.
    let waiting = fs::read_dir(&staged).map_or(0, Iterator::count);
    if waiting > 0 && !staged.join(".publish.json").exists() {
        assert_eq!(fs::read(out.join("steps.npy")).unwrap(), before);
    }
    run(&words).ok();
    assert!(!staged.exists() && fs::read(out.join("steps.npy")).unwrap() != before);
}
