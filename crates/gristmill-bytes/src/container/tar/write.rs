//! Members -> tar bytes: plain ustar headers without owner or time, so that the same members give the same bytes.
//! Long names get a pax header; nothing is ever sought or patched.

use std::io::Write;

use super::BLOCK;
use super::header::Block;
use crate::error::{Error, Kind, Result};

/// Maximum number of bytes that a ustar size field can say.
const MAX_SIZE: u64 = 0o77_777_777_777;

/// Writes a tar into `to`, front to back.
#[derive(Debug)]
pub struct TarWriter<W: Write> {
    to: W,
    written: u64,
}

impl<W: Write> TarWriter<W> {
    /// A writer at the start of `to`.
    pub fn new(to: W) -> Self {
        TarWriter { to, written: 0 }
    }

    /// Adds a regular file and returns the offset of its payload.
    ///
    /// Errors: `Io`; `TooLarge` beyond 8 GiB; `OutOfRange` for an empty name or one with a NUL.
    pub fn append(&mut self, name: &str, payload: &[u8]) -> Result<u64> {
        self.member(name, b'0', payload)
    }

    /// Adds a directory; the name gets its final `/` if it lacks one.
    ///
    /// Errors: as [`TarWriter::append`].
    pub fn directory(&mut self, name: &str) -> Result<()> {
        let slash = if name.ends_with('/') { "" } else { "/" };
        self.member(&format!("{name}{slash}"), b'5', &[]).map(drop)
    }

    /// Writes the end mark (two zero blocks) and gives the writer back.
    ///
    /// Errors: `Io`.
    pub fn finish(mut self) -> Result<W> {
        self.to.write_all(&[0; 2 * BLOCK as usize])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn member(&mut self, name: &str, kind: u8, payload: &[u8]) -> Result<u64> {
        if name.is_empty() || name.contains('\0') {
            return Err(Error::new(Kind::OutOfRange, format!("a tar member cannot be called {name:?}")));
        }
        let size = payload.len() as u64;
        if size > MAX_SIZE {
            return Err(Error::new(Kind::TooLarge, format!("{size} bytes in one tar member; at most {MAX_SIZE}")));
        }
        let (prefix, own) = match split(name) {
            Some(parts) => parts,
            None => {
                self.block(&header("", "pax", b'x', pax_path(name).len() as u64))?;
                self.payload(pax_path(name).as_bytes())?;
                ("", tail(name))
            }
        };
        self.block(&header(prefix, own, kind, size))?;
        let offset = self.written;
        self.payload(payload)?;
        Ok(offset)
    }

    fn block(&mut self, block: &Block) -> Result<()> {
        self.to.write_all(block)?;
        self.written += BLOCK;
        Ok(())
    }

    fn payload(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes)?;
        let padded = bytes.len().next_multiple_of(BLOCK as usize);
        self.to.write_all(&[0; BLOCK as usize][..padded - bytes.len()])?;
        self.written += padded as u64;
        Ok(())
    }
}

/// The prefix and name fields; `None` when the name fits no split.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= 100 {
        return Some(("", name));
    }
    name.match_indices('/')
        .map(|(i, _)| (&name[..i], &name[i + 1..]))
        .find(|(prefix, own)| (1..=155).contains(&prefix.len()) && (1..=100).contains(&own.len()))
}

/// As much of the end of a long name as the header holds, for readers that pass over pax headers.
fn tail(name: &str) -> &str {
    let start = (name.len() - 100..name.len()).find(|&i| name.is_char_boundary(i)).unwrap_or(name.len());
    &name[start..]
}

/// A pax record counts its own length digits.
fn pax_path(name: &str) -> String {
    let rest = " path=\n".len() + name.len();
    let mut len = rest + 1;
    while len != rest + len.to_string().len() {
        len = rest + len.to_string().len();
    }
    format!("{len} path={name}\n")
}

fn header(prefix: &str, name: &str, kind: u8, size: u64) -> Block {
    let mut block = [0; BLOCK as usize];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}
