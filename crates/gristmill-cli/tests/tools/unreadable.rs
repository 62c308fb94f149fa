//! Files that cannot be read, for want of a descriptor or else: never called damaged, and never passed over.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::folders::games;
use crate::command::text;

/// Runs the program with at most `descriptors` descriptors: its exit code, and its JSON if it printed any.
fn limited(descriptors: u32, words: &[&str]) -> (i32, Option<Value>) {
    let script = format!("ulimit -n {descriptors} && exec \"$@\"");
    let program = env!("CARGO_BIN_EXE_gristmill");
    let ran = Command::new("sh").args(["-c", &script, "sh", program]).args(words).output().unwrap();
    (ran.status.code().unwrap_or(-1), serde_json::from_slice(&ran.stdout).ok())
}

/// Runs with ever more descriptors, until they are enough; what was reported with too few.
fn told_with_too_few(words: &[&str], enough: impl Fn(&Value) -> bool) -> Vec<(i32, Value)> {
    let mut told = Vec::new();
    for descriptors in 3..200 {
        match limited(descriptors, words) {
            (0, Some(found)) if enough(&found) => return told,
            (code, Some(found)) => told.push((code, found)),
            (code, None) => assert_ne!(code, 0, "{descriptors} descriptors"),
        }
    }
    panic!("200 descriptors are not enough: {:?}", told.last());
}

fn number(found: &Value, field: &str) -> u64 {
    found[field].as_u64().unwrap()
}

fn check(folder: &Path) {
    let verify = ["verify", text(folder), "--json", "--workers", "1"];
    let told = told_with_too_few(&verify, |found| found["ok"] == true);
    for (code, found) in &told {
        let faults = found["faults"].as_array().unwrap();
        assert!(*code == 1 && faults.iter().all(|fault| fault["unreadable"] == true), "{found}");
        assert_eq!(number(found, "unreadable"), number(found, "fault_count"), "{found}");
    }
    let stats = ["stats", text(folder), "--json", "--workers", "1"];
    let told = told_with_too_few(&stats, |found| found["unreadable"] == 0);
    for (code, found) in &told {
        let damaged = number(found, "bad_files") + number(found, "bad_chunks");
        assert!(*code == 1 && damaged == 0 && number(found, "unreadable") > 0, "{found}");
    }
}

#[test]
fn what_cannot_be_read_is_told_as_that_and_fails() {
    let (folder, games) = games("3");
    check(&games);
    let pack = folder.path().join("pack");
    crate::command::run(&["pack", "--input", text(&games), "--output", text(&pack)]).ok();
    check(&pack);
}

#[test]
fn a_file_that_is_not_to_be_had_is_unreadable_and_not_bad() {
    let (folder, _) = games("1");
    let path = folder.path().join("training.9.gz");
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let verified = crate::command::run(&["verify", text(&path), "--json"]);
    let found = verified.json();
    assert_eq!((verified.code, number(&found, "fault_count"), number(&found, "unreadable")), (1, 1, 1), "{found}");
    assert_eq!((&found["faults"][0]["kind"], &found["faults"][0]["unreadable"]), (&"io".into(), &true.into()));
    let counted = crate::command::run(&["stats", text(&path), "--json"]);
    let found = counted.json();
    assert_eq!((counted.code, number(&found, "bad_files"), number(&found, "unreadable")), (1, 0, 1), "{found}");
    assert!(counted.err.contains("could not be read") && counted.err.contains("training.9.gz"), "{}", counted.err);
    let told = crate::command::run(&["verify", text(&path)]);
    assert!(told.out.contains("unreadable: io: ") && told.out.contains("may be sound"), "{}", told.out);
}
