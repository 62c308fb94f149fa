//! Runs that are killed: nothing half done is left under a name, and the same command ends like one that was let be.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::folders::{games, tree};
use crate::command::{gristmill, run, text};

/// Starts a run of the words, and stops it by `signal` once some files are there; whether it was still at it.
fn broken_off(words: &[&str], out: &Path, signal: &str, files: usize) -> bool {
    let mut child = gristmill(words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let there = || fs::read_dir(out).is_ok_and(|found| found.count() > files);
    while !there() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    sent.success() && ended(child, signal)
}

/// Whether the process ended by the signal, or after it as it should.
fn ended(child: Child, signal: &str) -> bool {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    match signal {
        "-KILL" => output.status.code().is_none(),
        _ => output.status.code() == Some(130) && said.contains("the same command resumes"),
    }
}

#[test]
fn a_killed_rescore_is_gone_on_with_and_ends_like_a_whole_one() {
    let (folder, games) = games("250");
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path().join(name));
    let all = run(&["rescore", text(&games), text(&whole), "--json"]).ok().json();
    let words = ["rescore", text(&games), text(&parts), "--threads", "1"];
    // A run may be over before it is hit; then there is another.
    let hit = (0..10).any(|_| {
        let _ = fs::remove_dir_all(&parts);
        broken_off(&words, &parts, "-KILL", 10) && broken_off(&words, &parts, "-INT", 20)
    });
    assert!(hit, "never hit in the middle");
    let before = tree(&parts);
    assert!(before.len() < 250, "the whole run was let be");
    let expected = tree(&whole);
    assert!(before.iter().all(|file| expected.contains(file)), "what is there is whole");
    let done = run(&[&words[..], &["--json"]].concat()).ok().json();
    assert!(tree(&parts) == expected);
    assert!(done["resumed"].as_u64() > Some(0), "{done}");
    for name in ["chunks", "kept", "changed", "frames_in", "frames_out", "bytes_out", "files_out", "counts"] {
        assert_eq!(done[name], all[name], "{name}");
    }
    let other = run(&[&words[..], &["--dist-temp", "2"]].concat());
    assert!(other.code == 2 && other.err.contains("other settings"), "{other:?}");
}
