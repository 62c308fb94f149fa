//! What `generate` writes, `inspect`, `verify` and `stats` read, and they agree on what it is.

use std::fs;

use crate::command::{generate, gristmill, only, run, text};

#[test]
fn games_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let written = generate(folder.path(), "12", &[]);
    assert_eq!((written["games"].as_u64(), written["files"].as_u64()), (Some(12), Some(12)));
    let frames = written["frames"].as_u64().unwrap();
    let seen = run(&["inspect", text(folder.path()), "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["chunks"].as_u64()), (Some("lc0.gz"), Some(12)));
    assert_eq!((seen["frames"].as_u64(), seen["size"].as_u64()), (Some(frames), written["bytes"].as_u64()));
    assert_eq!(seen["layout"]["size"], 8356);
    let checked = run(&["verify", text(folder.path()), "--json"]).ok().json();
    assert_eq!((checked["ok"].as_bool(), checked["checked"].as_u64()), (Some(true), Some(frames)));
    assert_eq!(checked["faults"].as_array().map(Vec::len), Some(0));
    let stats = run(&["stats", text(folder.path()), "--json"]).ok().json();
    assert_eq!((stats["chunks"].as_u64(), stats["frames"].as_u64()), (Some(12), Some(frames)));
    assert_eq!(stats["versions"]["6"].as_u64(), Some(frames));
    assert_eq!(stats["inflated_bytes"].as_u64(), Some(frames * 8356));
    let results = &stats["results"];
    let sum: u64 = ["white", "draw", "black"].iter().map(|r| results[r].as_u64().unwrap()).sum();
    assert_eq!(sum, 12);
    assert!(stats["length"]["max"].as_u64().unwrap() <= 40);
}

#[test]
fn games_in_tars() {
    let folder = tempfile::tempdir().unwrap();
    let written = generate(folder.path(), "7", &["--tar", "--games-per-tar", "4", "--version", "7"]);
    assert_eq!((written["games"].as_u64(), written["files"].as_u64()), (Some(7), Some(2)));
    let seen = run(&["inspect", text(folder.path()), "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["chunks"].as_u64()), (Some("lc0.tar"), Some(7)));
    assert_eq!((seen["frames"].as_u64(), &seen["layout"]["size"]), (written["frames"].as_u64(), &8396.into()));
    run(&["verify", text(folder.path())]).ok();
    let second = only(folder.path(), "0100.tar");
    let seen = run(&["inspect", text(&second), "--chunk", "2", "--json"]).ok().json();
    assert_eq!((seen["chunks"].as_u64(), seen["frame"]["chunk"].as_u64()), (Some(3), Some(2)));
    assert_eq!(seen["frame"]["member"], "training-run1-test-20260101-0100/training.7.gz");
    assert_eq!(seen["frame"]["fen"], "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
}

#[test]
fn a_frame_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "1", &[]);
    let file = only(folder.path(), ".gz");
    let shown = run(&["inspect", text(&file), "--frame", "3", "--ascii", "--layout"]).ok();
    for part in ["lc0.gz", "probabilities", "frame 3 of", "black to move", "a b c d e f g h", "legal moves", "result"] {
        assert!(shown.out.contains(part), "no `{part}` in {}", shown.out);
    }
    let view = run(&["inspect", text(&file), "--frame", "3", "--json"]).ok().json()["frame"].clone();
    assert_eq!(view["side"], "black");
    assert_eq!(Some(view["moves"].as_array().unwrap().len() as u64), view["legal_moves"].as_u64());
    let shares: f64 = view["moves"].as_array().unwrap().iter().map(|m| m["share"].as_f64().unwrap()).sum();
    assert!(shares > 0.1 && shares <= 1.0 + 1e-6);
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&a, &b] {
        generate(folder.path(), "3", &[]);
    }
    for n in 1..=3 {
        let read = |folder: &tempfile::TempDir| fs::read(folder.path().join(format!("training.{n}.gz"))).unwrap();
        assert_eq!(read(&a), read(&b));
    }
}

#[test]
fn generate_goes_on_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "2", &[]);
    let again = run(&["generate", "chess", text(folder.path()), "--games", "2", "--seed", "5"]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("training.1.gz") && again.err.contains("--first 3"), "{}", again.err);
    generate(folder.path(), "2", &["--first", "3", "--interval", "0.01"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    let unseeded = run(&["generate", "chess", text(folder.path()), "--games", "1", "--first", "9"]).ok();
    assert!(unseeded.err.contains("seed "), "{unseeded:?}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new");
    let plan = generate(&target, "5", &["--dry-run"]);
    assert_eq!((plan["dry_run"].as_bool(), plan["files"].as_u64()), (Some(true), Some(5)));
    assert!(!target.exists());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "1", &[]);
    let mut child = gristmill(&["inspect", text(folder.path())]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn games_of_2048() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["generate", "2048", text(folder.path()), "--games", "3", "--seed", "5", "--moves-max", "60"];
    let written = run(&[&words[..], &["--json"]].concat()).ok().json();
    assert_eq!((written["games"].as_u64(), written["files"].as_u64()), (Some(3), Some(6)));
    assert_eq!(written["frames"].as_u64(), Some(180));
    let seen = run(&["inspect", text(folder.path()), "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["files"].as_u64()), (Some("2048.jsonl.gz"), Some(3)));
    assert_eq!((seen["skipped"].as_u64(), seen["bad_chunks"].as_u64()), (Some(3), Some(0)));
    assert_eq!((seen["frames"].as_u64(), seen["layout"]["size"].as_u64()), (Some(180), Some(48)));
    let checked = run(&["verify", text(folder.path()), "--json"]).ok().json();
    assert_eq!((checked["ok"].as_bool(), checked["checked"].as_u64()), (Some(true), Some(180)));
    let file = only(folder.path(), "game000001.jsonl.gz");
    let shown = run(&["inspect", text(&file), "--frame", "20", "--record"]).ok();
    for part in ["tile_65536_mask", "frame 20 of 60: run 0, step 20, seed 6", "up  ", "right", "*", "board_eval"] {
        assert!(shown.out.contains(part), "no `{part}` in {}", shown.out);
    }
    let view = run(&["inspect", text(&file), "--frame", "20", "--json"]).ok().json()["frame"].clone();
    assert_eq!((view["ranks"].as_array().unwrap().len(), view["step_index"].as_u64()), (16, Some(20)));
    let moves: Vec<&str> = view["branches"].as_array().unwrap().iter().map(|b| b["move"].as_str().unwrap()).collect();
    assert_eq!(moves, ["up", "down", "left", "right"]);
    let again = run(&words);
    assert!(again.code == 1 && again.err.contains("--first 3"), "{again:?}");
    run(&[&words[..5], &["--seed", "5", "--first", "3", "--dry-run"]].concat()).ok();
}

#[test]
fn bad_logs_of_2048_are_named_with_line_or_rule() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.jsonl.gz");
    let line = r#"{"step_index":0,"max_rank":1,"move":"left","board":[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#;
    fs::write(&path, format!("{line}\n\n{}\n", line.replace("left", "Left"))).unwrap();
    let bad = run(&["verify", text(&path), "--json"]);
    let fault = &bad.json()["faults"][0];
    assert_eq!((bad.code, &fault["kind"], &fault["line"]), (1, &"corrupt".into(), &3.into()));
    assert!(fault["column"].as_u64().is_some_and(|column| column > 30), "{fault}");
    fs::write(&path, format!("{line}\n{}\n", line.replace(":0", ":1"))).unwrap();
    let bad = run(&["verify", text(&path)]);
    assert!(bad.code == 1 && bad.out.contains("frame 1, byte 56: continuity: expected 2 . . . /"), "{bad:?}");
}
