//! A bound address and who answers -> requests answered, until a flag is set. One thread serves a bounded number of connections,
//! none of which can hold up another; its descriptors are its own from the start, so that no reader takes them from games.
//! Knows no page.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::{Connection, Heard};
use crate::runtime::metrics::Clock;

pub use super::connection::Head;

/// How often the server looks whether it is to end.
const POLL: Duration = Duration::from_millis(50);

/// Connections at a time, and answers that are held back among them; further ones are given at once.
pub(super) const MOST: usize = 32;
pub(super) const MOST_HELD: usize = 16;

/// Seconds after which a connection without a whole request makes room for another, where there is none.
const GRACE: f64 = 0.1;

/// Seconds until the next try after a connection could not be accepted.
const PAUSE: f64 = 0.1;

/// Longest that answers may take once the serving ends, in seconds.
const LAST_WORDS: f64 = 0.3;

/// What is sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP code.
    pub code: u16,
    /// What the body is.
    pub kind: &'static str,
    /// Further lines of the head: names and values, without line breaks.
    pub lines: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// When a request is answered.
#[derive(Debug)]
pub enum Reply<L> {
    /// Now.
    Now(Answer),
    /// After this number of seconds, by [`Host::late`].
    Later(L, f64),
}

/// Who answers requests. Each answer is made on the one thread that serves.
pub trait Host {
    /// What an answer that is held back is made of.
    type Late;

    /// What a request gets. It is the host's to check who asks.
    fn reply(&self, head: &Head) -> Reply<Self::Late>;

    /// An answer that was held back, when its time has come, when too many are held, or at the end.
    fn late(&self, late: Self::Late) -> Answer;
}

/// A bound address that is not served yet.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    /// Descriptors for connections: one is given up for each that is accepted.
    spare: Vec<TcpListener>,
}

impl Door {
    /// Binds `address`, such as `127.0.0.1:9100`; port 0 takes any free one.
    ///
    /// Errors: an address that is wrong, in use or not allowed.
    pub fn bind(address: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let spare = (0..MOST).map(|_| listener.try_clone()).collect::<Result<_, _>>()?;
        Ok(Door { listener, address, spare })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }

    /// Lets `host` answer requests until `stop` is set; gives the answers that are held back then before it ends.
    pub fn serve<H: Host>(self, stop: &AtomicBool, host: &H) {
        let mut desk = Desk { door: self, host, clock: Clock::default(), guests: Vec::new(), deaf_until: 0.0 };
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
}

/// A connection, and what is held back for it.
struct Guest<L> {
    connection: Connection,
    /// What the answer is made of, and when it is due.
    held: Option<(L, f64)>,
    /// Whether only the head of the answer is wanted.
    brief: bool,
}

/// Requests that are being answered.
struct Desk<'a, H: Host> {
    door: Door,
    host: &'a H,
    clock: Clock,
    guests: Vec<Guest<H::Late>>,
    /// No connection is accepted before.
    deaf_until: f64,
}

impl<H: Host> Desk<'_, H> {
    /// Waits until there is something to do, or a little while.
    fn wait(&self) {
        let now = self.clock.seconds();
        let mut sockets = Vec::with_capacity(MOST + 1);
        if now >= self.deaf_until && (self.guests.len() < MOST || self.slowest(now).is_some()) {
            sockets.push(PollFd::new(&self.door.listener, PollFlags::IN));
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
            if let Some((late, _)) = guest.held.take_if(|(_, until)| all || *until <= now) {
                guest.say(self.host.late(late), now);
                held -= 1;
            }
            match guest.connection.turn(now) {
                Heard::Nothing => {}
                Heard::Refused(code, advice) => guest.say(Answer::plain(code, advice), now),
                Heard::Request(head) => {
                    guest.brief = head.method == "HEAD";
                    match self.host.reply(&head) {
                        Reply::Now(answer) => guest.say(answer, now),
                        Reply::Later(late, seconds) if held < MOST_HELD && !all => {
                            guest.held = Some((late, now + seconds));
                            guest.connection.hold();
                            held += 1;
                        }
                        Reply::Later(late, _) => guest.say(self.host.late(late), now),
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
            let mut accepted = self.door.listener.accept();
            if accepted.as_ref().is_err_and(|e| e.kind() == ErrorKind::WouldBlock) {
                return;
            }
            // A descriptor that was set aside is given up for the new one, before it where no other is left.
            drop(self.door.spare.pop());
            if accepted.is_err() {
                accepted = self.door.listener.accept();
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
        let slow = |(i, guest): (usize, &Guest<H::Late>)| Some((guest.connection.unheard_since()?, i));
        let slowest = self.guests.iter().enumerate().filter_map(slow).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (slowest.0 + GRACE <= now).then_some(slowest.1)
    }

    /// Takes back the descriptors of those who have gone.
    fn reserve(&mut self) {
        while self.guests.len() + self.door.spare.len() < MOST {
            let Ok(spare) = self.door.listener.try_clone() else { return };
            self.door.spare.push(spare);
        }
    }
}

impl Answer {
    /// A line of text.
    pub fn plain(code: u16, text: &str) -> Self {
        let lines = vec![("Cache-Control", "no-store".to_owned())];
        Answer { code, kind: "text/plain; charset=utf-8", lines, body: format!("{text}\n").into_bytes() }
    }

    /// It as bytes; `brief` without its body.
    fn bytes(self, brief: bool) -> Vec<u8> {
        let reason = match self.code {
            200 => "OK",
            303 => "See Other",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            _ => "Bad Request",
        };
        let (code, kind, length) = (self.code, self.kind, self.body.len());
        let mut head = format!("HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
        for (name, value) in &self.lines {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        if !brief {
            bytes.extend(self.body);
        }
        bytes
    }
}

impl<L> Guest<L> {
    fn say(&mut self, answer: Answer, now: f64) {
        let bytes = answer.bytes(self.brief);
        self.connection.say(bytes, now);
    }
}

/// Whether a `Host` is a name of this machine for itself, with any port.
pub fn is_local(host: &str) -> bool {
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
