//! A compressed file -> a nameless file with the bytes inside, in the folder for temporary files, in which any of them can be
//! reached. Memory holds one piece; the file goes with the process, however that ends.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use gristmill_format::container::gzip;
use gristmill_format::container::gzip_stream::GzipStream;
use gristmill_format::container::zstd_stream::ZstdStream;
use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Result};

/// Bytes that are unpacked at a time.
const PIECE: usize = 1 << 20;

/// The bytes inside a compressed file.
pub(crate) struct Unpacked(File);

impl ReadAt for Unpacked {
    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        Ok(self.0.read_at(buf, offset)?)
    }
}

enum Packing {
    Gzip(Box<GzipStream>),
    Zstd(Box<ZstdStream>),
}

/// Unpacks gzip or Zstandard; where it is damaged, the bytes before, with the fault.
///
/// Errors: `Io`, also where the disk is full; what the decompressor says of a file of which nothing can be unpacked.
pub(crate) fn unpacked(from: &Arc<dyn ReadAt>) -> Result<(Unpacked, Option<Error>)> {
    let mut magic = [0; 2];
    let read = from.read_at(0, &mut magic)?;
    let mut packing = match magic[..read] == gzip::MAGIC {
        true => Packing::Gzip(Box::new(GzipStream::new(Arc::clone(from)))),
        false => Packing::Zstd(Box::new(ZstdStream::new(Arc::clone(from))?)),
    };
    let mut file = tempfile::tempfile()?;
    let (mut piece, mut any) = (Vec::with_capacity(PIECE), false);
    loop {
        piece.clear();
        let filled = match &mut packing {
            Packing::Gzip(stream) => stream.fill(&mut piece),
            Packing::Zstd(stream) => stream.fill(&mut piece),
        };
        file.write_all(&piece)?;
        any |= !piece.is_empty();
        match filled {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) if any && !e.kind().is_of_reading() => return Ok((Unpacked(file), Some(e))),
            Err(e) => return Err(e),
        }
    }
    let behind = match &mut packing {
        Packing::Gzip(stream) => stream.behind()?,
        Packing::Zstd(_) => None,
    };
    let fault = behind.map(|at| {
        let detail =
            "bytes after the gzip stream that are not gzip data: something was joined to it, or a part is lost";
        Error::new(gristmill_format::Kind::Corrupt, detail).at_byte(at)
    });
    Ok((Unpacked(file), fault))
}
