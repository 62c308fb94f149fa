//! Ctrl-C ends a command with 130 and words that people understand, whatever it was at.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::command::{generate, gristmill, text};

/// Starts a command whose stderr is read.
fn start(words: &[&str]) -> Child {
    gristmill(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Presses Ctrl-C, and gives code, stdout and the rest of stderr.
fn interrupted(mut child: Child, signal: &str) -> (i32, String, String) {
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (child.wait().unwrap().code().unwrap(), out, said)
}

/// Waits until a folder has a file: the command is at work then.
fn at_work(folder: &Path, child: &mut Child) {
    while !std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        std::thread::yield_now();
    }
}

#[test]
fn ctrl_c_ends_with_130_and_says_what_is_left() {
    for (signal, kind, depth) in [("-INT", "chess", ""), ("-TERM", "chess", ""), ("-INT", "2048", "7")] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut words = vec!["generate", kind, text(&out), "--games", "100000", "--seed", "1", "--json"];
        words.extend(if depth.is_empty() { ["--interval", "1"] } else { ["--moves-max", "1"] });
        let mut child = start(&words);
        at_work(&out, &mut child);
        let (code, told, said) = interrupted(child, signal);
        assert_eq!(code, 130, "{said}");
        let told: Value = serde_json::from_str(&told).unwrap_or_else(|e| panic!("{e}: {told:?}"));
        assert_eq!((&told["error"]["kind"], &told["error"]["exit_code"]), (&"stopped".into(), &130.into()), "{told}");
        assert!(said.contains("gristmill: stopped"), "{said}");
    }
}

#[test]
fn a_stopped_feed_tells_what_it_did_and_names_no_inner_part() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "12", &[]);
    let words =
        ["feed", text(folder.path()), "--batch-size", "8", "--reservoir", "64", "--seed", "1", "--metrics", "0"];
    let mut child = start(&words);
    let mut line = String::new();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.contains("metrics at"), "{line}");
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    said.read_to_string(&mut line).unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{line}");
    assert!(out.contains("(stopped)") && out.contains("batches"), "{out}");
    for inner in ["loader was stopped", "panicked", "Stopped", "thread"] {
        assert!(!line.contains(inner) && !out.contains(inner), "{line}{out}");
    }
}
