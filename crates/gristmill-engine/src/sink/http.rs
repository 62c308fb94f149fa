//! An address -> two pages about a running loader: `/metrics` for Prometheus, `/status` as JSON for people's views.
//! Beyond the machine itself nothing is served without a token. Answers one request at a time, from snapshots;
//! a reader that hangs holds up nothing but the next reader.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response, Server};

use super::token::Token;
use crate::runtime::metrics::Clock;

/// How often the server looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);

/// Longest that an answer is held back on request, in seconds.
const LONGEST_WAIT: f64 = 5.0;

/// Answers that are held back at the same time; further ones are given at once.
const MOST_HELD: usize = 16;

/// What the pages are called in HTTP.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Why an address is not served.
#[derive(Debug)]
pub enum Refusal {
    /// The address is wrong, in use or not allowed.
    Address(std::io::Error),
    /// The address can be reached from other machines, and there is no token.
    Open(SocketAddr),
}

/// Where the pages come from.
pub struct Pages<'a> {
    /// The metrics as Prometheus text.
    pub metrics: &'a dyn Fn() -> String,
    /// The status as JSON, with the events above a number.
    pub status: &'a dyn Fn(u64) -> String,
}

/// A bound endpoint that is not serving yet.
pub struct Endpoint {
    server: Server,
    address: SocketAddr,
    token: Option<Token>,
}

/// What a request asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    Metrics,
    /// Events above this number, and how many seconds the answer may be held back.
    Status(u64, f64),
}

/// A request whose answer is held back.
struct Held {
    request: Request,
    after: u64,
    until: f64,
}

impl Endpoint {
    /// Binds `address`, such as `127.0.0.1:9100`; port 0 takes any free one. With a token, every request has to
    /// bring it; beyond the loopback interface there has to be one.
    pub fn bind(address: &str, token: Option<Token>) -> Result<Self, Refusal> {
        let listener = TcpListener::bind(address).map_err(Refusal::Address)?;
        let address = listener.local_addr().map_err(Refusal::Address)?;
        if token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(Refusal::Open(address));
        }
        let server = Server::from_listener(listener, None).map_err(|e| {
            Refusal::Address(match e.downcast::<std::io::Error>() {
                Ok(e) => *e,
                Err(e) => std::io::Error::other(e.to_string()),
            })
        })?;
        Ok(Endpoint { server, address, token })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is set; answers that are held back then are given before it ends, so that whoever
    /// watches learns of the stop.
    pub fn serve(self, stop: &AtomicBool, pages: &Pages<'_>) {
        let mut desk = Desk { endpoint: &self, pages, clock: Clock::default(), held: Vec::new() };
        while !stop.load(Ordering::Relaxed) {
            desk.release(false);
            if let Ok(Some(request)) = self.server.recv_timeout(POLL) {
                desk.take(request);
            }
        }
        while let Ok(Some(request)) = self.server.try_recv() {
            desk.take(request);
        }
        desk.release(true);
    }

    /// What is asked for, or the HTTP code and the advice that say why there is no answer.
    fn asked(&self, request: &Request) -> Result<Asked, (u16, &'static str)> {
        if let Some(token) = &self.token {
            let mut given = request.headers().iter().filter(|header| header.field.equiv("Authorization"));
            if !given.any(|header| token.is_in(header.value.as_str())) {
                return Err((401, "send the token as `Authorization: Bearer TOKEN`"));
            }
        }
        if !matches!(request.method(), Method::Get | Method::Head) {
            return Err((405, "only GET is answered"));
        }
        page(request.url())
    }
}

/// Requests that are being answered.
struct Desk<'a> {
    endpoint: &'a Endpoint,
    pages: &'a Pages<'a>,
    clock: Clock,
    held: Vec<Held>,
}

impl Desk<'_> {
    /// Answers a request, or holds the answer back.
    fn take(&mut self, request: Request) {
        match self.endpoint.asked(&request) {
            Ok(Asked::Metrics) => answer(request, 200, OPENMETRICS, (self.pages.metrics)()),
            Ok(Asked::Status(after, wait)) if wait > 0.0 && self.held.len() < MOST_HELD => {
                self.held.push(Held { request, after, until: self.clock.seconds() + wait });
            }
            Ok(Asked::Status(after, _)) => answer(request, 200, JSON, (self.pages.status)(after)),
            Err((code, advice)) => answer(request, code, PLAIN, format!("{advice}\n")),
        }
    }

    /// Gives the answers whose time has come, or `all`.
    fn release(&mut self, all: bool) {
        let now = self.clock.seconds();
        for Held { request, after, .. } in self.held.extract_if(.., |held| all || held.until <= now) {
            answer(request, 200, JSON, (self.pages.status)(after));
        }
    }
}

/// The page that a path with its query names.
fn page(url: &str) -> Result<Asked, (u16, &'static str)> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    match path {
        "/metrics" | "/" => Ok(Asked::Metrics),
        "/status" => {
            let (mut after, mut wait) = (0, 0.0);
            for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                let refused = (400, "expected /status?after=EVENT&wait=SECONDS");
                match name {
                    "after" => after = value.parse().map_err(|_| refused)?,
                    "wait" => {
                        let seconds: f64 = value.parse().map_err(|_| refused)?;
                        wait = if seconds.is_finite() { seconds.clamp(0.0, LONGEST_WAIT) } else { 0.0 };
                    }
                    _ => {}
                }
            }
            Ok(Asked::Status(after, wait))
        }
        _ => Err((404, "see /metrics and /status")),
    }
}

fn answer(request: Request, code: u16, kind: &str, body: String) {
    let mut response = Response::from_string(body).with_status_code(code);
    let more = if code == 401 { ("WWW-Authenticate", "Bearer") } else { ("Cache-Control", "no-store") };
    for (name, value) in [("Content-Type", kind), more] {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // The reader went away: its loss.
    let _ = request.respond(response);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    const SECRET: &str = "0123456789abcdef";

    fn ask(address: SocketAddr, path: &str, header: &str) -> String {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{header}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends the serving, also where a test fails.
    struct Stop<'a>(&'a AtomicBool);

    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Serves until `during` is done.
    fn served(token: Option<Token>, during: impl FnOnce(SocketAddr)) {
        let endpoint = Endpoint::bind("127.0.0.1:0", token).unwrap();
        let address = endpoint.address();
        let stop = AtomicBool::new(false);
        let status = |after: u64| format!("[{after}]");
        std::thread::scope(|scope| {
            scope.spawn(|| endpoint.serve(&stop, &Pages { metrics: &|| "# EOF\n".to_owned(), status: &status }));
            let _stop = Stop(&stop);
            during(address);
        })
    }

    #[test]
    fn both_pages_are_answered_and_others_are_not() {
        served(None, |address| {
            assert!(Endpoint::bind(&address.to_string(), None).is_err(), "the address is in use");
            let metrics = ask(address, "/metrics", "");
            assert!(
                metrics.starts_with("HTTP/1.1 200") && metrics.contains("openmetrics") && metrics.ends_with("# EOF\n")
            );
            let status = ask(address, "/status?after=7", "");
            assert!(status.contains("application/json") && status.ends_with("[7]"), "{status}");
            for (path, code) in [("/elsewhere", 404), ("/status?after=x", 400), ("/status?wait=soon", 400)] {
                assert!(ask(address, path, "").starts_with(&format!("HTTP/1.1 {code}")), "{path}");
            }
        });
    }

    #[test]
    fn an_answer_is_held_back_until_its_time_or_the_stop() {
        served(None, |address| {
            let clock = Clock::default();
            ask(address, "/status?wait=0.25", "");
            assert!(clock.seconds() >= 0.25);
        });
        let endpoint = Endpoint::bind("127.0.0.1:0", None).unwrap();
        let mut stream = std::net::TcpStream::connect(endpoint.address()).unwrap();
        write!(stream, "GET /status?after=3&wait=5 HTTP/1.0\r\n\r\n").unwrap();
        let pages = Pages { metrics: &String::new, status: &|after| format!("[{after}]") };
        let mut desk = Desk { endpoint: &endpoint, pages: &pages, clock: Clock::default(), held: Vec::new() };
        desk.take(endpoint.server.recv().unwrap());
        desk.release(false);
        assert_eq!(desk.held.len(), 1);
        desk.release(true);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("[3]"), "{answer}");
        assert_eq!(page("/status?wait=1e300"), Ok(Asked::Status(0, LONGEST_WAIT)));
        assert_eq!(page("/status?wait=nan&after=2"), Ok(Asked::Status(2, 0.0)));
    }

    #[test]
    fn with_a_token_nothing_is_told_without_it() {
        served(Some(Token::new(SECRET).unwrap()), |address| {
            let header = |text: &str| format!("Authorization: {text}\r\n");
            for (sent, code) in [
                (String::new(), 401),
                (header(SECRET), 401),
                (header("Bearer 0123456789abcdeF"), 401),
                (header("Bearer 0123456789abcdef0"), 401),
                (header("Basic 0123456789abcdef"), 401),
                (header("bearer 0123456789abcdef"), 200),
            ] {
                for path in ["/metrics", "/status", "/status?wait=0.01"] {
                    assert!(ask(address, path, &sent).starts_with(&format!("HTTP/1.1 {code}")), "{sent}{path}");
                }
            }
            assert!(ask(address, "/elsewhere", "").starts_with("HTTP/1.1 401"));
        });
    }

    #[test]
    fn beyond_the_machine_a_token_is_asked_for() {
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
}
