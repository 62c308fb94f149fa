//! An address -> two pages about a running loader: `/metrics` for Prometheus, `/status` as JSON for people's views.
//! Beyond the machine itself nothing is served without a token. How connections are served is the desk's.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use super::desk::{Answer, Door, Head, Host, Reply, is_local};
use super::token::Token;

/// Longest that an answer is held back on request, in seconds.
const LONGEST_WAIT: f64 = 5.0;

/// What the pages are called in HTTP.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";

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
    door: Door,
    token: Option<Token>,
}

/// What a request asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    Metrics,
    /// Events above this number, and how many seconds the answer may be held back.
    Status(u64, f64),
}

impl Endpoint {
    /// Binds `address`, such as `127.0.0.1:9100`; port 0 takes any free one. With a token, every request has to
    /// bring it; beyond the loopback interface there has to be one. Without one, requests have to be for this machine by
    /// name, which those of a web page that a browser shows are not.
    pub fn bind(address: &str, token: Option<Token>) -> Result<Self, Refusal> {
        let door = Door::bind(address).map_err(Refusal::Address)?;
        if token.is_none() && !door.is_local() {
            return Err(Refusal::Open(door.address()));
        }
        Ok(Endpoint { door, token })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// Answers requests until `stop` is set; gives the answers that are held back then before it ends, so that watchers
    /// learn of the stop.
    pub fn serve(self, stop: &AtomicBool, pages: &Pages<'_>) {
        self.door.serve(stop, &Loader { token: self.token, pages });
    }
}

/// The pages of a loader, for those who may see them.
struct Loader<'a> {
    token: Option<Token>,
    pages: &'a Pages<'a>,
}

impl Host for Loader<'_> {
    type Late = u64;

    fn reply(&self, head: &Head) -> Reply<u64> {
        match self.asked(head) {
            Ok(Asked::Metrics) => Reply::Now(page_of(OPENMETRICS, (self.pages.metrics)())),
            Ok(Asked::Status(after, wait)) if wait > 0.0 => Reply::Later(after, wait),
            Ok(Asked::Status(after, _)) => Reply::Now(self.late(after)),
            Err((401, advice)) => {
                let lines = vec![("WWW-Authenticate", "Bearer".to_owned())];
                Reply::Now(Answer { lines, ..Answer::plain(401, advice) })
            }
            Err((code, advice)) => Reply::Now(Answer::plain(code, advice)),
        }
    }

    fn late(&self, after: u64) -> Answer {
        page_of(JSON, (self.pages.status)(after))
    }
}

fn page_of(kind: &'static str, text: String) -> Answer {
    let lines = vec![("Cache-Control", "no-store".to_owned())];
    Answer { code: 200, kind, lines, body: text.into_bytes() }
}

impl Loader<'_> {
    /// What a request wants, or the HTTP code and the advice that refuse it. The sender is checked first.
    fn asked(&self, head: &Head) -> Result<Asked, (u16, &'static str)> {
        match &self.token {
            Some(token) if !head.authorizations.iter().any(|given| token.is_in(given)) => {
                return Err((401, "send the token as `Authorization: Bearer TOKEN`"));
            }
            None if !head.hosts.iter().all(|host| is_local(host)) => {
                return Err((403, "ask for 127.0.0.1 or localhost, or give the loader a token"));
            }
            _ => {}
        }
        if !matches!(head.method.as_str(), "GET" | "HEAD") {
            return Err((405, "only GET is answered"));
        }
        page(&head.target)
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

#[cfg(test)]
mod tests;
