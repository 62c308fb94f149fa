//! What a bucket does wrong now and then: a second request brings it and is counted, or the time ends in words; no byte is wrong,
//! of what is read and of what is written.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_engine::store::bucket::{Options, counts, set_options};
use gristmill_engine::store::outgoing::{Outgoing, clean, left};
use gristmill_engine::store::{Cache, files, open, set_cache};
use gristmill_faultserver::{Network, Running, start};
use gristmill_format::{Error, Kind};

/// A server with one bucket of a test.
struct Served {
    folder: tempfile::TempDir,
    server: Running,
    url: String,
}

impl Served {
    fn new(name: &str, patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(name)).unwrap();
        let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
        let (url, endpoint) = (format!("s3://{name}"), Some(server.address.clone()));
        set_options(&url, Options { endpoint, anonymous: true, patience: Some(patience), ..Options::default() });
        Served { folder, server, url }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(self.url.trim_start_matches("s3://")).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn fail(&self, rule: &str) {
        assert_eq!(self.server.obey(&format!(r#"{{"fail": {rule}}}"#)), "ok");
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        files::read(Path::new(&format!("{}/{name}", self.url)), 1 << 30)
    }

    fn retries(&self) -> u64 {
        counts().iter().find(|(url, _)| *url == self.url).unwrap().1.retries.load(Ordering::Relaxed)
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 251) as u8 ^ i as u8).collect()
}

#[test]
fn what_fails_now_and_then_is_asked_again_and_counted() {
    let served = Served::new("now-and-then", Duration::from_secs(20));
    let whole = bytes(3 << 20);
    served.write("games/a.tar", &whole);
    let faults = [r#""slow_down""#, r#""internal_error""#, r#"{"drop": 1000}"#, r#"{"drop": 0}"#, r#"{"shifted": 7}"#];
    for (i, fault) in faults.iter().enumerate() {
        served.fail(&format!(r#"{{"operation": "get", "times": 2, "after": {}, "fault": {fault}}}"#, i % 2));
        assert!(served.read("games/a.tar").unwrap() == Some(whole.clone()), "{fault}");
        assert_eq!(served.retries(), 2 * (i as u64 + 1), "{fault}");
    }
    served.fail(r#"{"operation": "list", "times": 2, "fault": "slow_down"}"#);
    assert_eq!(files::names(Path::new(&served.url)).unwrap(), ["games"]);
    assert_eq!(served.retries(), 12);
}

#[test]
fn what_never_answers_ends_within_its_time_and_says_so() {
    let served = Served::new("never", Duration::from_secs(1));
    served.write("a.tar", &bytes(100));
    served.fail(r#"{"operation": "get", "fault": "slow_down"}"#);
    let began = Instant::now();
    let e = served.read("a.tar").unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(e.kind(), Kind::Io(ErrorKind::TimedOut));
    assert!(e.kind().is_of_reading(), "its bytes may be read later");
    let text = e.to_string();
    assert!(text.contains("s3://never/a.tar") && text.contains("tries") && text.contains("503"), "{text}");
    assert_eq!(served.server.obey("\"mend\""), "ok");
    assert_eq!(served.read("a.tar").unwrap().unwrap(), bytes(100), "and then it answers");
}

#[test]
fn what_is_refused_is_refused_at_once() {
    let served = Served::new("refused", Duration::from_secs(30));
    served.write("a.tar", &bytes(100));
    let began = Instant::now();
    served.fail(r#"{"operation": "get", "key": "a.tar", "fault": "access_denied"}"#);
    let e = served.read("a.tar").unwrap_err();
    assert_eq!(e.kind(), Kind::Io(ErrorKind::PermissionDenied));
    assert!(e.to_string().contains("s3://refused/a.tar") && e.to_string().contains("credentials"), "{e}");
    assert!(served.read("b.tar").unwrap().is_none());
    served.fail(r#"{"operation": "list", "fault": "access_denied"}"#);
    let e = open(Path::new("s3://refused/games")).unwrap_err().to_string();
    assert!(e.contains("s3://refused/games") && e.contains("403"), "{e}");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(served.retries(), 0);
}

#[test]
fn an_object_that_was_replaced_is_not_mixed_with_what_it_was() {
    let served = Served::new("replaced", Duration::from_secs(5));
    served.write("a.tar", &bytes(1 << 20));
    let file = files::open_file(Path::new("s3://replaced/a.tar")).unwrap();
    let mut found = vec![0; 100];
    assert_eq!(file.read_at(500_000, &mut found).unwrap(), 100);
    assert_eq!(found, bytes(1 << 20)[500_000..500_100]);
    std::thread::sleep(Duration::from_millis(5));
    served.write("a.tar", &bytes(1 << 20).iter().map(|byte| !byte).collect::<Vec<u8>>());
    let e = file.read_at(900_000, &mut found).unwrap_err();
    assert!(e.kind() == Kind::Refused("replaced") && e.to_string().contains("s3://replaced/a.tar"), "{e}");
}

#[test]
fn many_objects_are_listed_in_pages_and_small_reads_one_after_the_other_are_few_requests() {
    let served = Served::new("many-objects", Duration::from_secs(5));
    (0..2345).for_each(|i| served.write(&format!("games/{:02}/training.{i}.gz", i % 40), b"x"));
    served.write("games2/training.9.gz", b"x");
    let mut seen = 0;
    let faults = open(Path::new("s3://many-objects/games")).unwrap().list(&mut |_| {
        seen += 1;
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!((seen, faults.total()), (2345, 0));
    served.write("big.tar", &bytes(20 << 20));
    let across = files::open_file(Path::new("s3://many-objects/big.tar")).unwrap();
    let mut both = vec![0; 1000];
    assert_eq!(across.read_at((64 << 10) - 500, &mut both).unwrap(), 1000, "the beginning and what follows it");
    assert!(both == bytes(20 << 20)[(64 << 10) - 500..][..1000]);
    served.server.obey(r#"{"counts": true}"#);
    let file = files::open_file(Path::new("s3://many-objects/big.tar")).unwrap();
    let whole = bytes(20 << 20);
    let mut header = vec![0; 512];
    for at in (0..whole.len()).step_by(10_752) {
        assert_eq!(file.read_at(at as u64, &mut header).unwrap(), 512.min(whole.len() - at));
        assert!(whole[at..].starts_with(&header[..512.min(whole.len() - at)]));
    }
    let counted = served.server.obey(r#"{"counts": false}"#);
    let gets: u64 =
        counted.split("\"get\":").nth(1).unwrap().trim_end_matches('}').split(',').next().unwrap().parse().unwrap();
    assert!(gets < 20, "{counted}");
}

/// Writes a folder with one large file, a small one and a manifest to a place, through a cache of its own.
fn sent(served: &Served, name: &str, whole: &[u8]) -> Result<u64, gristmill_engine::Error> {
    set_cache(Cache { folder: Some(served.folder.path().join("cache")), limit: None });
    let place = format!("{}/{name}", served.url);
    let outgoing = Outgoing::to(Path::new(&place), "output")?.unwrap();
    let folder = outgoing.folder();
    fs::create_dir_all(folder.join("marks")).unwrap();
    fs::write(folder.join("rows"), whole).unwrap();
    fs::write(folder.join("marks/few.mark"), b"few").unwrap();
    fs::write(folder.join("manifest.json"), b"{}").unwrap();
    let mut said = Vec::new();
    let files = outgoing.send(&mut |done, all| {
        said.push((done, all));
        Ok(())
    })?;
    let all = whole.len() as u64 + 5;
    assert_eq!(said.last(), Some(&(all, all)));
    assert!(said.is_sorted(), "{said:?}");
    Ok(files)
}

#[test]
fn large_files_are_written_in_parts_and_faults_change_no_byte() {
    let served = Served::new("written", Duration::from_secs(20));
    let whole = bytes((40 << 20) + 17);
    let rules = [
        "",
        r#"{"operation": "put", "key": "rows", "after": 1, "times": 2, "fault": "slow_down"}"#,
        r#"{"operation": "put", "key": "rows", "times": 2, "fault": "internal_error"}"#,
        r#"{"operation": "put", "key": "rows", "after": 4, "times": 1, "fault": "slow_down"}"#,
        r#"{"operation": "put", "key": "manifest", "times": 2, "fault": "slow_down"}"#,
    ];
    for (i, rule) in rules.iter().enumerate() {
        if !rule.is_empty() {
            served.fail(rule);
        }
        let name = format!("pack{i}");
        assert_eq!(sent(&served, &name, &whole).unwrap(), 3, "{rule}");
        assert!(served.read(&format!("{name}/rows")).unwrap() == Some(whole.clone()), "{rule}");
        assert_eq!(served.read(&format!("{name}/marks/few.mark")).unwrap().unwrap(), b"few");
        assert_eq!(served.read(&format!("{name}/.writer.json")).unwrap(), None, "who wrote is forgotten");
    }
    assert!(served.retries() >= 7);
    let e = sent(&served, "pack0", &whole).unwrap_err().to_string();
    assert!(e.contains("s3://written/pack0") && e.contains("is there already"), "{e}");
}

#[test]
fn a_writer_whose_place_was_taken_meanwhile_ends_and_one_that_is_denied_leaves_no_pack() {
    let served = Served::new("taken", Duration::from_secs(5));
    served.fail(r#"{"operation": "put", "key": "rows", "fault": "access_denied"}"#);
    let e = sent(&served, "pack", &bytes(1 << 20)).unwrap_err().to_string();
    assert!(e.contains("s3://taken/pack/rows") && e.contains("credentials"), "{e}");
    let left = left(Path::new("s3://taken/pack")).unwrap();
    assert!(!left.whole && left.claim.as_ref().unwrap().is_alive());
    assert_eq!(served.server.obey("\"mend\""), "ok");
    // Somebody else cleans, and writes: the first one finds that its place is not its own.
    clean(&left, true).unwrap();
    served.write("pack/.writer.json", br#"{"writer":"x","host":"other","process":7,"since":1,"renewed":9999999999}"#);
    let e = sent(&served, "pack", &bytes(1 << 20)).unwrap_err().to_string();
    assert!(e.contains("process 7 of other") && e.contains("gristmill clean"), "{e}");
    let e = clean(&gristmill_engine::store::outgoing::left(Path::new("s3://taken/pack")).unwrap(), false).unwrap_err();
    assert!(e.to_string().contains("process 7 of other"), "it said so in the future: {e}");
    served.write("pack/.writer.json", b"no JSON");
    let e = sent(&served, "pack", &bytes(1 << 20)).unwrap_err().to_string();
    assert!(e.contains("pack/.writer.json") && e.contains("says not who writes there"), "{e}");
}
