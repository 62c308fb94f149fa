//! What fails, says why: one line on stderr that begins with the program's name, with `--json` one document on stdout, too.

use crate::command::{generate, run, text};

#[test]
fn failures_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let [games, pack, none] = ["games", "pack", "none"].map(|name| folder.path().join(name));
    generate(&games, "2", &[]);
    let [games, pack, none] = [&games, &pack, &none].map(|path| text(path));
    run(&["pack", games, pack]).ok();
    let cases: &[(i32, &str, &[&str])] = &[
        (2, "usage", &["mill"]),
        (2, "usage", &["feed", games, "--btches", "3"]),
        (2, "usage", &[]),
        (2, "usage", &["generate"]),
        (2, "usage", &["pack", games]),
        (2, "usage", &["feed", games, "--batch-size", "0"]),
        (2, "usage", &["feed", games, "--metrics", "a:b"]),
        (2, "usage", &["convert", games, none]),
        (2, "usage", &["top", "1"]),
        (1, "failed", &["inspect", none]),
        (2, "usage", &["pack", games, pack]),
        (1, "failed", &["mark", none, "--list"]),
        (1, "failed", &["recover", none]),
        (1, "failed", &["merge", none, pack, "--out", none]),
        (1, "failed", &["values", none]),
        (1, "failed", &["checksum", none]),
        (1, "failed", &["dedup", none]),
        (1, "failed", &["tokenizer", "fit", none, none]),
        (2, "usage", &["verify-run", none]),
        (1, "failed", &["xray", "--state", none, "--pack", pack, "--batch", "1"]),
        (1, "failed", &["filter", none, pack]),
        (1, "failed", &["bench", none]),
        (1, "failed", &["top", "1", "--once"]),
        (1, "failed", &["feed", none, "--overlay", none]),
    ];
    let mut wrong = Vec::new();
    for (code, kind, words) in cases {
        for with in [[words, &["--json"][..]].concat(), [&["--json"], *words].concat()] {
            let ran = run(&with);
            if ran.code != *code {
                wrong.push(format!("{with:?}: {ran:?}"));
                continue;
            }
            let told = ran.json();
            let error = &told["error"];
            assert_eq!(
                (&told["ok"], &error["kind"], &error["exit_code"]),
                (&false.into(), &(*kind).into(), &(*code).into())
            );
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && !message.contains("Usage:"), "{message}");
            let said = ran.err.lines().find_map(|line| line.strip_prefix("gristmill: "));
            assert!(said.is_some_and(|said| message.starts_with(said)), "{with:?}: {ran:?}");
            assert!(!ran.err.contains("error: "), "{ran:?}");
        }
        let ran = run(words);
        assert!(ran.code == *code && ran.out.is_empty() || !wrong.is_empty(), "{words:?}: {ran:?}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_document_of_what_was_done_stays_the_only_one() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "2", &[]);
    std::fs::write(folder.path().join("training.77.gz"), b"rubbish").unwrap();
    let games = text(folder.path());
    let faults = run(&["verify", games, "--json"]);
    assert_eq!((faults.code, &faults.json()["ok"]), (1, &false.into()));
    let out = tempfile::tempdir().unwrap();
    let left_out = run(&["pack", games, text(out.path()), "--json"]);
    assert_eq!((left_out.code, &left_out.json()["runs"]), (3, &2.into()));
    let none = tempfile::tempdir().unwrap();
    let empty = run(&["stats", text(none.path()), "--json"]);
    assert_eq!((empty.code, &empty.json()["chunks"]), (1, &0.into()));
}

#[test]
fn wrong_words_come_back_with_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let [games, pack, file] = ["games", "pack", "notes.txt"].map(|name| folder.path().join(name));
    generate(&games, "2", &[]);
    std::fs::write(&file, "no game").unwrap();
    let [games, pack, file] = [&games, &pack, &file].map(|path| text(path));
    let cases: &[(i32, &[&str], &str)] = &[
        (2, &["generate", "chess", pack, "--games", "many"], "'--games <N>': expected a whole number"),
        (2, &["feed", games, "--batch-size", "1.5"], "expected a whole number, such as 1000"),
        (2, &["feed", games, "--seed", "99999999999999999999"], "expected a smaller number"),
        (2, &["pack", games, pack, "--share", "3/2"], "'--share <N/OF>': 3/2: expected a number from 1 to 2"),
        (1, &["pack", file, pack], "no format known here; expected"),
        (1, &["feed", file, "--batches", "1"], "no games of chess in"),
    ];
    for (code, words, says) in cases {
        let refused = run(words);
        assert!(refused.code == *code && refused.err.contains(says), "{words:?}: {refused:?}");
        assert!(!refused.err.contains("invalid digit") && !refused.err.contains("--wait"), "{words:?}: {refused:?}");
    }
}
