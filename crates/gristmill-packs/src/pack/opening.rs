//! A pack of rows <-> what opening it needs: the headers of its files, the heads of their checksums, its runs and its identity.
//! Written where rows lie run by run alone, after the rows at the ends of runs were checked; rows are still held against checksums.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::layout::Layout;
use gristmill_format::source::{ReadAt, Span, read_span};
use gristmill_runtime::error::Result;
use gristmill_runtime::store::{HeldFile, Pool, Residence, open_file};
use gristmill_runtime::table::{FileTable, FrameTable, Guarding, Part};
use xxhash_rust::xxh3::xxh3_64;

use super::METADATA;
use super::checksums::{self, Guard, Verify};
use super::metadata::{Metadata, Run};
use super::open::{Columns, Form, identity, recognise, unguarded, valuations};
use super::runs::RunIndex;
use super::shards::{self, Shard};
use super::valuation::ValuationTypes;
use crate::opening::numbers::{Bytes, put, put_block};
use crate::opening::{self, From, Opening, sealed};
use crate::row_files::{is_checksums, is_rows, is_vectors};

/// A file of rows, as it is listed.
struct Listed<'a> {
    name: &'a str,
    len: u64,
    rows: u64,
    offset: u64,
    /// XXH3-64 of the bytes before its rows.
    header: u64,
    /// What its checksums begin with; empty where it has none.
    sums: &'a [u8],
}

/// What a body says.
struct Said<'a> {
    layout: Layout,
    identity: u64,
    /// XXH3-64 of the names of valuations.
    valuations: u64,
    files: Vec<Listed<'a>>,
    runs: Vec<Run>,
}

/// A pack, as far as its rows are known without its database.
pub(super) struct Opened {
    pub(super) columns: Columns,
    pub(super) shards: Vec<Shard>,
    pub(super) table: FileTable,
    pub(super) index: RunIndex,
    pub(super) valuations: ValuationTypes,
    pub(super) identity: u64,
    /// Whether vectors lie beside the rows.
    pub(super) vectors: bool,
}

/// Writes what opening needs into `folder`, where the database of a pack is, for its files of rows at `paths`, in order, these names, and a
/// manifest of this text; nothing where rows do not lie run by run in the order of the database. A job does it before it writes the
/// manifest.
///
/// Errors, with the file: as [`shards::open`], [`Metadata::open`] and [`RunIndex::read`]; `Path`.
pub fn write(folder: &Path, paths: &[PathBuf], types: &ValuationTypes, manifest: &str) -> Result<()> {
    opening::write(folder, bytes_of(paths, &folder.join(METADATA), types, manifest, false)?)
}

/// The same for a pack that was added to in a bucket. Of the rows that the pack `before` had it takes from the `opening.index` there that they
/// lie run by run, so that they need not be fetched; without that file it writes none.
///
/// Errors: as [`write()`]; as the opening of the pack `before`.
pub fn write_grown(
    before: &Path,
    folder: &Path,
    paths: &[PathBuf],
    types: &ValuationTypes,
    manifest: &str,
) -> Result<()> {
    let was = open(&From::of(before, Residence::Unkept)?, Residence::Unkept, Some(Verify::Off))?;
    if was.is_none_or(|was| !was.index.lies_in_order()) {
        return Ok(());
    }
    opening::write(folder, bytes_of(paths, &folder.join(METADATA), types, manifest, true)?)
}

/// The bytes of the file. `is_laid` says that rows are known to lie run by run.
fn bytes_of(
    paths: &[PathBuf],
    metadata: &Path,
    types: &ValuationTypes,
    manifest: &str,
    is_laid: bool,
) -> Result<Option<Vec<u8>>> {
    let found = paths.iter().map(|path| shards::open(path.clone())).collect::<gristmill_format::Result<Vec<_>>>()?;
    let (columns, layout) = (recognise(&found)?, found[0].layout.clone());
    if columns.form() != Form::Steps || !Layout::parse_descr(&layout.to_descr()).is_ok_and(|read| read == layout) {
        return Ok(None);
    }
    let part = |shard: &Shard| Part { path: shard.path.clone(), offset: shard.offset, rows: shard.rows };
    let table = FileTable::open(layout.clone(), found.iter().map(part).collect(), Residence::Mapped)?;
    let metadata = Metadata::open(metadata)?;
    let index = match is_laid {
        true => {
            let mut runs = Vec::new();
            metadata.runs(&mut |run| {
                runs.push(run);
                Ok(())
            })?;
            RunIndex::laid(runs, table.len())
        }
        false => Some(RunIndex::read(&metadata, &table, columns.form())?),
    };
    let Some(index) = index.filter(RunIndex::lies_in_order) else { return Ok(None) };
    let mut body = Vec::new();
    put_block(&mut body, layout.to_descr().as_bytes());
    for number in [identity(&table, &index, types)?, xxh3_64(types.to_json().as_bytes()), found.len() as u64] {
        body.extend_from_slice(&number.to_le_bytes());
    }
    for shard in &found {
        let name = shard.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (file, mut header) = (open_file(&shard.path)?, Vec::new());
        read_span(&*file, Span { offset: 0, len: shard.offset }, shard.offset, &mut header)?;
        put_block(&mut body, name.as_bytes());
        for number in [file.len()?, shard.rows, shard.offset, xxh3_64(&header)] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        put_block(&mut body, &checksums::head_of(shard)?);
    }
    let runs = index.runs();
    body.extend_from_slice(&(runs.len() as u64).to_le_bytes());
    body.push(u8::from(runs.iter().all(|run| run.seed.is_some())));
    let columns: [&dyn Fn(&Run) -> u64; 5] =
        [&|run| run.id, &|run| run.seed.unwrap_or(0), &|run| run.steps, &|run| run.max_score, &|run| run.highest_tile];
    for column in columns {
        put(&mut body, &runs.iter().map(column).collect::<Vec<_>>());
    }
    Ok(Some(sealed(opening::Layout::Rows, manifest, &body)))
}

/// What is wrong with the file of the pack in `folder`; none where there is no file, or the pack is not whole.
pub fn wrong(folder: &Path) -> Option<&'static str> {
    let paths: Vec<PathBuf> = shards::names(folder).ok()?.into_iter().map(|name| folder.join(name)).collect();
    let types = valuations(folder).ok()?;
    opening::wrong(folder, |manifest| bytes_of(&paths, &folder.join(METADATA), &types, manifest, false).ok()?)
}

/// A pack that is elsewhere, by what its opening needs; none where that lacks, does not fit or is damaged.
///
/// Errors: those of reading; as [`HeldFile::of`]; `Config` in `verify` for a check of rows without checksums.
pub(super) fn open(from: &From, residence: Residence, verify: Option<Verify>) -> Result<Option<Opened>> {
    let is = |name: &str| is_rows(name) || is_checksums(name) || is_vectors(name);
    let folder = &*from.folder;
    let Some(opening) = Opening::read(from, opening::Layout::Rows, &is)? else { return Ok(None) };
    let Some(said) = read(&opening.body) else { return Ok(None) };
    let valuations = valuations(folder)?;
    let listed = opening.files.keys().filter(|name| is_rows(name)).count();
    let rows = said.files.iter().map(|file| file.rows).try_fold(0, u64::checked_add);
    let index = rows.and_then(|rows| RunIndex::laid(said.runs, rows));
    let (Some(index), Ok(columns)) = (index, Columns::of(&said.layout)) else { return Ok(None) };
    if said.files.len() != listed || xxh3_64(valuations.to_json().as_bytes()) != said.valuations {
        return Ok(None);
    }
    let is_read = |name: &str| is_rows(name) || (is_checksums(name) && verify != Some(Verify::Off));
    let pool = opening.pool(folder, residence, is_read)?;
    let (mut shards, mut held, mut guards) = (Vec::new(), Vec::new(), Vec::new());
    for file in &said.files {
        let (path, bytes) = (folder.join(file.name), file.rows.checked_mul(said.layout.size() as u64));
        let Some(from) = opening.file(file.name, file.len) else { return Ok(None) };
        if bytes.and_then(|bytes| bytes.checked_add(file.offset)).is_none_or(|end| end > file.len) {
            return Ok(None);
        }
        let shard = Shard { path, layout: said.layout.clone(), rows: file.rows, offset: file.offset };
        let sums = opening.files.get(&format!("{}{}", file.name, crate::row_files::CHECKSUMS)).cloned();
        guards.push(guard(&shard, file, sums, (residence, pool.as_ref()), verify)?);
        let bytes = bytes.unwrap_or_default();
        let part = Part { path: shard.path.clone(), offset: file.offset, rows: file.rows };
        let own = match &pool {
            Some(pool) => HeldFile::of_pool(&shard.path, from, file.offset, bytes, pool)?,
            None => HeldFile::of(&shard.path, from, file.offset, bytes, residence)?,
        };
        held.push((part, own));
        shards.push(shard);
    }
    let vectors = opening.files.keys().any(|name| is_vectors(name));
    let table = FileTable::of(said.layout, held)?.guarded(guards);
    Ok(Some(Opened { columns, shards, table, index, valuations, identity: said.identity, vectors }))
}

/// What guards a file of rows.
fn guard(
    shard: &Shard,
    file: &Listed<'_>,
    sums: Option<Arc<dyn ReadAt>>,
    kept: (Residence, Option<&Arc<Pool>>),
    verify: Option<Verify>,
) -> Result<Option<Box<dyn Guarding>>> {
    let guard = match sums {
        _ if verify == Some(Verify::Off) => return Ok(None),
        None => None,
        // Checksums that were made since.
        Some(_) if file.sums.is_empty() => Guard::open(shard)?,
        Some(sums) => Some(Guard::outlined(shard, file.sums, file.header, sums, kept)?),
    };
    if guard.is_none() && verify.is_some() {
        return Err(unguarded(&shard.path));
    }
    Ok(guard.map(|guard| Box::new(guard) as Box<dyn Guarding>))
}

fn read(body: &[u8]) -> Option<Said<'_>> {
    let mut bytes = Bytes(body);
    let layout = Layout::parse_descr(bytes.text()?).ok()?;
    let (identity, valuations, count) = (bytes.word()?, bytes.word()?, bytes.word()?);
    let mut files = Vec::new();
    for _ in 0..count {
        let name = bytes.text()?;
        let (len, rows, offset, header) = (bytes.word()?, bytes.word()?, bytes.word()?, bytes.word()?);
        files.push(Listed { name, len, rows, offset, header, sums: bytes.block()? });
    }
    let (count, seeded) = (bytes.word()?, bytes.take(1)? == [1]);
    let (ids, seeds) = (bytes.numbers(count)?, bytes.numbers(count)?);
    let (steps, scores, tiles) = (bytes.numbers(count)?, bytes.numbers(count)?, bytes.numbers(count)?);
    let runs = (0..ids.len()).map(|i| Run {
        id: ids[i],
        seed: seeded.then_some(seeds[i]),
        steps: steps[i],
        max_score: scores[i],
        highest_tile: tiles[i],
    });
    bytes.0.is_empty().then(|| Said { layout, identity, valuations, files, runs: runs.collect() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body() -> Vec<u8> {
        let mut body = Vec::new();
        put_block(&mut body, b"[('a', '<u4')]");
        for number in [1u64, 2, 1] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        put_block(&mut body, b"steps.npy");
        for number in [5000u64, 30, 384, 9] {
            body.extend_from_slice(&number.to_le_bytes());
        }
        put_block(&mut body, &[]);
        body.extend_from_slice(&3u64.to_le_bytes());
        body.push(1);
        for numbers in [[0, 1, 2], [7, 8, 9], [10, 0, 20], [1, 2, 3], [4, 5, 6]] {
            put(&mut body, &numbers);
        }
        body
    }

    #[test]
    fn runs_lie_one_after_the_other() {
        let body = body();
        let said = read(&body).unwrap();
        let runs = said.runs.clone();
        let index = RunIndex::laid(said.runs, 30).unwrap();
        assert_eq!((index.stretches_of(2), index.run_of(9)), (vec![(10, 30)], Some(0)));
        assert!(index.lies_in_order() && index.runs()[1].seed == Some(8));
        assert!(RunIndex::laid(runs.clone(), 31).is_none(), "another number of rows");
        assert!(RunIndex::laid(runs.into_iter().rev().collect(), 30).is_none(), "in another order");
    }

    proptest! {
        #[test]
        fn no_body_breaks_a_reader(at in 0usize..400, with in any::<[u8; 8]>(), end in 0usize..500) {
            let mut body = body();
            let at = at.min(body.len() - 8);
            body[at..at + 8].copy_from_slice(&with);
            let _ = read(&body[..end.min(body.len())]);
            if let Some(said) = read(&body) {
                let _ = RunIndex::laid(said.runs, 30);
            }
        }
    }
}
