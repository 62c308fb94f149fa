//! Several tables of one layout -> one: their records one after another. Copies no record by itself.
//! Each question goes to the table that has the row; what one of them cannot answer, all together cannot.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::encode::Encoder;
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};

use super::{Chunks, FrameTable, Needs, Pick, Straight};
use crate::store::HeldFile;

/// Records of several tables, numbered through.
#[derive(Debug)]
pub struct ChainedTable {
    tables: Vec<Arc<dyn FrameTable>>,
    /// Number of the first record of each table, and the one after the last.
    first: Vec<u64>,
}

impl ChainedTable {
    /// The records of `tables`, in order.
    ///
    /// Errors: `Empty` for none; `Unsupported` for tables whose records differ; `TooLarge` for more records than 64 bits count.
    pub fn new(tables: Vec<Arc<dyn FrameTable>>) -> Result<Self> {
        let one = tables.first().ok_or_else(|| Error::new(Kind::Empty, "no tables"))?;
        if let Some((i, other)) = tables.iter().enumerate().find(|(_, other)| other.layout() != one.layout()) {
            let (is, was) = (other.layout().to_descr(), one.layout().to_descr());
            let detail = format!("source {i} has records of {is}, source 0 of {was}; expected the same of all");
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let mut first = vec![0u64];
        for table in &tables {
            let end = first[first.len() - 1].checked_add(table.len());
            first.push(end.ok_or_else(|| Error::new(Kind::TooLarge, "more records than 64 bits count"))?);
        }
        Ok(ChainedTable { tables, first })
    }

    /// Number of the first record of each table, and the one after the last.
    pub fn bounds(&self) -> &[u64] {
        &self.first
    }

    /// The table that has a row; of rows beyond the last, the last table.
    fn table(&self, row: u64) -> usize {
        (self.first.partition_point(|first| *first <= row) - 1).min(self.tables.len() - 1)
    }

    /// Calls `each` with every run of rows that lie in one table: the table, where its records begin, and the run.
    fn runs(
        &self,
        rows: usize,
        row: impl Fn(usize) -> u64,
        mut each: impl FnMut(&dyn FrameTable, u64, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        while start < rows {
            let table = self.table(row(start));
            let within = self.first[table]..self.first[table + 1];
            let mut end = start + 1;
            while end < rows && within.contains(&row(end)) {
                end += 1;
            }
            each(&*self.tables[table], within.start, start..end)?;
            start = end;
        }
        Ok(())
    }
}

impl FrameTable for ChainedTable {
    fn layout(&self) -> &Layout {
        self.tables[0].layout()
    }

    fn len(&self) -> u64 {
        self.first[self.tables.len()]
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        let size = self.layout().size();
        if rows.len().checked_mul(size) != Some(out.len()) {
            let detail = format!("{} bytes for {} records of {size}", out.len(), rows.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let mut own = Vec::new();
        self.runs(
            rows.len(),
            |i| rows[i],
            |table, first, run| {
                own.clear();
                own.extend(rows[run.clone()].iter().map(|row| row - first));
                table.gather(&own, &mut out[run.start * size..run.end * size])
            },
        )
    }

    fn want(&self, start: u64, end: u64) {
        for (table, bounds) in self.tables.iter().zip(self.first.windows(2)) {
            let (from, to) = (start.max(bounds[0]), end.min(bounds[1]));
            if from < to {
                table.want(from - bounds[0], to - bounds[0]);
            }
        }
    }

    fn files(&self) -> Vec<&HeldFile> {
        self.tables.iter().flat_map(|table| table.files()).collect()
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        let mut own: Vec<Vec<Range<u64>>> = vec![Vec::new(); self.tables.len()];
        for rows in rows {
            let mut start = rows.start;
            while start < rows.end {
                let table = self.table(start);
                let last = table + 1 == self.tables.len();
                let end = if last { rows.end } else { rows.end.min(self.first[table + 1]) };
                own[table].push(start - self.first[table]..end - self.first[table]);
                start = end;
            }
        }
        self.tables.iter().zip(&own).try_for_each(|(table, rows)| table.needs(rows, each))
    }

    fn locate(&self, row: u64) -> (String, u64) {
        let table = self.table(row);
        self.tables[table].locate(row - self.first[table])
    }

    fn straight(&self) -> Option<&dyn Straight> {
        self.tables.iter().all(|table| table.straight().is_some()).then_some(self as &dyn Straight)
    }

    fn chunks(&self) -> Result<&dyn Chunks> {
        self.tables.iter().try_for_each(|table| table.chunks().map(drop))?;
        Ok(self)
    }
}

impl Straight for ChainedTable {
    fn encode(&self, encoder: &dyn Encoder, picks: &[Pick], out: &mut [&mut [u8]]) -> Result<()> {
        let sizes: Vec<usize> = out.iter().map(|column| column.len().checked_div(picks.len()).unwrap_or(0)).collect();
        let mut own = Vec::new();
        self.runs(
            picks.len(),
            |i| picks[i].row,
            |table, first, run| {
                own.clear();
                own.extend(picks[run.clone()].iter().map(|pick| Pick { row: pick.row - first, ..*pick }));
                let columns = out.iter_mut().zip(&sizes);
                let mut part: Vec<&mut [u8]> =
                    columns.map(|(column, size)| &mut column[run.start * size..run.end * size]).collect();
                let straight =
                    table.straight().ok_or_else(|| Error::new(Kind::Unsupported, "records are needed here"))?;
                straight.encode(encoder, &own, &mut part)
            },
        )
    }
}

impl Chunks for ChainedTable {
    fn bounds(&self, row: u64) -> Range<u64> {
        let table = self.table(row);
        let first = self.first[table];
        let found = self.tables[table].chunks().map_or(0..0, |chunks| chunks.bounds(row - first));
        found.start + first..found.end + first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Residence;
    use crate::table::{FileTable, Part};
    use gristmill_format::layout::Scalar;

    fn table(folder: &std::path::Path, first: u8, rows: u8, size: usize) -> Arc<dyn FrameTable> {
        let path = folder.join(format!("{first}-{rows}-{size}"));
        std::fs::write(&path, (first..first + rows).flat_map(|row| vec![row; size]).collect::<Vec<u8>>()).unwrap();
        let layout = Layout::packed(&[("bytes", Scalar::U8, &[size])]).unwrap();
        let parts = vec![Part { path, offset: 0, rows: rows.into() }];
        Arc::new(FileTable::open(layout, parts, Residence::Mapped).unwrap())
    }

    #[test]
    fn rows_are_those_of_their_tables() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let chained = ChainedTable::new(vec![table(at, 0, 3, 24), table(at, 3, 0, 24), table(at, 3, 4, 24)]).unwrap();
        assert_eq!((chained.len(), chained.bounds()), (7, &[0, 3, 3, 7][..]));
        let rows = [6u64, 5, 0, 2, 3, 3, 1];
        let records = chained.gathered(&rows).unwrap();
        assert_eq!(records.chunks(24).map(|record| u64::from(record[0])).collect::<Vec<_>>(), rows);
        assert!(records.chunks(24).all(|record| record.iter().all(|byte| *byte == record[0])));
        assert_eq!(chained.locate(4).1, 1);
        assert!(chained.locate(4).0.ends_with("3-4-24"));
        assert_eq!(chained.gathered(&[7]).unwrap_err().kind(), Kind::Missing);
        assert_eq!(chained.gather(&[1], &mut [0; 3]).unwrap_err().kind(), Kind::WrongSize);
        assert!(chained.straight().is_none() && chained.chunks().is_err());
        chained.want(0, 100);
    }

    #[test]
    fn tables_of_other_records_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tables = vec![table(folder.path(), 0, 3, 24), table(folder.path(), 0, 3, 23)];
        let error = ChainedTable::new(tables).unwrap_err().to_string();
        assert!(error.contains("source 1") && error.contains("source 0"), "{error}");
        assert_eq!(ChainedTable::new(Vec::new()).unwrap_err().kind(), Kind::Empty);
    }
}
