//! One tensor of a batch -> one `.npy` file (format 1.0), published by rename.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use gristmill_format::layout::{Order, Scalar};

use crate::error::{Error, Result};

/// The header of an array: magic, version, length, description, padded so that the data is 64-byte aligned.
fn header(dtype: Scalar, shape: &[usize]) -> Vec<u8> {
    let axes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let descr = dtype.type_str(Order::Little);
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", axes.trim_end());
    let padded = (10 + text.len() + 1).next_multiple_of(64);
    text.push_str(&" ".repeat(padded - 10 - text.len() - 1));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

/// Writes a row-major little-endian array as `folder/name`.
///
/// Errors: `Path`.
pub(super) fn write(folder: &Path, name: &str, dtype: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    let hidden = folder.join(format!(".{name}.part"));
    let write = || {
        let mut file = BufWriter::new(File::create(&hidden)?);
        file.write_all(&header(dtype, shape))?;
        file.write_all(bytes)?;
        file.into_inner()?.sync_all()?;
        fs::rename(&hidden, &path)
    };
    write().map_err(|e: std::io::Error| {
        // What is left of a failed write is ours alone.
        let _ = fs::remove_file(&hidden);
        Error::path(path, &e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_numpys() {
        for shape in [&[][..], &[3], &[2, 112, 8, 8]] {
            let header = header(Scalar::F32, shape);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(usize::from(header[8]) + 256 * usize::from(header[9]) + 10, header.len());
            assert!(header.ends_with(b"\n"));
        }
        let text = String::from_utf8_lossy(&header(Scalar::F32, &[3])[10..]).into_owned();
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"), "{text}");
    }
}
