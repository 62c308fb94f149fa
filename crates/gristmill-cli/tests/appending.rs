//! Packs in a bucket that are added to: their bytes, their older versions, and what a writer that was outrun or killed leaves.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::buckets::{Bucket, tree};
use crate::command::gristmill;

/// What the names of folders of versions begin with.
const VERSION: &str = ".gristmill-version-";

/// A bucket beside logs of 2048 games: `few`, `more` with one more of them, and `all`.
fn bucket() -> Bucket {
    let bucket = Bucket::new();
    for (name, games) in [("few", "3"), ("more", "4"), ("all", "5")] {
        let made = ["generate", "2048", &bucket.path(name), "--games", games, "--seed", "2"];
        assert!(gristmill(&made).output().unwrap().status.success());
    }
    bucket
}

impl Bucket {
    fn does(&self, words: &[&str]) -> String {
        let (code, text) = self.ran(words);
        assert_eq!(code, Some(0), "{words:?}: {text}");
        text
    }

    /// A copy of the bucket's folder `name` on this machine.
    fn copied(&self, name: &str) -> String {
        let copy = self.path("copy");
        let _ = fs::remove_dir_all(&copy);
        assert!(Command::new("cp").args(["-r", &self.path(name), &copy]).status().unwrap().success());
        copy
    }

    /// The files of the bucket's folder `name`, and those of versions.
    fn parted(&self, name: &str) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
        tree(&self.path(name)).into_iter().partition(|(name, _)| !name.starts_with(VERSION))
    }
}

#[test]
fn a_pack_in_a_bucket_is_added_to_as_one_of_this_machine() {
    let bucket = bucket();
    let (few, all, games) = (bucket.path("few"), bucket.path("all"), bucket.path("games"));
    fs::create_dir(bucket.path("some")).unwrap();
    let first = fs::read_dir(&games).unwrap().next().unwrap().unwrap();
    fs::copy(first.path(), Path::new(&bucket.path("some")).join(first.file_name())).unwrap();
    for (name, few, all, shards) in [("rows", &few, &all, "300"), ("games", &bucket.path("some"), &games, "0")] {
        let (here, there) = (bucket.path(&format!("here-{name}")), format!("s3://out/{name}"));
        let rows: &[&str] = if shards == "0" { &[] } else { &["--shard-rows", shards] };
        for place in [&here, &there] {
            bucket.does(&[&["pack", few, place], rows].concat());
        }
        let (before, _) = bucket.parted(&format!("out/{name}"));
        assert_eq!(before, tree(&here), "{name}: a pack that was never added to is as on a disk");
        bucket.does(&["pack", all, &there, "--append", "--dry-run"]);
        let mut older = String::new();
        if name == "rows" {
            [&here, &there]
                .into_iter()
                .for_each(|place| _ = bucket.does(&["pack", &bucket.path("more"), place, "--append"]));
            older = bucket.does(&["verify", &here]);
        }
        for place in [&here, &there] {
            bucket.does(&["pack", all, place, "--append"]);
        }
        let (mut after, versions) = bucket.parted(&format!("out/{name}"));
        assert!(!versions.is_empty() && after["manifest.json"] != before["manifest.json"], "{name}");
        after.insert("manifest.json".into(), before["manifest.json"]);
        assert_eq!(after, before, "{name}: nothing but the manifest was replaced");
        let now = bucket.parted(&format!("out/{name}"));
        bucket.does(&["pack", all, &there, "--append"]);
        assert_eq!(bucket.parted(&format!("out/{name}")), now, "{name}: no game was new");
        let text = bucket.does(&["verify", &there]);
        assert_eq!(text, bucket.does(&["verify", &here]).replace(&here, &there), "{name}");
        bucket.does(&["inspect", &there]);
        if name == "rows" {
            let folder = versions.keys().next().and_then(|file| file.split('/').next()).unwrap();
            let text = bucket.does(&["verify", &format!("{there}/{folder}")]);
            assert_eq!(text, older.replace(&here, &format!("{there}/{folder}")), "the older version stays");
        }
        let text = bucket.does(&["clean", &there]);
        assert!(text.contains("older versions") && text.contains("metadata.db"), "{text}");
        assert!(bucket.does(&["clean", &there]).contains("no writer left anything"), "{name}");
        bucket.does(&["verify", &there]);
        let copy = bucket.copied(&format!("out/{name}"));
        let lies = tree(&copy);
        assert!(lies.keys().any(|name| name.starts_with(VERSION)));
        assert_eq!(bucket.does(&["verify", &copy]).replace(&copy, &here), bucket.does(&["verify", &here]), "{name}");
        bucket.does(&["inspect", &copy]);
        let both = bucket.path(&format!("both-{name}"));
        bucket.does(&["merge", &copy, &here, "--out", &both]);
        bucket.does(&["checksum", &copy, "--dry-run"]);
        bucket.does(&["merge", &copy, &here, "--out", &format!("{both}-again"), "--delete-inputs", "--dry-run"]);
        assert_eq!(tree(&copy), lies, "{name}: who reads a copy on this machine writes nothing there");
        bucket.does(&["checksum", &copy]);
        assert_eq!(tree(&copy), tree(&here), "{name}: a copy in which a job writes becomes an ordinary pack");
    }
    let (code, text) = bucket.ran(&["pack", &few, "s3://out/none", "--append"]);
    assert!(code == Some(2) && text.contains("no pack to add to"), "{text}");
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/rows", "--append"]);
    assert!(code == Some(2) && text.contains("something else"), "{text}");
    let (code, text) = bucket.ran(&["pack", &few, "http://127.0.0.1:1/pack", "--append"]);
    assert!(code == Some(2) && text.contains("read only"), "{text}");
    assert_eq!(tree(&bucket.path("cache/outgoing")), BTreeMap::new(), "nothing is left on this machine");
}

#[test]
fn a_writer_that_ends_at_any_request_leaves_the_pack_as_it_was_and_resumes() {
    let bucket = bucket();
    let (few, all) = (bucket.path("few"), bucket.path("all"));
    bucket.does(&["pack", &few, "s3://out/pack"]);
    let was = bucket.does(&["verify", "s3://out/pack"]);
    let before = bucket.parted("out/pack").0;
    let mut last = 0;
    for puts in 0.. {
        let rule = format!(r#"{{"operation": "put", "after": {puts}, "times": 1, "fault": "access_denied"}}"#);
        bucket.fail(&rule);
        let (code, text) =
            bucket.ran(&["pack", &all, "s3://out/pack", if puts == 0 { "--append" } else { "--resume" }]);
        assert_eq!(bucket.server.obey("\"mend\""), "ok");
        if code == Some(0) {
            last = puts;
            break;
        }
        assert!(text.contains("s3:PutObject"), "{puts}: {text}");
        let mut now = bucket.parted("out/pack").0;
        now.remove(".writer.json");
        assert_eq!(now, before, "{puts}");
        if puts == 5 {
            assert_eq!(bucket.does(&["verify", "s3://out/pack"]), was, "{puts}");
            let (code, text) = bucket.ran_with(&["pack", &all, "s3://out/pack", "--append"], "elsewhere");
            assert!(code == Some(2) && text.contains("gristmill clean s3://out/pack"), "{text}");
        }
    }
    assert!(last > 5, "{last}");
    bucket.does(&["pack", &few, &bucket.path("here")]);
    bucket.does(&["pack", &all, &bucket.path("here"), "--append"]);
    let copy = bucket.copied("out/pack");
    let lies = tree(&copy);
    bucket.does(&["pack", &all, &copy, "--append", "--dry-run"]);
    assert_eq!(tree(&copy), lies, "a dry run writes nothing");
    bucket.does(&["pack", &all, &copy, "--append"]);
    assert_eq!(tree(&copy), tree(&bucket.path("here")));
}

#[test]
fn a_writer_that_is_outrun_says_so_and_leaves_nothing() {
    let bucket = bucket();
    let (few, all) = (bucket.path("few"), bucket.path("all"));
    bucket.does(&["pack", &few, "s3://out/pack"]);
    bucket.fail(r#"{"operation": "put", "key": "metadata", "times": 1, "fault": {"stall": 1500}}"#);
    let words = ["pack", &all, "s3://out/pack", "--append"];
    let slow = bucket.command(&words, "one").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let claim = bucket.folder.path().join("out/pack/.writer.json");
    while !claim.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let (code, text) = bucket.ran_with(&words, "two");
    assert!(code == Some(2) && text.contains("writes there"), "{text}");
    // A writer without a claim, as one is that was cleaned although it lived.
    let manifest = bucket.folder.path().join("out/pack/manifest.json");
    let bytes = fs::read_to_string(&manifest).unwrap() + "\n";
    fs::write(&manifest, &bytes).unwrap();
    let ended = slow.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(2) && text.contains("Append again"), "{text}");
    assert_eq!(fs::read_to_string(&manifest).unwrap(), bytes);
    let left = tree(&bucket.path("out/pack"));
    assert!(left.keys().all(|name| !name.starts_with('.')), "{left:?}");
    // A writer that is killed after the manifest was replaced has added its games.
    bucket.fail(r#"{"operation": "delete", "key": "writer", "times": 1, "fault": "access_denied"}"#);
    let (code, text) = bucket.ran(&words);
    assert!(code == Some(1) && text.contains("s3:DeleteObject"), "{text}");
    let made = bucket.parted("out/pack");
    bucket.does(&["pack", &all, "s3://out/pack", "--resume"]);
    let now = bucket.parted("out/pack");
    assert!(made.0.contains_key(".writer.json") && !now.0.contains_key(".writer.json") && made.1 == now.1);
    bucket.does(&["verify", "s3://out/pack"]);
}
