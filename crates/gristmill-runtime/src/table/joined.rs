//! Two tables of one length -> one whose records have a field of the second table after the record of the first.
//! Copies bytes; the caller must know that both tables are of the same things.

use std::ops::Range;
use std::sync::Arc;

use gristmill_format::layout::{Field, Layout};
use gristmill_format::{Error, Kind, Result};

use super::{Chunks, FrameTable, Needs};
use crate::store::HeldFile;

/// Records of one table, each with a field of the record of the same number of another.
#[derive(Debug)]
pub struct JoinedTable {
    rows: Arc<dyn FrameTable>,
    beside: Arc<dyn FrameTable>,
    field: Field,
    layout: Layout,
}

impl JoinedTable {
    /// Puts the field called `name` of `beside` after the records of `rows`.
    ///
    /// Errors: `WrongSize` for tables of different length, `Missing` for a field that does not exist, `Corrupt` for one
    /// that `rows` has too.
    pub fn new(rows: Arc<dyn FrameTable>, beside: Arc<dyn FrameTable>, name: &str) -> Result<Self> {
        if rows.len() != beside.len() {
            let detail = format!("{} records beside {} rows", beside.len(), rows.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let field = beside.layout().field(name).cloned();
        let field = field.ok_or_else(|| Error::new(Kind::Missing, format!("no field `{name}` beside the rows")))?;
        let own = rows.layout().size();
        let last = Field { offset: own, ..field.clone() };
        let fields = rows.layout().fields().iter().cloned().chain([last]).collect();
        let layout = Layout::new(fields, own + field.bytes())?;
        Ok(JoinedTable { rows, beside, field, layout })
    }
}

impl FrameTable for JoinedTable {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<()> {
        if rows.len().checked_mul(self.layout.size()) != Some(out.len()) {
            let detail = format!("{} bytes for {} records of {}", out.len(), rows.len(), self.layout.size());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        let (own, other) = (self.rows.layout().size(), self.beside.layout().size());
        let (mut records, mut beside) = (vec![0; rows.len() * own], vec![0; rows.len() * other]);
        self.rows.gather(rows, &mut records)?;
        self.beside.gather(rows, &mut beside)?;
        let pairs = records.chunks_exact(own).zip(beside.chunks_exact(other));
        for (out, (record, beside)) in out.chunks_exact_mut(self.layout.size()).zip(pairs) {
            out[..own].copy_from_slice(record);
            out[own..].copy_from_slice(&beside[self.field.offset..][..self.field.bytes()]);
        }
        Ok(())
    }

    fn want(&self, start: u64, end: u64) {
        self.rows.want(start, end);
        self.beside.want(start, end);
    }

    fn files(&self) -> Vec<&HeldFile> {
        let mut all = self.rows.files();
        all.extend(self.beside.files());
        all
    }

    fn needs<'a>(&'a self, rows: &[Range<u64>], each: &mut Needs<'_, 'a>) -> Result<()> {
        self.rows.needs(rows, each)?;
        self.beside.needs(rows, each)
    }

    fn locate(&self, row: u64) -> (String, u64) {
        self.rows.locate(row)
    }

    fn chunks(&self) -> Result<&dyn Chunks> {
        self.rows.chunks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Residence;
    use crate::table::{FileTable, Part};
    use gristmill_format::layout::Scalar;

    #[test]
    fn records_stand_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let table = |name: &str, fields: &[(&str, Scalar, &[usize])], bytes: &[u8]| -> Arc<dyn FrameTable> {
            let layout = Layout::packed(fields).unwrap();
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let part = Part { path, offset: 0, rows: (bytes.len() / layout.size()) as u64 };
            Arc::new(FileTable::open(layout, vec![part], Residence::Mapped).unwrap())
        };
        let rows = table("rows", &[("a", Scalar::U16, &[])], &[1, 2, 3, 4, 5, 6]);
        let beside =
            table("beside", &[("x", Scalar::U8, &[]), ("y", Scalar::U8, &[2])], &[7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let joined = JoinedTable::new(rows.clone(), beside.clone(), "y").unwrap();
        assert_eq!((joined.len(), joined.layout().size(), joined.layout().field("y").unwrap().offset), (3, 4, 2));
        let mut out = [0; 8];
        joined.gather(&[2, 0], &mut out).unwrap();
        assert_eq!(out, [5, 6, 14, 15, 1, 2, 8, 9]);
        assert_eq!(joined.gather(&[0], &mut out).unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(joined.gather(&[0, 3], &mut out).unwrap_err().kind(), Kind::Missing);
        assert_eq!(joined.locate(1), rows.locate(1));
        let shorter = table("shorter", &[("y", Scalar::U8, &[])], &[1, 2]);
        assert_eq!(JoinedTable::new(rows.clone(), shorter, "y").unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(JoinedTable::new(rows, beside, "z").unwrap_err().kind(), Kind::Missing);
    }
}
