//! Reports and marks that shares make, through the commands: bytes and exit codes are those of one process.

use std::fs;

use crate::command::{generate, run, text};

#[test]
fn a_verification_of_shares_is_that_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let (games, report) = (root.path().join("games"), root.path().join("report.json"));
    generate(&games, "5", &[]);
    fs::write(games.join("bad.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    let whole = run(&["verify", text(&games), "--json"]);
    assert_eq!(whole.code, 1, "{whole:?}");
    let share = |number: &str, more: &[&str]| {
        run(&[&["verify", text(&games), "--share", number, "--output", text(&report)], more].concat())
    };
    for number in ["3/3", "1/3"] {
        let made = share(number, &[]).ok();
        assert!(made.out.contains(&format!("share {number} of plan ")) && made.out.contains(" frames of "), "{made:?}");
    }
    assert!(share("1/3", &["--json"]).ok().json()["share"]["there"].as_bool().unwrap());
    let missing = run(&["commit", text(&report)]);
    assert!(missing.code == 2 && missing.err.contains("2/3 is missing"), "{missing:?}");
    assert!(run(&["shares", text(&report)]).ok().out.contains("2 of 3 shares are done"));
    share("2/3", &[]).ok();
    let committed = run(&["commit", text(&report), "--json"]);
    assert_eq!((committed.code, &committed.out), (1, &whole.out));
    assert_eq!(fs::read_to_string(&report).unwrap(), whole.out);
    let again = run(&["commit", text(&report)]);
    assert!(again.code == 2 && again.err.contains("committed already"), "{again:?}");
    let alone = run(&["verify", text(&games), "--share", "1/3"]);
    assert!(alone.code == 2 && alone.err.contains("--output"), "{alone:?}");
    let against = share("1/3", &["--against", text(&games)]);
    assert_eq!(against.code, 2, "{against:?}");
}

#[test]
fn statistics_of_shares_are_those_of_one_process_with_their_page() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (games, report, page, other) = (at("games"), at("report.json"), at("page.html"), at("other.html"));
    generate(&games, "5", &[]);
    let whole = run(&["stats", text(&games), "--json", "--html", text(&other)]).ok();
    for number in ["1/2", "2/2"] {
        let words = ["stats", text(&games), "--share", number, "--output", text(&report)];
        run(&words).ok();
        let refused = run(&[&words[..], &["--html", text(&page)]].concat());
        assert!(refused.code == 2 && refused.err.contains("the commit"), "{refused:?}");
    }
    let committed = run(&["commit", text(&report), "--json", "--html", text(&page)]).ok();
    assert_eq!(committed.out, whole.out);
    assert_eq!(fs::read_to_string(&report).unwrap(), whole.out);
    assert_eq!(fs::read_to_string(&page).unwrap(), fs::read_to_string(&other).unwrap());
}

#[test]
fn marks_are_made_in_shares_and_other_commands_say_why_not() {
    let root = tempfile::tempdir().unwrap();
    let (games, pack) = (root.path().join("games"), root.path().join("pack"));
    generate(&games, "5", &[]);
    run(&["pack", "--input", text(&games), "--output", text(&pack)]).ok();
    for number in ["1/2", "2/2"] {
        let made = run(&["mark", text(&pack), "early", "--rule", "ply < 6", "--share", number]).ok();
        assert!(made.out.contains(" frames, of "), "{made:?}");
    }
    let committed = run(&["commit", text(&pack), "--json"]).ok().json();
    assert_eq!((committed["marked"].as_u64(), committed["asked"].as_u64()), (Some(30), committed["frames"].as_u64()));
    assert!(run(&["mark", text(&pack), "--list"]).ok().out.contains("early: 30 of "));
    let there = run(&["mark", text(&pack), "early", "--rule", "ply < 6", "--share", "1/2"]);
    assert!(there.code == 2 && there.err.contains("there is a mark `early` already"), "{there:?}");
    let dedup = run(&["dedup", text(&pack), "--share", "1/2"]);
    assert!(dedup.code == 2 && dedup.err.contains("one process compares all"), "{dedup:?}");
    let into = root.path().join("sides");
    let split = run(&["split", text(&games), text(&into), "--into", "train:9", "--into", "test:1", "--share", "1/2"]);
    assert!(split.code == 2 && split.err.contains("its name or content says"), "{split:?}");
}
