//! Arrays, front to back -> the bytes of an `.npz`. Streams: no array is held, and none is looked back at.
//! Members have no time of their own, so that the same arrays give the same bytes.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::path::{EntryPath, ZipFilePath};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::npy::{Header, MAGIC, Spelling};
use crate::error::{Error, Kind, Result};
use crate::layout::DType;

/// An `.npz` that is being written.
#[derive(Debug)]
pub struct NpzWriter<W: Write> {
    archive: ZipArchiveWriter<W>,
    level: u32,
}

/// What fills an array: is given where its bytes go.
pub type Fill<'a> = dyn FnMut(&mut dyn Write) -> Result<()> + 'a;

impl<W: Write> NpzWriter<W> {
    /// An empty one; arrays are stored as they are (`level` 0) or deflated (1 to 9).
    pub fn new(to: W, level: u32) -> Self {
        NpzWriter { archive: ZipArchiveWriter::new(to), level: level.min(9) }
    }

    /// Adds an array in C order, whose bytes `fill` writes.
    ///
    /// Errors: `TooLarge` for a shape beyond 64 bits, `WrongSize` where other than its bytes were written; `Unsupported` for a
    /// name that no archive keeps; `Io`; what `fill` says.
    pub fn array(&mut self, name: &str, dtype: &DType, shape: &[u64], fill: &mut Fill<'_>) -> Result<()> {
        let header = Header::write(dtype, shape, Spelling::NumPy)?;
        let bytes = Header::parse(&header)?.data_bytes();
        self.member(name, &header, Some(bytes), fill)
    }

    /// Adds an array of Python objects, whose pickle `fill` writes: NumPy reads it with `allow_pickle=True` only.
    ///
    /// Errors: as [`NpzWriter::array`].
    pub fn objects(&mut self, name: &str, len: u64, fill: &mut Fill<'_>) -> Result<()> {
        let text = format!("{{'descr': '|O', 'fortran_order': False, 'shape': ({len},), }}");
        // Magic, version and length take 10 bytes; the text is filled up with blanks and a line end.
        let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
        let mut header = MAGIC.to_vec();
        header.extend([1, 0]);
        header.extend(u16::try_from(padded).unwrap_or(u16::MAX).to_le_bytes());
        header.extend(format!("{text:<width$}\n", width = padded - 1).bytes());
        self.member(name, &header, None, fill)
    }

    fn member(&mut self, name: &str, header: &[u8], bytes: Option<u64>, fill: &mut Fill<'_>) -> Result<()> {
        let refused = |e: rawzip::Error| Error::new(Kind::Io(std::io::ErrorKind::Other), e.to_string());
        let method = if self.level == 0 { CompressionMethod::STORE } else { CompressionMethod::DEFLATE };
        let builder = self.archive.new_file(path(name)?).compression_method(method);
        let (mut entry, config) = builder.start().map_err(refused)?;
        let (descriptor, written) = match method {
            CompressionMethod::STORE => {
                let mut to = Counted { to: config.wrap(&mut entry), count: 0 };
                to.write_all(header)?;
                fill(&mut to)?;
                (to.to.finish().map_err(refused)?.1, to.count)
            }
            _ => {
                let encoder = DeflateEncoder::new(&mut entry, Compression::new(self.level));
                let mut to = Counted { to: config.wrap(encoder), count: 0 };
                to.write_all(header)?;
                fill(&mut to)?;
                let (encoder, descriptor) = to.to.finish().map_err(refused)?;
                encoder.finish()?;
                (descriptor, to.count)
            }
        };
        entry.finish(descriptor).map_err(refused)?;
        let data = written - header.len() as u64;
        if let Some(bytes) = bytes.filter(|bytes| *bytes != data) {
            return Err(Error::new(Kind::WrongSize, format!("`{name}`: {data} bytes for an array of {bytes}")));
        }
        Ok(())
    }

    /// Ends the archive and gives back what it was written to.
    ///
    /// Errors: `Io`.
    pub fn finish(self) -> Result<W> {
        self.archive.finish().map_err(|e| Error::new(Kind::Io(std::io::ErrorKind::Other), e.to_string()))
    }
}

struct Counted<W> {
    to: W,
    count: u64,
}

/// The path of an array in the archive. The archive's writer drops what stands before a colon and between slashes, so that arrays
/// of two names may get one: such a path is written as it is.
fn path(name: &str) -> Result<EntryPath<'static>> {
    let file = format!("{name}.npy");
    match ZipFilePath::from_str(&file).as_str() == file {
        true => Ok(EntryPath::conformant(file)),
        false if file.is_ascii() && !file.contains('\0') => Ok(EntryPath::verbatim(file.into_bytes())),
        false => {
            let detail = format!("no archive keeps the name `{}`; rename the array", name.escape_debug());
            Err(Error::new(Kind::Unsupported, detail))
        }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.count += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::npz::Npz;
    use super::*;
    use crate::container::npy::ObjectHeader;
    use crate::layout::{Order, Scalar};

    #[test]
    fn arrays_keep_their_names() {
        let byte = DType::Scalar(Scalar::U8, Order::Little);
        let names = ["obs:x", "act:x", "a//b", "./c", "../d", "/e", "f\\g", "", "é", "a/b"];
        let mut writer = NpzWriter::new(Vec::new(), 0);
        for name in names {
            writer.array(name, &byte, &[1], &mut |to| Ok(to.write_all(&[7])?)).unwrap();
        }
        for name in ["é:x", "a\0b:c"] {
            let e = writer.array(name, &byte, &[1], &mut |to| Ok(to.write_all(&[7])?)).unwrap_err();
            assert_eq!(e.kind(), Kind::Unsupported, "{e}");
        }
        let bytes = writer.finish().unwrap();
        assert_eq!(Npz::open(&bytes).unwrap().names(), names);
    }

    #[test]
    fn what_is_written_reads_back() {
        let shorts = DType::Scalar(Scalar::U16, Order::Little);
        for level in [0, 6] {
            let mut writer = NpzWriter::new(Vec::new(), level);
            writer.array("a", &shorts, &[2, 2], &mut |to| Ok(to.write_all(&[1, 0, 2, 0, 3, 0, 4, 0])?)).unwrap();
            writer.objects("infos", 1, &mut |to| Ok(to.write_all(b"N.")?)).unwrap();
            let bytes = writer.finish().unwrap();
            let (npz, mut file) = (Npz::open(&bytes).unwrap(), Vec::new());
            npz.read("a", 1 << 10, &mut file).unwrap();
            let header = Header::read(&file[..]).unwrap();
            assert_eq!(
                (header.shape(), &file[header.data_offset() as usize..]),
                (&[2, 2][..], &[1, 0, 2, 0, 3, 0, 4, 0][..])
            );
            npz.read("infos", 1 << 10, &mut file).unwrap();
            let header = ObjectHeader::parse(&file).unwrap().unwrap();
            assert_eq!((header.data_offset, &file[header.data_offset as usize..]), (128, &b"N."[..]));
        }
        let mut writer = NpzWriter::new(Vec::new(), 0);
        let e = writer.array("a", &shorts, &[3], &mut |to| Ok(to.write_all(&[0; 4])?)).unwrap_err();
        assert_eq!(e.kind(), Kind::WrongSize);
    }
}
