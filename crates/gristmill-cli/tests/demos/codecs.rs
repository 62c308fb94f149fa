//! `pack --codec`: the same trajectories however they are stored, in packs that grow, resume and are cut into shares; and who is
//! refused.

use std::fs;
use std::path::Path;

use gristmill_format::source::Chunk;
use serde_json::Value;

use super::files::{shard, steps};
use crate::command::{Ran, generate, run, text};

/// A folder of two data sets of three trajectories.
fn input(folder: &Path) {
    for (name, lengths) in [("a", &[5, 7][..]), ("b", &[6])] {
        fs::create_dir(folder.join(name)).unwrap();
        shard(&folder.join(name).join("demos.tar"), &steps(lengths));
    }
}

fn pack(words: &[&str], input: &Path, output: &Path) -> Ran {
    run(&[&["pack", "--json", text(input), text(output)], words].concat())
}

/// The stored bytes of the pack's only file, and the records of its trajectories.
fn whole(pack: &Path) -> (Vec<u8>, Vec<Vec<u8>>) {
    let path = pack.join("games-00000.chunks");
    let (source, mut chunk) = (gristmill_engine::open::open(&path).unwrap(), Chunk::default());
    let records = |i| {
        source.chunk(i, &mut chunk).unwrap();
        chunk.records().to_vec()
    };
    (fs::read(&path).unwrap(), (0..source.len()).map(records).collect())
}

/// The codec that the last job on a pack noted.
fn told(pack: &Path) -> Value {
    let manifest: Value = serde_json::from_str(&fs::read_to_string(pack.join("manifest.json")).unwrap()).unwrap();
    manifest["lineage"].as_array().unwrap().last().unwrap()["options"]["stored"].clone()
}

#[test]
fn steps_are_stored_as_they_are_or_compressed_and_packs_change_from_one_to_the_other() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    input(folder.path());
    let at = |name: &str| out.path().join(name);
    let dry = pack(&["--codec", "raw", "--dry-run"], folder.path(), &at("raw")).ok().json();
    assert_eq!((&dry["codec"], at("raw").exists()), (&"raw".into(), false), "{dry}");
    for (words, source, output, codec) in [
        (&[][..], folder.path(), "plain", Value::Null),
        (&["--codec", "zstd"], folder.path(), "zstd", "zstd".into()),
        (&["--codec", "raw"], folder.path(), "raw", "raw".into()),
        (&["--codec", "raw", "-j1"], &at("plain"), "unpacked", "raw".into()),
        (&["--codec", "zstd"], &at("raw"), "packed", "zstd".into()),
        (&[], &at("raw"), "kept", Value::Null),
    ] {
        let said = pack(words, source, &at(output)).ok().json();
        assert_eq!((&said["codec"], &said["runs"], told(&at(output))), (&codec, &3.into(), codec.clone()), "{output}");
        assert!(run(&["verify", text(&at(output))]).ok().err.is_empty(), "{output}");
    }
    let ((zstd, records), (raw, same)) = (whole(&at("zstd")), whole(&at("raw")));
    assert!(zstd.len() < raw.len() && records == same);
    for (name, expected) in [("plain", &zstd), ("unpacked", &raw), ("packed", &zstd), ("kept", &raw)] {
        let (bytes, found) = whole(&at(name));
        // Names of trajectories are those of the files that they came from.
        let differ = bytes.len().abs_diff(expected.len());
        assert!(found == records && differ < 200, "{name}: {differ} bytes");
    }
    let said = run(&["pack", text(folder.path()), text(&at("said")), "--codec", "raw"]).ok();
    assert!(said.out.contains("demonstration chunks, codec raw"), "{said:?}");
}

#[test]
fn jobs_that_add_and_resume_and_shares_store_steps_as_the_first_one_did() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    input(folder.path());
    let at = |name: &str| out.path().join(name);
    pack(&["--codec", "raw"], folder.path(), &at("whole")).ok();
    // Shares know the codec from their plan, the commit from them.
    for share in ["1/2", "2/2"] {
        let said = pack(&["--codec", "raw", "--share", share], folder.path(), &at("cut")).ok().json();
        assert_eq!(said["codec"], "raw", "{said}");
    }
    let other = pack(&["--share", "1/2"], folder.path(), &at("cut"));
    assert!(other.code != 0 && other.err.contains("codec"), "{other:?}");
    let said = run(&["commit", text(&at("cut")), "--json"]).ok().json();
    assert_eq!(said["codec"], "raw", "{said}");
    for name in ["games-00000.chunks", "manifest.json"] {
        assert!(fs::read(at("cut").join(name)).unwrap() == fs::read(at("whole").join(name)).unwrap(), "{name}");
    }
    // A job that adds to a raw pack stores steps raw, unless the user names another codec.
    let more = tempfile::tempdir().unwrap();
    shard(&more.path().join("more.tar"), &steps(&[2, 9])[2..]);
    pack(&["--codec", "raw"], more.path(), &at("more")).ok();
    let dry = pack(&["--append", "--dry-run"], more.path(), &at("whole")).ok().json();
    assert_eq!(dry["codec"], "raw", "{dry}");
    let grown = pack(&["--append"], more.path(), &at("whole")).ok().json();
    assert_eq!((&grown["codec"], &grown["runs"]), (&"raw".into(), &4.into()), "{grown}");
    let added = fs::read(at("whole").join("games-00001.chunks")).unwrap();
    assert!(added == whole(&at("more")).0);
    let grown = pack(&["--append", "--codec", "zstd"], more.path(), &at("cut")).ok().json();
    assert_eq!((&grown["codec"], &grown["runs"]), (&"zstd".into(), &4.into()), "{grown}");
    assert!(fs::read(at("cut").join("games-00001.chunks")).unwrap().len() < added.len());
    // A job that stops at a damaged file resumes.
    let (two, words) =
        (folder.path().join("b/demos.tar"), ["--codec", "raw", "--shard-rows", "5", "--on-error", "raise"]);
    pack(&words, folder.path(), &at("sharded")).ok();
    let sound = fs::read(&two).unwrap();
    fs::write(&two, &sound[..sound.len() / 2]).unwrap();
    assert_eq!(pack(&words, folder.path(), &at("stopped")).code, 1);
    fs::write(&two, sound).unwrap();
    let refused = pack(&["--resume", "--codec", "zstd"], folder.path(), &at("stopped"));
    assert!(refused.code == 2 && refused.err.contains("began with `raw`, not with `zstd`"), "{refused:?}");
    let said = pack(&["--resume"], folder.path(), &at("stopped")).ok().json();
    assert_eq!((&said["codec"], said["resumed"].as_u64() > Some(0)), (&"raw".into(), true), "{said}");
    for name in ["games-00000.chunks", "games-00001.chunks", "games-00002.chunks", "manifest.json"] {
        assert!(fs::read(at("stopped").join(name)).unwrap() == fs::read(at("sharded").join(name)).unwrap(), "{name}");
    }
}

#[test]
fn other_data_and_other_codecs_are_refused() {
    let (games, logs, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(games.path(), "1", &[]);
    run(&["generate", "2048", text(logs.path()), "--games", "1", "--moves-max", "9"]).ok();
    let to = out.path().join("pack");
    for (input, named) in [(&games, "packs of games of chess have one codec"), (&logs, "2048")] {
        for words in [&["--codec", "raw"][..], &["--codec", "zstd", "--dry-run"], &["--codec", "raw", "--share", "1/1"]]
        {
            let refused = pack(words, input.path(), &to);
            assert!(refused.code == 2 && refused.err.contains("codec"), "{refused:?}");
            assert!(refused.err.contains(named) && refused.err.contains("is for demonstrations"), "{refused:?}");
            assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "{words:?}");
        }
    }
    let unknown = pack(&["--codec", "lz4"], games.path(), &to);
    assert!(unknown.code == 2 && unknown.err.contains("zstd, raw"), "{unknown:?}");
}
