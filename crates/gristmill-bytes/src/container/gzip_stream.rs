//! Gzip bytes -> the bytes inside, piece by piece: for what is too long to be inflated whole.
//! Takes and refuses the same files as [`super::gzip`]: every member, checksums verified, plain bytes as they are; bytes
//! after the last member are left to the caller. Holds one block of input, whatever the file says.

use std::fmt;
use std::sync::Arc;

use flate2::{Decompress, FlushDecompress, Status};

use super::gzip::MAGIC;
use super::tar::set_in;
use crate::error::{Error, Kind, Result};
use crate::source::ReadAt;

/// Bytes of input read at a time.
const BLOCK: usize = 256 << 10;

/// A gzip file that is being inflated.
pub struct GzipStream {
    from: Arc<dyn ReadAt>,
    /// Room for input; `at..until` of it is still to be inflated.
    block: Vec<u8>,
    at: usize,
    until: usize,
    /// Byte of the file up to which it was read.
    end: u64,
    state: State,
}

enum State {
    /// Nothing was read yet.
    Start,
    /// Within a member.
    Member(Decompress),
    /// No gzip at all.
    Plain,
    /// Everything was delivered, or refused.
    Over,
}

impl fmt::Debug for GzipStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GzipStream(at byte {})", self.position())
    }
}

impl GzipStream {
    /// Starts at the first byte of `from`; reads nothing yet.
    pub fn new(from: Arc<dyn ReadAt>) -> Self {
        GzipStream { from, block: Vec::new(), at: 0, until: 0, end: 0, state: State::Start }
    }

    /// Byte of the file up to which it is inflated.
    pub fn position(&self) -> u64 {
        self.end - (self.until - self.at) as u64
    }

    /// Appends to `out` until its capacity is used up or there is no more; `false` when that was the end of the file.
    ///
    /// Errors, with the byte of the file: `Empty`, `Truncated`, `Corrupt`, `Io`. After an error there is no more.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let filled = self.inflate(out);
        if filled.is_err() {
            self.state = State::Over;
        }
        filled
    }

    /// After the end: the first byte after the last member that is not zero.
    ///
    /// Errors: `Io`.
    pub fn behind(&mut self) -> Result<Option<u64>> {
        loop {
            let at = self.position();
            if let Some(set) = set_in(&self.block[self.at..self.until]) {
                return Ok(Some(at + set as u64));
            }
            self.at = self.until;
            if !self.have(1)? {
                return Ok(None);
            }
        }
    }

    fn inflate(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        while out.len() < out.capacity() {
            let more = self.have(1)?;
            let input = &self.block[self.at..self.until];
            match &mut self.state {
                State::Start if !more => {
                    return Err(Error::new(Kind::Empty, "expected gzip data, found no bytes").at_byte(0));
                }
                State::Start => {
                    let gzip = self.have(MAGIC.len())? && self.block[self.at..self.until].starts_with(&MAGIC);
                    self.state = if gzip { State::member() } else { State::Plain };
                }
                State::Plain if !more => self.state = State::Over,
                State::Plain => {
                    let n = input.len().min(out.capacity() - out.len());
                    out.extend_from_slice(&input[..n]);
                    self.at += n;
                }
                State::Member(member) => {
                    let (read, written) = (member.total_in(), out.len());
                    let verdict = member.decompress_vec(input, out, FlushDecompress::None);
                    let taken = (member.total_in() - read) as usize;
                    self.at += taken;
                    match verdict {
                        Ok(Status::StreamEnd) => {
                            let next = self.have(MAGIC.len())? && self.block[self.at..self.until].starts_with(&MAGIC);
                            self.state = if next { State::member() } else { State::Over };
                        }
                        Ok(_) if taken > 0 || out.len() > written => {}
                        Ok(_) if more => return Err(self.corrupt("it leads nowhere")),
                        // Asked without input, since output may have been pending.
                        Ok(_) => {
                            let detail = "the gzip data ends before its last member does";
                            return Err(Error::new(Kind::Truncated, detail).at_byte(self.end));
                        }
                        Err(e) => return Err(self.corrupt(&e.to_string())),
                    }
                }
                State::Over => return Ok(false),
            }
        }
        Ok(true)
    }

    fn corrupt(&self, why: &str) -> Error {
        Error::new(Kind::Corrupt, format!("damaged gzip data: {why}")).at_byte(self.position())
    }

    /// Reads on until `n` bytes of input wait in the block; `false` when the file ends before.
    fn have(&mut self, n: usize) -> Result<bool> {
        while self.until - self.at < n {
            self.block.resize(BLOCK, 0);
            self.block.copy_within(self.at..self.until, 0);
            (self.at, self.until) = (0, self.until - self.at);
            let read = self.from.read_at(self.end, &mut self.block[self.until..])?;
            self.until += read;
            self.end += read as u64;
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl State {
    fn member() -> Self {
        State::Member(Decompress::new_gzip(15))
    }
}
