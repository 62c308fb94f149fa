//! Packs that lack something, or whose database contradicts their games: each fault is reported once, and by its name.

use std::fs;
use std::path::Path;

use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::values::{ValuesOptions, values};
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};
use rusqlite::Connection;

use crate::fixture::{games, packed};

fn pack(out: &Path) {
    let input = tempfile::tempdir().unwrap();
    games(input.path(), 1, 6, gristmill_format::chess::Version::V6, None);
    let made = packed(input.path(), out, |_| {}).unwrap();
    assert!(made.files > 2, "{made:?}");
}

fn faults(path: &Path) -> Vec<String> {
    let Verification { faults, .. } = verify(&VerifyOptions::new(vec![path.to_owned()]), &mut |_, _| {}).unwrap();
    let name = |file: &str| file.rsplit('/').next().unwrap().to_owned();
    faults.iter().map(|one| format!("{}: {}", one.file.as_deref().map(name).unwrap_or_default(), one.detail)).collect()
}

#[test]
fn what_is_missing_is_told_by_name_whatever_else_is_damaged() {
    let out = tempfile::tempdir().unwrap();
    let pack_ = out.path().join("pack");
    pack(&pack_);
    assert_eq!(faults(&pack_), [""; 0]);
    fs::remove_file(pack_.join("games-00001.chunks")).unwrap();
    assert_eq!(faults(&pack_), ["games-00001.chunks: the manifest lists it; it is not there"]);
    let first = pack_.join("games-00000.chunks");
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, &bytes[..bytes.len() - 9]).unwrap();
    fs::copy(pack_.join("games-00002.chunks"), pack_.join("games-00077.chunks")).unwrap();
    fs::remove_file(pack_.join("metadata.db")).unwrap();
    let told = faults(&pack_);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].starts_with("games-00000.chunks: "), "{told:?}");
    let others = [
        "games-00001.chunks: the manifest lists it; it is not there",
        "games-00077.chunks: the manifest does not list it",
        "metadata.db: it is not there",
    ];
    assert_eq!(told[1..], others);
    fs::write(pack_.join("manifest.json"), "{").unwrap();
    let told = faults(&pack_);
    assert!(told.iter().any(|one| one.starts_with("manifest.json: manifest: EOF")), "{told:?}");
}

#[test]
fn columns_that_records_contradict_are_told_by_game_and_name() {
    let out = tempfile::tempdir().unwrap();
    let pack_ = out.path().join("pack");
    pack(&pack_);
    let change =
        |sql: &str| assert_eq!(Connection::open(pack_.join("metadata.db")).unwrap().execute(sql, []).unwrap(), 1);
    change("UPDATE games SET weight = weight + 1, result = 0.5 WHERE id = 3");
    change("UPDATE games SET content_xxh3 = zeroblob(16) WHERE id = 5");
    let expected = [
        "metadata.db: the records of game 3 (training.4.gz) differ from its row in result, weight",
        "metadata.db: the records of game 5 (training.6.gz) differ from its row in content_xxh3",
    ];
    assert_eq!(faults(&pack_), expected);
    change("UPDATE games SET frames = 1 WHERE id = 0");
    let told = faults(&pack_);
    assert!(
        told[2].starts_with("metadata.db: game 0 is frames 0..1 of training.1.gz, the chunk files have frames 0.."),
        "{told:?}"
    );
}

#[test]
fn numbers_of_games_that_are_not_those_of_files_are_told() {
    let out = tempfile::tempdir().unwrap();
    let pack_ = out.path().join("pack");
    pack(&pack_);
    let path = pack_.join("manifest.json");
    let sound: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let told = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut manifest = sound.clone();
        change(&mut manifest);
        fs::write(&path, manifest.to_string()).unwrap();
        faults(&pack_)
    };
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let (all, some) = (number(&sound["games"]), number(&sound["files"][1]["games"]));
    let faults = told(&|manifest| manifest["files"][1]["games"] = u64::MAX.into());
    let expected = format!("manifest.json: manifest: {all} games, those of its files are more than there can be");
    assert!(faults.contains(&expected), "{faults:?}");
    let faults = told(&|manifest| {
        (manifest["files"][1]["games"], manifest["games"]) = ((some + 1).into(), (all + 1).into());
    });
    let expected = format!("manifest.json: it lists games-00001.chunks with {} games, the file has {some}", some + 1);
    assert!(faults.contains(&expected), "{faults:?}");
    let (all, some) = (number(&sound["frames"]), number(&sound["files"][1]["frames"]));
    let faults = told(&|manifest| {
        (manifest["files"][1]["frames"], manifest["frames"]) = ((some - 1).into(), (all - 1).into());
    });
    let expected = format!("manifest.json: it lists games-00001.chunks with {} frames, the file has {some}", some - 1);
    assert!(faults.contains(&expected), "{faults:?}");
}

#[test]
fn numbers_below_zero_in_a_database_are_none() {
    let out = tempfile::tempdir().unwrap();
    let pack_ = out.path().join("pack");
    pack(&pack_);
    let set = |bytes: i64| {
        let database = Connection::open(pack_.join("metadata.db")).unwrap();
        assert_eq!(database.execute("UPDATE games SET stored_bytes = ?1", [bytes]).unwrap(), 6);
    };
    let (input, other) = (tempfile::tempdir().unwrap(), out.path().join("other"));
    games(input.path(), 31, 2, gristmill_format::chess::Version::V6, None);
    packed(input.path(), &other, |_| {}).unwrap();
    let inputs = || vec![pack_.clone(), other.clone()];
    let merged = |name: &str| merge(&MergeOptions::new(inputs(), out.path().join(name)), &mut |_, _| {});
    set(-1);
    let refused = merged("none").unwrap_err().to_string();
    assert!(refused.contains("metadata.db") && refused.contains("-1"), "{refused}");
    set(i64::MAX);
    assert_eq!(merged("many").unwrap().runs, 8, "they only inform");
}

#[test]
fn sources_without_a_game_prove_nothing() {
    let (out, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pack_ = out.path().join("pack");
    pack(&pack_);
    let against = Some(empty.path().to_owned());
    let found = verify(&VerifyOptions { against, ..VerifyOptions::new(vec![pack_.clone()]) }, &mut |_, _| {}).unwrap();
    assert!(!found.ok && found.faults[0].kind == "empty", "{found:?}");
    let refused = values(&ValuesOptions::new(&pack_), &mut |_, _| {}).unwrap_err().to_string();
    assert!(refused.contains("a pack of whole games"), "{refused}");
}
