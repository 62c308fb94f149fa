//! Games that the system refuses to read (a preloaded library lets it): jobs fail, say which, and lose none of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Ran, ended, generate, gristmill, run, text};

/// Makes the library, which refuses while a file says so; `None`, visibly, where there is no compiler for it.
fn library(folder: &Path) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/faults/refuse.c");
    let library = folder.join("refuse.so");
    let words = ["-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", text(&library), source];
    match Command::new("cc").args(words).status() {
        Ok(made) if cfg!(target_os = "linux") => {
            assert!(made.success());
            Some(library)
        }
        _ => {
            #[allow(clippy::print_stderr, reason = "a test that is left out says so")]
            {
                eprintln!("skipped: needs `cc` on Linux, to make a library that lets reads fail");
            }
            None
        }
    }
}

/// Runs the command where reading a game fails with EIO.
fn refused(library: &Path, words: &[&str]) -> Ran {
    let control = library.with_file_name("control");
    fs::write(&control, "5 r").unwrap();
    ended(gristmill(words).env("LD_PRELOAD", library).env("REFUSE", &control))
}

#[test]
fn verify_stats_and_inspect_fail_where_games_cannot_be_read() {
    let base = tempfile::tempdir().unwrap();
    let Some(library) = library(base.path()) else { return };
    let games = base.path().join("games");
    generate(&games, "3", &[]);
    for job in ["verify", "stats", "inspect"] {
        run(&[job, text(&games)]).ok();
        for more in [&[][..], &["--json"]] {
            let ran = refused(&library, &[&[job, text(&games)], more].concat());
            assert_eq!(ran.code, 1, "{job}: {ran:?}");
            assert!(format!("{}{}", ran.out, ran.err).contains("os error 5"), "{job}: {ran:?}");
        }
    }
}

#[test]
fn what_writes_ends_with_the_error_and_takes_every_game_afterwards() {
    let base = tempfile::tempdir().unwrap();
    let Some(library) = library(base.path()) else { return };
    let games = base.path().join("games");
    generate(&games, "3", &[]);
    for (job, options, resumed) in [
        ("pack", &[][..], &["--resume"][..]),
        ("filter", &[], &[]),
        ("split", &["--into", "train:9", "--into", "test:1"], &[]),
        ("rescore", &[], &[]),
    ] {
        let [out, whole] = ["out", "whole"].map(|name| base.path().join(format!("{job}-{name}")));
        let words = |out: &Path| [&[job, text(&games), text(out)], options].concat().join("\n");
        let run_with = |out: &Path, more: &[&str]| {
            let words = words(out);
            run(&[&words.lines().collect::<Vec<_>>(), more].concat())
        };
        run_with(&whole, &[]).ok();
        let words = words(&out);
        let ran = refused(&library, &words.lines().collect::<Vec<_>>());
        assert_eq!(ran.code, 1, "{job}: {ran:?}");
        assert!(ran.err.contains("os error 5") && ran.err.contains("training."), "{job}: {ran:?}");
        let again = run_with(&out, &[]);
        let again = if again.code == 0 { again } else { run_with(&out, resumed) };
        again.ok();
        let frames = |pack: &Path| run(&["verify", text(pack), "--json"]).ok().json()["frames"].clone();
        assert_eq!(frames(&out), frames(&whole), "{job}");
    }
}
