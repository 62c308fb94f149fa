//! Splitting: every game is in one folder, and in the one that a loader's split would put it.

use super::folders::{games, tree};
use crate::command::{generate, run, text};

#[test]
fn a_split_is_disjoint_and_complete() {
    let (folder, games) = games("30");
    let out = folder.path().join("out");
    let words = ["split", text(&games), text(&out), "--into", "train:2,validation:1,test:1", "--json"];
    let done = run(&words).ok().json();
    assert_eq!((&done["kept"], &done["files_out"]), (&30.into(), &30.into()));
    assert_eq!(done["out"].as_array().unwrap().len(), 3);
    let sides = ["train", "validation", "test"].map(|name| tree(&out.join(name)));
    assert!(sides.iter().all(|side| !side.is_empty()));
    let mut all = sides.concat();
    all.sort();
    assert_eq!(all, tree(&games));
    let again = run(&words).ok().json();
    assert_eq!((&again["resumed"], &again["kept"]), (&30.into(), &30.into()));
}

#[test]
fn the_loader_agrees() {
    let (folder, games) = games("12");
    generate(&games.join("tars"), "12", &["--first", "13", "--tar", "--games-per-tar", "12"]);
    let out = folder.path().join("out");
    run(&["split", text(&games), text(&out), "--into", "train:3,test:1"]).ok();
    let frames = |folder: &std::path::Path, more: &[&str]| {
        let words = ["feed", text(folder), "--epochs", "1", "--reservoir", "0", "--sampling-rate", "1", "--json"];
        run(&[&words[..], more].concat()).ok().json()["frames"].as_u64().unwrap()
    };
    let split = frames(&games, &["--split", "train:3,test:1", "--output", "test"]);
    assert_eq!(frames(&out.join("test"), &[]), split);
    assert!(split > 0);
}

#[test]
fn packed_games_go_where_they_went_loose() {
    let (folder, games) = games("40");
    let [pack, loose, packed] = ["pack", "loose", "packed"].map(|name| folder.path().join(name));
    run(&["pack", "--input", text(&games), "--output", text(&pack)]).ok();
    let kept = |from: &std::path::Path, out: &std::path::Path, more: &[&str]| {
        let words = ["split", text(from), text(out), "--into", "train:2,test:1"];
        run(&[&words[..], more].concat()).ok();
        ["train", "test"].map(|side| stats(&out.join(side)))
    };
    let sides = kept(&games, &loose, &[]);
    assert_eq!(kept(&pack, &packed, &[]), sides);
    assert_ne!(kept(&pack, &folder.path().join("by file"), &["--by", "file"]), sides, "as before, by choice");
    for (from, side) in [(&games, "train"), (&pack, "train"), (&games, "test"), (&pack, "test")] {
        let words = ["feed", text(from), "--epochs", "1", "--reservoir", "0", "--sampling-rate", "1", "--json"];
        let fed = run(&[&words[..], &["--split", "train:2,test:1", "--output", side]].concat()).ok().json();
        let expected = &sides[usize::from(side == "test")];
        assert_eq!(fed["frames"].as_u64().unwrap(), expected.1, "{side} of {}", from.display());
    }
    let refused = run(&["feed", text(&games), "--split-by", "file"]);
    assert!(refused.code == 2 && refused.err.contains("--split"), "{refused:?}");
}

#[test]
fn folds_part_what_is_not_tested() {
    let (folder, games) = games("40");
    let mut seen = Vec::new();
    for fold in ["0", "1", "2"] {
        let out = folder.path().join(fold);
        let words = ["split", text(&games), text(&out), "--into", "train:4,val:0,test:1"];
        run(&[&words[..], &["--folds", "3", "--fold", fold]].concat()).ok();
        let [train, val, test] = ["train", "val", "test"].map(|side| tree(&out.join(side)));
        let mut all = [&train[..], &val, &test].concat();
        all.sort();
        assert!(all == tree(&games) && !val.is_empty() && !test.is_empty());
        let words = ["feed", text(&games), "--epochs", "1", "--reservoir", "0", "--sampling-rate", "1", "--json"];
        let more = ["--split", "train:4,val:0,test:1", "--folds", "3", "--fold", fold, "--output", "val"];
        let fed = run(&[&words[..], &more].concat()).ok().json();
        assert_eq!(fed["frames"].as_u64().unwrap(), stats(&out.join("val")).1);
        seen.push((val, test));
    }
    assert!(seen.iter().all(|(_, test)| *test == seen[0].1));
    let mut all: Vec<_> = seen.iter().flat_map(|(val, _)| val.clone()).chain(seen[0].1.clone()).collect();
    all.sort();
    assert_eq!(all, tree(&games), "each game is tested, or in one fold");
    for wrong in
        [&["--folds", "3"][..], &["--fold", "1"], &["--folds", "3", "--fold", "3"], &["--folds", "1", "--fold", "0"]]
    {
        let out = folder.path().join("wrong");
        let words = ["split", text(&games), text(&out), "--into", "train:1,val:1"];
        let refused = run(&[&words[..], wrong].concat());
        assert!(refused.code == 2 && refused.err.contains("fold") && !out.exists(), "{refused:?}");
    }
}

/// Games and frames of a folder.
fn stats(folder: &std::path::Path) -> (u64, u64) {
    let told = run(&["inspect", text(folder), "--json"]).ok().json();
    (told["chunks"].as_u64().unwrap(), told["frames"].as_u64().unwrap())
}
