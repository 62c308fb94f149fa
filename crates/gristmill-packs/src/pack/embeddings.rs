//! `embeddings-*.npy` beside the shards of a pack -> vectors by number of the row. Shards and vectors must agree.

use std::path::Path;

use gristmill_format::container::npy::Header;
use gristmill_format::layout::{DType, Layout, Order, Scalar};
use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::store::files::is_file;
use gristmill_runtime::store::{Residence, open_file};
use gristmill_runtime::table::{FileTable, Part};

use super::shards::Shard;
use crate::row_files::{VECTORS, beside};

/// Where the vectors of a file of rows are.
#[derive(Debug, Clone)]
pub struct Vectors {
    /// The file, and the byte at which they start.
    pub part: Part,
    /// Numbers in a vector.
    pub size: usize,
}

/// The vectors of the rows of `shards`, one file for each; none where there are no such files.
///
/// Errors, with the file: `Missing` for a shard that has none while another one has, `WrongSize` for another number of
/// vectors than rows or vectors of another size, `Unsupported` for an array that is none of vectors of `f4`, and what
/// [`Header::read`] says.
pub fn list(folder: &Path, shards: &[Shard]) -> Result<Option<Vec<Vectors>>> {
    let mut found: Vec<Vectors> = Vec::new();
    let mut without = None;
    for shard in shards {
        let path = folder.join(beside(&shard.path.file_name().unwrap_or_default().to_string_lossy(), VECTORS));
        if !is_file(&path)? {
            without = without.or(Some((shard, path)));
            continue;
        }
        let place = |e: Error| e.in_source(path.display().to_string());
        let header = open_file(&path).and_then(|file| Header::read(&*file)).map_err(place)?;
        let (DType::Scalar(Scalar::F32, Order::Little), &[rows, size @ 1..=u64::MAX], false) =
            (header.dtype(), header.shape(), header.fortran_order())
        else {
            let detail = format!("expected rows of `<f4`, found shape {:?}", header.shape());
            return Err(place(Error::new(Kind::Unsupported, detail)).into());
        };
        if rows != shard.rows {
            let detail = format!("{rows} vectors for the {} rows of {}", shard.rows, shard.path.display());
            return Err(place(Error::new(Kind::WrongSize, detail)).into());
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if let Some(first) = found.first().filter(|first| first.size != size) {
            let detail = format!("vectors of {size} numbers, those before it have {}", first.size);
            return Err(place(Error::new(Kind::WrongSize, detail)).into());
        }
        found.push(Vectors { part: Part { path, offset: header.data_offset(), rows }, size });
    }
    match (found.is_empty(), without) {
        (true, _) => Ok(None),
        (false, None) => Ok(Some(found)),
        (false, Some((shard, path))) => {
            let detail = format!("no such file, while other shards have vectors; {} has none", shard.path.display());
            Err(Error::new(Kind::Missing, detail).in_source(path.display().to_string()).into())
        }
    }
}

/// The layout of vectors of `size` numbers, as records.
///
/// Errors: `WrongSize` where they are too long for one.
pub fn layout(size: usize) -> gristmill_format::Result<Layout> {
    Layout::packed(&[("embedding", Scalar::F32, &[size])])
}

/// The vectors as a table whose records are the numbers of one.
///
/// Errors: as [`FileTable::open`].
pub fn table(vectors: Vec<Vectors>, residence: Residence) -> Result<FileTable> {
    let size = vectors.first().map_or(1, |vectors| vectors.size);
    Ok(FileTable::open(layout(size)?, vectors.into_iter().map(|vectors| vectors.part).collect(), residence)?)
}
