//! What arrived and when, in the stream's own time: one JSON line per event, written ahead and fsynced, each line after a
//! checksum of itself and of all before it. Reading it back gives the same events; a torn last line is cut off.
//! Knows nothing of what an event means.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use super::tail::{Tail, has_hole};

/// How a journal is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// As a new file; one that exists is refused.
    New,
    /// In place of a file that tells nothing.
    Fresh,
    /// Behind its last whole event.
    Again,
}

/// A place in a journal, by which it is known again: lines before it, their bytes, and the hash of those; `first`: that of
/// the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Whole lines.
    pub lines: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Hash of all these bytes.
    pub hash: u64,
    /// Hash of the first line.
    pub first: u64,
}

/// The lines so far.
#[derive(Clone, Default)]
struct Lines {
    hash: Xxh3,
    place: Place,
    /// One of them had a checksum: all that follow have one, too.
    sealed: bool,
}

impl Lines {
    /// The checksum of a line that comes next.
    fn seal(&self, event: &[u8]) -> u64 {
        let mut hash = self.hash.clone();
        hash.update(event);
        hash.digest()
    }

    fn add(&mut self, line: &[u8]) {
        self.hash.update(line);
        self.place.lines += 1;
        self.place.bytes += line.len() as u64;
        self.place.hash = self.hash.digest();
        if self.place.lines == 1 {
            self.place.first = self.place.hash;
        }
    }

    /// The event of a line without its line feed. Lines of older versions have no checksum. `None` for a damaged one.
    fn event<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        if !self.sealed && line.first() == Some(&b'{') {
            return Some(line);
        }
        self.sealed(line)
    }

    fn sealed<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let (seal, event) = line.split_at_checked(SEAL)?;
        let seal = seal.strip_suffix(b" ").filter(|seal| seal.iter().all(u8::is_ascii_hexdigit))?;
        let seal = u64::from_str_radix(std::str::from_utf8(seal).ok()?, 16).ok()?;
        (seal == self.seal(event)).then_some(event)
    }

    /// Takes whole lines in, one by one; the rest is torn, or was left unwritten by a machine that crashed.
    ///
    /// Errors: unreadable; `InvalidData` for a damaged line, with number and byte.
    fn read(&mut self, reader: &mut impl BufRead, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            let Some((&last, event)) = line.split_last() else { return Ok(()) };
            let damaged = || {
                let Place { lines, bytes, .. } = self.place;
                let text = "its checksum is not that of it and of all before it: something here was changed, cut out or put in";
                Error::new(ErrorKind::InvalidData, format!("line {}, byte {bytes}: {text}", lines + 1))
            };
            if last != b'\n' {
                // What a write tears is a beginning: a whole line with another byte after it is damage.
                return if self.sealed(event).is_some() { Err(damaged()) } else { Ok(()) };
            }
            let Some(event) = self.event(event) else { return if has_hole(&line) { Ok(()) } else { Err(damaged()) } };
            let number = self.place.lines + 1;
            take(event).map_err(|e| Error::new(e.kind(), format!("line {number}: {e}")))?;
            self.sealed |= event.len() + 1 < line.len();
            self.add(&line);
        }
    }
}

/// Bytes before an event: 16 hexadecimal digits and a space.
const SEAL: usize = 17;

/// An append-only file of events; it is touched once it is opened, and not before. Locked from [`Journal::hold`] on.
#[derive(Default)]
pub struct Journal {
    path: PathBuf,
    opening: Option<Opening>,
    tail: Option<Tail>,
    lines: Lines,
    /// Up to here it is durable.
    durable: Place,
    ready: bool,
    closed: bool,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("path", &self.path).field("durable", &self.durable).finish_non_exhaustive()
    }
}

impl Journal {
    /// A journal at `path`, not opened yet; an existing file is locked.
    ///
    /// Errors: `ResourceBusy` where another writer has it; it cannot be written.
    pub fn hold(path: &Path) -> io::Result<Self> {
        Ok(Journal { path: path.to_owned(), tail: Tail::hold(path)?, ..Journal::default() })
    }

    /// The same, to be opened in this way.
    #[must_use]
    pub fn to_open(self, opening: Opening) -> Self {
        Journal { opening: Some(opening), ..self }
    }

    /// A journal at `path`. Errors: as [`Journal::hold`] and [`Journal::open`].
    pub fn opened(path: &Path, opening: Opening) -> io::Result<Self> {
        let mut journal = Journal::hold(path)?.to_open(opening);
        journal.open()?;
        Ok(journal)
    }

    /// Opens the file, once. Errors: it exists, or does not, or cannot be written, or is damaged.
    pub fn open(&mut self) -> io::Result<()> {
        self.file().map(|_| ())
    }

    fn file(&mut self) -> io::Result<&mut Tail> {
        if self.closed {
            return Err(Error::new(ErrorKind::BrokenPipe, "its loader was stopped"));
        }
        let held = match self.tail.take() {
            Some(tail) => Some(tail),
            None => Tail::hold(&self.path)?,
        };
        let missing = || Error::new(ErrorKind::NotFound, "it is gone");
        let mut tail = match (held, self.opening) {
            (Some(tail), _) if self.ready => tail,
            (None, _) if self.ready => return Err(missing()),
            (None, Some(Opening::New)) => Tail::create(&self.path)?,
            (held, Some(Opening::Again)) => held.ok_or_else(missing)?,
            (held, Some(Opening::Fresh)) => held.ok_or_else(missing)?,
            (Some(_), _) => return Err(Error::new(ErrorKind::AlreadyExists, "it is there already; take another file")),
            (None, None) => return Err(missing()),
        };
        if !self.ready && self.opening == Some(Opening::Again) {
            self.lines.read(&mut BufReader::new(tail.file()), &mut |_| Ok(()))?;
            tail.keep(self.lines.place.bytes);
            tail.sync()?;
            self.durable = self.lines.place;
        }
        self.ready = true;
        Ok(self.tail.insert(tail))
    }

    /// Appends events and makes them durable before it returns.
    pub fn append<E: Serialize>(&mut self, events: &[E]) -> io::Result<()> {
        self.note(events)?;
        self.file()?.sync()?;
        self.durable = self.lines.place;
        Ok(())
    }

    /// Appends events that outlive this process, not necessarily the machine: all or none.
    pub fn note<E: Serialize>(&mut self, events: &[E]) -> io::Result<()> {
        self.open()?;
        let (mut lines, mut bytes) = (self.lines.clone(), Vec::new());
        for event in events {
            let event = serde_json::to_vec(event)?;
            let line = [format!("{:016x} ", lines.seal(&event)).as_bytes(), &event, b"\n"].concat();
            lines.add(&line);
            bytes.extend(line);
        }
        self.file()?.append(&bytes)?;
        self.lines = lines;
        Ok(())
    }

    /// Makes durable what was noted, too, and says up to where that is.
    pub fn settle(&mut self) -> io::Result<Place> {
        if self.durable != self.lines.place
            && let Some(tail) = &self.tail
        {
            tail.sync()?;
            self.durable = self.lines.place;
        }
        Ok(self.durable)
    }

    /// Lets go of the file; nothing is written any more.
    pub fn close(&mut self) {
        // Where this fails, states know of less of it.
        let _ = self.settle();
        self.closed = true;
        self.tail = None;
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all whole events of a journal. Errors: unreadable; damaged, with line and byte; a line that is no event. The
    /// last line, torn by a crash, is left out instead.
    pub fn read<E: DeserializeOwned>(path: &Path) -> io::Result<Vec<E>> {
        Journal::read_to(path).map(|(events, _)| events)
    }

    /// Reads all whole events, and where they end. Errors: as [`Journal::read`].
    pub fn read_to<E: DeserializeOwned>(path: &Path) -> io::Result<(Vec<E>, Place)> {
        let (mut events, mut lines) = (Vec::new(), Lines::default());
        lines.read(&mut BufReader::new(File::open(path)?), &mut |event| {
            events.push(serde_json::from_slice(event).map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))?);
            Ok(())
        })?;
        Ok((events, lines.place))
    }

    /// Hash of the first `bytes` of a journal. `None` where it has fewer.
    pub fn hash_of(path: &Path, bytes: u64) -> io::Result<Option<u64>> {
        let (mut reader, mut hash, mut left) = (BufReader::new(File::open(path)?).take(bytes), Xxh3::new(), bytes);
        loop {
            let part = reader.fill_buf()?;
            if part.is_empty() {
                return Ok((left == 0).then(|| hash.digest()));
            }
            hash.update(part);
            let taken = part.len();
            left -= taken as u64;
            reader.consume(taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Pair = (String, u64);

    fn journal(path: &Path, opening: Opening) -> io::Result<Journal> {
        Journal::opened(path, opening)
    }

    #[test]
    fn events_come_back_and_a_torn_tail_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let mut first = Journal::hold(&path).unwrap().to_open(Opening::New);
        assert!(!path.exists(), "nothing is written before there is something to write");
        first.append(&[("a".to_string(), 1u64), ("b".to_string(), 2)]).unwrap();
        first.append(&[("c".to_string(), 3u64)]).unwrap();
        assert_eq!(Journal::hold(&path).unwrap_err().kind(), ErrorKind::ResourceBusy);
        let durable = first.settle().unwrap();
        drop(first);
        let exists = journal(&path, Opening::New).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::AlreadyExists, "an existing journal is not written over");
        let all: Vec<Pair> = Journal::read(&path).unwrap();
        assert_eq!(all.len(), 3);
        let bytes = std::fs::read(&path).unwrap();
        let place = Journal::read_to::<Pair>(&path).unwrap().1;
        assert_eq!((place, place.lines, place.bytes), (durable, 3, bytes.len() as u64));
        assert_eq!(Journal::hash_of(&path, place.bytes).unwrap(), Some(place.hash));
        assert_eq!(Journal::hash_of(&path, place.bytes + 1).unwrap(), None);
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(Journal::read::<Pair>(&path).unwrap(), all[..2]);
        journal(&path, Opening::Again).unwrap().append(&[&all[2]]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "resuming mends the tail");
        journal(&path, Opening::Fresh).unwrap().append(&all[..1]).unwrap();
        assert_eq!(Journal::read::<Pair>(&path).unwrap(), all[..1]);
        assert!(journal(&folder.path().join("none"), Opening::Again).is_err());
        std::fs::write(&path, [b"junk\n".as_slice(), &bytes].concat()).unwrap();
        assert!(Journal::read::<Pair>(&path).unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn what_is_changed_or_cut_out_is_found_and_a_torn_write_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        for plain in [false, true] {
            std::fs::write(&path, if plain { "{\"old\":7}\n" } else { "" }).unwrap();
            let opening = if plain { Opening::Again } else { Opening::Fresh };
            let events = [("a".to_string(), 11u64), ("b".to_string(), 22), ("c".to_string(), 33)];
            let mut lines = journal(&path, opening).unwrap();
            events.iter().for_each(|event| lines.append(&[event]).unwrap());
            drop(lines);
            let bytes = std::fs::read(&path).unwrap();
            let (line, old) = (26, bytes.len() - 3 * 26);
            let read = || Journal::read::<serde_json::Value>(&path);
            let whole = read().unwrap();
            for at in 0..bytes.len() {
                for byte in [bytes[at] ^ 1, b'\n', b'{', b'7'].into_iter().filter(|byte| *byte != bytes[at]) {
                    let mut damaged = bytes.clone();
                    damaged[at] = byte;
                    std::fs::write(&path, damaged).unwrap();
                    let error = read().unwrap_err().to_string();
                    assert!(error.contains("line "), "byte {at}: {error}");
                }
                for end in at + 1..=bytes.len() {
                    let damaged = [&bytes[..at], &bytes[end..]].concat();
                    std::fs::write(&path, &damaged).unwrap();
                    match read() {
                        Ok(found) => {
                            assert!(
                                bytes.starts_with(&damaged) && whole.starts_with(&found),
                                "{at}..{end} of {} is a hole: {found:?}",
                                bytes.len()
                            );
                        }
                        Err(e) => assert!(e.to_string().contains("line "), "{at}..{end}: {e}"),
                    }
                }
            }
            for hole in [0..line, line..2 * line, line + 3..line + 20] {
                let mut lost = bytes.clone();
                lost[old..][hole.clone()].fill(0);
                std::fs::write(&path, lost).unwrap();
                let left = usize::from(plain) + hole.start / line;
                assert_eq!(read().unwrap(), whole[..left], "what the machine did not write, and all after it");
                let mut lines = journal(&path, Opening::Again).unwrap();
                events[hole.start / line..].iter().for_each(|event| lines.append(&[event]).unwrap());
                assert_eq!(std::fs::read(&path).unwrap(), bytes);
            }
            for torn in 1..line {
                std::fs::write(&path, &bytes[..old + line]).unwrap();
                let mut lines = journal(&path, Opening::Again).unwrap();
                std::fs::write(&path, &bytes[..old + line + torn]).unwrap();
                events[1..].iter().for_each(|event| lines.append(&[event]).unwrap());
                assert_eq!(std::fs::read(&path).unwrap(), bytes, "torn at {torn}");
            }
        }
    }

    #[test]
    fn lines_without_checksums_stand_before_all_that_have_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let old = "{\"old\":1}\n";
        std::fs::write(&path, [old, old].concat()).unwrap();
        journal(&path, Opening::Again).unwrap().append(&[serde_json::json!({"new": 2})]).unwrap();
        assert_eq!(Journal::read::<serde_json::Value>(&path).unwrap().len(), 3);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&bytes, old.as_bytes()].concat()).unwrap();
        let error = Journal::read::<serde_json::Value>(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 4, byte {}: ", bytes.len())), "{error}");
        std::fs::write(&path, &bytes).unwrap();
        let error = Journal::read::<BTreeMap<String, String>>(&path).unwrap_err().to_string();
        assert!(error.starts_with("line 1: "), "a line that is no event: {error}");
    }

    #[test]
    fn a_place_is_known_by_its_first_line_and_all_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        let mut lines = journal(&path, Opening::New).unwrap();
        lines.note(&[7u64]).unwrap();
        let first = lines.settle().unwrap();
        assert_eq!((first.lines, first.bytes, first.first), (1, 19, first.hash), "what was noted is durable");
        lines.note(&[8u64, 9]).unwrap();
        let last = lines.settle().unwrap();
        assert_eq!((last.lines, last.bytes, last.first), (3, 57, first.hash));
        assert_eq!(Journal::read_to::<u64>(&path).unwrap(), (vec![7, 8, 9], last));
    }

    #[test]
    fn a_held_journal_is_resumed_by_its_first_event_and_closed_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.journal");
        journal(&path, Opening::New).unwrap().append(&[7u64]).unwrap();
        let mut held = Journal::hold(&path).unwrap().to_open(Opening::Again);
        held.append(&[8u64]).unwrap();
        held.append(&[9u64]).unwrap();
        held.close();
        assert_eq!(held.append(&[10u64]).unwrap_err().kind(), ErrorKind::BrokenPipe);
        journal(&path, Opening::Again).unwrap();
        assert_eq!(Journal::read::<u64>(&path).unwrap(), [7, 8, 9]);
    }
}
