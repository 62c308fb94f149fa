//! The folder of a pack of whole games -> the pack, open, or what its chunks are, by the table of kinds; and
//! what its games weigh. Changes nothing.

use std::path::{Path, PathBuf};

use gristmill_format::Result as FormatResult;
use gristmill_format::container::chunks::ChunkFile;
use gristmill_format::weigh::Weigher;
use gristmill_runtime::error::Result;
use gristmill_runtime::names::file_name;
use gristmill_runtime::store::files::is_file;
use gristmill_runtime::store::{Residence, open_file};

use super::codec;
use crate::chunks::codec::Codec;
use crate::chunks::open::{ChunkPack, File};
use crate::chunks::{files, is_chunks, opening, sums};
use crate::opening::{write, wrong};

impl ChunkPack {
    /// Opens the pack in `folder`.
    ///
    /// Errors, with the file: `Path`; `Format`: `Missing` where there is none, `Truncated` between two packs, `Unsupported` for
    /// chunks of a kind that is not known here, or of two kinds, and as [`ChunkFile::open`].
    pub fn open(folder: &Path, residence: Residence) -> Result<Self> {
        Self::open_as(folder, residence, codec)
    }
}

impl File {
    /// Opens the chunk file at `path`.
    ///
    /// Errors, with the file: `Io`; as [`ChunkFile::open`]; `Unsupported` for chunks of a kind that is not known here.
    pub fn open(path: &Path) -> FormatResult<Self> {
        Self::open_as(path.to_owned(), Residence::Mapped, codec)
    }
}

/// Writes what opening needs into `folder`, for a pack whose chunk files are at `paths`, in order, and whose manifest has this text. A job
/// does it before it writes the manifest.
///
/// Errors, with the file: as [`File::open`]; `Path`.
pub fn write_opening(folder: &Path, paths: &[PathBuf], manifest: &str) -> Result<()> {
    write(folder, opening::bytes_of(paths, manifest, codec)?)
}

/// Says what is wrong with the `opening.index` of the pack in `folder`. `None` if there is no such file, or the pack is not whole.
pub fn wrong_opening(folder: &Path) -> Option<&'static str> {
    let mut names = files(folder).ok()?;
    names.retain(|name| is_chunks(name));
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    wrong(folder, |manifest| opening::bytes_of(&paths, manifest, codec).ok()?)
}

/// What the chunks of the pack in a folder are; none where it is no chunk pack. Reads the index of the first file.
///
/// Errors, with the file: `Io`; as [`ChunkFile::open`]; `Unsupported` for chunks of a kind that is not known here.
pub fn codec_of(folder: &Path) -> FormatResult<Option<&'static dyn Codec>> {
    let path = folder.join(file_name(0));
    if !is_file(&path)? {
        return Ok(None);
    }
    let found = open_file(&path).and_then(|file| ChunkFile::open(&*file)).and_then(|file| codec(file.codec()));
    found.map(Some).map_err(|e| e.in_source(path.display().to_string()))
}

/// The checksum of the index of the chunk file at `path`, and what each of its games weighs, from their bytes; none where that is
/// kept beside it already.
///
/// Errors: `Format`, with file and game.
pub fn unkept(path: &Path, weigher: &dyn Weigher) -> FormatResult<Option<(u64, Vec<f32>)>> {
    let file = File::open(path)?;
    if sums::read(path, file.index(), weigher.id()).is_some() {
        return Ok(None);
    }
    let sums = file.weigh(weigher).collect::<FormatResult<_>>()?;
    Ok(Some((file.index().identity(), sums)))
}

/// What each game of the chunk file at `path` weighs, from their bytes.
///
/// Errors: `Format`, with file and game.
pub fn weigh_file(path: &Path, weigher: &dyn Weigher) -> FormatResult<Vec<f32>> {
    File::open(path)?.weigh(weigher).collect()
}
