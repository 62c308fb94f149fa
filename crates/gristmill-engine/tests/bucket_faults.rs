//! What a bucket does wrong now and then: a second request brings it and is counted, or the time ends in words; no byte is wrong.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_engine::store::bucket::{Options, counts, set_options};
use gristmill_engine::store::{files, open};
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
