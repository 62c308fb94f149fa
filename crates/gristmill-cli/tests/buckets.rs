//! Commands on data in a bucket, and into one: the options that say how it is reached, what is printed, which code ends them, and
//! what a killed writer leaves.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use gristmill_faultserver::{Network, Running, start};

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
    let text = said(&["plan", "s3://drops/pack", "--batch-size", "16", "--seed", "1", "--price-get", "0.4"]);
    assert!(text.contains("fetching: the cache holds the pack") && text.contains("of money"), "{text}");
    let ran = gristmill(&["plan", pack.to_str().unwrap(), "--price-get", "0.4"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "what lies here is not fetched");
    let ran =
        gristmill(&["verify", "s3://drops/nothing", "--endpoint", &server.address, "--anonymous"]).output().unwrap();
    let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.code() == Some(1) && text.contains("s3://drops/nothing"), "{:?} {text}", ran.status);
    let ran = gristmill(&["verify", "s3://drops/games", "--cache-limit", "5GB"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

/// A server over a folder that has games, with an empty bucket `out`.
pub(crate) struct Bucket {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: Running,
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        let games = folder.path().join("games");
        let made = ["generate", "chess", games.to_str().unwrap(), "--games", "8", "--seed", "1"];
        assert!(gristmill(&made).output().unwrap().status.success());
        let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
        Bucket { folder, server }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) fn command(&self, words: &[&str], cache: &str) -> Command {
        let cache = self.path(cache);
        let reached = ["--anonymous", "--endpoint", &self.server.address, "--cache", &cache];
        gristmill(&[words, &reached].concat())
    }

    /// The exit code, and all that was printed.
    pub(crate) fn ran(&self, words: &[&str]) -> (Option<i32>, String) {
        self.ran_with(words, "cache")
    }

    pub(crate) fn ran_with(&self, words: &[&str], cache: &str) -> (Option<i32>, String) {
        let ran = self.command(words, cache).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    }

    pub(crate) fn fail(&self, rule: &str) {
        assert_eq!(self.server.obey(&format!(r#"{{"fail": {rule}}}"#)), "ok");
    }
}

/// Every file below a folder, with a digest of its bytes. A server may still finish what a process that was stopped asked for: what moves
/// meanwhile is listed again.
pub(crate) fn tree(folder: &str) -> BTreeMap<String, u64> {
    for _ in 0..100 {
        match listed(Path::new(folder)) {
            Err(e) if e.kind() == ErrorKind::NotFound && Path::new(folder).is_dir() => {}
            found => return found.unwrap(),
        }
    }
    panic!("the files below {folder} move all the time");
}

fn listed(folder: &Path) -> std::io::Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    let mut digest = DefaultHasher::new();
                    std::fs::read(&path)?.hash(&mut digest);
                    found.insert(name, digest.finish());
                }
            }
        }
    }
    Ok(found)
}

#[test]
fn jobs_write_a_bucket_as_they_write_a_folder() {
    let bucket = Bucket::new();
    let (games, pack) = (bucket.path("games"), bucket.path("pack"));
    assert_eq!(bucket.ran(&["pack", &games, &pack]).0, Some(0));
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/dry", "--dry-run"]);
    assert_eq!((code, bucket.folder.path().join("out/dry").exists()), (Some(0), false), "{text}");
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/a/pack", "--json"]);
    assert!(code == Some(0) && text.contains(r#""pack":"s3://out/a/pack""#), "{text}");
    assert_eq!(tree(&pack), tree(&bucket.path("out/a/pack")), "to the byte, and nothing else");
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/a/pack"]);
    assert!(code == Some(2) && text.contains("s3://out/a/pack") && text.contains("is there already"), "{text}");
    assert_eq!(bucket.ran(&["pack", &games, "s3://out/b"]).0, Some(0));
    let (code, text) = bucket.ran(&["merge", "s3://out/a/pack", "s3://out/b", "--out", "s3://out/both"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = bucket.ran(&["merge", &pack, "s3://out/b", "--out", "s3://out/gone", "--delete-inputs"]);
    assert!(code == Some(2) && text.contains("delete_inputs") && Path::new(&pack).exists(), "{text}");
    for (words, name) in [
        (&["convert", &games, "s3://out/v7", "--version", "7"][..], "v7"),
        (&["rescore", &games, "s3://out/rescored"], "rescored"),
        (&["filter", &games, "s3://out/filtered"], "filtered"),
        (&["split", &games, "s3://out/split", "--into", "train:9,test:1"], "split"),
    ] {
        let (code, text) = bucket.ran(words);
        assert!(code == Some(0) && text.contains(&format!("s3://out/{name}")), "{words:?}: {text}");
        assert_eq!(bucket.ran(&["verify", &format!("s3://out/{name}")]).0, Some(0), "{words:?}");
    }
    assert_eq!(bucket.ran(&["mark", "s3://out/b", "few", "--rule", "men < 20"]).0, Some(0));
    assert_eq!(bucket.ran(&["mark", &pack, "few", "--rule", "men < 20"]).0, Some(0));
    assert_eq!(tree(&pack), tree(&bucket.path("out/b")), "marks, too");
    assert_eq!(bucket.ran(&["mark", "s3://out/b", "--remove", "few"]).0, Some(0));
    assert!(!tree(&bucket.path("out/b")).contains_key("marks/few.mark"));
    assert_eq!(tree(&bucket.path("cache/outgoing")), BTreeMap::new(), "nothing is left on this machine");
    let (code, text) = bucket.ran(&["pack", &games, "http://127.0.0.1:1/pack"]);
    assert!(code == Some(2) && text.contains("read only"), "{text}");
    let (code, text) = bucket.ran(&["pack", &games, "s3://out"]);
    assert!(code == Some(2) && text.contains("name a folder in it"), "{text}");
    let (code, text) = bucket.ran(&["pack", &games, "s3://none/pack"]);
    assert!(code == Some(1) && text.contains("s3://none/pack"), "{text}");
}

#[test]
fn what_fails_now_and_then_changes_nothing_and_what_is_denied_leaves_no_pack() {
    let bucket = Bucket::new();
    let (games, pack) = (bucket.path("games"), bucket.path("pack"));
    assert_eq!(bucket.ran(&["pack", &games, &pack]).0, Some(0));
    for (i, fault) in [r#""slow_down""#, r#""internal_error""#, r#"{"stall": 200}"#].iter().enumerate() {
        bucket.fail(&format!(r#"{{"operation": "put", "after": {i}, "times": 3, "fault": {fault}}}"#));
        let (code, text) = bucket.ran(&["pack", &games, &format!("s3://out/{i}")]);
        assert_eq!(code, Some(0), "{fault}: {text}");
        assert_eq!(tree(&pack), tree(&bucket.path(&format!("out/{i}"))), "{fault}");
    }
    assert_eq!(bucket.server.obey("\"mend\""), "ok");
    bucket.fail(r#"{"operation": "put", "key": "manifest", "fault": "access_denied"}"#);
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/denied"]);
    assert!(
        code == Some(1) && text.contains("s3://out/denied/manifest.json") && text.contains("credentials"),
        "{text}"
    );
    assert_ne!(bucket.ran(&["verify", "s3://out/denied"]).0, Some(0), "no reader takes it for a pack");
    assert_eq!(bucket.server.obey("\"mend\""), "ok");
    // The same machine resumes; another one is refused, and told what to do.
    let (code, text) = bucket.ran_with(&["pack", &games, "s3://out/denied"], "elsewhere");
    assert!(
        code == Some(2) && text.contains("writes there") && text.contains("gristmill clean s3://out/denied"),
        "{text}"
    );
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/denied", "--resume"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(tree(&pack), tree(&bucket.path("out/denied")));
}

#[test]
fn what_a_dead_writer_left_is_cleaned_and_nothing_else_is() {
    let bucket = Bucket::new();
    let games = bucket.path("games");
    bucket.fail(r#"{"operation": "put", "key": "manifest", "times": 1, "fault": "access_denied"}"#);
    assert_eq!(bucket.ran(&["pack", &games, "s3://out/pack"]).0, Some(1));
    let left = tree(&bucket.path("out/pack"));
    let (code, text) = bucket.ran(&["clean", "s3://out/pack", "--dry-run"]);
    assert!(code == Some(0) && text.contains("metadata.db") && text.contains("would be removed"), "{text}");
    assert_eq!(tree(&bucket.path("out/pack")), left);
    let (code, text) = bucket.ran(&["clean", "s3://out/pack"]);
    assert!(code == Some(2) && text.contains("said so"), "it may live: {text}");
    let (code, text) = bucket.ran(&["clean", "s3://out/pack", "--dead"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(tree(&bucket.path("out/pack")), BTreeMap::new());
    let (code, text) = bucket.ran(&["clean", "s3://out/pack"]);
    assert!(code == Some(0) && text.contains("no writer left anything"), "{text}");
    assert_eq!(bucket.ran_with(&["pack", &games, "s3://out/pack"], "elsewhere").0, Some(0));
    let whole = tree(&bucket.path("out/pack"));
    assert_eq!(bucket.ran(&["clean", "s3://out/pack", "--dead"]).0, Some(0));
    assert_eq!(tree(&bucket.path("out/pack")), whole, "a whole pack stays");
    let claim = bucket.folder.path().join("out/odd/.writer.json");
    std::fs::create_dir(claim.parent().unwrap()).unwrap();
    std::fs::write(&claim, "no JSON").unwrap();
    std::fs::write(claim.with_file_name("games-00000.chunks"), "half").unwrap();
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/odd"]);
    assert!(
        code == Some(2) && text.contains("says not who writes there") && text.contains("gristmill clean"),
        "{text}"
    );
    assert_eq!(
        bucket.ran(&["clean", "s3://out/odd"]).0,
        Some(0),
        "a claim that says nothing is of no writer that lives"
    );
    assert_eq!(tree(&bucket.path("out/odd")), BTreeMap::new());
    let (code, text) = bucket.ran(&["clean", &games]);
    assert!(code == Some(2) && text.contains("gristmill recover"), "{text}");
}

#[test]
fn of_two_writers_one_wins_and_the_other_says_so() {
    let bucket = Bucket::new();
    let (games, pack) = (bucket.path("games"), bucket.path("pack"));
    assert_eq!(bucket.ran(&["pack", &games, &pack]).0, Some(0));
    for round in 0..4 {
        let place = format!("s3://out/race{round}");
        let words = ["pack", &games, &place];
        let begun = ["one", "two", "three"].map(|cache| {
            let mut command = bucket.command(&words, cache);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        });
        let ends = begun.map(|child| child.wait_with_output().unwrap());
        let won = ends.iter().filter(|end| end.status.success()).count();
        let said: Vec<String> = ends.iter().map(|end| String::from_utf8_lossy(&end.stderr).into_owned()).collect();
        assert_eq!(won, 1, "{said:?}");
        for (end, said) in ends.iter().zip(&said).filter(|(end, _)| !end.status.success()) {
            assert_eq!(end.status.code(), Some(2), "{said}");
            assert!(said.contains("writes there") || said.contains("is there already"), "{said}");
        }
        assert_eq!(tree(&pack), tree(&bucket.path(&format!("out/race{round}"))));
    }
}

#[test]
fn a_killed_writer_leaves_no_pack_and_resumes() {
    let bucket = Bucket::new();
    let (games, pack) = (bucket.path("games"), bucket.path("pack"));
    assert_eq!(bucket.ran(&["pack", &games, &pack]).0, Some(0));
    let whole = tree(&pack);
    let slow = r#"{"operation": "put", "fault": {"stall": 15}}"#;
    bucket.fail(slow);
    for moment in [5, 20, 40, 60, 90, 130] {
        let place = format!("s3://out/killed{moment}");
        let mut child = bucket.command(&["pack", &games, &place], "cache").stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let there = bucket.path(&format!("out/killed{moment}"));
        let found = if Path::new(&there).exists() { tree(&there) } else { BTreeMap::new() };
        assert!(
            !found.contains_key("manifest.json") || whole.iter().all(|(name, bytes)| found.get(name) == Some(bytes))
        );
        let (code, text) = bucket.ran(&["pack", &games, &place, "--resume"]);
        // It had ended before the kill.
        if code == Some(2) {
            assert!(text.contains("is there already"), "{text}");
        } else {
            assert_eq!(code, Some(0), "{text}");
        }
        assert_eq!(tree(&there), whole, "{moment}");
        assert_eq!(bucket.ran(&["verify", &place]).0, Some(0), "{moment}");
    }
}

#[test]
fn another_output_at_the_claim_of_a_killed_writer_mixes_with_nothing() {
    let bucket = Bucket::new();
    let (games, other) = (bucket.path("games"), bucket.path("other"));
    let made = ["generate", "2048", &other, "--games", "3", "--seed", "2"];
    assert!(gristmill(&made).output().unwrap().status.success());
    assert_eq!(bucket.ran(&["pack", &other, &bucket.path("rows")]).0, Some(0));
    // Half of one pack was sent; another one is sent to the place.
    bucket.fail(r#"{"operation": "put", "key": "manifest", "times": 1, "fault": "access_denied"}"#);
    assert_eq!(bucket.ran(&["pack", &games, "s3://out/half"]).0, Some(1));
    let (code, text) = bucket.ran(&["pack", &other, "s3://out/half"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(tree(&bucket.path("out/half")), tree(&bucket.path("rows")));
    // All of one pack was sent, and its writer was killed before it released the place.
    bucket.fail(r#"{"operation": "delete", "key": "writer", "times": 1, "fault": "access_denied"}"#);
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/whole"]);
    assert!(code == Some(1) && text.contains("s3:DeleteObject"), "{text}");
    let whole = tree(&bucket.path("out/whole"));
    let (code, text) = bucket.ran(&["pack", &other, "s3://out/whole"]);
    assert!(code == Some(2) && text.contains("manifest.json is there already"), "{text}");
    assert_eq!(tree(&bucket.path("out/whole")), whole);
    let (code, text) = bucket.ran(&["pack", &games, "s3://out/whole"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!tree(&bucket.path("out/whole")).contains_key(".writer.json"));
}

#[test]
fn a_ledger_in_a_bucket_is_verified_there_by_the_journal_beside_it() {
    let bucket = Bucket::new();
    let games = bucket.path("games");
    let words =
        ["feed", &games, "--batches", "9", "--batch-size", "16", "--pool", "6", "--reservoir", "20", "--seed", "1"];
    let words = [&words[..], &["--index", "off", "--tensors", "values", "--journal", "s3://out/journal"]].concat();
    let (code, text) = bucket.ran(&[&words[..], &["--ledger", "s3://out/ledger"]].concat());
    assert_eq!(code, Some(0), "{text}");
    let (code, config) = bucket.ran(&[&words[..], &["--dry-run"]].concat());
    assert!(code == Some(0) && config.contains("s3://out/journal"), "{config}");
    std::fs::write(bucket.path("run.toml"), config).unwrap();
    let verified = ["verify-run", "s3://out/ledger", "--config", &bucket.path("run.toml")];
    let (code, text) = bucket.ran_with(&verified, "another");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("proven: what was delivered are the frames of the plan"), "{text}");
    let (code, text) = bucket.ran(&["verify-run", "s3://out/nothing"]);
    assert!(code != Some(0) && text.contains("no ledger here: s3://out/nothing"), "{code:?} {text}");
}
