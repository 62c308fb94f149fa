//! Many fixed-size records that can be reached by number: what index feeding gathers from, whatever game they are of.
//! `FileTable` is the plain form: arrays of records in files of one layout, one after the other.

mod chained;
mod joined;
mod pick;
mod recipe;
mod weighed;

use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};

use xxhash_rust::xxh3::Xxh3;

use crate::runtime::intervals::Intervals;
use crate::store::bucket::Counts;
use crate::store::{Claims, HeldFile, Residence};

pub use chained::ChainedTable;
pub use joined::JoinedTable;
pub use pick::{Pick, random_bits};
pub use recipe::{Param, Recipe, Step, ThreeWay};
pub use weighed::Weighed;

/// Takes a file, and ranges of its bytes that are needed.
pub type Needs<'s, 'a> = dyn FnMut(&'a HeldFile, &[(usize, usize)]) -> Result<()> + 's;

/// Records of one layout, numbered from 0. Read from many threads at once.
pub trait FrameTable: Send + Sync + Debug {
    /// The layout of every record.
    fn layout(&self) -> &Layout;

    /// How many records there are.
    fn len(&self) -> u64;

    /// Copies the records of these numbers into `out`, back to back.
    ///
    /// Errors: `WrongSize` unless `out` is as long as the records; `Missing` for a number out of range; and what
    /// reading gives.
    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()>;

    /// The records of these numbers, back to back.
    ///
    /// Errors: as [`FrameTable::gather`].
    fn gathered(&self, rows: &[u64]) -> Result<Vec<u8>> {
        let mut records = vec![0; rows.len() * self.layout().size()];
        self.gather(rows, &mut records)?;
        Ok(records)
    }

    /// Says that records `start..end` will be wanted soon.
    fn want(&self, start: u64, end: u64);

    /// The files that records are read from, where they are in files.
    fn files(&self) -> Vec<&HeldFile> {
        Vec::new()
    }

    /// Calls `each` with the files that these records are read from, and the bytes of each that they need.
    ///
    /// Errors: as [`FrameTable::gather`]; those of `each`.
    fn needs<'a>(&'a self, _rows: &[Range<u64>], _each: &mut Needs<'_, 'a>) -> Result<()> {
        Ok(())
    }

    /// Whether records are read without waiting for more than a disk: not where they are elsewhere.
    fn is_near(&self) -> bool {
        self.files().iter().all(|file| file.is_whole())
    }

    /// Claims what these records are read from, as far as it is elsewhere. Once it was brought, [`FrameTable::gather`] waits for no
    /// network.
    ///
    /// Errors: as [`FrameTable::gather`].
    fn claim(&self, rows: &[Range<u64>]) -> Result<Vec<Claims<'_>>> {
        let mut claims = Vec::new();
        self.needs(rows, &mut |file, ranges| {
            claims.extend(file.claim(ranges));
            Ok(())
        })?;
        Ok(claims)
    }

    /// Counts of what this process asks of the stores that it fetches records from, those of one store perhaps several times.
    fn counts(&self) -> Vec<Arc<Counts>> {
        self.files().iter().filter_map(|file| file.counts()).collect()
    }

    /// The file that a record is in, and its number there.
    fn locate(&self, row: u64) -> (String, u64);

    /// The way past records, where the table has one.
    fn straight(&self) -> Option<&dyn Straight> {
        None
    }

    /// The chunks that its rows come in, where these can be weighed.
    fn weighed(&self) -> Option<&dyn Weighed> {
        None
    }

    /// How the records are divided into games, runs or trajectories.
    ///
    /// Errors: `Unsupported` for a table that does not know, or in which the records of one do not lie together.
    fn chunks(&self) -> Result<&dyn Chunks> {
        Err(Error::new(Kind::Unsupported, "these rows are not known to be steps of games"))
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table that makes tensors of its rows without making records of them.
pub trait Straight {
    /// Encodes rows into `out`: one slice for each output, as long as the rows take. The encoder takes the table's layout.
    ///
    /// Errors: as [`FrameTable::gather`] and the encoder's.
    fn encode(&self, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()>;
}

/// A table that knows which of its records follow each other in one chunk.
pub trait Chunks {
    /// The records of the chunk that record `row` is in, in order of time; empty beyond the last.
    fn bounds(&self, row: u64) -> Range<u64>;
}

/// Some rows of a table, as index feeding takes them.
#[derive(Debug, Clone)]
pub struct IndexInput {
    /// The table.
    pub table: Arc<dyn FrameTable>,
    /// Which of its rows are meant.
    pub rows: Arc<Intervals>,
    /// Hash of what the table holds and of which rows are meant; a saved state fits no other.
    pub identity: u64,
    /// What the ids of a category stand for, where the records have one: the names of valuations.
    pub valuations: Vec<String>,
    /// How they were selected.
    pub recipe: Arc<Recipe>,
}

impl IndexInput {
    /// The rows of several tables as those of one, and how many records each table has.
    ///
    /// Errors: `Unsupported` for records or names of valuations that differ; as [`ChainedTable::new`].
    pub fn chained(inputs: Vec<IndexInput>) -> Result<(IndexInput, Vec<u64>)> {
        let table = ChainedTable::new(inputs.iter().map(|input| Arc::clone(&input.table)).collect())?;
        let valuations = inputs.first().map(|input| input.valuations.clone()).unwrap_or_default();
        if let Some(i) = inputs.iter().position(|input| input.valuations != valuations) {
            let detail = format!(
                "source {i} names its valuations {:?}, source 0 {valuations:?}; `gristmill merge` makes one pack of both",
                inputs[i].valuations
            );
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let (mut rows, mut hash) = (Intervals::default(), Xxh3::new());
        for (input, first) in inputs.iter().zip(table.bounds()) {
            input.rows.iter().for_each(|(start, end)| rows.push(first + start, first + end));
            hash.update(&input.identity.to_le_bytes());
        }
        let lens = inputs.iter().map(|input| input.table.len()).collect();
        let identity = hash.digest();
        let recipe = Arc::new(Recipe::mixed(inputs.iter().map(|input| (*input.recipe).clone()).collect(), identity));
        Ok((IndexInput { table: Arc::new(table), rows: Arc::new(rows), identity, valuations, recipe }, lens))
    }
}

/// Numbers in a table of the rows at `places`, counted among `rows`.
///
/// Errors: `Missing` for a place beyond the last.
pub fn rows_at(rows: &Intervals, places: &[u64]) -> Result<Vec<u64>> {
    match places.iter().find(|place| **place >= rows.len()) {
        None => Ok(places.iter().map(|place| rows.row(*place)).collect()),
        Some(place) => Err(Error::new(Kind::Missing, format!("row {place} of a selection of {}", rows.len()))),
    }
}

/// A part of a [`FileTable`]: `rows` records from byte `offset` of a file on.
#[derive(Debug, Clone)]
pub struct Part {
    /// The file.
    pub path: PathBuf,
    /// Where the records start.
    pub offset: u64,
    /// How many there are.
    pub rows: u64,
}

/// A part, as it is held.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    file: HeldFile,
    guard: Option<Box<dyn Guarding>>,
}

/// What sees to it that records are what they were when they were written.
pub trait Guarding: Send + Sync + Debug {
    /// Says whether record `row` of a file is; `records` are all of the file.
    ///
    /// Errors: `Corrupt` with file and byte.
    fn touch(&self, row: u64, records: &[u8]) -> Result<()>;

    /// Says whether records `rows`, counted from `first` on, of a file are; `records` are all of the file.
    ///
    /// Errors: as [`Guarding::touch`], for the first that is not.
    fn touch_all(&self, first: u64, rows: &[u64], records: &[u8]) -> Result<()> {
        rows.iter().try_for_each(|row| self.touch(row - first, records))
    }

    /// Says whether all are.
    ///
    /// Errors: `Corrupt` with file and byte, for the first that is not.
    fn check_all(&self, records: &[u8]) -> Result<()>;

    /// The records that must be there when record `row` is touched.
    fn block(&self, row: u64) -> Range<u64>;
}

/// Arrays of records in files.
#[derive(Debug)]
pub struct FileTable {
    layout: Layout,
    parts: Vec<Held>,
    /// Number of the first record of each part, and that after the last.
    first: Vec<u64>,
    /// Whether the bytes of all parts are there.
    whole: bool,
}

impl FileTable {
    /// A table of `parts`, whose records all have `layout`. Mapping takes no time; reading into memory takes its own.
    ///
    /// Errors, with the file: as [`HeldFile::open`]; `TooLarge` when there are more bytes than 64 bits count.
    pub fn open(layout: Layout, parts: Vec<Part>, residence: Residence) -> Result<Self> {
        let mut table = FileTable { layout, parts: Vec::new(), first: vec![0], whole: true };
        for part in parts {
            let too_large = || {
                let detail = format!("{} rows are too many", part.rows);
                Error::new(Kind::TooLarge, detail).in_source(part.path.display().to_string())
            };
            let bytes = part.rows.checked_mul(table.layout.size() as u64).ok_or_else(too_large)?;
            let held = HeldFile::open(&part.path, part.offset, bytes, residence)?;
            table.whole &= held.is_whole();
            table.first.push(table.len().checked_add(part.rows).ok_or_else(too_large)?);
            table.parts.push(Held { path: part.path, file: held, guard: None });
        }
        Ok(table)
    }

    /// The same with what guards each part, in order; none for a part that nothing guards.
    #[must_use]
    pub fn guarded(mut self, guards: Vec<Option<Box<dyn Guarding>>>) -> Self {
        for (part, guard) in self.parts.iter_mut().zip(guards) {
            part.guard = guard;
        }
        self
    }

    /// Looks at all records that something guards.
    ///
    /// Errors: as [`Guarding::check_all`].
    pub fn check_all(&self) -> Result<()> {
        let mut guarded = self.parts.iter().filter_map(|part| Some((part.guard.as_ref()?, part)));
        guarded.try_for_each(|(guard, part)| {
            part.file.have(0, usize::MAX)?;
            guard.check_all(part.file.bytes())
        })
    }

    /// Sees to it that these records are there, and those that are checked with them.
    fn have(&self, rows: &[u64]) -> Result<()> {
        let ranges = self.ranges(rows.iter().map(|row| *row..row + 1))?;
        self.parts.iter().zip(&ranges).try_for_each(|(part, ranges)| part.file.have_all(ranges))
    }

    /// Fetches these records again, and those that are checked with them.
    fn again(&self, rows: &[u64]) -> Result<()> {
        let ranges = self.ranges(rows.iter().map(|row| *row..row + 1))?;
        self.parts.iter().zip(&ranges).try_for_each(|(part, ranges)| part.file.again(ranges).map(drop))
    }

    /// The bytes of each part that these records need.
    fn ranges(&self, rows: impl Iterator<Item = Range<u64>>) -> Result<Vec<Vec<(usize, usize)>>> {
        let size = self.layout.size();
        let mut ranges: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.parts.len()];
        for rows in rows {
            let mut start = rows.start;
            while start < rows.end {
                let part = self.checked(start)?;
                let (first, end) = (self.first[part], rows.end.min(self.first[part + 1]));
                let own = start - first..end - first;
                let whole = |guard: &dyn Guarding| guard.block(own.start).start..guard.block(own.end - 1).end;
                let blocks = self.parts[part].guard.as_deref().map_or(own.clone(), whole);
                ranges[part].push((blocks.start as usize * size, (blocks.end as usize).saturating_mul(size)));
                start = end;
            }
        }
        Ok(ranges)
    }

    /// The records, of which each is there.
    fn gather_here(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        // Copies of a length known in advance are several times as quick; these are the lengths of 2048 rows and their values.
        match self.layout.size() {
            48 => self.gather_sized::<48>(rows, out),
            46 => self.gather_sized::<46>(rows, out),
            24 => self.gather_sized::<24>(rows, out),
            _ => self.gather_any(rows, out),
        }
    }

    /// The part of a record that there is.
    fn part(&self, row: u64) -> usize {
        self.first.partition_point(|first| *first <= row) - 1
    }

    fn gather_sized<const N: usize>(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let mut within: (u64, u64, &[[u8; N]]) = (0, 0, &[]);
        let mut guard = None;
        for (&row, out) in rows.iter().zip(out.as_chunks_mut::<N>().0) {
            if row < within.0 || row >= within.1 {
                let part = self.checked(row)?;
                within = (self.first[part], self.first[part + 1], self.parts[part].file.bytes().as_chunks().0);
                guard = self.parts[part].guard.as_deref();
            }
            if let Some(guard) = guard {
                guard.touch(row - within.0, within.2.as_flattened())?;
            }
            *out = within.2[(row - within.0) as usize];
        }
        Ok(())
    }

    /// The records of rows that lie in one part, in memory that was not filled before; `None` where they lie in several.
    fn gathered_sized<const N: usize>(&self, rows: &[u64]) -> Result<Option<Vec<u8>>> {
        let Some(&one) = rows.first() else { return Ok(Some(Vec::new())) };
        let part = self.checked(one)?;
        let (first, behind) = (self.first[part], self.first[part + 1]);
        // Without an early end, so that it is done several at a time.
        if !rows.iter().fold(true, |within, row| within & (*row >= first) & (*row < behind)) {
            return Ok(None);
        }
        let Held { file, guard, .. } = &self.parts[part];
        if let Some(guard) = guard {
            guard.touch_all(first, rows, file.bytes())?;
        }
        let records: &[[u8; N]] = file.bytes().as_chunks().0;
        let mut found = Vec::with_capacity(rows.len());
        found.extend(rows.iter().map(|row| records[(row - first) as usize]));
        Ok(Some(found.into_flattened()))
    }

    fn gather_any(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let size = self.layout.size();
        for (&row, out) in rows.iter().zip(out.chunks_exact_mut(size)) {
            let part = self.checked(row)?;
            let (bytes, at) = (self.parts[part].file.bytes(), (row - self.first[part]) as usize * size);
            if let Some(guard) = &self.parts[part].guard {
                guard.touch(row - self.first[part], bytes)?;
            }
            out.copy_from_slice(&bytes[at..at + size]);
        }
        Ok(())
    }

    fn checked(&self, row: u64) -> Result<usize> {
        if row < self.len() {
            return Ok(self.part(row));
        }
        Err(Error::new(Kind::Missing, format!("row {row} of a table of {}", self.len())))
    }
}

impl FrameTable for FileTable {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn len(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        if rows.len().checked_mul(self.layout.size()) != Some(out.len()) {
            let detail = format!("{} bytes for {} records of {}", out.len(), rows.len(), self.layout.size());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        if self.whole {
            return self.gather_here(rows, out);
        }
        self.have(rows)?;
        match self.gather_here(rows, out) {
            // What came over a network may come right the next time.
            Err(e) if e.kind() == Kind::Corrupt => {
                self.again(rows)?;
                self.gather_here(rows, out)
            }
            gathered => gathered,
        }
    }

    fn gathered(&self, rows: &[u64]) -> Result<Vec<u8>> {
        let found = match self.layout.size() {
            _ if !self.whole => None,
            48 => self.gathered_sized::<48>(rows)?,
            46 => self.gathered_sized::<46>(rows)?,
            24 => self.gathered_sized::<24>(rows)?,
            _ => None,
        };
        let filled = || {
            let mut records = vec![0; rows.len() * self.layout.size()];
            self.gather(rows, &mut records)?;
            Ok(records)
        };
        found.map_or_else(filled, Ok)
    }

    fn want(&self, start: u64, end: u64) {
        let size = self.layout.size();
        for (i, Held { file: held, .. }) in self.parts.iter().enumerate() {
            let (first, behind) = (self.first[i], self.first[i + 1]);
            if start < behind && first < end {
                held.want((start.max(first) - first) as usize * size, (end.min(behind) - first) as usize * size);
            }
        }
    }

    fn files(&self) -> Vec<&HeldFile> {
        self.parts.iter().map(|part| &part.file).collect()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        let ranges = self.ranges(rows.iter().cloned())?;
        self.parts.iter().zip(&ranges).try_for_each(|(part, ranges)| each(&part.file, ranges))
    }

    fn locate(&self, row: u64) -> (String, u64) {
        match self.checked(row) {
            Ok(part) => (self.parts[part].path.display().to_string(), row - self.first[part]),
            Err(_) => (String::new(), row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_format::layout::Scalar;

    #[test]
    fn records_are_found_across_files_of_any_record_size() {
        let folder = tempfile::tempdir().unwrap();
        for size in [1usize, 24, 46, 48, 50] {
            let layout = Layout::packed(&[("bytes", Scalar::U8, &[size])]).unwrap();
            let mut parts = Vec::new();
            for (i, rows) in [3u64, 0, 5].into_iter().enumerate() {
                let path = folder.path().join(format!("{size}-{i}"));
                let first = if i == 0 { 0 } else { 3 };
                let bytes = (first..first + rows).flat_map(|row| vec![row as u8; size]);
                std::fs::write(&path, [vec![0xEE; 7], bytes.collect()].concat()).unwrap();
                parts.push(Part { path, offset: 7, rows });
            }
            let table = FileTable::open(layout, parts, Residence::Mapped).unwrap();
            assert_eq!(table.len(), 8);
            let rows = [7u64, 0, 3, 2, 3, 4];
            let mut out = vec![0; rows.len() * size];
            table.gather(&rows, &mut out).unwrap();
            assert_eq!(table.gathered(&rows).unwrap(), out);
            assert_eq!(table.gathered(&rows[2..3]).unwrap(), out[2 * size..3 * size]);
            assert_eq!(table.gathered(&[7, 4]).unwrap(), [&out[..size], &out[5 * size..]].concat());
            assert!(table.gathered(&[]).unwrap().is_empty());
            assert_eq!(out.chunks(size).map(|record| u64::from(record[0])).collect::<Vec<_>>(), rows);
            assert!(out.chunks(size).all(|record| record.iter().all(|byte| *byte == record[0])));
            assert_eq!(table.gather(&[8], &mut out[..size]).unwrap_err().kind(), Kind::Missing);
            assert_eq!(table.gathered(&[4, 8]).unwrap_err().kind(), Kind::Missing);
            assert_eq!(table.gather(&[1], &mut out).unwrap_err().kind(), Kind::WrongSize);
            table.want(0, 100);
            let (path, row) = table.locate(4);
            assert!(path.ends_with(&format!("{size}-2")) && row == 1, "{path} {row}");
        }
    }
}
