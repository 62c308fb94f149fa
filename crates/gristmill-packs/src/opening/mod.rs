//! What opening a pack needs <-> a small file beside its manifest, so that a pack that is elsewhere opens with few requests
//! (docs/format/opening.md). What does not fit the pack or is damaged is not used: the pack is then opened from its own files.

pub(crate) mod numbers;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::Kind;
use gristmill_format::source::{ReadAt, Span};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::names::{MANIFEST, OPENING};
use gristmill_runtime::store::files::{self, listed};
use gristmill_runtime::store::place::resolved;
use gristmill_runtime::store::publish::write_whole;
use gristmill_runtime::store::{Pool, Residence, folder_of, here, newest, open_file};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use self::numbers::Bytes;

/// What a file begins with.
const MAGIC: &[u8; 8] = b"GMOPEN01";

/// Bytes before the body: the magic, which layout the pack has, the hash of its manifest.
const HEAD: usize = 32;

/// Longest file that is read: of hundreds of millions of games.
const MOST: u64 = 4 << 30;

/// Readers of a longer manifest do not use the file. Such a manifest lists millions of games that a job left out.
const MOST_MANIFEST: u64 = 16 << 20;

/// Bytes that come in one request.
const PIECE: u64 = 8 << 20;

/// What a pack is laid out as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Whole games.
    Chunks,
    /// Rows of 2048.
    Rows,
}

impl Layout {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            Layout::Chunks => b"chunks\0\0",
            Layout::Rows => b"rows\0\0\0\0",
        }
    }
}

/// The bytes of the file, for a pack whose manifest has this text.
pub(crate) fn sealed(layout: Layout, manifest: &str, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + body.len() + 8);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(layout.mark());
    out.extend_from_slice(&xxh3_128(manifest.as_bytes()).to_le_bytes());
    out.extend_from_slice(body);
    let sum = xxh3_64(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The body of a file, where it is whole and of a pack with this layout and manifest.
fn unsealed(bytes: &[u8], layout: Layout, manifest: &[u8]) -> Option<Vec<u8>> {
    let (sealed, sum) = bytes.split_last_chunk::<8>()?;
    let mut head = Bytes(sealed);
    let fits = xxh3_64(sealed) == u64::from_le_bytes(*sum)
        && head.take(8)? == MAGIC
        && head.take(8)? == layout.mark()
        && head.take(16)? == xxh3_128(manifest).to_le_bytes();
    fits.then(|| head.0.to_vec())
}

/// Where a pack is read from.
#[derive(Debug)]
pub(crate) struct From {
    /// The folder: as [`newest`] gives it.
    pub(crate) folder: PathBuf,
    /// The manifest of a pack in a bucket, unless it is very long.
    manifest: Option<Vec<u8>>,
}

impl From {
    /// The pack at `place`. Where an opening file may be used, it has the manifest, which was read once.
    ///
    /// Errors: those of reading; as [`newest`].
    pub(crate) fn of(place: &Path, residence: Residence) -> Result<Self> {
        let folder = resolved(place)?.into_owned();
        if residence == Residence::Memory || here(&folder).is_some() {
            return Ok(From { folder: newest(&folder)?.into_owned(), manifest: None });
        }
        let manifest = whole(&folder.join(MANIFEST), MOST_MANIFEST)?;
        match manifest.as_deref().map_or(Ok(None), |manifest| folder_of(&folder, manifest))? {
            Some(folder) => Ok(From { manifest: whole(&folder.join(MANIFEST), MOST_MANIFEST)?, folder }),
            None => Ok(From { folder, manifest }),
        }
    }
}

/// The opening file of a pack in a bucket, and the files of the pack.
pub(crate) struct Opening {
    /// What the layout wrote.
    pub(crate) body: Vec<u8>,
    /// The files in its folder, open, by name; those that `is` accepts.
    pub(crate) files: BTreeMap<String, Arc<dyn ReadAt>>,
}

impl Opening {
    /// Opens the files of a pack whose names `is` accepts. `None` if the opening file is missing, damaged, or of another pack.
    ///
    /// Errors: those of reading.
    pub(crate) fn read(from: &From, layout: Layout, is: &dyn Fn(&str) -> bool) -> Result<Option<Self>> {
        let (folder, Some(manifest)) = (&from.folder, &from.manifest) else { return Ok(None) };
        let Some(bytes) = whole(&folder.join(OPENING), MOST)? else { return Ok(None) };
        let Some(body) = unsealed(&bytes, layout, manifest) else { return Ok(None) };
        let files = listed(folder, is)?;
        Ok(Some(Opening { body, files }))
    }

    /// The pool that keeps a part of the files whose names `is` accepts. `None` if the cache of this machine holds them all, and unless
    /// `residence` is `Mapped`; else as [`Pool::for_files`].
    ///
    /// Errors: as [`Pool::for_files`].
    pub(crate) fn pool(
        &self,
        folder: &Path,
        residence: Residence,
        is: impl Fn(&str) -> bool,
    ) -> Result<Option<Arc<Pool>>> {
        if residence != Residence::Mapped {
            return Ok(None);
        }
        let files: Vec<_> = self.files.iter().filter(|(name, _)| is(name)).collect();
        let paths: Vec<_> = files.iter().map(|(name, _)| folder.join(name)).collect();
        let files: Vec<_> = paths.iter().map(PathBuf::as_path).zip(files.iter().map(|(_, file)| *file)).collect();
        Ok(Pool::for_files(&files)?)
    }

    /// The file of a name, if it has this length.
    pub(crate) fn file(&self, name: &str, len: u64) -> Option<Arc<dyn ReadAt>> {
        self.files.get(name).filter(|file| file.len().is_ok_and(|is| is == len)).cloned()
    }
}

/// Writes the file into `folder`, where it is to be: into the staging of a job that makes a pack, before the manifest.
///
/// Errors: `Path`.
pub(crate) fn write(folder: &Path, bytes: Option<Vec<u8>>) -> Result<()> {
    bytes.map_or(Ok(()), |bytes| write_whole(&folder.join(OPENING), &[&bytes]))
}

/// Says what is wrong with the opening file of the pack in `folder`. `made` makes the right file for the text of the manifest.
/// `None` if there is no file, or the pack itself is not whole.
pub(crate) fn wrong(folder: &Path, made: impl FnOnce(&str) -> Option<Vec<u8>>) -> Option<&'static str> {
    let found = files::read(&folder.join(OPENING), MOST).ok()??;
    let manifest = files::read_text(&folder.join(MANIFEST), MOST_MANIFEST).ok()??;
    let is_wrong = made(&manifest)? != found;
    is_wrong.then_some("it is damaged, or not of this pack as it is; it is not used, and can be deleted")
}

/// Reads all bytes of a file by requests that run at once. `None` if the file is not there, or is longer than `most`.
fn whole(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let named = |e: gristmill_format::Error| Error::from(e.in_source(path.display().to_string()));
    let file = match open_file(path) {
        Err(e) if e.kind() == Kind::Io(ErrorKind::NotFound) => return Ok(None),
        file => file?,
    };
    let len = file.len().map_err(named)?;
    let Some(size) = usize::try_from(len).ok().filter(|_| len <= most) else { return Ok(None) };
    let mut bytes = vec![0; size];
    // The request that opened the file brought its beginning.
    let began = size.min(BEGINNING);
    let read = file.read_at(0, &mut bytes[..began]).map_err(named)? as u64;
    let spans: Vec<Span> =
        (read..len).step_by(PIECE as usize).map(|offset| Span { offset, len: PIECE.min(len - offset) }).collect();
    file.read_spans(&spans, &mut |i, pieces| {
        let mut at = spans[i].offset as usize;
        for piece in pieces {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        Ok(())
    })
    .map_err(named)?;
    Ok(Some(bytes))
}

/// Bytes that an open file has.
const BEGINNING: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_and_one_of_another_pack_are_none() {
        let bytes = sealed(Layout::Rows, "manifest", b"body");
        assert_eq!(unsealed(&bytes, Layout::Rows, b"manifest").as_deref(), Some(&b"body"[..]));
        assert!(unsealed(&bytes, Layout::Rows, b"other").is_none());
        assert!(unsealed(&bytes, Layout::Chunks, b"manifest").is_none());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(unsealed(&damaged, Layout::Rows, b"manifest").is_none(), "byte {at}");
            assert!(unsealed(&bytes[..at], Layout::Rows, b"manifest").is_none(), "{at} bytes");
        }
    }
}
