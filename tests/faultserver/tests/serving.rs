//! The server as a process of its own: its first line, an object over HTTP, an order, and its end with its input.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn a_process_serves_a_folder_obeys_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("games")).unwrap();
    fs::write(folder.path().join("games/one"), b"e2e4").unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_gristmill-faultserver"))
        .args([folder.path().to_str().unwrap(), "--anonymous"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines.next().unwrap().unwrap();
    let place = address.strip_prefix("http://").unwrap();
    let get = |key: &str| {
        let mut stream = TcpStream::connect(place).unwrap();
        write!(stream, "GET /games/{key} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let found = get("one");
    assert!(found.starts_with("HTTP/1.1 200") && found.ends_with("e2e4"), "{found}");
    assert!(get("two").starts_with("HTTP/1.1 404"));
    writeln!(orders, r#"{{"counts": true}}"#).unwrap();
    let counts = lines.next().unwrap().unwrap();
    assert!(counts.contains(r#""get":2"#), "{counts}");
    drop(orders);
    assert!(server.wait().unwrap().success());
    assert!(lines.next().is_none());
}
