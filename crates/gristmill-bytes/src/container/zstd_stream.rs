//! Zstandard streams -> the bytes inside, piece by piece: for what is too long to be decompressed whole.
//! Takes and refuses the same files as [`super::zstd`]; holds one block of input and the window of a frame.

use std::fmt;
use std::sync::Arc;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::zstd::{WINDOW_LOG, corrupt};
use crate::error::{Error, Kind, Result};
use crate::source::ReadAt;

/// Bytes of input read at a time.
const BLOCK: usize = 256 << 10;

/// A Zstandard file that is being decompressed.
pub struct ZstdStream {
    from: Arc<dyn ReadAt>,
    decoder: Decoder<'static>,
    /// Input; `at..until` of it is still to be decompressed.
    block: Vec<u8>,
    at: usize,
    until: usize,
    /// Byte of the file up to which it was read.
    end: u64,
    /// Whether a frame has begun that has not ended.
    within: bool,
    over: bool,
}

impl fmt::Debug for ZstdStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZstdStream(at byte {})", self.end)
    }
}

impl ZstdStream {
    /// Starts at the first byte of `from`; reads nothing yet.
    ///
    /// Errors: `Io` where there is no memory.
    pub fn new(from: Arc<dyn ReadAt>) -> Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(ZstdStream { from, decoder, block: vec![0; BLOCK], at: 0, until: 0, end: 0, within: false, over: false })
    }

    /// Appends to `out` until its capacity is used up or there is no more; `false` when that was the end of the file.
    ///
    /// Errors, with the byte of the file: `Empty`, `Truncated`, `Corrupt`, `Io`. After an error there is no more.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let filled = self.decompress(out);
        self.over |= filled.is_err();
        filled
    }

    fn decompress(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let mut written = out.len();
        out.resize(out.capacity(), 0);
        let done = self.run(out, &mut written);
        out.truncate(written);
        done
    }

    /// Decompresses after the first `written` bytes of `out`.
    fn run(&mut self, out: &mut [u8], written: &mut usize) -> Result<bool> {
        while !self.over && *written < out.len() {
            let more = self.have_input()?;
            if !more && !self.within {
                if self.end == 0 {
                    return Err(Error::new(Kind::Empty, "expected a Zstandard frame, found nothing").at_byte(0));
                }
                self.over = true;
                break;
            }
            let mut from = InBuffer::around(&self.block[self.at..self.until]);
            let mut to = OutBuffer::around(&mut out[*written..]);
            let run = self.decoder.run(&mut from, &mut to);
            let (taken, given) = (from.pos(), to.pos());
            self.at += taken;
            *written += given;
            let hint = run.map_err(|e| corrupt(&e, self.position()))?;
            self.within = hint != 0;
            if hint == 0 {
                self.decoder.reinit()?;
            } else if !more && given == 0 {
                let detail = "the stream ends inside a frame";
                return Err(Error::new(Kind::Truncated, detail).at_byte(self.end));
            }
        }
        Ok(!self.over)
    }

    fn position(&self) -> usize {
        usize::try_from(self.end).unwrap_or(usize::MAX) - (self.until - self.at)
    }

    /// Whether input waits; reads on where none does.
    fn have_input(&mut self) -> Result<bool> {
        if self.at == self.until {
            let read = self.from.read_at(self.end, &mut self.block)?;
            (self.at, self.until) = (0, read);
            self.end += read as u64;
        }
        Ok(self.at < self.until)
    }
}
