//! Reports and marks that shares make, through the commands: bytes and exit codes are those of one process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
fn marks_are_made_in_shares() {
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
}

#[test]
fn repeated_games_are_found_and_marked_in_shares() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (games, pack, report) = (at("games"), at("pack"), at("report.json"));
    generate(&games, "5", &[]);
    fs::copy(games.join("training.2.gz"), games.join("copy.gz")).unwrap();
    run(&["pack", "--input", text(&games), "--output", text(&pack)]).ok();
    let dedup = |more: &[&str]| run(&[&["dedup", text(&pack)], more].concat());
    let whole = dedup(&["--json"]).ok();
    for number in ["2/2", "1/2"] {
        let made = dedup(&["--share", number, "--output", text(&report)]).ok();
        assert!(made.out.contains("holds the keys of 3 games, of 3 inputs"), "{made:?}");
    }
    assert_eq!(run(&["commit", text(&report), "--json"]).ok().out, whole.out);
    assert_eq!(fs::read_to_string(&report).unwrap(), whole.out);
    fs::remove_file(&report).unwrap();
    dedup(&["--mark", "again", "--share", "1/1", "--output", text(&report)]).ok();
    let committed = run(&["commit", text(&report)]).ok().out;
    assert!(committed.contains("1 are there again to the byte") && committed.contains("again of "), "{committed}");
    let whole = dedup(&["--mark", "again", "--overwrite", "--json"]).ok();
    assert_eq!(fs::read_to_string(&report).unwrap(), whole.out);
    for (more, says) in [
        (&["--share", "1/2"][..], "--output"),
        (&["--output", "report"], "--share"),
        (&["--share", "0/2", "--output", "report"], "shares are counted from 1"),
        (&["--share", "3/2", "--output", "report"], "expected a number from 1 to 2"),
        (&["--share", "1/2", "--output", "report", "--report"], "cannot be used with"),
        (&["--share", "1/2", "--output", "report", "--mark", "again", "--overwrite"], "cannot be used with"),
        (&["--share", "1/2", "--output", text(&pack.join("report"))], "lies within"),
        (&["--share", "1/2", "--output", "report", "--mark", "again"], "there is a mark `again` already"),
    ] {
        let refused = dedup(more);
        assert!(refused.code == 2 && refused.err.contains(says), "{says}: {refused:?}");
    }
}

#[test]
fn games_are_split_in_shares() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (games, out, kept) = (at("games"), at("out"), at("kept"));
    generate(&games, "9", &[]);
    let words = |more: &[&str]| run(&[&["split", text(&games), text(&out), "--into", "train:2,test:1"], more].concat());
    let whole = words(&["--json"]).ok();
    fs::rename(&out, &kept).unwrap();
    for number in ["2/2", "1/2"] {
        let made = words(&["--share", number]).ok();
        assert!(made.out.contains(&format!("share {number} of plan ")) && made.out.contains(" games, of "), "{made:?}");
    }
    assert_eq!(run(&["commit", text(&out), "--json"]).ok().out, whole.out);
    for side in ["train", "test"] {
        let names = |folder: &Path| -> BTreeMap<_, _> {
            let entries = fs::read_dir(folder.join(side)).unwrap().map(Result::unwrap);
            entries.map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap())).collect()
        };
        assert!(names(&out) == names(&kept), "{side}");
    }
    let again = words(&["--share", "1/2"]);
    assert!(again.code == 2 && again.err.contains("its shares were committed"), "{again:?}");
    let twice = run(&["commit", text(&out)]);
    assert!(twice.code == 2 && twice.err.contains("committed already"), "{twice:?}");
}
