//! What lies beside the rows of packs (values, vectors) -> what of it the new pack has, in files cut where those of its rows
//! are; and what cannot be carried, in words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::error::Result;
use gristmill_engine::lineage::Step;
use gristmill_engine::pack::array::{ArrayFile, ArrayKind};
use gristmill_engine::pack::embeddings::{self, Vectors};
use gristmill_engine::pack::manifest::RowFile;
use gristmill_engine::pack::recorder::vectors_kind;
use gristmill_engine::pack::rows::{RowBlock, RowsOf};
use gristmill_engine::pack::shards::{self, Shard};
use gristmill_engine::pack::values::{self, Made};
use gristmill_engine::pack::writer::hash_rows;
use gristmill_engine::row_files;
use gristmill_engine::store::open_file;
use gristmill_engine::table::Part;
use gristmill_format::container::npy::Header;
use gristmill_format::g2048::row::{ALIGNED_BYTES, at};
use gristmill_format::g2048::value::{VALUE_BYTES, ValueOptions};
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use super::input::Input;

/// Bytes of vectors that are copied at a time.
const COPIED: u64 = 1 << 20;

/// What lies beside the rows of one pack.
pub(super) struct Beside {
    values: Option<Vec<(Part, Arc<dyn ReadAt>)>>,
    made: Option<Made>,
    vectors: Option<Vec<Vectors>>,
}

impl Beside {
    /// Looks at the files beside `shards`.
    ///
    /// Errors: as [`values::list`], [`Made::read`] and [`embeddings::list`].
    pub(super) fn open(folder: &Path, shards: &[Shard]) -> Result<Self> {
        let open = |part: Part| match open_file(&part.path) {
            Ok(bytes) => Ok((part, bytes)),
            Err(e) => Err(e.in_source(part.path.display().to_string())),
        };
        let values = values::list(folder, shards)?;
        let values = values.map(|parts| parts.into_iter().map(open).collect::<gristmill_format::Result<_>>());
        let (values, made) = (values.transpose()?, Made::read(folder)?);
        Ok(Beside { values, made, vectors: embeddings::list(folder, shards)? })
    }

    /// How the values came to be.
    pub(super) fn lineage(&self) -> Vec<Step> {
        let told = self.made.as_ref().map(|made| made.lineage.clone()).filter(|steps| !steps.is_empty());
        told.unwrap_or_else(|| vec![Step::unrecorded()])
    }

    /// Replaces `out` by the values of a block, whose rows are `rows` as they were stored.
    ///
    /// Errors, with file, row and byte: `Corrupt` for values of other rows, `Truncated`, `Io`.
    pub(super) fn read(&self, block: &RowBlock, rows: &[u8], out: &mut Vec<u8>) -> gristmill_format::Result<()> {
        let Some((part, bytes)) = self.values.as_ref().map(|parts| &parts[block.file]) else { return Ok(()) };
        let place = |e: FormatError| e.in_source(part.path.display().to_string());
        let first = part.offset + block.first * VALUE_BYTES as u64;
        let span = Span { offset: first, len: block.rows * VALUE_BYTES as u64 };
        read_span(&**bytes, span, u64::MAX, out).map_err(place)?;
        let pairs = rows.as_chunks::<ALIGNED_BYTES>().0.iter().zip(out.as_chunks::<VALUE_BYTES>().0);
        match pairs.enumerate().find(|(_, (row, value))| row[at::RUN_ID..][..8] != value[..8]) {
            None => Ok(()),
            Some((i, _)) => {
                let row = block.first + i as u64;
                let detail = format!("value {row} is of another run or step than its row; see `gristmill verify`");
                Err(place(FormatError::new(Kind::Corrupt, detail).at_byte(first + (i * VALUE_BYTES) as u64)))
            }
        }
    }
}

/// Gives values the run ids of their rows.
pub(super) fn renumber(rows: &[u8], values: &mut [u8]) {
    let pairs = rows.as_chunks::<ALIGNED_BYTES>().0.iter().zip(values.as_chunks_mut::<VALUE_BYTES>().0);
    pairs.for_each(|(row, value)| value[..4].copy_from_slice(&row[at::RUN_ID..][..4]));
}

/// What of it goes into the new pack.
#[derive(Default)]
pub(super) struct Carried {
    /// Values, by these numbers.
    pub(super) values: Option<ValueOptions>,
    /// Vectors of this many numbers.
    pub(super) vectors: Option<usize>,
    /// What does not: the files, and why.
    pub(super) lost: Vec<(&'static str, String)>,
}

impl Carried {
    /// Everything that all packs with rows have, made alike.
    pub(super) fn of(inputs: &[Input]) -> Self {
        let packs: Vec<&Input> = inputs.iter().filter(|input| input.rows() > 0).collect();
        let mut carried = Carried::default();
        if packs.iter().any(|pack| pack.beside.values.is_some()) {
            match values_of(&packs) {
                Ok(by) => carried.values = by,
                Err(why) => {
                    let remedy = "`gristmill values` makes them of the new pack";
                    carried.lost.push(("values", format!("the values of rows are not carried: {why}; {remedy}")));
                }
            }
        }
        if packs.iter().any(|pack| pack.beside.vectors.is_some()) {
            match vectors_of(&packs) {
                Ok(size) => carried.vectors = size,
                Err(why) => carried.lost.push(("embeddings", format!("the vectors of rows are not carried: {why}"))),
            }
        }
        carried
    }

    /// Names of the carried files.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let names = [("values", self.values.is_some()), ("embeddings", self.vectors.is_some())];
        names.into_iter().filter(|(_, carried)| *carried).map(|(name, _)| name).collect()
    }

    /// Whether a file of a pack is lost with the pack: all but the files beside its rows that are not carried.
    pub(super) fn holds(&self, name: &str) -> bool {
        let values = row_files::is_values(name) || name == row_files::VALUES_MADE;
        (self.values.is_some() || !values) && (self.vectors.is_some() || !row_files::is_vectors(name))
    }
}

fn shown(pack: &Input) -> std::path::Display<'_> {
    pack.path.display()
}

/// By which numbers the values of all packs were made.
fn values_of(packs: &[&Input]) -> Result<Option<ValueOptions>, String> {
    let mut by: Option<(ValueOptions, &Input)> = None;
    for pack in packs {
        if pack.beside.values.is_none() {
            return Err(format!("{} has none", shown(pack)));
        }
        let Some(made) = &pack.beside.made else {
            return Err(format!("{} has no {}, which says how they were made", shown(pack), row_files::VALUES_MADE));
        };
        match by {
            Some((by, first)) if by != made.options() => {
                return Err(format!("those of {} and {} were made by other numbers", shown(first), shown(pack)));
            }
            _ => by = Some((made.options(), pack)),
        }
    }
    Ok(by.map(|(by, _)| by))
}

/// How many numbers the vectors of all packs have.
fn vectors_of(packs: &[&Input]) -> Result<Option<usize>, String> {
    let mut size = None;
    for pack in packs {
        let Some(first) = pack.beside.vectors.as_ref().and_then(|vectors| vectors.first()) else {
            return Err(format!("{} has none", shown(pack)));
        };
        if *size.get_or_insert(first.size) != first.size {
            return Err(format!("those of {} have {} numbers, others have not", shown(pack), first.size));
        }
    }
    Ok(size)
}

/// Files beside those of the rows, of the same lengths.
pub(super) struct CutFiles {
    folder: PathBuf,
    kind: ArrayKind,
    prefix: &'static str,
    most: Option<u64>,
    open: Option<(String, ArrayFile, Xxh3)>,
    complete: Vec<RowFile>,
}

impl CutFiles {
    /// Files of values in `folder`.
    pub(super) fn of_values(folder: &Path, most: Option<u64>) -> Self {
        Self::new(folder, values::kind(), row_files::VALUES, most)
    }

    fn new(folder: &Path, kind: ArrayKind, prefix: &'static str, most: Option<u64>) -> Self {
        CutFiles { folder: folder.to_owned(), kind, prefix, most, open: None, complete: Vec::new() }
    }

    /// Appends whole rows.
    ///
    /// Errors: `Path`.
    pub(super) fn append(&mut self, mut rows: &[u8]) -> Result<()> {
        let size = self.kind.row_bytes();
        while !rows.is_empty() {
            let (name, mut file, mut hash) = match self.open.take() {
                Some(open) => open,
                None => {
                    let shard = self.most.map_or(row_files::SINGLE.to_owned(), |_| shards::name(self.complete.len()));
                    let name = row_files::beside(&shard, self.prefix);
                    let file = ArrayFile::create(&self.folder.join(&name), self.kind.clone())?;
                    (name, file, Xxh3::new())
                }
            };
            let room = self.most.map_or(u64::MAX, |most| most - file.rows());
            let n = (rows.len() / size).min(usize::try_from(room).unwrap_or(usize::MAX));
            let (now, later) = rows.split_at(n * size);
            file.append(now)?;
            hash.update(now);
            rows = later;
            let full = Some(file.rows()) == self.most;
            self.open = Some((name, file, hash));
            if full {
                self.close()?;
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some((name, mut file, hash)) = self.open.take() {
            let (rows, xxh3_128) = (file.complete()?, format!("{:032x}", hash.digest128()));
            self.complete.push(RowFile { name, rows, xxh3_128 });
        }
        Ok(())
    }

    /// The files, complete.
    ///
    /// Errors: `Path`.
    pub(super) fn finish(mut self) -> Result<Vec<RowFile>> {
        self.close()?;
        Ok(self.complete)
    }
}

/// Copies the vectors of all packs, each of `size` numbers, into `folder`.
///
/// Errors: `Path`; `Format` with the file.
pub(super) fn vectors(inputs: &[Input], size: usize, folder: &Path, most: Option<u64>) -> Result<Vec<RowFile>> {
    let kind = vectors_kind(size);
    let bytes = kind.row_bytes() as u64;
    let mut files = CutFiles::new(folder, kind, row_files::VECTORS, most);
    let mut copied = Vec::new();
    for Vectors { part, .. } in inputs.iter().filter_map(|input| input.beside.vectors.as_ref()).flatten() {
        let place = |e: FormatError| e.in_source(part.path.display().to_string());
        let file = open_file(&part.path).map_err(place)?;
        let step = (COPIED / bytes).max(1);
        for first in (0..part.rows).step_by(step as usize) {
            let rows = step.min(part.rows - first);
            let span = Span { offset: part.offset + first * bytes, len: rows * bytes };
            read_span(&*file, span, u64::MAX, &mut copied).map_err(place)?;
            files.append(&copied)?;
        }
    }
    files.finish()
}

/// Whether the files in `folder` are as they were written; else the path of the first that is not.
///
/// Errors: `Path`; `Format` with the file.
pub(super) fn read_back(folder: &Path, files: &[RowFile]) -> Result<Option<PathBuf>> {
    for file in files {
        let path = folder.join(&file.name);
        let place = |e: FormatError| e.in_source(path.display().to_string());
        let header = open_file(&path).and_then(|file| Header::read(&*file)).map_err(place)?;
        let numbers = header.shape().iter().skip(1).product::<u64>();
        let bytes = file.rows * numbers * header.dtype().size() as u64;
        let hash = hash_rows(&path, header.data_offset(), bytes)?;
        if header.shape().first() != Some(&file.rows) || format!("{hash:032x}") != file.xxh3_128 {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The files of rows of a pack, and what lies beside them.
///
/// Errors: `Format` naming the file.
pub(super) fn open(folder: &Path) -> Result<(Vec<RowsOf>, Beside)> {
    let shards = shards::list(folder)?;
    let beside = Beside::open(folder, &shards)?;
    let files = shards.into_iter().map(RowsOf::open).collect::<gristmill_format::Result<_>>()?;
    Ok((files, beside))
}
