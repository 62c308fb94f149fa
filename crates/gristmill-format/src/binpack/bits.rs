//! Bytes <-> numbers of some bits each, from the highest bit of a byte down.
//! Never reads past the end: a read beyond it is refused with its byte.

use gristmill_bytes::error::{Error, Kind, Result};

/// Bits that are read.
#[derive(Debug, Clone)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// Bits that were read.
    at: usize,
}

impl<'a> Bits<'a> {
    /// The bits of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Bits { bytes, at: 0 }
    }

    /// The next `n` bits, at most 16.
    ///
    /// Errors: `Truncated` with the byte, from the first of these bytes on.
    pub fn take(&mut self, n: u32) -> Result<u32> {
        let first = self.at / 8;
        let window = match self.bytes.get(first..).and_then(<[u8]>::first_chunk::<4>) {
            Some(four) => u32::from_be_bytes(*four),
            None => {
                if self.at + n as usize > self.bytes.len() * 8 {
                    let detail = "the moves end before the number of plies is reached";
                    return Err(Error::new(Kind::Truncated, detail).at_byte(self.bytes.len() as u64));
                }
                let byte = |i: usize| u32::from(self.bytes.get(first + i).copied().unwrap_or(0)) << (24 - 8 * i);
                (0..4).map(byte).sum()
            }
        };
        let shifted = window << (self.at % 8);
        self.at += n as usize;
        Ok(if n == 0 { 0 } else { shifted >> (32 - n) })
    }

    /// Bytes that were begun.
    pub fn bytes(&self) -> usize {
        self.at.div_ceil(8)
    }
}

/// Adds numbers of some bits to bytes.
#[derive(Debug, Default, Clone)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are free.
    free: u32,
}

impl BitWriter {
    /// Adds the low `n` bits of `value`, at most 16.
    pub fn put(&mut self, value: u32, n: u32) {
        for i in (0..n).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> i & 1) as u8) << self.free;
            }
        }
    }

    /// The bytes so far, the last one padded by zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins again.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.free = 0;
    }
}

/// Bits that tell `n` things apart.
pub fn width(n: u32) -> u32 {
    u32::BITS - n.saturating_sub(1).leading_zeros()
}
