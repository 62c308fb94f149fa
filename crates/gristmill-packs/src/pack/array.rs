//! Elements, in order -> one `.npy` file whose length is known last; and what a killed writer left of one.
//! Publishes nothing by itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::layout::DType;
use gristmill_format::{Error as FormatError, Kind};
use gristmill_runtime::error::{Error, Result};

/// Bytes gathered before they are written.
const GATHERED: usize = 1 << 20;

/// A length with as many digits as there may be: room for it is left in the header.
const MOST_ROWS: u64 = 999_999_999_999_999;

/// What the elements of an array are: the first axis grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayKind {
    /// Type of an element.
    pub dtype: DType,
    /// Length of each axis after the first.
    pub row_shape: Vec<u64>,
    /// How the header is worded.
    pub spelling: Spelling,
}

impl ArrayKind {
    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        let elements = self.row_shape.iter().map(|axis| *axis as usize).product::<usize>();
        self.dtype.size() * elements
    }

    /// The header for `rows` rows; as long for every number of them.
    ///
    /// Errors: `Format` for a shape beyond 64 bits.
    pub fn header(&self, rows: u64) -> Result<Vec<u8>> {
        let write = |rows| Header::write(&self.dtype, &[&[rows], &*self.row_shape].concat(), self.spelling);
        // Of large rows fewer than that have 64 bits of bytes.
        let most = MOST_ROWS.min(u64::MAX / self.row_bytes().max(1) as u64);
        let (mut header, longest) = (write(rows)?, write(most)?.len());
        if header.len() < longest {
            // Longer by spaces before the line feed, and a length field that counts them.
            header.resize(longest, b' ');
            let before = if header[6] == 1 { 10 } else { 12 };
            let (text, last) = ((longest - before) as u32, header.iter().rposition(|byte| *byte == b'\n'));
            header[8..before].copy_from_slice(&text.to_le_bytes()[..before - 8]);
            last.into_iter().for_each(|at| header[at] = b' ');
            header[longest - 1] = b'\n';
        }
        Ok(header)
    }
}

/// An array that is being written.
#[derive(Debug)]
pub struct ArrayFile {
    path: PathBuf,
    file: File,
    kind: ArrayKind,
    offset: u64,
    rows: u64,
    /// Bytes of rows that are in the file already.
    written: u64,
    gathered: Vec<u8>,
}

impl ArrayFile {
    /// A new file at `path`, over what was there.
    ///
    /// Errors: `Path`; `Format` for a shape beyond 64 bits.
    pub fn create(path: &Path, kind: ArrayKind) -> Result<Self> {
        let header = kind.header(0)?;
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = opened.and_then(|file| file.write_all_at(&header, 0).map(|()| file));
        let file = file.map_err(|e| Error::path(path, &e))?;
        let (path, offset) = (path.to_owned(), header.len() as u64);
        Ok(ArrayFile { path, file, kind, offset, rows: 0, written: 0, gathered: Vec::new() })
    }

    /// What another writer left at `path`: as many rows as are whole, at most `most`; the rest is cut off. `None` where
    /// nothing is, or less than a header.
    ///
    /// Errors: `Path`; `Format` with the file: `Unsupported` for an array of another kind.
    pub fn recover(path: &Path, kind: ArrayKind, most: u64) -> Result<Option<Self>> {
        let refuse = |e: io::Error| Error::path(path, &e);
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(refuse)?,
        };
        let length = file.metadata().map_err(refuse)?.len();
        let offset = kind.header(0)?.len() as u64;
        if length < offset {
            return Ok(None);
        }
        let mut head = vec![0; offset as usize];
        file.read_exact_at(&mut head, 0).map_err(refuse)?;
        let place = |e: FormatError| e.in_source(path.display().to_string());
        let found = Header::parse(&head).map_err(place)?;
        if found.dtype() != &kind.dtype || found.shape().get(1..) != Some(&*kind.row_shape) {
            let detail = format!("rows of shape {:?}, expected {:?}", found.shape().get(1..), kind.row_shape);
            return Err(place(FormatError::new(Kind::Unsupported, detail)).into());
        }
        let rows = ((length - offset) / kind.row_bytes().max(1) as u64).min(most);
        let written = rows * kind.row_bytes() as u64;
        file.set_len(offset + written).map_err(refuse)?;
        Ok(Some(ArrayFile { path: path.to_owned(), file, kind, offset, rows, written, gathered: Vec::new() }))
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Forgets the rows from `rows` on.
    ///
    /// Errors: `Path`.
    pub fn cut(&mut self, rows: u64) -> Result<()> {
        self.flush()?;
        self.rows = self.rows.min(rows);
        self.written = self.rows * self.kind.row_bytes() as u64;
        self.file.set_len(self.offset + self.written).map_err(|e| Error::path(&self.path, &e))
    }

    /// Appends whole rows, back to back.
    ///
    /// Errors: `Path`.
    pub fn append(&mut self, rows: &[u8]) -> Result<()> {
        self.rows += (rows.len() / self.kind.row_bytes().max(1)) as u64;
        self.gathered.extend_from_slice(rows);
        if self.gathered.len() >= GATHERED { self.flush() } else { Ok(()) }
    }

    /// Gives the system everything that was appended.
    ///
    /// Errors: `Path`.
    pub fn flush(&mut self) -> Result<()> {
        let put = self.file.write_all_at(&self.gathered, self.offset + self.written);
        put.map_err(|e| Error::path(&self.path, &e))?;
        self.written += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }

    /// Says in the header how many rows there are, and makes the file durable. Returns their number.
    ///
    /// Errors: `Path`.
    pub fn complete(&mut self) -> Result<u64> {
        self.flush()?;
        let header = self.kind.header(self.rows)?;
        let put = self.file.write_all_at(&header, 0).and_then(|()| self.file.sync_all());
        put.map_err(|e| Error::path(&self.path, &e))?;
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_format::layout::{Layout, Order, Scalar};

    fn kinds() -> [ArrayKind; 3] {
        let record = Layout::packed(&[("a", Scalar::U8, &[2]), ("b", Scalar::U16, &[])]).unwrap();
        let of = |dtype, row_shape: &[u64], spelling| ArrayKind { dtype, row_shape: row_shape.to_vec(), spelling };
        [
            of(DType::Record(record), &[], Spelling::NumPy),
            of(DType::Scalar(Scalar::U16, Order::Little), &[2], Spelling::Spaced),
            // Its header grows with the digits of the length: 64 bytes and a bit.
            of(DType::Scalar(Scalar::U8, Order::Little), &[4, 1, 1, 1, 1], Spelling::Spaced),
        ]
    }

    #[test]
    fn rows_may_be_as_large_as_vectors_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for numbers in [4611, 4612, 1 << 20] {
            let dtype = DType::Scalar(Scalar::F32, Order::Little);
            let kind = ArrayKind { dtype, row_shape: vec![numbers], spelling: Spelling::Spaced };
            assert_eq!(kind.header(0).unwrap().len(), kind.header(1_000_000).unwrap().len());
            let mut file = ArrayFile::create(&path, kind).unwrap();
            file.append(&vec![1; 2 * 4 * numbers as usize]).unwrap();
            file.complete().unwrap();
            let header = Header::read(&*std::fs::read(&path).unwrap()).unwrap();
            assert_eq!(header.shape(), [2, numbers]);
        }
    }

    #[test]
    fn files_of_any_length_are_read_back_and_killed_writers_lose_a_torn_row_only() {
        for kind in kinds() {
            for rows in [0u64, 3, 300_000] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("a.npy");
                let bytes: Vec<u8> = (0..rows * 4).map(|i| i as u8).collect();
                let mut file = ArrayFile::create(&path, kind.clone()).unwrap();
                bytes.chunks(4 * 1000).for_each(|some| file.append(some).unwrap());
                assert_eq!(file.complete().unwrap(), rows);
                let whole = std::fs::read(&path).unwrap();
                let header = Header::read(&whole[..]).unwrap();
                assert_eq!((header.shape()[0], header.dtype()), (rows, &kind.dtype));
                assert_eq!(whole[header.data_offset() as usize..], bytes);

                let torn = [&kind.header(0).unwrap()[..], &bytes, &[7; 3]].concat();
                std::fs::write(&path, torn).unwrap();
                let mut left = ArrayFile::recover(&path, kind.clone(), u64::MAX).unwrap().unwrap();
                assert_eq!(left.rows(), rows);
                left.append(&[9; 4]).unwrap();
                left.cut(rows).unwrap();
                left.append(&[1, 2, 3, 4]).unwrap();
                left.complete().unwrap();
                let again = std::fs::read(&path).unwrap();
                assert_eq!(again[whole.len()..], [1, 2, 3, 4]);
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npy");
            assert!(ArrayFile::recover(&path, kind.clone(), 5).unwrap().is_none());
            ArrayFile::create(&path, kind.clone()).unwrap();
            let other = ArrayKind { row_shape: vec![5], ..kind };
            assert!(ArrayFile::recover(&path, other, 5).is_err());
        }
    }
}
