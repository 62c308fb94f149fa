//! The header of a `.npy` file <-> element type, order and shape, and where the data starts.
//! Reads every version of the format; writes NumPy's own spelling and two that other writers of packs use.
//! Trusts no shape: products are checked and compared with what is there. Evaluates nothing.

mod parse;
mod write;

pub use write::Spelling;

use crate::error::{Error, Kind, Result};
use crate::layout::DType;
use crate::source::ReadAt;

/// The first six bytes of every `.npy` file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header text that is read; thousands of fields fit, a damaged length does not.
pub const MAX_HEADER: usize = 1 << 20;

/// Maximum number of axes of an array, as in NumPy.
const MAX_AXES: usize = 64;

/// What a `.npy` file says about its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    dtype: DType,
    fortran_order: bool,
    shape: Vec<u64>,
    data_offset: u64,
    data_bytes: u64,
}

impl Header {
    /// Parses the header at the start of `head`, which must hold all of it ([`MAX_HEADER`] + 12 bytes always do).
    ///
    /// Errors, with the byte: `Corrupt`, `Truncated` where `head` ends within the header, `UnknownVersion`,
    /// `Unsupported` for object types, `TooLarge` for a header beyond [`MAX_HEADER`] or a shape beyond 64 bits.
    pub fn parse(head: &[u8]) -> Result<Self> {
        parse::header(head)
    }

    /// Reads the header of a file, and compares the size of the array with what follows it.
    ///
    /// Errors: as [`Header::parse`]; `Truncated` when the file ends before the data does.
    pub fn read(from: &(impl ReadAt + ?Sized)) -> Result<Self> {
        let header = parse::read(from)?;
        let there = from.len()?.saturating_sub(header.data_offset);
        if there < header.data_bytes {
            let detail = format!(
                "the header says shape {:?}, {} bytes of data, but {there} follow it",
                header.shape, header.data_bytes
            );
            return Err(Error::new(Kind::Truncated, detail).at_byte(header.data_offset));
        }
        Ok(header)
    }

    /// Type of an element.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// Whether the first axis varies fastest.
    pub fn fortran_order(&self) -> bool {
        self.fortran_order
    }

    /// Length of each axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Byte of the file at which the data starts. Differs between writers: never assume it.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// Bytes of data that the shape stands for.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }
}

/// What a `.npy` file of Python objects says: a pickle of the array follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHeader {
    /// Length of each axis.
    pub shape: Vec<u64>,
    /// Byte at which the pickle starts.
    pub data_offset: u64,
}

impl ObjectHeader {
    /// Parses the header at the start of `head`, if its elements are Python objects; `None` where they are not.
    ///
    /// Errors: as [`Header::parse`].
    pub fn parse(head: &[u8]) -> Result<Option<Self>> {
        match parse::parsed(head)? {
            parse::Parsed::Objects(header, _) => Ok(Some(header)),
            parse::Parsed::Plain(_) => Ok(None),
        }
    }
}

/// Bytes of an array of this element type and shape.
fn data_bytes(dtype: &DType, shape: &[u64]) -> Result<u64> {
    // An axis of length 0 makes the array empty, whatever the others say.
    let elements =
        if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1u64, |n, &axis| n.checked_mul(axis)) };
    elements
        .and_then(|n| n.checked_mul(dtype.size() as u64))
        .ok_or_else(|| Error::new(Kind::TooLarge, format!("shape {shape:?} stands for more bytes than 64 bits count")))
}

#[cfg(test)]
mod tests;
