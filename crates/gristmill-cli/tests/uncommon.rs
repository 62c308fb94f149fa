//! What is rare and happens: names that are not UTF-8, scores beyond 63 bits, no bound of rows, games without a row.
//! Each is taken as the reference takes it, or named.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gristmill_format::container::gzip::compress;
use serde_json::Value;

use crate::command::{generate, run, text};

/// The text of a game of 2048.
fn log(seed: u64, steps: u64) -> String {
    let line = |step: u64| {
        format!(
            "{{\"seed\":{seed},\"step_index\":{step},\"max_rank\":3,\"move\":\"left\",\"valuation_type\":\"search\",\
             \"valuation\":0.034000,\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,1],\
             \"branch_evs\":{{\"up\":null,\"left\":{step}.5,\"right\":0.25,\"down\":-0.125}}}}\n"
        )
    };
    (0..steps).map(line).collect()
}

/// Writes a game of 2048; the bytes of its text.
fn game(folder: &Path, name: &[u8], seed: u64, steps: u64, score: &str) -> u64 {
    let put = |ending: &str, bytes: &[u8]| {
        fs::write(folder.join(OsStr::from_bytes(&[name, ending.as_bytes()].concat())), bytes).unwrap();
    };
    let sidecar = format!("{{\"seed\":{seed},\"num_moves\":{steps},\"score\":{score},\"max_tile\":8,\"depth\":6}}");
    put(".meta.json", sidecar.as_bytes());
    let text = log(seed, steps);
    put(".jsonl.gz", &compress(1, text.as_bytes()).unwrap());
    text.len() as u64
}

fn skipped(said: &Value) -> Vec<&str> {
    said["skipped"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect()
}

#[test]
fn statistics_of_logs_count_the_bytes_of_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let text_bytes = game(folder.path(), b"a", 1, 90, "9") + game(folder.path(), b"b", 2, 7, "9");
    let said = run(&["stats", text(folder.path()), "--json"]).ok().json();
    let stored: u64 =
        ["a", "b"].map(|name| fs::metadata(folder.path().join(format!("{name}.jsonl.gz"))).unwrap().len()).iter().sum();
    assert_eq!((said["inflated_bytes"].as_u64(), said["stored_bytes"].as_u64()), (Some(text_bytes), Some(stored)));
    assert_ne!(text_bytes, 97 * 48, "these are not the bytes of the rows");
}

#[test]
fn names_that_are_not_utf8_are_named_and_the_others_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (drop, pack) = (folder.path().join("drop"), folder.path().join("pack"));
    fs::create_dir(&drop).unwrap();
    game(&drop, b"good", 1, 10, "9");
    game(&drop, b"b\xffd", 2, 10, "9");
    let words = ["pack", "--input", text(&drop), "--output", text(&pack), "--json"];
    let packed = run(&words);
    assert_eq!(packed.code, 3, "{packed:?}");
    let said = packed.json();
    assert_eq!((said["runs"].as_u64(), said["rows"].as_u64()), (Some(1), Some(10)));
    assert_eq!(skipped(&said), ["b\u{fffd}d.jsonl.gz", "b\u{fffd}d.meta.json"]);
    assert!(said["skipped"][0]["detail"].as_str().unwrap().contains("not UTF-8; rename it"), "{said}");
    let manifest: Value = serde_json::from_slice(&fs::read(pack.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["skipped"], said["skipped"]);
    run(&[&words[..], &["--overwrite", "--skip-bad"]].concat()).ok();
    let verified = run(&["verify", text(&drop), "--json"]);
    assert_eq!((verified.code, verified.json()["checks"]["name_not_utf8"].as_u64()), (1, Some(1)), "{verified:?}");
    let stats = run(&["stats", text(&drop), "--json"]).ok().json();
    assert_eq!((stats["g2048"]["games"].as_u64(), stats["bad_files"].as_u64()), (Some(1), Some(2)), "{stats}");
}

#[test]
fn chess_games_whose_names_are_not_utf8_are_named_and_packed_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (games, pack) = (folder.path().join("games"), folder.path().join("pack"));
    generate(&games, "4", &[]);
    let first = fs::read_dir(&games).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    fs::rename(first, games.join(OsStr::from_bytes(b"training.\xff.gz"))).unwrap();
    let verified = run(&["verify", text(&games), "--json"]);
    let said = verified.json();
    assert_eq!((verified.code, &said["chunks"], &said["checks"]["name_not_utf8"]), (1, &3.into(), &1.into()), "{said}");
    assert!(said["faults"][0]["detail"].as_str().unwrap().contains("training.\u{fffd}.gz"), "{said}");
    let stats = run(&["stats", text(&games), "--json"]).ok().json();
    assert_eq!((&stats["chunks"], &stats["bad_files"]), (&3.into(), &1.into()), "{stats}");
    let refused = run(&["pack", "--input", text(&games), "--output", text(&pack)]);
    assert!(refused.code == 1 && refused.err.contains("training.\u{fffd}.gz: the name is not UTF-8"), "{refused:?}");
    assert!(!pack.join("metadata.db").exists());
    let words = ["feed", text(&games), "--epochs", "1", "--reservoir", "0", "--json"];
    let fed = run(&words).ok().json();
    let load = &fed["metrics"]["stages"][0];
    let sources = load["counts"].as_array().unwrap().iter().find(|count| count["name"] == "sources").unwrap();
    assert_eq!(sources["total"], 3);
    assert!(load["faults"][0].as_str().unwrap().contains("the name is not UTF-8"), "{load}");
}

/// A member of a plain tar.
fn member(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    for (at, field) in [(100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (136, "00000000000\0")] {
        header[at..at + field.len()].copy_from_slice(field.as_bytes());
    }
    header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend_from_slice(bytes);
    header.resize(512 + bytes.len().next_multiple_of(512), 0);
    header
}

#[test]
fn members_whose_names_are_not_utf8_are_read_and_shown_with_a_mark() {
    let folder = tempfile::tempdir().unwrap();
    let (games, tars, pack) = (folder.path().join("games"), folder.path().join("tars"), folder.path().join("pack"));
    generate(&games, "2", &[]);
    fs::create_dir(&tars).unwrap();
    let mut paths: Vec<_> = fs::read_dir(&games).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "gz"));
    paths.sort();
    let [one, two] = [0, 1].map(|i: usize| fs::read(&paths[i]).unwrap());
    let tar = [member(b"good.gz", &one), member(b"b\xffd.gz", &two), vec![0; 1024]].concat();
    fs::write(tars.join("games.tar"), tar).unwrap();
    let loose = run(&["stats", text(&games), "--json"]).ok().json();
    run(&["verify", text(&tars)]).ok();
    run(&["pack", "--input", text(&tars), "--output", text(&pack)]).ok();
    for folder in [&tars, &pack] {
        let stats = run(&["stats", text(folder), "--json"]).ok().json();
        assert_eq!((&stats["chunks"], &stats["frames"]), (&2.into(), &loose["frames"]), "{stats}");
    }
    let looked = run(&["inspect", text(&pack.join("games-00000.chunks")), "--chunk", "1", "--frame", "0", "--json"]);
    assert!(looked.ok().out.contains("b\u{fffd}d.gz"));
}

#[test]
fn scores_beyond_63_bits_are_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (drop, pack) = (folder.path().join("drop"), folder.path().join("pack"));
    fs::create_dir(&drop).unwrap();
    for (seed, (name, score)) in
        (1..).zip([("top", "9223372036854775807"), ("over", "9223372036854775808"), ("huge", "18446744073709551616")])
    {
        game(&drop, name.as_bytes(), seed, 10, score);
    }
    let packed = run(&["pack", "--input", text(&drop), "--output", text(&pack), "--json"]);
    let said = packed.json();
    assert_eq!((packed.code, &said["runs"]), (3, &1.into()), "{packed:?}");
    assert_eq!(skipped(&said), ["huge.meta.json", "over.meta.json"]);
    assert!(said["skipped"][1]["detail"].as_str().unwrap().contains("9223372036854775808"), "{said}");
    let stats = run(&["stats", text(&pack), "--json"]).ok().json();
    assert_eq!(stats["g2048"]["score"]["max"].as_u64(), Some(9_223_372_036_854_775_807), "{stats}");
    run(&["stats", text(&drop), "--json"]).ok();
}

#[test]
fn no_bound_of_rows_gives_one_file_as_the_reference_does() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("drop")).unwrap();
    (1..5).for_each(|seed: u64| _ = game(&at("drop"), format!("{seed}").as_bytes(), seed, 30, "9"));
    for (name, more) in [("none", &[][..]), ("zero", &["--shard-rows", "0"]), ("some", &["--shard-rows", "40"])] {
        let words = ["pack", "--input", text(&at("drop")), "--output", text(&at(name))].map(str::to_owned);
        run(&[&words.each_ref().map(String::as_str)[..], more].concat()).ok();
    }
    let names = |name: &str| {
        let mut names: Vec<_> = fs::read_dir(at(name)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("none"), names("zero"));
    for name in names("none") {
        assert!(fs::read(at("none").join(&name)).unwrap() == fs::read(at("zero").join(&name)).unwrap(), "{name:?}");
    }
    assert!(at("zero").join("steps.npy").exists() && at("some").join("steps-00001.npy").exists());
}

#[test]
fn games_without_a_row_make_a_pack_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (drop, pack) = (folder.path().join("drop"), folder.path().join("pack"));
    fs::create_dir(&drop).unwrap();
    (1..3).for_each(|seed: u64| _ = game(&drop, format!("{seed}").as_bytes(), seed, 0, "0"));
    let said = run(&["pack", "--input", text(&drop), "--output", text(&pack), "--json"]).ok().json();
    assert_eq!((&said["runs"], &said["rows"]), (&2.into(), &0.into()), "{said}");
    let verified = run(&["verify", text(&pack), "--json"]).ok().json();
    assert_eq!((&verified["chunks"], &verified["checked"]), (&2.into(), &0.into()), "{verified}");
    assert_eq!(run(&["verify", text(&drop), "--json"]).json()["checks"]["empty"], 2);
    // There is something to add to.
    game(&drop, b"7", 7, 12, "9");
    let words = ["pack", "--input", text(&drop), "--output", text(&pack), "--append", "--json"];
    let grown = run(&words).ok().json();
    assert_eq!((&grown["runs"], &grown["rows"]), (&3.into(), &12.into()), "{grown}");
}
