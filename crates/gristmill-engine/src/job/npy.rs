//! One tensor of a batch -> one `.npy` file (format 1.0), published by rename.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::layout::{DType, Order, Scalar};

use crate::error::{Error, Result};

/// Writes a row-major little-endian array as `folder/name`.
///
/// Errors: `Path`; `Format` for a shape beyond 64 bits.
pub(super) fn write(folder: &Path, name: &str, dtype: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let axes: Vec<u64> = shape.iter().map(|&axis| axis as u64).collect();
    let header = Header::write(&DType::Scalar(dtype, Order::Little), &axes, Spelling::NumPy)?;
    let path = folder.join(name);
    let hidden = folder.join(format!(".{name}.part"));
    let write = || {
        let mut file = BufWriter::new(File::create(&hidden)?);
        file.write_all(&header)?;
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
    fn what_is_written_is_read_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "x.npy", Scalar::U8, &[2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let bytes = fs::read(folder.path().join("x.npy")).unwrap();
        let header = Header::read(&bytes[..]).unwrap();
        assert_eq!((header.shape(), &bytes[header.data_offset() as usize..]), (&[2, 3][..], &[1, 2, 3, 4, 5, 6][..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
