//! One tensor of a batch -> one `.npy` file (format 1.0), published by rename.

use std::path::Path;

use gristmill_engine::error::Result;
use gristmill_engine::store::publish;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::layout::{DType, Order, Scalar};

/// Writes a row-major little-endian array as `folder/name`.
///
/// Errors: `Path`; `Format` for a shape beyond 64 bits.
pub(super) fn write(folder: &Path, name: &str, dtype: Scalar, shape: &[usize], bytes: &[u8]) -> Result<()> {
    let axes: Vec<u64> = shape.iter().map(|&axis| axis as u64).collect();
    let header = Header::write(&DType::Scalar(dtype, Order::Little), &axes, Spelling::NumPy)?;
    publish::write_whole(&folder.join(name), &[&header, bytes])
}

#[cfg(test)]
mod tests {
    use std::fs;

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
