//! Element type and shape -> the header of a `.npy` file, in the spelling of a given writer, byte for byte.

use super::{Header, MAGIC, data_bytes};
use crate::error::{Error, Kind, Result};
use crate::layout::{DType, Layout, Scalar};

/// The data starts at a multiple of this.
const ALIGN: usize = 64;

/// Digits of a length that NumPy leaves room for, so that a file can grow in place.
const NUMPY_DIGITS: usize = 21;

/// Digits of a length that [`Spelling::Reserved`] leaves room for.
const RESERVED_DIGITS: usize = 19;

/// How a header is worded. The meaning is the same; readers of all of them take the data offset from the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// As `numpy.save` writes it, to the byte; the header is as long for every number of rows.
    NumPy,
    /// As streaming writers of existing packs: `('a', '<u1'), ], … 'shape': (N,), }`, with room for 19 digits of N,
    /// so that the header is as long for every number of rows. One axis only.
    Reserved,
    /// As writers of existing packs that know the length beforehand: `('a', '|u1'), ], … 'shape': (N, ), }`.
    Spaced,
}

impl Header {
    /// The header of an array in C order, and its bytes.
    ///
    /// Errors: `TooLarge` for a shape beyond 64 bits; `Unsupported` for what a spelling has no words for
    /// ([`Spelling::Reserved`] with other than one axis or more than 19 digits).
    pub fn write(dtype: &DType, shape: &[u64], spelling: Spelling) -> Result<Vec<u8>> {
        data_bytes(dtype, shape)?;
        let (text, padded) = match spelling {
            Spelling::NumPy => numpy(dtype, shape),
            Spelling::Reserved => reserved(dtype, shape)?,
            Spelling::Spaced => {
                let axes: String = shape.iter().map(|n| format!("{n}, ")).collect();
                let text = text(&listed(dtype, "|"), &axes);
                let padded = text.len() + 1;
                (text, padded)
            }
        };
        framed(text, padded, spelling)
    }
}

fn text(descr: &str, axes: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({axes}), }}")
}

/// The text, and the length that is rounded up to the alignment.
fn numpy(dtype: &DType, shape: &[u64]) -> (String, usize) {
    let axes = match shape {
        [only] => format!("{only},"),
        axes => axes.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let text = text(&dtype.to_descr(), &axes);
    let room = shape.first().map_or(0, |n| NUMPY_DIGITS - n.to_string().len());
    // NumPy pads by one byte at least, its line feed not counted.
    let padded = text.len() + room + 2;
    (text, padded)
}

fn reserved(dtype: &DType, shape: &[u64]) -> Result<(String, usize)> {
    let digits = match shape {
        [only] => only.to_string(),
        _ => return Err(Error::new(Kind::Unsupported, "this spelling has one axis")),
    };
    let room = RESERVED_DIGITS.checked_sub(digits.len());
    let room = room.ok_or_else(|| Error::new(Kind::Unsupported, format!("{digits} rows: more than 19 digits")))?;
    let text = text(&listed(dtype, "<"), &format!("{digits},"));
    let padded = text.len() + room + 1;
    Ok((text, padded))
}

/// A `descr` with `, ` after each field and `mark` before the code of one-byte types.
fn listed(dtype: &DType, mark: &str) -> String {
    let descr = dtype.to_descr();
    let DType::Record(layout) = dtype else { return descr };
    let descr = descr.trim_end_matches(']').to_owned() + ", ]";
    if one_byte_numbers(layout) { descr.replace("'|u1'", &format!("'{mark}u1'")) } else { descr }
}

/// Whether `'|u1'` in the description can only be a code, never a name.
fn one_byte_numbers(layout: &Layout) -> bool {
    let byte = |dtype: &DType| matches!(dtype, DType::Scalar(Scalar::U8, _));
    layout.fields().iter().any(|field| byte(&field.dtype)) && layout.field("|u1").is_none()
}

/// Magic, version and length around the text, which is padded with spaces to the alignment and ends in a line feed.
fn framed(text: String, padded: usize, spelling: Spelling) -> Result<Vec<u8>> {
    let version = if text.is_ascii() { 1 } else { 3 };
    let total = |before: usize| (before + padded).next_multiple_of(ALIGN) - before;
    let (version, before) = if version == 1 && total(10) <= usize::from(u16::MAX) {
        (1, 10)
    } else if spelling == Spelling::Reserved {
        return Err(Error::new(Kind::Unsupported, "this spelling knows version 1.0 of the format only"));
    } else {
        (version.max(2), 12)
    };
    let len = u32::try_from(total(before)).map_err(|_| Error::new(Kind::TooLarge, "a header beyond 32 bits"))?;
    let mut out = Vec::with_capacity(before + len as usize);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[version, 0]);
    out.extend_from_slice(&len.to_le_bytes()[..before - 8]);
    out.extend_from_slice(text.as_bytes());
    out.resize(before + len as usize - 1, b' ');
    out.push(b'\n');
    Ok(out)
}
