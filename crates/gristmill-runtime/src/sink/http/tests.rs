//! Readers of every kind: quick, slow, silent, many, and those that were not meant.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;

use super::*;
use crate::runtime::metrics::Clock;
use crate::sink::desk::{MOST, MOST_HELD};

const SECRET: &str = "0123456789abcdef";

fn send(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(address: SocketAddr, path: &str, header: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"))
}

/// Ends the serving, also where a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves until `during` is done; it may stop the serving itself.
fn served(token: Option<Token>, during: impl FnOnce(SocketAddr, &AtomicBool)) {
    let endpoint = Endpoint::bind("127.0.0.1:0", token).unwrap();
    let address = endpoint.address();
    let stop = AtomicBool::new(false);
    let status = |after: u64| format!("[{after}]");
    std::thread::scope(|scope| {
        scope.spawn(|| endpoint.serve(&stop, &Pages { metrics: &|| "# EOF\n".to_owned(), status: &status }));
        let _stop = Stop(&stop);
        during(address, &stop);
    })
}

#[test]
fn both_pages_are_answered_and_others_are_not() {
    served(None, |address, _| {
        assert!(Endpoint::bind(&address.to_string(), None).is_err(), "the address is in use");
        let metrics = ask(address, "/metrics", "");
        assert!(metrics.starts_with("HTTP/1.1 200") && metrics.contains("openmetrics") && metrics.ends_with("# EOF\n"));
        let status = ask(address, "/status?after=7", "");
        assert!(status.contains("application/json") && status.ends_with("[7]"), "{status}");
        for (path, code) in [("/elsewhere", 404), ("/status?after=x", 400), ("/status?wait=soon", 400)] {
            assert!(ask(address, path, "").starts_with(&format!("HTTP/1.1 {code}")), "{path}");
        }
        let head = send(address, "HEAD /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("Content-Length: 3") && head.ends_with("\r\n\r\n"));
        let posted = send(address, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000000\r\n\r\nabc");
        assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    });
    assert_eq!(page("/status?wait=1e300"), Ok(Asked::Status(0, LONGEST_WAIT)));
    assert_eq!(page("/status?wait=nan&after=2"), Ok(Asked::Status(2, 0.0)));
}

#[test]
fn an_answer_is_held_back_until_its_time_or_the_stop() {
    served(None, |address, stop| {
        let clock = Clock::default();
        ask(address, "/status?wait=0.25", "");
        assert!(clock.seconds() >= 0.25);
        // More than are held back: the others are answered at once, and these at the stop.
        let held: Vec<TcpStream> = (0..MOST_HELD)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /status?after=3&wait=5 HTTP/1.0\r\n\r\n").unwrap();
                stream
            })
            .collect();
        assert!(ask(address, "/metrics", "").ends_with("# EOF\n"));
        stop.store(true, Ordering::Relaxed);
        for mut stream in held {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("[3]"), "{answer}");
        }
        assert!(clock.seconds() < LONGEST_WAIT);
    });
}

#[test]
fn connections_that_ask_nothing_hold_up_nobody() {
    served(None, |address, _| {
        let silent: Vec<TcpStream> = (0..3 * MOST)
            .map(|i| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&b"GET /metrics HTTP/1.1\r\nX: "[..i % 26]).unwrap();
                stream
            })
            .collect();
        for _ in 0..3 {
            assert!(ask(address, "/metrics", "").ends_with("# EOF\n"));
        }
        drop(silent);
        let long = send(address, &format!("GET /metrics HTTP/1.1\r\nX: {}", "y".repeat(8 << 10)));
        assert!(long.starts_with("HTTP/1.1 431"), "{long}");
    });
}

#[test]
fn with_a_token_nothing_is_said_without_it() {
    served(Some(Token::new(SECRET).unwrap()), |address, _| {
        let header = |text: &str| format!("Authorization: {text}\r\n");
        for (sent, code) in [
            (String::new(), 401),
            (header(SECRET), 401),
            (header("Bearer 0123456789abcdeF"), 401),
            (header("Bearer 0123456789abcdef0"), 401),
            (header("Basic 0123456789abcdef"), 401),
            (header("bearer 0123456789abcdef"), 200),
            (header("Bearer 0123456789abcdef") + "Host: elsewhere.example\r\n", 200),
        ] {
            for path in ["/metrics", "/status", "/status?wait=0.01"] {
                assert!(ask(address, path, &sent).starts_with(&format!("HTTP/1.1 {code}")), "{sent}{path}");
            }
        }
        assert!(ask(address, "/elsewhere", "").starts_with("HTTP/1.1 401"));
        assert!(send(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 401"), "the token comes first");
    });
}

#[test]
fn without_a_token_requests_are_for_this_machine() {
    served(None, |address, _| {
        for (host, code) in [
            ("localhost", 200),
            ("LOCALHOST:9100", 200),
            ("app.localhost.", 200),
            ("127.0.0.1:1", 200),
            ("127.9.9.9", 200),
            ("[::1]:9100", 200),
            ("[::ffff:127.0.0.1]", 200),
            ("elsewhere.example", 403),
            ("localhost.example", 403),
            ("127.0.0.1.example", 403),
            ("10.0.0.1", 403),
            ("[::1", 403),
            ("", 403),
        ] {
            let said = send(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert!(said.starts_with(&format!("HTTP/1.1 {code}")), "{host}: {said}");
        }
        let two = send(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: a.example\r\n\r\n");
        assert!(two.starts_with("HTTP/1.1 403"), "{two}");
        assert!(send(address, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"), "no browser leaves it out");
        let posted = send(address, "POST / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert!(posted.starts_with("HTTP/1.1 403"), "the name comes first");
    });
}

#[test]
fn beyond_the_machine_a_token_is_wanted() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        match Endpoint::bind(address, None) {
            Err(Refusal::Open(bound)) => assert!(bound.ip().is_unspecified()),
            // A machine without this version of IP.
            Err(Refusal::Address(_)) => continue,
            Ok(_) => panic!("{address} is open to everybody"),
        }
        assert!(Endpoint::bind(address, Some(Token::new(SECRET).unwrap())).is_ok());
    }
    for local in ["127.0.0.1:0", "localhost:0"] {
        assert!(Endpoint::bind(local, None).is_ok());
    }
}
