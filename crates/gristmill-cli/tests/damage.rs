//! Damaged, foreign and missing files: named in one line, counted, exit code 1; the good ones are still read.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::command::{Ran, generate, only, run, text};
use serde_json::Value;

/// A folder with one game, its file, and its bytes.
fn one_game() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "1", &[]);
    let file = only(folder.path(), ".gz");
    let bytes = fs::read(&file).unwrap();
    (folder, file, bytes)
}

/// Verifies `path`, which must have faults; the report.
fn faults(path: &Path) -> Value {
    let ran = run(&["verify", text(path), "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let report = ran.json();
    assert_eq!(report["ok"], false);
    assert!(report["fault_count"].as_u64().unwrap() > 0);
    report
}

fn first(report: &Value) -> &Value {
    &report["faults"][0]
}

#[test]
fn a_truncated_game_says_what_can_be_had() {
    let (folder, file, bytes) = one_game();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let report = faults(folder.path());
    let fault = first(&report);
    assert_eq!((fault["kind"].as_str(), fault["chunk"].as_u64()), (Some("truncated"), Some(0)));
    assert_eq!(fault["file"], text(&file));
    let salvageable = fault["salvageable"].as_u64().unwrap();
    assert!(salvageable > 0 && salvageable < 40, "{salvageable}");
    assert_eq!(report["salvageable"].as_u64(), Some(salvageable));
    assert_eq!(report["checked"], 0);
}

#[test]
fn a_flipped_bit_is_corrupt() {
    let (folder, file, mut bytes) = one_game();
    let at = bytes.len() - 6;
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(first(&faults(folder.path()))["kind"], "corrupt");
}

#[test]
fn plain_records_are_read_and_their_damage_is_placed() {
    let (_folder, file, bytes) = one_game();
    let records = gunzip(&bytes);
    let plain = file.with_extension("");
    fs::remove_file(&file).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = records.clone();
        change(&mut changed);
        fs::write(&plain, changed).unwrap();
        run(&["verify", text(&plain), "--json"])
    };
    let kind_and_place = |ran: Ran| {
        assert_eq!(ran.code, 1, "{ran:?}");
        let fault = first(&ran.json()).clone();
        (fault["kind"].as_str().unwrap().to_owned(), fault["frame"].as_u64(), fault["offset"].as_u64())
    };
    assert_eq!(with(&|_| ()).code, 0);
    let record = 8356;
    // One byte too many; a foreign version; NaN in result_q of frame 2.
    assert_eq!(kind_and_place(with(&|r| r.push(0))).0, "wrong_size");
    assert_eq!(kind_and_place(with(&|r| r[record] = 7)), ("unknown_version".into(), Some(1), Some(record as u64)));
    let at = 2 * record + 8308;
    let nan = kind_and_place(with(&|r| r[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes())));
    assert_eq!(nan, ("out_of_range".into(), Some(2), Some(at as u64)));
    // A result that changes; a side that moves twice; a policy that does not sum to 1; no castling byte.
    let won = kind_and_place(with(&|r| r[at..at + 4].copy_from_slice(&0.5f32.to_le_bytes())));
    assert_eq!(won.0, "out_of_range");
    let side = record + 8276;
    assert_eq!(kind_and_place(with(&|r| r[side] = 0)), ("out_of_range".into(), Some(1), Some(side as u64)));
    let sum = with(&|r| {
        for p in r[8..7440].chunks_exact_mut(4) {
            if p != (-1f32).to_le_bytes() {
                p.copy_from_slice(&0.5f32.to_le_bytes());
            }
        }
    });
    assert!(first(&sum.json())["detail"].as_str().unwrap().contains("sum to"));
    let castling = kind_and_place(with(&|r| r[8272] = 2));
    assert_eq!(castling, ("out_of_range".into(), Some(0), Some(8272)));
}

/// Inflates with the system's gzip, so that the test does not trust the code under test.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn a_truncated_tar_keeps_its_first_games() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "3", &["--tar"]);
    let tar = only(folder.path(), ".tar");
    let bytes = fs::read(&tar).unwrap();
    fs::write(&tar, &bytes[..bytes.len() / 2]).unwrap();
    let report = faults(folder.path());
    assert!(report["checked"].as_u64().unwrap() > 0);
    let seen = run(&["inspect", text(&tar), "--json"]).ok().json();
    assert!(seen["first_fault"].is_string());
    assert_eq!(seen["frames"], report["checked"]);
}

#[test]
fn foreign_empty_and_missing_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("notes.txt");
    fs::write(&foreign, "nothing to do with chess").unwrap();
    assert_eq!(first(&faults(&foreign))["kind"], "unknown_format");
    let listed = faults(folder.path());
    assert_eq!((first(&listed)["kind"].as_str(), listed["skipped"].as_u64()), (Some("empty"), Some(1)));
    let empty = folder.path().join("training.1.gz");
    fs::write(&empty, "").unwrap();
    assert_eq!(first(&faults(&empty))["kind"], "empty");
    let missing = folder.path().join("training.2.gz");
    for command in ["inspect", "stats", "verify", "doctor"] {
        let ran = run(&[command, text(&missing)]);
        assert!(ran.code == 1 && ran.out.is_empty() && ran.err.contains(text(&missing)), "{command}: {ran:?}");
    }
    let two = run(&["verify", text(&empty), text(&missing)]);
    assert!(two.code == 1 && two.out.is_empty() && two.err.contains(text(&missing)), "{two:?}");
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let written = generate(folder.path(), "4", &[]);
    fs::write(folder.path().join("training.9.gz"), b"\x1f\x8b\x08 rubbish").unwrap();
    let report = faults(folder.path());
    assert_eq!((report["checked"].as_u64(), report["files"].as_u64()), (written["frames"].as_u64(), Some(5)));
    let stats = run(&["stats", text(folder.path()), "--json"]).ok().json();
    assert_eq!((stats["bad_chunks"].as_u64(), stats["frames"].as_u64()), (Some(1), written["frames"].as_u64()));
}

#[test]
fn the_list_of_faults_is_capped_and_the_count_is_not() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..5 {
        fs::write(folder.path().join(format!("training.{n}.gz")), "rubbish").unwrap();
    }
    let ran = run(&["verify", text(folder.path()), "--max-faults", "2", "--json"]);
    let report = ran.json();
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["fault_count"], 5);
    let ran = run(&["verify", text(folder.path()), "--max-faults", "2"]);
    assert!(ran.out.contains("3 more faults"), "{}", ran.out);
}

#[test]
fn loops_and_unreadable_folders_are_faults_and_end_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let written = generate(folder.path(), "1", &[]);
    let again = folder.path().join("again");
    std::os::unix::fs::symlink(folder.path(), &again).unwrap();
    let report = faults(folder.path());
    assert_eq!((first(&report)["kind"].as_str(), &report["checked"]), (Some("symlink_loop"), &written["frames"]));
    assert!(first(&report)["detail"].as_str().unwrap().contains("again"));
    fs::remove_file(&again).unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read_dir(&closed).is_ok() {
        println!("skipped: this user may read every folder");
    } else {
        assert_eq!(first(&faults(folder.path()))["kind"], "permission");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let ran = run(&["generate", "chess", text(&file.join("below")), "--games", "1", "--seed", "1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("below"), "{}", ran.err);
}

#[test]
fn names_command_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "2", &[]);
    fs::write(games.join("training.\u{1b}[2J\n7.gz"), b"\x1f\x8b\x08 rubbish").unwrap();
    // A member of a tar, its name and its bytes spoilt.
    let tars = folder.path().join("tars");
    generate(&tars, "2", &["--tar", "--first", "101"]);
    let tar = only(&tars, ".tar");
    let mut bytes = fs::read(&tar).unwrap();
    let name = bytes.windows(13).position(|found| found == b"training.101.").unwrap();
    let header = name / 512 * 512;
    bytes[name + 5] = 0x1b;
    bytes[header + 148..header + 156].fill(b' ');
    let sum: u32 = bytes[header..header + 512].iter().map(|byte| u32::from(*byte)).sum();
    bytes[header + 148..header + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes[header + 512 + 200] ^= 0xff;
    fs::write(games.join("a.tar"), bytes).unwrap();
    let out = |name: &str| folder.path().join(name).display().to_string();
    let (filtered, rescored, packed) = (out("filtered"), out("rescored"), out("packed"));
    let games = text(&games);
    for (words, names) in [
        (&["inspect", games][..], true),
        (&["verify", games], true),
        (&["filter", games, &filtered], false),
        (&["rescore", games, &rescored], false),
        (&["pack", "--input", games, "--output", &packed], true),
    ] {
        let ran = run(words);
        let said = ran.out.clone() + &ran.err;
        assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{words:?}: {said:?}");
        assert!(!names || said.contains("\\u{1b}"), "{words:?}: {said}");
    }
    let verified = run(&["verify", games]).out;
    assert!(
        verified.contains("train\\u{1b}ng.101.gz") && verified.contains("training.\\u{1b}[2J\\n7.gz"),
        "{verified}"
    );
}
