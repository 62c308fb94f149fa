//! Reads numbers from a slice, one after the other; never reads past its end.

use gristmill_bytes::error::{Error, Kind, Result};

/// Bytes and how far they were read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the bytes lie in the game.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor::within(bytes, 0)
    }

    /// Bytes that lie in the game from byte `base` on.
    pub(super) fn within(bytes: &'a [u8], base: usize) -> Self {
        Cursor { bytes, at: 0, base }
    }

    /// The byte of the game that is read next.
    pub(super) fn at(&self) -> usize {
        self.base + self.at
    }

    /// Whether everything was read.
    pub(super) fn is_over(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let Some(taken) = self.bytes[self.at..].get(..n) else { return Err(self.ends(n)) };
        self.at += n;
        Ok(taken)
    }

    #[inline]
    fn some<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some(taken) = self.bytes[self.at..].first_chunk() else { return Err(self.ends(N)) };
        self.at += N;
        Ok(*taken)
    }

    #[cold]
    fn ends(&self, n: usize) -> Error {
        let rest = self.bytes.len() - self.at;
        let detail = format!("a packed game ends inside a field: {n} bytes expected, {rest} there");
        Error::new(Kind::Truncated, detail).at_byte(self.at() as u64)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8> {
        self.some::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.some().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32> {
        self.some().map(u32::from_le_bytes)
    }

    /// A number of 7 bits a byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u32> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            let part = u32::from(byte & 0x7f);
            if shift == 28 && part > 0xf {
                break;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::new(Kind::Corrupt, "a number of more than 32 bits in a packed game").at_byte(self.at() as u64))
    }
}

/// Writes a number as [`Cursor::varint`] reads it.
pub(super) fn put_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back_and_longer_ones_are_refused() {
        for value in (0..32).flat_map(|bits| [1u32 << bits, (1 << bits) - 1]).chain([u32::MAX]) {
            let mut bytes = Vec::new();
            put_varint(value, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!((cursor.varint().unwrap(), cursor.is_over()), (value, true));
            assert_eq!(Cursor::new(&bytes[..bytes.len() - 1]).varint().unwrap_err().kind(), Kind::Truncated);
        }
        for bytes in [[0xff, 0xff, 0xff, 0xff, 0x10], [0xff; 5]] {
            assert_eq!(Cursor::new(&bytes).varint().unwrap_err().kind(), Kind::Corrupt);
        }
    }
}
