//! Commands on data in a bucket: the options that say how it is reached, what is printed, and which code ends them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use gristmill_faultserver::{Network, start};

use crate::command::gristmill;

#[test]
fn commands_read_a_bucket_as_they_read_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("drops/games");
    let made = ["generate", "chess", games.to_str().unwrap(), "--games", "6", "--seed", "1"];
    assert!(gristmill(&made).output().unwrap().status.success());
    let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
    let cache = folder.path().join("cache");
    let reached =
        ["--anonymous", "--endpoint", &server.address, "--cache", cache.to_str().unwrap(), "--cache-limit", "1G"];
    let said = |words: &[&str]| {
        let ran = gristmill(&[words, &reached].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{words:?}: {text}");
        text
    };
    let pack = folder.path().join("drops/pack");
    assert!(said(&["verify", "s3://drops/games"]).contains('6'));
    said(&["pack", "s3://drops/games", pack.to_str().unwrap()]);
    for words in [&["verify", "s3://drops/pack"][..], &["inspect", "s3://drops/pack"], &["stats", "s3://drops/pack"]] {
        said(words);
    }
    for path in ["s3://drops/games", "s3://drops/pack"] {
        assert!(said(&["doctor", path]).contains("healthy"), "{path}");
    }
    let ran =
        gristmill(&["verify", "s3://drops/nothing", "--endpoint", &server.address, "--anonymous"]).output().unwrap();
    let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.code() == Some(1) && text.contains("s3://drops/nothing"), "{:?} {text}", ran.status);
    let ran = gristmill(&["verify", "s3://drops/games", "--cache-limit", "5GB"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}
