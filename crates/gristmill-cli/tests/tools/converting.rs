//! Converting: there and back gives the same bytes, and nothing is lost without an option that drops it.

use std::fs;

use super::folders::{V6, games, is_sound, names, records, spoil, tree, unpacked};
use crate::command::{generate, run, text};

/// Bytes of a V7 record, and where its `d_st` is.
const V7: usize = 8396;
const D_ST: usize = 8356;

#[test]
fn versions_there_and_back_are_byte_identical() {
    let (folder, games) = games("5");
    generate(&games.join("tars"), "5", &["--first", "6", "--tar", "--games-per-tar", "5"]);
    let [v7, back] = ["v7", "back"].map(|name| folder.path().join(name));
    let wide = run(&["convert", text(&games), text(&v7), "--version", "7", "--json"]).ok().json();
    assert_eq!((&wide["changed"], &wide["counts"]["frames_to_v7"]), (&10.into(), &wide["frames_in"]));
    assert!(is_sound(&v7) && names(&v7) == names(&games));
    assert_eq!(records(&v7.join("training.1.gz")).len() % V7, 0);
    let narrow = run(&["convert", text(&v7), text(&back), "--version", "6", "--json"]).ok().json();
    assert_eq!(narrow["counts"]["frames_to_v6"], wide["frames_in"]);
    assert!(unpacked(&back) == unpacked(&games));
    let same = folder.path().join("same");
    let kept = run(&["convert", text(&v7), text(&same), "--version", "7", "--json"]).ok().json();
    assert_eq!(kept["kept"], 10);
    assert!(unpacked(&same) == unpacked(&v7));
}

#[test]
fn containers_there_and_back_are_byte_identical() {
    let (folder, games) = games("7");
    let [tars, back] = ["tars", "back"].map(|name| folder.path().join(name));
    run(&["convert", text(&games), text(&tars), "--container", "tar", "--games-per-tar", "3"]).ok();
    assert_eq!(names(&tars), ["games-000000.tar", "games-000001.tar", "games-000002.tar"]);
    assert!(is_sound(&tars));
    run(&["convert", text(&tars), text(&back), "--container", "loose"]).ok();
    let loose = tree(&back).into_iter().map(|(name, bytes)| (name.rsplit('/').next().unwrap().to_owned(), bytes));
    assert_eq!(loose.collect::<Vec<_>>(), tree(&games));
    let [ours, out] = ["ours", "out"].map(|name| folder.path().join(name));
    generate(&ours, "2", &["--tar"]);
    run(&["convert", text(&ours), text(&out), "--container", "loose"]).ok();
    assert!(names(&out).iter().any(|name| name.ends_with("/LICENSE")), "{:?}", names(&out));
    let both = folder.path().join("both");
    let words = ["convert", text(&tars), text(&both), "--container", "loose", "--version", "7", "--json"];
    assert_eq!(run(&words).ok().json()["changed"], 7);
    assert!(is_sound(&both));
}

#[test]
fn what_v6_has_no_room_for_is_not_dropped_unasked() {
    let (folder, games) = games("2");
    let v7 = folder.path().join("v7");
    run(&["convert", text(&games), text(&v7), "--version", "7"]).ok();
    spoil(&v7, 2, |records| records[3 * V7 + D_ST..][..4].copy_from_slice(&0.25f32.to_le_bytes()));
    let words = |out: &str| ["convert".to_owned(), text(&v7).into(), folder.path().join(out).display().to_string()];
    let convert = |out: &str, more: &[&str]| {
        let words = words(out);
        run(&[&words.each_ref().map(String::as_str)[..], &["--version", "6"], more].concat())
    };
    let refused = convert("refused", &[]);
    assert!(refused.code == 1 && refused.out.is_empty(), "{refused:?}");
    assert!(refused.err.contains("training.2.gz") && refused.err.contains("frame 3"), "{refused:?}");
    assert!(refused.err.contains("lossy"), "{refused:?}");
    convert("lossy", &["--lossy"]).ok();
    // Plain records stay plain.
    let narrow = fs::read(folder.path().join("lossy/training.2.gz")).unwrap();
    assert_eq!(narrow, records(&games.join("training.2.gz")));
}

#[test]
fn old_versions_are_written_as_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    fs::create_dir(&old).unwrap();
    let mut record = vec![0; 8308];
    record[..8].copy_from_slice(&[5, 0, 0, 0, 1, 0, 0, 0]);
    fs::write(old.join("training.1"), record.repeat(3)).unwrap();
    let done = run(&["convert", text(&old), text(&new), "--version", "6", "--json"]).ok().json();
    assert_eq!((&done["changed"], &done["counts"]["frames_to_v6"]), (&1.into(), &3.into()), "{done}");
    let bytes = fs::read(new.join("training.1")).unwrap();
    assert_eq!((bytes.len(), bytes[0]), (3 * V6, 6));
}
