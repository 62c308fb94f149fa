//! An append-only file of JSON lines that each begin with their checksum; what is written stays written.
//! Reading it back gives the same values; a torn last line is cut off. Knows nothing of what a line means.

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::xxh3_64;

use super::tail::{Tail, has_hole};

/// Longest line that is read.
const MOST_BYTES: u64 = 64 << 20;

/// An append-only file of sealed lines, locked while it is open.
#[derive(Debug)]
pub struct SealedLines {
    tail: Tail,
}

impl SealedLines {
    /// Starts a new file. Errors: it exists already, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(SealedLines { tail: Tail::create(path)? })
    }

    /// Resumes a file of `E` after its last whole line, if there is one; what a torn write left is cut off when the next
    /// line comes.
    ///
    /// Errors: `ResourceBusy` where another writer has it; it cannot be written; as [`read`].
    pub fn reopen<E: DeserializeOwned>(path: &Path) -> io::Result<Option<Self>> {
        let Some(mut tail) = Tail::hold(path)? else { return Ok(None) };
        let (_, whole) = read::<E>(&mut BufReader::new(tail.file()))?;
        tail.keep(whole);
        Ok(Some(SealedLines { tail }))
    }

    /// Appends a value, whole or not at all: it outlives this process, not necessarily the machine.
    pub fn append<E: Serialize>(&mut self, value: &E) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.tail.append(format!("{:016x} {text}\n", xxh3_64(text.as_bytes())).as_bytes())
    }

    /// Makes what was appended durable.
    pub fn sync(&self) -> io::Result<()> {
        self.tail.sync()
    }
}

/// Reads all whole lines, and how many bytes they take.
///
/// Errors: unreadable; `InvalidData`, with its number, for a line that is damaged or says what is not understood. Only the
/// last line may be torn: it lacks its line feed, and is left out. A line that a machine crash left unwritten is left out with all
/// that follows: nothing of it was durable.
pub fn read<E: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<(Vec<E>, u64)> {
    let (mut values, mut whole, mut line) = (Vec::new(), 0, Vec::new());
    loop {
        line.clear();
        let bytes = from.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line)? as u64;
        let number = values.len() + 1;
        match opened(&line) {
            _ if bytes == 0 => return Ok((values, whole)),
            Some(text) => {
                let invalid = |e| Error::new(ErrorKind::InvalidData, format!("line {number}: {e}"));
                values.push(serde_json::from_slice(text).map_err(invalid)?);
                whole += bytes;
            }
            None if bytes < MOST_BYTES && (line.last() != Some(&b'\n') || has_hole(&line)) => {
                return Ok((values, whole));
            }
            None => {
                let text = format!("line {number}, byte {whole}: its checksum is another; it was damaged");
                return Err(Error::new(ErrorKind::InvalidData, text));
            }
        }
    }
}

/// The text of a line, if that is whole.
fn opened(line: &[u8]) -> Option<&[u8]> {
    let (seal, text) = line.strip_suffix(b"\n")?.split_at_checked(17)?;
    let seal = seal.strip_suffix(b" ").and_then(|seal| std::str::from_utf8(seal).ok())?;
    (seal.len() == 16 && u64::from_str_radix(seal, 16).ok()? == xxh3_64(text)).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn all(path: &Path) -> io::Result<Vec<u64>> {
        Ok(read(&mut BufReader::new(File::open(path)?))?.0)
    }

    #[test]
    fn values_come_back_torn_tails_do_not_and_damage_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut lines = SealedLines::create(&path).unwrap();
        [1u64, 22, 333].iter().for_each(|value| lines.append(value).unwrap());
        lines.sync().unwrap();
        assert_eq!(SealedLines::reopen::<u64>(&path).unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(lines);
        assert!(SealedLines::create(&path).is_err(), "nothing is overwritten");
        assert_eq!(all(&path).unwrap(), [1, 22, 333]);
        let bytes = std::fs::read(&path).unwrap();
        for cut in 1..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(all(&path).unwrap(), [1, 22, 333][..whole], "cut at {cut}");
            SealedLines::reopen::<u64>(&path).unwrap().unwrap().append(&4u64).unwrap();
            assert_eq!(all(&path).unwrap(), [&[1, 22, 333][..whole], &[4]].concat(), "resumed after {cut}");
        }
        for torn in 1..bytes.len() {
            std::fs::write(&path, &bytes).unwrap();
            let mut lines = SealedLines::reopen::<u64>(&path).unwrap().unwrap();
            std::fs::write(&path, [&bytes[..], &bytes[..torn]].concat()).unwrap();
            lines.append(&4u64).unwrap();
            assert_eq!(all(&path).unwrap(), [1, 22, 333, 4], "after a write that was torn at {torn}");
        }
        for hole in [0..bytes.len() / 3, 20..40, bytes.len() - 30..bytes.len() - 5] {
            let whole = bytes[..hole.start].iter().filter(|byte| **byte == b'\n').count();
            let mut lost = bytes.clone();
            lost[hole].fill(0);
            std::fs::write(&path, lost).unwrap();
            assert_eq!(all(&path).unwrap(), [1, 22, 333][..whole], "the machine crashed");
            SealedLines::reopen::<u64>(&path).unwrap().unwrap().append(&4u64).unwrap();
            assert_eq!(all(&path).unwrap(), [&[1, 22, 333][..whole], &[4]].concat());
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            match all(&path) {
                Ok(values) => assert_eq!(values, [1, 22], "byte {at}: only the last line may be torn"),
                Err(e) => assert!(e.to_string().contains("line "), "{e}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_a_line_is_named_by_its_number_and_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut lines = SealedLines::create(&path).unwrap();
        [1u64, 22, 333].iter().for_each(|value| lines.append(value).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        let error = read::<String>(&mut &bytes[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 1: "), "{error}");
        bytes[20] ^= 1;
        let error = read::<u64>(&mut &bytes[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 2, byte 19: "), "{error}");
        let error = read::<u64>(&mut BufReader::new(io::repeat(b'7'))).unwrap_err().to_string();
        assert!(error.starts_with("line 1, byte 0: "), "a line without an end was not torn: {error}");
    }
}
