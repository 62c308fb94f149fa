//! Runs the real binary and checks its output. Never checks how long anything took.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a run of the command gave.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The command with these words, not yet started.
pub fn gristmill(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.args(words).stdin(Stdio::null()).env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the command to its end.
pub fn run(words: &[&str]) -> Ran {
    ended(&mut gristmill(words))
}

/// Runs a prepared command to its end.
pub fn ended(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

impl Ran {
    /// The one line of JSON on stdout.
    pub fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "expected one line: {self:?}");
        assert!(self.out.ends_with('\n'));
        serde_json::from_str(&self.out).unwrap()
    }

    /// Asserts that it went well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Generates `games` games of at most 40 plies into `folder`.
pub fn generate(folder: &Path, games: &str, more: &[&str]) -> Value {
    let words = ["generate", "chess", text(folder), "--games", games, "--seed", "5", "--plies-max", "40", "--json"];
    run(&[&words, more].concat()).ok().json()
}

/// The one file of `folder` whose name ends in `end`.
pub fn only(folder: &Path, end: &str) -> std::path::PathBuf {
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| text(p).ends_with(end));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}
