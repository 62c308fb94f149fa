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
