//! Arrays of records in files of one layout, one after the other, with what guards them -> a table. Files that are elsewhere are
//! fetched in ranges, their checksums with them; a record that does not have its checksum is fetched again once, then refused.

use std::ops::Range;
use std::path::PathBuf;

use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};

use super::{FrameTable, Guarding, Needs};
use crate::store::{HeldFile, Hold, Residence};

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

impl Held {
    fn far_sums(&self) -> Option<&HeldFile> {
        self.guard.as_deref()?.far_sums()
    }
}

/// Ranges of bytes: of records, and of their checksums where these are elsewhere.
#[derive(Debug, Default, Clone)]
struct Wanted {
    records: Vec<(usize, usize)>,
    sums: Vec<(usize, usize)>,
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
        let open = |part: Part| {
            let too_large = || {
                let detail = format!("{} rows are too many", part.rows);
                Error::new(Kind::TooLarge, detail).in_source(part.path.display().to_string())
            };
            let bytes = part.rows.checked_mul(layout.size() as u64).ok_or_else(too_large)?;
            let held = HeldFile::open(&part.path, part.offset, bytes, residence)?;
            Ok((part, held))
        };
        let parts = parts.into_iter().map(open).collect::<Result<_>>()?;
        FileTable::of(layout, parts)
    }

    /// The same of parts that are held.
    ///
    /// Errors: `TooLarge` with the file.
    pub fn of(layout: Layout, parts: Vec<(Part, HeldFile)>) -> Result<Self> {
        let mut table = FileTable { layout, parts: Vec::new(), first: vec![0], whole: true };
        for (part, held) in parts {
            let end = table.len().checked_add(part.rows).ok_or_else(|| {
                let detail = format!("{} rows are too many", part.rows);
                Error::new(Kind::TooLarge, detail).in_source(part.path.display().to_string())
            })?;
            table.whole &= held.is_whole();
            table.first.push(end);
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
            part.far_sums().map_or(Ok(()), |sums| sums.have(0, usize::MAX))?;
            guard.check_all(part.file.bytes())
        })
    }

    /// Fetches these records, and the records that share a checksum with them. They stay in the cache while the returned holds live.
    fn have(&self, rows: &[u64]) -> Result<Vec<Hold>> {
        // Readers have fetched nearly all of them: to see that costs a small part of naming the ranges of bytes.
        if rows.iter().all(|row| self.keeps(*row)) {
            return Ok(Vec::new());
        }
        let wanted = self.wanted(rows.iter().map(|row| *row..row + 1))?;
        let mut held = Vec::new();
        self.each(&wanted, &mut |file, ranges| match file.is_bounded() {
            true => {
                held.extend(file.hold(ranges)?);
                Ok(())
            }
            false => file.have_all(ranges),
        })?;
        Ok(held)
    }

    /// Whether a record, the records that share a checksum with it, and the checksum are there and stay there.
    fn keeps(&self, row: u64) -> bool {
        let Ok(part) = self.checked(row) else { return false };
        let (Held { file, guard, .. }, row, size) = (&self.parts[part], row - self.first[part], self.layout.size());
        let Range { start, end } = guard.as_deref().map_or(row..row + 1, |guard| guard.block(row));
        let sums = guard.as_deref().and_then(|guard| Some((guard.far_sums()?, guard.sums_of(row..row + 1))));
        file.keeps(start as usize * size, (end as usize).saturating_mul(size))
            && sums.is_none_or(|(file, (start, end))| file.keeps(start, end))
    }

    /// Fetches these records again, and those that are checked with them.
    fn again(&self, rows: &[u64]) -> Result<()> {
        let wanted = self.wanted(rows.iter().map(|row| *row..row + 1))?;
        self.each(&wanted, &mut |file, ranges| file.again(ranges).map(drop))
    }

    /// The bytes of each part that these records need.
    fn wanted(&self, rows: impl Iterator<Item = Range<u64>>) -> Result<Vec<Wanted>> {
        let size = self.layout.size();
        let mut wanted = vec![Wanted::default(); self.parts.len()];
        for rows in rows {
            let mut start = rows.start;
            while start < rows.end {
                let part = self.checked(start)?;
                let (first, end) = (self.first[part], rows.end.min(self.first[part + 1]));
                let own = start - first..end - first;
                let guard = self.parts[part].guard.as_deref();
                let whole = |guard: &dyn Guarding| guard.block(own.start).start..guard.block(own.end - 1).end;
                let blocks = guard.map_or(own.clone(), whole);
                let bytes = (blocks.start as usize * size, (blocks.end as usize).saturating_mul(size));
                wanted[part].records.push(bytes);
                wanted[part]
                    .sums
                    .extend(guard.filter(|guard| guard.far_sums().is_some()).map(|guard| guard.sums_of(own)));
                start = end;
            }
        }
        Ok(wanted)
    }

    /// Calls `each` with the files of which anything is wanted.
    fn each<'a>(&'a self, wanted: &[Wanted], each: &mut Needs<'_, 'a>) -> Result<()> {
        for (part, Wanted { records, sums }) in self.parts.iter().zip(wanted) {
            each(&part.file, records)?;
            if let Some(file) = part.far_sums() {
                each(file, sums)?;
            }
        }
        Ok(())
    }

    /// Copies the records. The caller has made sure that all of them are there.
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
        let out = out.as_chunks_mut::<N>().0;
        self.by_part(rows, |within, first, bytes| {
            let records: &[[u8; N]] = bytes.as_chunks().0;
            let copies = rows[within.clone()].iter().zip(&mut out[within]);
            copies.for_each(|(row, out)| *out = records[(row - first) as usize]);
        })
    }

    fn gather_any(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let size = self.layout.size();
        self.by_part(rows, |within, first, bytes| {
            let out = out[within.start * size..within.end * size].chunks_exact_mut(size);
            rows[within].iter().zip(out).for_each(|(row, out)| {
                out.copy_from_slice(&bytes[(row - first) as usize * size..][..size]);
            });
        })
    }

    /// Calls `copy` with rows that follow each other in `rows` and lie in one part: where they stand in `rows`, the first row of the part,
    /// and its bytes. Checks them before that: a loop that only copies has several records on their way from memory at once. Where bytes may
    /// come again meanwhile, each record is copied as soon as it is checked.
    fn by_part(&self, rows: &[u64], mut copy: impl FnMut(Range<usize>, u64, &[u8])) -> Result<()> {
        let (mut start, most) = (0, if self.whole { rows.len() } else { 1 });
        while let Some(&row) = rows.get(start) {
            let part = self.checked(row)?;
            let (first, behind) = (self.first[part], self.first[part + 1]);
            let within = rows[start..].iter().take(most).take_while(|row| (first..behind).contains(*row));
            let end = start + within.count();
            let Held { file, guard, .. } = &self.parts[part];
            if let Some(guard) = guard {
                guard.touch_all(first, &rows[start..end], file)?;
            }
            copy(start..end, first, file.bytes());
            start = end;
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
            guard.touch_all(first, rows, file)?;
        }
        let records: &[[u8; N]] = file.bytes().as_chunks().0;
        let mut found = Vec::with_capacity(rows.len());
        found.extend(rows.iter().map(|row| records[(row - first) as usize]));
        Ok(Some(found.into_flattened()))
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
        let _held = self.have(rows)?;
        match self.gather_here(rows, out) {
            // A network may damage bytes: the table fetches them once more.
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
        self.parts.iter().flat_map(|part| std::iter::once(&part.file).chain(part.far_sums())).collect()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        let wanted = self.wanted(rows.iter().cloned())?;
        self.each(&wanted, each)
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
    use std::sync::{Arc, Mutex};

    use super::*;
    use gristmill_format::layout::Scalar;

    /// Notes which rows were touched, and refuses one of them.
    #[derive(Debug)]
    struct Noting(Arc<Mutex<Vec<u64>>>, Option<u64>);

    impl Guarding for Noting {
        fn touch(&self, row: u64, _: &HeldFile) -> Result<()> {
            self.0.lock().unwrap().push(row);
            if self.1 == Some(row) { Err(Error::new(Kind::Corrupt, "this row")) } else { Ok(()) }
        }

        fn check_all(&self, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn block(&self, row: u64) -> Range<u64> {
            row..row + 1
        }
    }

    #[test]
    fn each_row_is_checked_where_it_lies_in_its_file() {
        let folder = tempfile::tempdir().unwrap();
        for size in [1usize, 24, 46, 48, 50] {
            let layout = Layout::packed(&[("bytes", Scalar::U8, &[size])]).unwrap();
            let parts = [3u64, 5].map(|rows| {
                let path = folder.path().join(format!("{size}-{rows}"));
                std::fs::write(&path, vec![rows as u8; rows as usize * size]).unwrap();
                Part { path, offset: 0, rows }
            });
            let noted = [(); 2].map(|()| Arc::<Mutex<Vec<u64>>>::default());
            let guarded = |refused| {
                let guard = |noted: &Arc<_>| -> Option<Box<dyn Guarding>> {
                    Some(Box::new(Noting(Arc::clone(noted), refused)))
                };
                let table = FileTable::open(layout.clone(), parts.to_vec(), Residence::Mapped).unwrap();
                table.guarded(noted.iter().map(guard).collect())
            };
            let rows = [7u64, 3, 4, 0, 2, 3];
            let mut out = vec![0; rows.len() * size];
            guarded(None).gather(&rows, &mut out).unwrap();
            assert_eq!(
                noted.each_ref().map(|noted| std::mem::take(&mut *noted.lock().unwrap())),
                [vec![0, 2], vec![4, 0, 1, 0]]
            );
            // Row 4 of the second file, row 7 of the table.
            assert_eq!(guarded(Some(4)).gather(&rows, &mut out).unwrap_err().kind(), Kind::Corrupt);
            guarded(Some(4)).gather(&rows[1..], &mut out[size..]).unwrap();
        }
    }

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
