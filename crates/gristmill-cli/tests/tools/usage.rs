//! What cannot be done is refused with the right exit code, before anything is written; help has examples.

use std::fs;

use super::folders::games;
use crate::command::{generate, run, text};

#[test]
fn wrong_words_and_places_are_refused() {
    let (folder, games) = games("2");
    let [full, logs, gone, out] = ["full", "logs", "gone", "out"].map(|name| folder.path().join(name));
    generate(&full, "1", &[]);
    run(&["generate", "2048", text(&logs), "--games", "1", "--seed", "1", "--moves-max", "20"]).ok();
    let inside = games.join("out");
    let [games, full, logs, gone, out, inside] = [&games, &full, &logs, &gone, &out, &inside].map(|path| text(path));
    let cases: [(i32, &str, &[&str]); 16] = [
        (2, "choose a new or empty folder", &["filter", games, full]),
        (2, "choose a new or empty folder", &["convert", games, full, "--version", "7", "--dry-run"]),
        (2, "would be read", &["rescore", games, inside]),
        (2, "no chess games", &["rescore", logs, out]),
        (1, "gone", &["filter", gone, out]),
        (2, "nothing to convert to", &["convert", games, out]),
        (2, "--games-per-tar goes with", &["convert", games, out, "--container", "loose", "--games-per-tar", "5"]),
        (2, "expected 0 to 1", &["convert", games, out, "--version", "7", "--st-q-theta", "7"]),
        (2, "no name of a folder", &["split", games, out, "--into", "../train:1"]),
        (2, "positive sum", &["split", games, out, "--into", "train:0"]),
        (2, "given twice", &["split", games, out, "--into", "a:1,a:1"]),
        (2, "--into", &["split", games, out]),
        (2, "dist_temp", &["rescore", games, out, "--dist-temp", "0"]),
        (2, "new_input_format", &["rescore", games, out, "--new-input-format", "9"]),
        (2, "--syzygy", &["rescore", games, out, "--allow-missing-tables"]),
        (2, "--deblunder-width", &["rescore", games, out, "--deblunder-threshold", "0.1"]),
    ];
    for (code, says, words) in cases {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{words:?}: {ran:?}");
        assert!(ran.err.contains(says), "no `{says}` for {words:?}: {ran:?}");
    }
    assert!(!fs::exists(out).unwrap() && !fs::exists(inside).unwrap());
}

#[test]
fn help_has_examples_and_progress_is_told() {
    for command in ["rescore", "filter", "split", "convert", "stats", "inspect", "verify"] {
        let help = run(&[command, "--help"]).ok().out;
        for part in ["Examples:", &format!("gristmill {command} "), "--json"] {
            assert!(help.contains(part), "no `{part}` in the help of {command}: {help}");
        }
    }
    let (folder, games) = games("12");
    let out = folder.path().join("out");
    let ran = run(&["filter", text(&games), text(&out)]).ok();
    assert!(ran.err.contains("12/12 files 12 games"), "{ran:?}");
    let ran = run(&["filter", text(&games), text(&out), "--json"]).ok();
    assert!(ran.err.is_empty(), "{ran:?}");
}
