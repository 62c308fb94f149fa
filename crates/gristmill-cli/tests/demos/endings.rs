//! Plain tars by their members, and what comes after their end: as `inspect`, `verify`, `stats` and `pack` see them.

use std::fs;
use std::path::Path;

use gristmill_engine::open::open;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::container::zstd;

use super::files::{shard, steps};
use crate::command::{generate, run, text};

/// An ordinary shard, without metadata: two frames, or more.
fn ordinary(frames: usize) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for t in 0..frames {
        tar.append(&format!("frame_{t:03}.acts.json"), t.to_string().as_bytes()).unwrap();
        let done = if t + 1 == frames { "true" } else { "false" };
        tar.append(&format!("frame_{t:03}.dones.json"), done.as_bytes()).unwrap();
        tar.append(&format!("frame_{t:03}.obs.cls"), b"7").unwrap();
    }
    tar.finish().unwrap()
}

#[test]
fn a_tar_is_told_by_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in/demos.tar");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, ordinary(3)).unwrap();
    let seen = run(&["inspect", text(&path), "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["frames"].as_u64()), (Some("demo.shard"), Some(3)));
    assert_eq!(run(&["verify", text(&path), "--json"]).ok().json()["checked"].as_u64(), Some(3));
    let stats = run(&["stats", text(&path), "--json"]).ok().json();
    assert_eq!(stats["demos"]["length"]["max"].as_u64(), Some(3));
    assert_eq!(open(&path).unwrap().format(), "demo.shard");
    let pack = folder.path().join("pack");
    run(&["pack", "--input", text(path.parent().unwrap()), "--output", text(&pack)]).ok();
    assert_eq!(run(&["stats", text(&pack), "--json"]).ok().json()["frames"].as_u64(), Some(3));

    // Games beside a text about them.
    let games = folder.path().join("games");
    generate(&games, "3", &[]);
    let mut tar = TarWriter::new(Vec::new());
    tar.append("README.txt", b"three games").unwrap();
    for entry in fs::read_dir(&games).unwrap() {
        let path = entry.unwrap().path();
        tar.append(path.file_name().unwrap().to_str().unwrap(), &fs::read(&path).unwrap()).unwrap();
    }
    fs::write(folder.path().join("games.tar"), tar.finish().unwrap()).unwrap();
    let seen = run(&["inspect", text(&folder.path().join("games.tar")), "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["chunks"].as_u64()), (Some("lc0.tar"), Some(3)));
}

/// The faults that `verify` finds, and how many frames it checks.
fn faults(path: &Path) -> (Vec<String>, u64) {
    let ran = run(&["verify", text(path), "--json"]);
    let found = ran.json();
    assert_eq!(ran.code, i32::from(found["fault_count"] != 0), "{found}");
    let faults = found["faults"].as_array().unwrap();
    (faults.iter().map(|fault| fault["detail"].to_string()).collect(), found["checked"].as_u64().unwrap())
}

#[test]
fn what_lies_behind_the_end_of_a_tar_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(shard(&folder.path().join("whole.tar"), &steps(&[3, 4]))).unwrap();
    let joined = [&whole[..], &whole].concat();
    let at = whole.windows(9).position(|name| name == b"frame_005").unwrap();
    let mut zeroed = whole.clone();
    zeroed[at..at + 512].fill(0);
    let cases = [
        ("joined", joined, "another tar begins", 7),
        ("zeroed", zeroed, "a header of zeros", 5),
        ("garbage", [&whole[..], b"garbage"].concat(), "after the end mark, is not zero", 7),
    ];
    for (name, tar, says, frames) in cases {
        for (ending, bytes) in [("tar", tar.clone()), ("tar.zst", zstd::compress(1, &tar).unwrap())] {
            let path = folder.path().join(format!("{name}.{ending}"));
            fs::write(&path, bytes).unwrap();
            let (said, checked) = faults(&path);
            assert!(said.iter().any(|said| said.contains(says)), "{name}.{ending}: {said:?}");
            assert_eq!(checked, frames, "{name}.{ending}: what lies before is checked");
            let e = open(&path).unwrap_err();
            assert!(e.to_string().contains(says) && e.to_string().contains("strict=False"), "{e}");
        }
    }
    // A tar of games, too.
    let games = folder.path().join("games");
    generate(&games, "2", &["--tar"]);
    let tar = fs::read_dir(&games)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "tar"));
    let tar = tar.unwrap();
    assert!(faults(&tar).0.is_empty());
    let twice = fs::read(&tar).unwrap().repeat(2);
    fs::write(&tar, twice).unwrap();
    assert!(faults(&tar).0[0].contains("another tar begins"));
}

#[test]
fn other_packings_and_empty_shards_are_refused_in_their_own_words() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, says) in [
        ("a.tar.xz", &b"\xfd7zXZ\0\0\x04"[..], "xz -dc"),
        ("b.tar.bz2", b"BZh91AY&SY", "bzip2 -dc"),
        ("c.tar.zst", b"", "a file of no bytes"),
        ("d.tar.zst", &zstd::compress(1, b"").unwrap(), "unpacks to nothing"),
        ("e.tar.zst", &zstd::compress(1, &[0; 10_240]).unwrap(), "nothing but its end mark"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (said, _) = faults(&path);
        assert!(said.len() == 1 && said[0].contains(says), "{name}: {said:?}");
        assert!(open(&path).unwrap_err().to_string().contains(says), "{name}");
    }
}
