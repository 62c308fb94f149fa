//! Completions in real shells, and the manual pages of all commands.

use std::fs;
use std::process::Command;

use crate::command::{run, text};

/// What bash offers for the last of some words.
fn offered(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("gristmill.bash");
    fs::write(&script, run(&["completions", "bash"]).ok().out).unwrap();
    let last = words.len();
    let line = format!(
        "source {}; COMP_WORDS=(gristmill {}); COMP_CWORD={last}; _gristmill gristmill '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        text(&script),
        words.join(" "),
        words[last - 1],
        last.checked_sub(2).map_or("gristmill", |before| words[before]),
    );
    let said = Command::new("bash").args(["--norc", "-c", &line]).current_dir(folder.path()).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_their_options() {
    assert_eq!(offered(&["insp"]), ["inspect"]);
    assert!(offered(&["generate", "ch"]).contains(&"chess".to_owned()));
    assert_eq!(offered(&["pack", "--dry"]), ["--dry-run"]);
    assert_eq!(offered(&["stats", "--color", "al"]), ["always"]);
}

#[test]
fn every_shell_has_its_script_and_others_are_refused() {
    for (shell, sign) in [
        ("zsh", "#compdef gristmill"),
        ("fish", "complete -c gristmill"),
        ("elvish", "edit:"),
        ("powershell", "Register"),
    ] {
        let script = run(&["completions", shell]).ok().out;
        assert!(script.contains(sign) && script.contains("verify-run"), "{shell}: {script}");
    }
    let told = run(&["completions", "bash", "--json"]).ok().json();
    assert_eq!(told["shell"], "bash");
    assert_eq!(told["script"].as_str().unwrap().trim_end(), run(&["completions", "bash"]).ok().out.trim_end());
    let refused = run(&["completions", "tcsh"]);
    assert!(refused.code == 2 && refused.err.contains("possible values: bash"), "{refused:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("share/man1");
    let told = run(&["man", text(&out), "--dry-run", "--json"]).ok().json();
    assert!(!out.exists() && told["dry_run"] == true);
    let told = run(&["man", text(&out), "--json"]).ok().json();
    let pages: Vec<&str> = told["pages"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect();
    for page in ["gristmill.1", "gristmill-pack.1", "gristmill-generate-chess.1", "gristmill-tokenizer-fit.1"] {
        assert!(pages.contains(&page), "{pages:?}");
    }
    for page in &pages {
        let written = fs::read_to_string(out.join(page)).unwrap();
        assert!(written.contains(".SH NAME") && written.contains(".SH SYNOPSIS"), "{page}: {written}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), pages.len());
    let refused = run(&["man", text(&out)]);
    assert!(refused.code == 1 && refused.err.contains("gristmill.1: it is there already; --overwrite"), "{refused:?}");
    run(&["man", text(&out), "--overwrite"]).ok();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(run(&["man", text(&file)]).code, 1);
}
