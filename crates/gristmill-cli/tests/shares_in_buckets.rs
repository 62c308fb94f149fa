//! Shares of an output in a bucket, and their commit: the bytes of one process whatever is killed, denied, damaged or done twice; and
//! what is left then.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::buckets::{Bucket, tree};

/// A bucket, and the pack that one process makes of its games.
struct Job {
    bucket: Bucket,
    whole: BTreeMap<String, u64>,
}

impl Job {
    fn new() -> Self {
        let bucket = Bucket::new();
        let pack = bucket.path("pack");
        assert_eq!(bucket.ran(&["pack", &bucket.path("games"), &pack]).0, Some(0));
        Job { whole: tree(&pack), bucket }
    }

    fn words<'a>(&self, games: &'a str, place: &'a str, share: &'a str) -> [&'a str; 5] {
        ["pack", games, place, "--share", share]
    }

    /// Makes a share on a machine, which its cache stands for; the exit code and all that was printed.
    fn share(&self, place: &str, share: &str, machine: &str) -> (Option<i32>, String) {
        self.bucket.ran_with(&self.words(&self.bucket.path("games"), place, share), machine)
    }

    fn begun(&self, words: &[&str], machine: &str) -> Child {
        let mut command = self.bucket.command(words, machine);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn all_shares(&self, place: &str, of: u32) {
        for number in 1..=of {
            let (code, text) = self.share(place, &format!("{number}/{of}"), &format!("machine{}", number % 2));
            assert_eq!(code, Some(0), "{text}");
        }
    }

    fn served(&self, name: &str) -> BTreeMap<String, u64> {
        let folder = self.bucket.path(&format!("out/{name}"));
        if Path::new(&folder).exists() { tree(&folder) } else { BTreeMap::new() }
    }

    /// The only object of the bucket whose key has these parts.
    fn object(&self, parts: &[&str]) -> PathBuf {
        let found = tree(&self.bucket.path("out"));
        let mut found = found.keys().filter(|name| parts.iter().all(|part| name.contains(part)));
        let name = found.next().unwrap_or_else(|| panic!("no object with {parts:?}"));
        PathBuf::from(self.bucket.path("out")).join(name)
    }

    /// Waits for an object whose key has these parts, which a process makes.
    fn wait_for(&self, parts: &[&str]) -> PathBuf {
        for _ in 0..2000 {
            if tree(&self.bucket.path("out")).keys().any(|name| parts.iter().all(|part| name.contains(part))) {
                return self.object(parts);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("no object with {parts:?} came");
    }

    /// Commits, and compares every byte; nothing else is left.
    fn committed(&self, name: &str, machine: &str) {
        let place = format!("s3://out/{name}");
        let (code, text) = self.bucket.ran_with(&["commit", &place], machine);
        assert_eq!(code, Some(0), "{text}");
        self.is_whole(name);
    }

    fn is_whole(&self, name: &str) {
        assert_eq!(self.served(name), self.whole, "{name}");
        assert_eq!(self.served(&format!("{name}.shares")), BTreeMap::new(), "{name}");
    }
}

fn said(end: &Output) -> String {
    String::from_utf8_lossy(&[&*end.stdout, &*end.stderr].concat()).into_owned()
}

/// Sends the signal `name`, such as `STOP`, to `child`.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn ended(child: Child) -> (Option<i32>, String) {
    let end = child.wait_with_output().unwrap();
    (end.status.code(), said(&end))
}

#[test]
fn shares_in_a_bucket_are_the_output_of_one_process() {
    let job = Job::new();
    let games = job.bucket.path("games");
    for number in [3, 1, 2] {
        let (code, text) = job.share("s3://out/pack", &format!("{number}/3"), "cache");
        assert!(code == Some(0) && text.contains("s3://out/pack.shares/"), "{text}");
        let done = job.served("pack.shares");
        let (code, text) = job.share("s3://out/pack", &format!("{number}/3"), "elsewhere");
        assert!(code == Some(0) && text.contains("done already"), "{text}");
        assert_eq!(job.served("pack.shares"), done, "a share that is done stays as it is");
        let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
        assert!(number == 2 && code == Some(0) || code == Some(2) && text.contains("is missing"), "{text}");
    }
    job.is_whole("pack");
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
    assert!(code == Some(2) && text.contains("committed already"), "{text}");
    let (code, text) = job.share("s3://out/pack", "1/3", "cache");
    assert!(code == Some(2) && text.contains("its shares were committed"), "{text}");
    for command in ["filter", "rescore"] {
        let (here, place) = (job.bucket.path(command), format!("s3://out/{command}"));
        assert_eq!(job.bucket.ran(&[command, &games, &here]).0, Some(0));
        for share in ["2/2", "1/2"] {
            let (code, text) = job.bucket.ran_with(&[command, &games, &place, "--share", share], share);
            assert_eq!(code, Some(0), "{text}");
        }
        let (code, text) = job.bucket.ran(&["commit", &place]);
        assert!(code == Some(0) && text.contains(&place), "{text}");
        let mut here = tree(&here);
        here.retain(|name, _| !name.starts_with('.'));
        assert_eq!(job.served(command), here, "{command}");
    }
    let (code, whole) = job.bucket.ran(&["verify", "s3://out/pack", "--json"]);
    assert_eq!(code, Some(0), "{whole}");
    for share in ["1/2", "2/2"] {
        let words = ["verify", "s3://out/pack", "--share", share, "--output", "s3://out/report.json"];
        assert_eq!(job.bucket.ran(&words).0, Some(0));
        assert_eq!(
            job.bucket.ran(&["mark", "s3://out/pack", "few", "--rule", "men < 20", "--share", share]).0,
            Some(0)
        );
    }
    assert_eq!(job.bucket.ran(&["commit", "s3://out/report.json"]).0, Some(0));
    let report = std::fs::read_to_string(job.bucket.path("out/report.json")).unwrap();
    assert!(whole.contains(report.trim()), "{report}\n{whole}");
    assert_eq!(job.bucket.ran(&["commit", "s3://out/pack"]).0, Some(0));
    assert_eq!(job.bucket.ran(&["mark", &job.bucket.path("pack"), "few", "--rule", "men < 20"]).0, Some(0));
    assert_eq!(job.served("pack"), tree(&job.bucket.path("pack")), "with its mark");
    let left = tree(&job.bucket.path("cache/outgoing"));
    assert_eq!(left, BTreeMap::new(), "nothing is left on this machine");
    assert!(!tree(&job.bucket.path("out")).keys().any(|name| name.contains(".shares")));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let job = Job::new();
    let games = job.bucket.path("games");
    let pack = |input: &str, place: &str, share: &str, more: &[&str]| {
        job.bucket.ran(&[&["pack", input, place, "--share", share][..], more].concat())
    };
    for (input, place, says) in [
        ("s3://out/in", "s3://out/in/pack", "lies within s3://out/in"),
        (&*games, "s3://out", "name a folder in it"),
        (&*games, "http://127.0.0.1:1/pack", "read only"),
    ] {
        std::fs::create_dir_all(job.bucket.path("out/in")).unwrap();
        std::fs::copy(format!("{games}/training.1.gz"), job.bucket.path("out/in/training.1.gz")).unwrap();
        let (code, text) = pack(input, place, "1/2", &[]);
        assert!(code == Some(2) && text.contains(says), "{text}");
    }
    let (code, text) = pack(&games, "s3://out/in", "1/2", &[]);
    assert!(code == Some(2) && text.contains("training.1.gz is there already"), "{text}");
    let (code, text) = pack(&games, "s3://out/dry", "1/2", &["--dry-run"]);
    assert!(code == Some(0) && job.served("dry.shares").is_empty(), "{text}");
    assert_eq!(pack(&games, "s3://out/pack", "1/2", &[]).0, Some(0));
    let (code, text) = pack(&games, "s3://out/pack", "1/3", &[]);
    assert!(code == Some(2) && text.contains("number of shares: 2 there, 3 now"), "{text}");
    assert_eq!(pack(&games, "s3://out/pack", "2/2", &[]).0, Some(0));
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack", "--overwrite"]);
    assert!(code == Some(2) && text.contains("nothing in a bucket is replaced"), "{text}");
    let before = tree(&job.bucket.path("out"));
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack", "--dry-run"]);
    assert!(code == Some(0) && text.contains("would hold"), "{text}");
    assert_eq!(tree(&job.bucket.path("out")), before);
    job.committed("pack", "cache");
}

#[test]
fn a_share_on_several_machines_at_once_is_made_once() {
    let job = Job::new();
    let games = job.bucket.path("games");
    job.bucket.fail(r#"{"operation": "put", "fault": {"stall": 10}}"#);
    for round in 0..3 {
        let name = format!("race{round}");
        let place = format!("s3://out/{name}");
        let begun = ["one", "two", "three"].map(|machine| job.begun(&job.words(&games, &place, "1/2"), machine));
        for (code, text) in begun.map(ended) {
            assert_eq!(code, Some(0), "{text}");
        }
        let left: Vec<String> = job.served(&format!("{name}.shares")).into_keys().collect();
        let folders: std::collections::BTreeSet<_> =
            left.iter().filter(|name| name.contains("/files/")).map(|name| name.split('/').nth(3)).collect();
        assert!(folders.len() == 1 && !left.iter().any(|name| name.contains("/.")), "only that of the first: {left:?}");
        assert_eq!(job.share(&place, "2/2", "two").0, Some(0));
        job.committed(&name, "three");
    }
}

#[test]
fn a_killed_share_leaves_nothing_that_counts() {
    let job = Job::new();
    let games = job.bucket.path("games");
    job.bucket.fail(r#"{"operation": "put", "fault": {"stall": 15}}"#);
    for (i, moment) in [5, 20, 40, 60, 90, 130].into_iter().enumerate() {
        let name = format!("killed{i}");
        let place = format!("s3://out/{name}");
        assert_eq!(job.share(&place, "2/2", "one").0, Some(0));
        let mut child = job.begun(&job.words(&games, &place, "1/2"), "one");
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let (code, text) = job.bucket.ran(&["shares", &place, "--json"]);
        assert_eq!(code, Some(0), "{text}");
        let is_done = text.contains(r#""done":2"#);
        let (code, text) = job.bucket.ran(&["commit", &place, "--dry-run"]);
        assert_eq!(code, Some(if is_done { 0 } else { 2 }), "{text}");
        if i % 2 == 0 {
            assert_eq!(job.bucket.ran(&["clean", &place, "--dead"]).0, Some(0));
            let left = job.served(&format!("{name}.shares"));
            assert!(is_done || !left.keys().any(|name| name.contains("00001-of")), "{left:?}");
        }
        // Another machine makes it.
        let (code, text) = job.share(&place, "1/2", "two");
        assert_eq!(code, Some(0), "{text}");
        job.committed(&name, "two");
    }
}

#[test]
fn a_killed_commit_leaves_no_pack_and_is_run_again() {
    let job = Job::new();
    for (i, moment) in [10, 30, 60, 90, 120, 160, 200].into_iter().enumerate() {
        let name = format!("killed{i}");
        let place = format!("s3://out/{name}");
        job.all_shares(&place, 2);
        job.bucket.fail(r#"{"operation": "put", "fault": {"stall": 15}}"#);
        job.bucket.fail(r#"{"operation": "delete", "fault": {"stall": 15}}"#);
        let mut child = job.begun(&["commit", &place], "one");
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
        let found = job.served(&name);
        let is_there = found.contains_key("manifest.json");
        assert!(!is_there || job.whole.iter().all(|(name, bytes)| found.get(name) == Some(bytes)), "{found:?}");
        // The same machine goes on; another one needs what the dead one left to be removed.
        let machine = ["one", "two"][i % 2];
        if machine == "two" {
            assert_eq!(job.bucket.ran(&["clean", &place, "--dead"]).0, Some(0));
        }
        let (code, text) = job.bucket.ran_with(&["commit", &place], machine);
        // It had ended, or it had begun to remove the shares.
        assert!(code == Some(0) || code == Some(2) && text.contains("committed already"), "{text}");
        job.is_whole(&name);
    }
}

#[test]
fn a_commit_that_is_stopped_fetches_only_what_is_missing() {
    let job = Job::new();
    job.all_shares("s3://out/pack", 2);
    job.bucket.fail(r#"{"operation": "get", "key": "files/00002-of-00002", "fault": {"stall": 2000}}"#);
    let mut child = job.begun(&["commit", "s3://out/pack"], "cache");
    let kept = job.bucket.path("cache/outgoing");
    let has = |name: &str| Path::new(&kept).exists() && tree(&kept).keys().any(|path| path.contains(name));
    while !has("00001-of-00002/share.json") {
        assert!(child.try_wait().unwrap().is_none(), "it ended: {:?}", ended(child));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let (code, text) = ended(child);
    assert!(code == Some(130) && text.contains("stopped"), "{text}");
    assert_eq!(job.served("pack"), BTreeMap::new());
    assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
    job.bucket.fail(r#"{"operation": "get", "key": "files/00001-of-00002", "fault": "access_denied"}"#);
    job.committed("pack", "cache");
    assert_eq!(tree(&kept), BTreeMap::new());
}

#[test]
fn of_several_commits_one_makes_the_pack() {
    let job = Job::new();
    for round in 0..4 {
        let name = format!("race{round}");
        let place = format!("s3://out/{name}");
        job.all_shares(&place, 3);
        job.bucket.fail(r#"{"operation": "put", "fault": {"stall": 10}}"#);
        let begun = ["one", "two", "three"].map(|machine| job.begun(&["commit", &place], machine));
        let ends = begun.map(ended);
        assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
        assert_eq!(ends.iter().filter(|(code, _)| *code == Some(0)).count(), 1, "{ends:?}");
        for (_, text) in ends.iter().filter(|(code, _)| *code != Some(0)) {
            assert!(text.contains("writes there") || text.contains("committed already"), "{text}");
        }
        job.is_whole(&name);
    }
}

#[test]
fn a_denied_right_is_named_and_leaves_nothing_half() {
    let job = Job::new();
    let denied = |key: &str, operation: &str| {
        job.bucket.fail(&format!(r#"{{"operation": "{operation}", "key": "{key}", "fault": "access_denied"}}"#));
    };
    denied("", "put");
    let (code, text) = job.share("s3://out/pack", "1/2", "cache");
    assert!(code == Some(1) && text.contains("plan.json") && text.contains("needs the right s3:PutObject"), "{text}");
    assert_eq!(job.served("pack.shares"), BTreeMap::new());
    assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
    denied("/shares/00001-of-00002.json", "put");
    let (code, text) = job.share("s3://out/pack", "1/2", "cache");
    assert!(code == Some(1) && text.contains("s3:PutObject"), "{text}");
    assert_eq!(job.served("pack.shares").len(), 1, "the plan, and nothing of the share");
    assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
    job.all_shares("s3://out/pack", 2);
    denied("pack/manifest", "put");
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
    assert!(code == Some(1) && text.contains("s3:PutObject"), "{text}");
    assert_ne!(job.bucket.ran(&["verify", "s3://out/pack"]).0, Some(0), "no reader takes it for a pack");
    assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
    denied("pack.shares", "delete");
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
    assert!(code == Some(1) && text.contains("s3:DeleteObject"), "{text}");
    assert_eq!(job.served("pack"), job.whole, "it is whole before anything is removed");
    assert_eq!(job.bucket.server.obey("\"mend\""), "ok");
    job.committed("pack", "elsewhere");
}

#[test]
fn a_damaged_file_of_a_share_is_found_and_named() {
    let job = Job::new();
    job.all_shares("s3://out/pack", 2);
    job.bucket.fail(r#"{"operation": "get", "key": "/pack/games-00000.chunks", "times": 1, "fault": "garbled"}"#);
    let object = job.object(&["files/00002-of-00002", "games-00000.chunks"]);
    let sound = std::fs::read(&object).unwrap();
    for damaged in [&sound[..sound.len() - 1], &[&sound[..99], &[!sound[99]], &sound[100..]].concat()] {
        std::fs::write(&object, damaged).unwrap();
        let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
        assert!(
            code == Some(1) && text.contains("games-00000.chunks") && text.contains("make share 2/2 again"),
            "{text}"
        );
        assert_eq!(job.served("pack"), BTreeMap::new());
    }
    std::fs::remove_file(&object).unwrap();
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
    assert!(code == Some(1) && text.contains("make share 2/2 again"), "{text}");
    let marker = job.object(&["shares/00002-of-00002.json"]);
    std::fs::write(&marker, "{}").unwrap();
    let (code, text) = job.bucket.ran(&["commit", "s3://out/pack"]);
    assert!(code == Some(1) && text.contains("00002-of-00002.json"), "{text}");
    std::fs::remove_file(&marker).unwrap();
    assert_eq!(job.share("s3://out/pack", "2/2", "cache").0, Some(0));
    job.bucket.fail(r#"{"operation": "get", "key": "/pack/games-00000.chunks", "times": 1, "fault": "garbled"}"#);
    job.committed("pack", "cache");
}

/// Sets the time at which an object was written.
fn written(object: &Path, at: SystemTime) {
    std::fs::File::options().write(true).open(object).unwrap().set_modified(at).unwrap();
}

#[test]
fn clocks_decide_nothing() {
    let job = Job::new();
    let (games, day) = (job.bucket.path("games"), Duration::from_secs(86_400));
    let slow = r#"{"operation": "put", "key": "metadata.db", "times": 1, "fault": {"stall": 4000}}"#;
    // A process whose lease is of tomorrow stops nobody.
    job.bucket.fail(slow);
    let child = job.begun(&job.words(&games, "s3://out/tomorrow", "1/1"), "one");
    let lease = job.wait_for(&["tomorrow.shares", "shares/.00001"]);
    signal(&child, "STOP");
    written(&lease, SystemTime::now() + day);
    let (code, text) = job.bucket.ran(&["shares", "s3://out/tomorrow"]);
    assert!(code == Some(0) && text.contains("running: 1, noted 0 s ago"), "{text}");
    assert_eq!(job.share("s3://out/tomorrow", "1/1", "two").0, Some(0));
    signal(&child, "CONT");
    assert_eq!(ended(child).0, Some(0), "it finds the share done");
    job.committed("tomorrow", "two");
    // One whose lease is of yesterday counts as dead, though it lives. Nobody counts what it makes then.
    job.bucket.fail(slow);
    let child = job.begun(&job.words(&games, "s3://out/yesterday", "1/1"), "one");
    let lease = job.wait_for(&["yesterday.shares", "shares/.00001"]);
    signal(&child, "STOP");
    let (code, text) = job.bucket.ran(&["clean", "s3://out/yesterday"]);
    assert!(code == Some(0) && text.contains("processes work on 1 shares") && lease.exists(), "{text}");
    written(&lease, SystemTime::now() - day);
    let (code, text) = job.bucket.ran(&["clean", "s3://out/yesterday"]);
    assert!(code == Some(0) && text.contains("of no share") && !lease.exists(), "{text}");
    signal(&child, "CONT");
    let (code, text) = ended(child);
    assert!(code == Some(2) && text.contains("committed or removed while this one was made"), "{text}");
    let left: Vec<String> = job.served("yesterday.shares").into_keys().collect();
    assert_eq!(left, ["plan.json"]);
    assert_eq!(job.share("s3://out/yesterday", "1/1", "two").0, Some(0));
    job.committed("yesterday", "two");
}

#[test]
fn a_process_that_comes_after_the_commit_leaves_nothing() {
    let job = Job::new();
    let games = job.bucket.path("games");
    job.bucket.fail(r#"{"operation": "put", "key": "metadata.db", "times": 1, "fault": {"stall": 6000}}"#);
    let child = job.begun(&job.words(&games, "s3://out/pack", "1/1"), "one");
    job.wait_for(&["shares/.00001"]);
    // This process sleeps until the others have made and committed the share, however long they take.
    signal(&child, "STOP");
    assert_eq!(job.share("s3://out/pack", "1/1", "two").0, Some(0));
    job.committed("pack", "two");
    signal(&child, "CONT");
    let (code, text) = ended(child);
    assert!(code == Some(2) && text.contains("committed or removed while this one was made"), "{text}");
    job.is_whole("pack");
}
