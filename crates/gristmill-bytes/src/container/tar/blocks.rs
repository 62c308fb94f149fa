//! Where a walk over a tar gets its blocks from: a file in windows, or bytes in memory as they lie.
//! Reads front to back; judges nothing.

use super::BLOCK;
use super::header::Block;
use crate::error::{Error, Kind, Result};
use crate::source::{ReadAt, Span, read_full, read_span};

/// The bytes of a tar, read at growing offsets.
pub trait Blocks {
    /// Where they end; `u64::MAX` as long as that is not known.
    fn end(&self) -> u64;

    /// The block at `at`; `None` where the bytes end before it does.
    fn block(&mut self, at: u64) -> Result<Option<Block>>;

    /// Replaces `to` by `len` bytes at `at`, which the caller has bounded.
    ///
    /// Errors: `Truncated` where they are not there; `Io`.
    fn read(&mut self, at: u64, len: u64, to: &mut Vec<u8>) -> Result<()>;

    /// The first byte from `at` on that is not zero; `None` where all are, to the end.
    fn first_set(&mut self, at: u64) -> Result<Option<u64>>;
}

/// Place of the first byte that is not zero.
pub fn set_in(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<16>();
    let zeros = 16 * words.iter().take_while(|word| **word == [0; 16]).count();
    bytes[zeros..].iter().position(|byte| *byte != 0).map(|at| zeros + at)
}

/// A file, read in windows of `size` bytes.
pub struct Windows<'a, R: ?Sized> {
    from: &'a R,
    end: u64,
    size: usize,
    start: u64,
    held: Vec<u8>,
}

impl<'a, R: ReadAt + ?Sized> Windows<'a, R> {
    /// Reads `size` bytes of `from`, from its start.
    pub fn new(from: &'a R, size: usize) -> Result<Self> {
        Ok(Windows { from, end: from.len()?, size, start: 0, held: Vec::new() })
    }

    fn held(&self, at: u64) -> Option<Block> {
        let from = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.held.get(from..)?.first_chunk().copied()
    }
}

impl<R: ReadAt + ?Sized> Blocks for Windows<'_, R> {
    fn end(&self) -> u64 {
        self.end
    }

    fn block(&mut self, at: u64) -> Result<Option<Block>> {
        if at.checked_add(BLOCK).is_none_or(|last| last > self.end) {
            return Ok(None);
        }
        if let Some(block) = self.held(at) {
            return Ok(Some(block));
        }
        self.start = at;
        self.held.resize(self.size, 0);
        let filled = read_full(self.from, at, &mut self.held)?;
        self.held.truncate(filled);
        Ok(self.held(at))
    }

    fn read(&mut self, at: u64, len: u64, to: &mut Vec<u8>) -> Result<()> {
        read_span(self.from, Span { offset: at, len }, len, to)
    }

    fn first_set(&mut self, mut at: u64) -> Result<Option<u64>> {
        let mut window = vec![0; self.size];
        loop {
            let read = self.from.read_at(at, &mut window)?;
            match set_in(&window[..read]) {
                Some(set) => return Ok(Some(at + set as u64)),
                None if read == 0 => return Ok(None),
                None => at += read as u64,
            }
        }
    }
}

/// Bytes in memory: those of a tar from `base` on.
pub struct Held<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Where they begin in the file.
    pub base: u64,
}

impl<'a> Held<'a> {
    /// `len` bytes at `at`, as they lie.
    ///
    /// Errors: `Truncated` where they are not there.
    pub fn payload(&self, at: u64, len: u64) -> Result<&'a [u8]> {
        let start = at.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        let range = start.zip(usize::try_from(len).ok()).and_then(|(start, len)| Some(start..start.checked_add(len)?));
        range.and_then(|range| self.bytes.get(range)).ok_or_else(|| cut(len, self.end()).at_byte(at))
    }
}

impl Blocks for Held<'_> {
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn block(&mut self, at: u64) -> Result<Option<Block>> {
        let start = at.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        Ok(start.and_then(|start| self.bytes.get(start..)).and_then(|rest| rest.first_chunk().copied()))
    }

    fn read(&mut self, at: u64, len: u64, to: &mut Vec<u8>) -> Result<()> {
        to.clear();
        to.extend_from_slice(self.payload(at, len)?);
        Ok(())
    }

    fn first_set(&mut self, at: u64) -> Result<Option<u64>> {
        let start = at.checked_sub(self.base).and_then(|start| usize::try_from(start).ok());
        let rest = start.and_then(|start| self.bytes.get(start..)).unwrap_or_default();
        Ok(set_in(rest).map(|set| at + set as u64))
    }
}

/// The refusal of `len` bytes that are not there.
pub fn cut(len: u64, end: u64) -> Error {
    Error::new(Kind::Truncated, format!("a member of {len} bytes, but the tar ends at {end}"))
}
