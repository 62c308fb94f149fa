//! `top` and `feed --top` in a real terminal: what is seen, keys, sizes, loaders that stop, vanish and come back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::command::{generate, gristmill, run, text};
use crate::terminal::{Terminal, ends_with_its_terminal};
use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::{DataLoader, Next};

/// A running `feed`, killed when it is dropped.
struct Feeding {
    child: Child,
    address: String,
}

impl Feeding {
    /// Feeds a folder and serves its metrics at `address`.
    fn start(folder: &Path, address: &str, more: &[&str]) -> Self {
        let words =
            ["feed", text(folder), "--reservoir", "100", "--batch-size", "16", "--seed", "5", "--metrics", address];
        let mut command = gristmill(&[&words[..], more].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Feeding { child, address }
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn games() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "12", &[]);
    folder
}

fn place(lines: &[String], part: &str) -> usize {
    lines.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part} in\n{}", lines.join("\n")))
}

#[test]
fn a_running_loader_is_seen_at_80_by_24_and_keys_move_through_it() {
    let folder = games();
    std::fs::write(folder.path().join("training.77.gz"), b"rubbish").unwrap();
    let report = folder.path().join(".bad.jsonl");
    let graph = ["--split", "train:3,test:1", "--pool", "3"];
    let bad = ["--bad-chunks", "quarantine", "--quarantine", text(&report)];
    let feeding = Feeding::start(folder.path(), "127.0.0.1:0", &[&graph[..], &bad].concat());
    let mut top = Terminal::run(&["top", &feeding.address]);
    top.wait_line(&["running", "1 quarantined"]);
    top.wait_line(&["tensors_train", "/2.0"]);
    top.press("\x1b[C");
    let lines = top.wait("the stream `train`", |lines, _| lines.iter().all(|line| !line.contains("_test")));
    assert!(lines[0].contains(&feeding.address) && lines[0].contains("seed 5") && lines[2].contains("train"));
    let order = ["tensors_train", "sample_train"].map(|name| place(&lines, &format!(" {name} ")));
    assert!(order.is_sorted() && order[0] == 4, "outputs first: {lines:#?}");
    assert!(lines[1].contains("positions/s") && lines[1].contains("MiB") && lines[1].contains("waits"), "{lines:#?}");
    top.press("?");
    top.wait_line(&["this help, and back"]);
    top.press("?");
    top.wait_line(&[" sample_train "]);
    assert!(lines[23].contains("quit") && lines.iter().any(|line| line.contains(" log ──")));
    top.press("c");
    top.press("c");
    let lines = top.wait("all stages, without chips", |lines, _| {
        let seen = |part: &str| lines.iter().any(|line| line.contains(part));
        let below = lines.iter().position(|line| line.contains(" tensors_train")).map_or(0, |tensors| tensors + 1);
        let queue = lines.get(below).is_some_and(|line| line.contains("└ queue") && line.contains("/4"));
        queue && seen(" log ──") && !seen("chunks_decoding")
    });
    assert!(lines[place(&lines, " pool_train")].contains('█'), "a pool that is full");
    top.press("\x1b[D\x1b[D");
    top.wait("the stream `test`", |lines, _| lines.iter().all(|line| !line.contains("_train")));
    top.press("c");
    top.press("\x1b[F");
    top.wait_line(&["last_chunk_key", "training."]);
    // Until a second after the scan its files count as files of the last second.
    let lines = top.wait_line(&[" load ", " 0.0 "]);
    let load = &lines[place(&lines, " load ")];
    let column = load.chars().position(|c| c == '.').unwrap() - 1;
    let row = u16::try_from(place(&lines, " load ")).unwrap();
    let cell = top.screen().cell(row, u16::try_from(column).unwrap()).unwrap();
    assert_eq!((cell.contents(), cell.fgcolor()), ("0", vt100::Color::Default), "idle by nature: no red in {load}");
    top.press("ll");
    let lines = top.wait("no log", |lines, _| lines.iter().all(|line| !line.contains(" log ──")));
    assert!(lines[23].contains("quit"));
    top.press("ll");
    top.wait_line(&["started", "seed 5"]);
    let lines = top.wait_line(&["training.77.gz"]);
    assert!(lines.iter().any(|line| line.contains("load: the first scan found 13 files")), "{lines:#?}");
    top.press("p");
    top.wait_line(&["paused"]);
    top.press(" ");
    top.wait_line(&["running"]);
    assert!(top.screen().alternate_screen());
    top.press("q");
    let (code, left) = top.end();
    assert_eq!(code, 0, "{left:#?}");
    assert!(!top.screen().alternate_screen() && !top.screen().hide_cursor(), "the terminal is given back");
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    let folder = games();
    let feeding = Feeding::start(folder.path(), "127.0.0.1:0", &[]);
    let mut top = Terminal::run(&["top", &feeding.address]);
    top.wait_line(&[" tensors "]);
    for (columns, rows) in [(132, 43), (40, 12), (20, 5), (80, 24)] {
        top.resize(columns, rows);
        let last = usize::from(rows) - 1;
        top.wait("keys in the last row", |lines, _| lines.len() == last + 1 && lines[last].starts_with(" ?  help"));
        let lines = top
            .wait("stages below the title", |lines, _| lines.iter().skip(1).any(|line| line.starts_with(" tensors")));
        assert!(lines[0].starts_with(" gristmill top"), "{lines:#?}");
    }
    top.wait_line(&[" log ──"]);
    let ended = std::process::Command::new("kill").args(["-TERM", &top.process().to_string()]).status().unwrap();
    assert!(ended.success());
    assert_eq!(top.end().0, 130, "SIGTERM gives the terminal back, too");
    assert!(!top.screen().alternate_screen());
}

#[test]
fn a_view_ends_with_its_terminal() {
    let folder = games();
    let feeding = Feeding::start(folder.path(), "127.0.0.1:0", &[]);
    for _ in 0..5 {
        assert!(ends_with_its_terminal(&["top", &feeding.address]), "it reads from a terminal that was closed");
    }
    assert!(ends_with_its_terminal(&["feed", text(folder.path()), "--top"]));
}

#[test]
fn a_loader_that_is_not_there_is_waited_for_and_one_that_vanishes_is_found_again() {
    let folder = games();
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut top = Terminal::run(&["top", &address]);
    let lines = top.wait_line(&["No loader answers at", "refused"]);
    assert!(lines[0].contains("no answer"));
    assert!(
        lines.iter().any(|line| line.contains("--metrics")) && lines.iter().any(|line| line.contains("serve_metrics"))
    );
    let feeding = Feeding::start(folder.path(), &address, &[]);
    top.wait_line(&[" tensors "]);
    drop(feeding);
    top.wait_line(&["no answer", "up "]);
    let lines = top.wait_line(&["the connection is lost"]);
    assert!(lines.iter().any(|line| line.starts_with(" tensors")), "the last values stay");
    let _again = Feeding::start(folder.path(), &address, &[]);
    top.wait_line(&["running"]);
    let lines = top.wait_line(&["another loader answers now"]);
    assert!(lines.iter().any(|line| line.contains("started: seed 5")), "events of the new run: {lines:#?}");
    top.press("\x03");
    assert_eq!(top.end().0, 130);
}

fn endless(folder: &Path) -> DataLoaderConfig {
    let directories = vec![Weighted { directory: folder.to_owned(), weight: 1.0 }];
    let index = Some("off".into());
    lc0(&Lc0Preset { directories, reservoir: Some(100), batch_size: 16, seed: Some(5), index, ..Lc0Preset::default() })
        .unwrap()
}

#[test]
fn a_loader_that_starves_shows_it_until_games_come() {
    let empty = tempfile::tempdir().unwrap();
    let mut config = endless(empty.path());
    // The configuration expects games that come later.
    config
        .stage
        .iter_mut()
        .filter_map(|stage| stage.file_path_provider.as_mut())
        .for_each(|own| own.watch = Some(true));
    let loader = DataLoader::new(config).unwrap();
    let address = loader.serve_metrics("127.0.0.1:0", None).unwrap().to_string();
    let mut top = Terminal::run(&["top", &address]);
    top.wait_line(&["the first scan found 0 files"]);
    top.wait_line(&[" pool ", "0.0", "0/"]);
    generate(empty.path(), "4", &[]);
    top.wait_line(&["new files"]);
    assert!(matches!(loader.next("", None), Ok(Next::Batch(_))));
    top.wait_line(&["└ queue", "             1  "]);
    top.press("q");
    assert_eq!(top.end().0, 0);
}

/// Whether the view learned of a stop; it may have been between two questions.
fn stop_is_seen(folder: &Path) -> bool {
    let loader = DataLoader::new(endless(folder)).unwrap();
    let address = loader.serve_metrics("127.0.0.1:0", None).unwrap().to_string();
    let mut top = Terminal::run(&["top", &address]);
    top.wait_line(&[" tensors "]);
    loader.stop();
    let gone = |lines: &[String]| lines[0].contains("stopped, and gone");
    let lines = top.wait("that nothing answers", |lines, _| gone(lines) || lines[0].contains("no answer"));
    assert!(lines.iter().any(|line| line.starts_with(" tensors")), "the last values stay: {lines:#?}");
    let told = lines.iter().any(|line| line.contains("the loader was stopped"));
    assert!(told || !gone(&lines), "{lines:#?}");
    top.press("q");
    assert_eq!(top.end().0, 0);
    gone(&lines)
}

#[test]
fn a_loader_that_stops_while_it_is_watched_says_so() {
    let folder = games();
    assert!((0..20).any(|_| stop_is_seen(folder.path())));
}

#[test]
fn a_feed_shows_itself() {
    let folder = games();
    let mut feed = Terminal::run(&["feed", text(folder.path()), "--reservoir", "100", "--batch-size", "16", "--top"]);
    feed.wait_line(&["this process", "running"]);
    feed.wait_line(&[" unpack ", "k"]);
    feed.press("q");
    let (code, left) = feed.end();
    assert_eq!(code, 0);
    assert!(!feed.screen().alternate_screen());
    assert!(left.iter().any(|line| line.contains("batches") && line.contains("(stopped)")), "the summary: {left:#?}");
    let mut feed = Terminal::run(&["feed", text(folder.path()), "--epochs", "1", "--batches", "3", "--top"]);
    assert_eq!(feed.end().0, 0, "it ends by itself");
}

/// Answers every request with `body` until the test process ends.
fn answering(code: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while asked.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let _ = write!(stream, "HTTP/1.1 {code}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

#[test]
fn stages_and_metrics_of_a_later_version_appear_by_themselves() {
    let stage = |name: &str, kind: &str, from: &str| {
        serde_json::json!({
            "name": name, "kind": kind, "gives": "pebbles", "inputs": [{"stage": from, "output": ""}], "streams": [""],
            "loads": [{"name": "", "load_seconds": 1.5, "total_seconds": 4.0}],
            "counts": [{"name": "pebbles", "total": 1234567}, {"name": "chipped", "total": 12345}],
            "gauges": [{"name": "heap", "value": 50, "capacity": 100}, {"name": "weight", "value": 7}],
            "queues": [{"name": "", "put": 9, "got": 8, "dropped": 3, "waiting": 1, "capacity": 2}],
            "texts": [{"name": "anchor", "value": "training.42.gz"}], "colour": "unknown to this version"
        })
    };
    let document = serde_json::json!({
        "gristmill_status": 1, "process": 1, "started_unix_ms": 5, "uptime_seconds": 90061.0, "state": "dreaming",
        "stages": [stage("quarry", "novel_source", ""), stage("sieve\u{1b}[31m", "novel_filter", "quarry")],
        "outputs": [{"alias": "", "stage": "sieve"}], "newest_event": 1,
        "events": [{"number": 1, "level": "error", "kind": "novel", "message": "a stone\u{1b}[2J broke"}]
    });
    let mut top = Terminal::run(&["top", &answering("200 OK", document.to_string())]);
    let lines = top.wait_line(&["quarry", "1'234'567"]);
    assert!(lines[0].contains("up 1d 01:01:01") && lines[0].contains("in a state of its own"), "{lines:#?}");
    assert!(place(&lines, "quarry") > place(&lines, "sieve[31m"), "{lines:#?}");
    for part in ["heap 50/100", "weight 7", "chipped 12'345", "anchor training.42.gz", "└ queue", "dropped 3", "█████"]
    {
        assert!(lines.iter().any(|line| line.contains(part)), "no {part} in {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.contains("a stone[2J broke")), "escapes are text: {lines:#?}");
}

#[test]
fn what_is_no_loader_or_wants_a_token_says_so() {
    for (code, body, parts) in [
        ("200 OK", "{\"gristmill_status\": 99}", ["version 99", "use the gristmill of the loader"]),
        ("200 OK", "hello", ["no gristmill loader", "answers there"]),
        ("404 Not Found", "", ["no gristmill loader", "404"]),
        ("302 Found\r\nLocation: http://127.0.0.1:1/", "", ["no gristmill loader", "302"]),
    ] {
        let ran = run(&["top", &answering(code, body.to_owned()), "--once", "--json"]);
        assert!(ran.code == 1 && ran.json()["error"]["kind"] == "failed", "{ran:?}");
        assert!(parts.iter().all(|part| ran.err.contains(part)), "{parts:?} in {ran:?}");
    }
    let odd = run(&["top", &answering("200 OK", "{\"gristmill_status\": 1, \"stages\": 7}".to_owned()), "--once"]);
    assert!(odd.code == 1 && odd.err.contains("cannot be read"), "{odd:?}");
    let mut top = Terminal::run(&["top", &answering("200 OK", "hello".to_owned())]);
    top.wait_line(&["No loader answers at", "no gristmill"]);
    top.press("q");
    assert_eq!(top.end().0, 0);
}

#[test]
fn beyond_the_machine_both_sides_need_the_token() {
    let folder = games();
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token-of-20-letters\n").unwrap();
    let open = ["feed", text(folder.path()), "--batches", "1", "--metrics", "0.0.0.0:0"];
    let refused = run(&open);
    assert!(refused.code == 2 && refused.err.contains("token"), "{refused:?}");
    let feeding = Feeding::start(folder.path(), "0.0.0.0:0", &["--token-file", text(&token)]);
    let port = feeding.address.rsplit_once(':').unwrap().1;
    let mut top = Terminal::run(&["top", port]);
    top.wait_line(&["wants a token", "--token-file"]);
    drop(top);
    let mut top = Terminal::run_with(&["top", port], &[("GRISTMILL_TOKEN", "a-token-of-20-letters")]);
    top.wait_line(&[" tensors "]);
    drop(top);
    let once = ["top", port, "--once", "--json", "--token-file", text(&token)];
    assert_eq!(run(&once).ok().json()["seed"], 5);
    std::fs::write(&token, "another-of-20-letters").unwrap();
    let refused = run(&once);
    assert!(refused.code == 1 && refused.err.contains("not the loader's"), "{refused:?}");
}

#[test]
fn looking_once_prints_and_needs_no_terminal() {
    let folder = games();
    let feeding = Feeding::start(folder.path(), "127.0.0.1:0", &["--split", "train:3,test:1"]);
    let table = run(&["top", &feeding.address, "--once"]).ok().out;
    for part in ["STAGE", "unpack_train", "unpack_test", "└ queue", "seed 5", "positions/s", "waits"] {
        assert!(table.contains(part), "no {part} in\n{table}");
    }
    let document = run(&["top", &feeding.address, "--once", "--json"]).ok().json();
    assert_eq!((&document["gristmill_status"], &document["seed"]), (&1.into(), &5.into()));
    let no_terminal = run(&["top", &feeding.address]);
    assert!(no_terminal.code == 2 && no_terminal.err.contains("--once"), "{no_terminal:?}");
    for words in [
        &["top", "a:b"][..],
        &["top", "--json"],
        &["feed", "x", "--top", "--json"],
        &["feed", "x", "--token-file", "y"],
    ] {
        assert_eq!(run(words).code, 2, "{words:?}");
    }
    let help = run(&["top", "--help"]).ok().out;
    assert!(
        ["--once", "--json", "--token-file", "GRISTMILL_TOKEN", "127.0.0.1:9100"]
            .iter()
            .all(|part| help.contains(part))
    );
    let mut answer = String::new();
    std::net::TcpStream::connect(&feeding.address)
        .and_then(|mut stream| {
            stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
            stream.read_to_string(&mut answer)
        })
        .unwrap();
    assert!(answer.contains("application/json"));
}
