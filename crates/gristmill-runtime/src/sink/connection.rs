//! One accepted connection: the bytes of a request in, the bytes of an answer out, both bounded in size and in time.
//! Never waits for its peer, and does not judge requests.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use rustix::event::PollFlags;

/// Maximum number of bytes before a request's body, and most header lines in them.
const MOST_BYTES: usize = 8 << 10;
const MOST_LINES: usize = 64;

/// Longest, in seconds, that the head of a request may take, that an answer may take, and that is waited for the peer's
/// goodbye, without which what it has not read yet may be lost.
const HEAD_TIME: f64 = 5.0;
const ANSWER_TIME: f64 = 10.0;
const GOODBYE_TIME: f64 = 1.0;

/// Reads of unwanted bytes in one turn.
const IDLE_READS: usize = 16;

/// What a request says before its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Such as `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Each `Host`.
    pub hosts: Vec<String>,
    /// Each `Authorization`.
    pub authorizations: Vec<String>,
    /// What a browser says of where a request comes from and what it is for: each `Sec-Fetch-Site`, and each `Sec-Fetch-Dest`.
    pub origins: Vec<String>,
    /// See `origins`.
    pub uses: Vec<String>,
}

/// What came of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing that is to be answered now.
    Nothing,
    /// A whole head.
    Request(Head),
    /// What is no request: an HTTP code, and words for people.
    Refused(u16, &'static str),
}

#[derive(Debug)]
enum Phase {
    Hears(Vec<u8>),
    Holds,
    Says { bytes: Vec<u8>, said: usize },
    Parts,
    Done,
}

/// A connection and how far it is.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    phase: Phase,
    since: f64,
    until: f64,
}

impl Connection {
    /// One that was accepted `now`, in seconds of any clock.
    ///
    /// Errors: the system cannot serve it without waiting.
    pub(crate) fn new(stream: TcpStream, now: f64) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, phase: Phase::Hears(Vec::new()), since: now, until: now + HEAD_TIME })
    }

    /// What it waits for; `None` where that is not its peer.
    pub(super) fn waits_for(&self) -> Option<PollFlags> {
        match self.phase {
            Phase::Hears(_) | Phase::Parts => Some(PollFlags::IN),
            Phase::Says { .. } => Some(PollFlags::OUT),
            Phase::Holds | Phase::Done => None,
        }
    }

    /// Its socket, to wait on.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Since when it has been open without a whole request; `None` once there was one.
    pub(super) fn unheard_since(&self) -> Option<f64> {
        matches!(self.phase, Phase::Hears(_)).then_some(self.since)
    }

    /// Whether an answer is on its way.
    pub(super) fn is_saying(&self) -> bool {
        matches!(self.phase, Phase::Says { .. })
    }

    /// Whether it can be let go.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// The answer comes later: nothing is read and no time passes until then.
    pub(super) fn hold(&mut self) {
        self.phase = Phase::Holds;
    }

    /// Sends an answer, then parts.
    pub(super) fn say(&mut self, bytes: Vec<u8>, now: f64) {
        (self.phase, self.until) = (Phase::Says { bytes, said: 0 }, now + ANSWER_TIME);
        self.turn(now);
    }

    /// Goes as far as it can without waiting.
    pub(super) fn turn(&mut self, now: f64) -> Heard {
        if now >= self.until && !matches!(self.phase, Phase::Holds) {
            self.phase = Phase::Done;
        }
        match &mut self.phase {
            Phase::Hears(head) => {
                let heard = hear(&mut self.stream, head);
                if heard.is_none() {
                    self.phase = Phase::Done;
                }
                heard.unwrap_or(Heard::Nothing)
            }
            Phase::Says { bytes, said } => {
                match write(&mut self.stream, bytes, said) {
                    None => self.phase = Phase::Done,
                    Some(true) => {
                        let parted = self.stream.shutdown(Shutdown::Write);
                        self.phase = if parted.is_ok() { Phase::Parts } else { Phase::Done };
                        self.until = now + GOODBYE_TIME;
                    }
                    Some(false) => {}
                }
                Heard::Nothing
            }
            Phase::Parts => {
                if read_away(&mut self.stream) {
                    self.phase = Phase::Done;
                }
                Heard::Nothing
            }
            Phase::Holds | Phase::Done => Heard::Nothing,
        }
    }
}

/// Reads on in a head; `None` when the peer has gone.
fn hear(stream: &mut TcpStream, head: &mut Vec<u8>) -> Option<Heard> {
    let mut piece = [0; 2048];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return None,
            Ok(n) => head.extend_from_slice(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Some(Heard::Nothing),
            Err(_) => return None,
        }
        let heard = parse(head);
        if heard != Heard::Nothing {
            return Some(heard);
        }
    }
}

/// A request as far as it has come.
fn parse(bytes: &[u8]) -> Heard {
    const LONG: Heard = Heard::Refused(431, "the head of a request is at most 8 KiB in 64 lines");
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut request = httparse::Request::new(&mut lines);
    match request.parse(&bytes[..bytes.len().min(MOST_BYTES)]) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < MOST_BYTES => return Heard::Nothing,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return LONG,
        Err(_) => return Heard::Refused(400, "this is no HTTP request"),
    }
    let of = |name: &str| {
        let own = request.headers.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
        own.map(|line| String::from_utf8_lossy(line.value).into_owned()).collect()
    };
    Heard::Request(Head {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        hosts: of("Host"),
        authorizations: of("Authorization"),
        origins: of("Sec-Fetch-Site"),
        uses: of("Sec-Fetch-Dest"),
    })
}

/// Writes on; whether all is written, `None` when the peer has gone.
fn write(stream: &mut TcpStream, bytes: &[u8], said: &mut usize) -> Option<bool> {
    while *said < bytes.len() {
        match stream.write(&bytes[*said..]) {
            Ok(0) => return None,
            Ok(n) => *said += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Some(false),
            Err(_) => return None,
        }
    }
    Some(true)
}

/// Reads and drops unwanted bytes, such as a body; whether the peer has gone.
fn read_away(stream: &mut TcpStream) -> bool {
    let mut piece = [0; 4096];
    for _ in 0..IDLE_READS {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Both ends of a connection that was accepted at second 0.
    fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (peer, Connection::new(listener.accept().unwrap().0, 0.0).unwrap())
    }

    /// Turns at second `now` until something is heard or it is done.
    fn heard(connection: &mut Connection, now: f64) -> Heard {
        loop {
            let heard = connection.turn(now);
            if heard != Heard::Nothing || connection.is_done() {
                return heard;
            }
        }
    }

    #[test]
    fn a_head_may_come_in_pieces_and_its_lines_are_kept() {
        let (mut peer, mut connection) = pair();
        let text = "GET /status?after=1 HTTP/1.1\r\nhost: a\r\nHost: b\r\nAuthorization: Bearer x\r\n\r\nbody";
        for piece in text.as_bytes().chunks(7) {
            peer.write_all(piece).unwrap();
        }
        let Heard::Request(head) = heard(&mut connection, 1.0) else { panic!("no request") };
        assert_eq!((head.method.as_str(), head.target.as_str()), ("GET", "/status?after=1"));
        assert_eq!((head.hosts, head.authorizations), (vec!["a".into(), "b".into()], vec!["Bearer x".into()]));
    }

    #[test]
    fn nothing_lasts_longer_than_it_may() {
        let (_peer, mut connection) = pair();
        assert_eq!(connection.turn(HEAD_TIME - 0.1), Heard::Nothing);
        assert_eq!((connection.unheard_since(), connection.is_done()), (Some(0.0), false));
        connection.turn(HEAD_TIME);
        assert!(connection.is_done());
        // A peer that reads nothing of an answer that no socket holds whole.
        let (_peer, mut connection) = pair();
        connection.hold();
        connection.turn(1e9);
        assert!(!connection.is_done() && connection.waits_for().is_none());
        connection.say(vec![b'x'; 64 << 20], 50.0);
        assert!(connection.is_saying());
        connection.turn(50.0 + ANSWER_TIME);
        assert!(connection.is_done());
        // A peer that never says goodbye.
        let (_peer, mut connection) = pair();
        connection.say(b"short".to_vec(), 0.0);
        assert!(!connection.is_saying() && !connection.is_done());
        connection.turn(GOODBYE_TIME);
        assert!(connection.is_done());
    }

    #[test]
    fn what_is_too_long_or_no_request_is_refused() {
        for (text, code) in [
            (format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(MOST_BYTES)), 431),
            (format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_LINES + 1)), 431),
            ("\u{1}\u{2}\u{3} / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ] {
            let (mut peer, mut connection) = pair();
            peer.write_all(text.as_bytes()).unwrap();
            let heard = heard(&mut connection, 0.0);
            assert!(matches!(heard, Heard::Refused(found, _) if found == code), "{heard:?}");
        }
        let (peer, mut connection) = pair();
        drop(peer);
        assert_eq!((heard(&mut connection, 0.0), connection.is_done()), (Heard::Nothing, true));
    }
}
