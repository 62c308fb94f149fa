//! An address -> two pages about a running loader: `/metrics` for Prometheus, `/status` as JSON for people's views.
//! Beyond the machine itself nothing is served without a token. One thread serves a bounded number of connections, none
//! of which can hold up another; its descriptors are its own from the start, so that no reader takes them from games.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{Connection, Head, Heard};
use super::token::Token;
use crate::runtime::metrics::Clock;

/// How often the server looks whether it is to end.
const POLL: Duration = Duration::from_millis(50);

/// Longest that an answer is held back on request, in seconds.
const LONGEST_WAIT: f64 = 5.0;

/// Connections at a time, and answers that are held back among them; further ones are given at once.
const MOST: usize = 32;
const MOST_HELD: usize = 16;

/// Seconds after which a connection without a whole request makes room for another, where there is none.
const GRACE: f64 = 0.1;

/// Seconds until the next try after a connection could not be accepted.
const PAUSE: f64 = 0.1;

/// Longest that answers may take once the loader has stopped, in seconds.
const LAST_WORDS: f64 = 0.3;

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
    listener: TcpListener,
    address: SocketAddr,
    token: Option<Token>,
    /// Descriptors for connections: one is given up for each that is accepted.
    spare: Vec<TcpListener>,
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
        let listener = TcpListener::bind(address).map_err(Refusal::Address)?;
        let address = listener.local_addr().map_err(Refusal::Address)?;
        if token.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(Refusal::Open(address));
        }
        listener.set_nonblocking(true).map_err(Refusal::Address)?;
        let spare = (0..MOST).map(|_| listener.try_clone()).collect::<Result<_, _>>().map_err(Refusal::Address)?;
        Ok(Endpoint { listener, address, token, spare })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is set; gives the answers that are held back then before it ends, so that watchers
    /// learn of the stop.
    pub fn serve(self, stop: &AtomicBool, pages: &Pages<'_>) {
        let mut desk = Desk { endpoint: self, pages, clock: Clock::default(), guests: Vec::new(), deaf_until: 0.0 };
        while !stop.load(Ordering::Relaxed) {
            desk.wait();
            desk.turn(false);
        }
        let end = desk.clock.seconds() + LAST_WORDS;
        desk.turn(true);
        while desk.guests.iter().any(|guest| guest.connection.is_saying()) && desk.clock.seconds() < end {
            desk.wait();
            desk.turn(true);
        }
    }

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

/// A connection, and what is held back for it.
struct Guest {
    connection: Connection,
    /// Events above this number, and when the answer is due.
    held: Option<(u64, f64)>,
    /// Whether only the head of the answer is wanted.
    brief: bool,
}

/// Requests that are being answered.
struct Desk<'a> {
    endpoint: Endpoint,
    pages: &'a Pages<'a>,
    clock: Clock,
    guests: Vec<Guest>,
    /// No connection is accepted before.
    deaf_until: f64,
}

impl Desk<'_> {
    /// Waits until there is something to do, or a little while.
    fn wait(&self) {
        let now = self.clock.seconds();
        let mut sockets = Vec::with_capacity(MOST + 1);
        if now >= self.deaf_until && (self.guests.len() < MOST || self.slowest(now).is_some()) {
            sockets.push(PollFd::new(&self.endpoint.listener, PollFlags::IN));
        }
        for Guest { connection, .. } in &self.guests {
            sockets.extend(connection.waits_for().map(|flags| PollFd::new(connection.stream(), flags)));
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: POLL.subsec_nanos().into() };
        if poll(&mut sockets, Some(&timeout)).is_err() {
            std::thread::sleep(POLL);
        }
    }

    /// Goes as far as it can with every connection; with `all`, also with those that are held back.
    fn turn(&mut self, all: bool) {
        let now = self.clock.seconds();
        if now >= self.deaf_until {
            self.accept(now);
        }
        let mut guests = std::mem::take(&mut self.guests);
        let mut held = guests.iter().filter(|guest| guest.held.is_some()).count();
        for guest in &mut guests {
            if let Some((after, _)) = guest.held.take_if(|(_, until)| all || *until <= now) {
                answer(guest, now, 200, JSON, (self.pages.status)(after));
                held -= 1;
            }
            match guest.connection.turn(now) {
                Heard::Nothing => {}
                Heard::Refused(code, advice) => answer(guest, now, code, PLAIN, format!("{advice}\n")),
                Heard::Request(head) => {
                    guest.brief = head.method == "HEAD";
                    match self.endpoint.asked(&head) {
                        Ok(Asked::Metrics) => answer(guest, now, 200, OPENMETRICS, (self.pages.metrics)()),
                        Ok(Asked::Status(after, wait)) if wait > 0.0 && held < MOST_HELD && !all => {
                            guest.held = Some((after, now + wait));
                            guest.connection.hold();
                            held += 1;
                        }
                        Ok(Asked::Status(after, _)) => answer(guest, now, 200, JSON, (self.pages.status)(after)),
                        Err((code, advice)) => answer(guest, now, code, PLAIN, format!("{advice}\n")),
                    }
                }
            }
        }
        guests.retain(|guest| !guest.connection.is_done());
        self.guests = guests;
        self.reserve();
    }

    /// Takes those in who wait at the door, as far as there is room; a failure is no end.
    fn accept(&mut self, now: f64) {
        loop {
            if self.guests.len() >= MOST {
                let Some(slowest) = self.slowest(now) else { return };
                self.guests.swap_remove(slowest);
                self.reserve();
            }
            let mut accepted = self.endpoint.listener.accept();
            if accepted.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock) {
                return;
            }
            // A descriptor that was set aside is given up for the new one, before it where no other is left.
            drop(self.endpoint.spare.pop());
            if accepted.is_err() {
                accepted = self.endpoint.listener.accept();
            }
            match accepted.and_then(|(stream, _)| Connection::new(stream, now)) {
                Ok(connection) => self.guests.push(Guest { connection, held: None, brief: false }),
                Err(e) => {
                    self.reserve();
                    if e.kind() != ErrorKind::WouldBlock {
                        self.deaf_until = now + PAUSE;
                    }
                    return;
                }
            }
        }
    }

    /// Of those without a whole request after a while, who has been there longest.
    fn slowest(&self, now: f64) -> Option<usize> {
        let slow = |(i, guest): (usize, &Guest)| Some((guest.connection.unheard_since()?, i));
        let slowest = self.guests.iter().enumerate().filter_map(slow).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (slowest.0 + GRACE <= now).then_some(slowest.1)
    }

    /// Takes back the descriptors of those who have gone.
    fn reserve(&mut self) {
        while self.guests.len() + self.endpoint.spare.len() < MOST {
            let Ok(spare) = self.endpoint.listener.try_clone() else { return };
            self.endpoint.spare.push(spare);
        }
    }
}

/// Whether a `Host` is a name of this machine for itself, with any port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(six) => six.split_once(']').map(|(address, _)| address),
        None => host.split(':').next(),
    };
    let Some(name) = name.map(|name| name.trim().trim_end_matches('.').to_ascii_lowercase()) else { return false };
    let address = name.parse::<Ipv4Addr>().map(IpAddr::from).or_else(|_| name.parse::<Ipv6Addr>().map(IpAddr::from));
    match address {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
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

fn answer(guest: &mut Guest, now: f64, code: u16, kind: &str, body: String) {
    let reason = match code {
        200 => "OK",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    };
    let more = if code == 401 { "WWW-Authenticate: Bearer" } else { "Cache-Control: no-store" };
    let length = body.len();
    let mut text = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}\r\nConnection: close\r\n\r\n"
    );
    if !guest.brief {
        text.push_str(&body);
    }
    guest.connection.say(text.into_bytes(), now);
}

#[cfg(test)]
mod tests;
