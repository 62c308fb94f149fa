//! Records of one layout -> records of another: a list of copies, made once and run per record.
//! Fields are matched by name; what the source lacks is zero; big-endian scalars become little-endian.

use super::{DType, Field, Layout, Order, Scalar};
use crate::error::{Error, Kind, Result};

/// One step of the copy: `len` bytes, swapped in units of `unit` (1 = as they are).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Copy {
    from: usize,
    to: usize,
    len: usize,
    unit: usize,
}

/// A compiled conversion between two layouts.
#[derive(Debug, Clone)]
pub struct Conform {
    copies: Vec<Copy>,
    from_size: usize,
    to_size: usize,
}

impl Conform {
    /// Plans the conversion.
    ///
    /// Errors: `Unsupported` when a shared field has another element type or shape
    /// (byte order may differ); `Missing` when the layouts share no field.
    pub fn new(from: &Layout, to: &Layout) -> Result<Self> {
        let mut copies = Vec::new();
        plan(from, to, 0, 0, &mut copies)?;
        if copies.is_empty() {
            return Err(Error::new(Kind::Missing, "the two layouts have no field in common"));
        }
        copies.dedup_by(|next, last| {
            let joins =
                last.unit == 1 && next.unit == 1 && last.from + last.len == next.from && last.to + last.len == next.to;
            if joins {
                last.len += next.len;
            }
            joins
        });
        Ok(Conform { copies, from_size: from.size(), to_size: to.size() })
    }

    /// Copies one record; every byte of `to` is written.
    ///
    /// Panics when a slice is not one record long; both sizes are fixed by the layouts.
    pub fn record(&self, from: &[u8], to: &mut [u8]) {
        assert!(from.len() == self.from_size && to.len() == self.to_size, "one record each");
        let mut written = 0;
        for copy in &self.copies {
            to[written..copy.to].fill(0);
            let target = &mut to[copy.to..copy.to + copy.len];
            target.copy_from_slice(&from[copy.from..copy.from + copy.len]);
            if copy.unit > 1 {
                target.chunks_exact_mut(copy.unit).for_each(<[u8]>::reverse);
            }
            written = copy.to + copy.len;
        }
        to[written..].fill(0);
    }

    /// Copies as many records as `from` holds.
    ///
    /// Errors: `WrongSize` when `from` is not a whole number of records or `to` has not the same number.
    pub fn records(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        if !from.len().is_multiple_of(self.from_size) || from.len() / self.from_size * self.to_size != to.len() {
            return Err(Error::new(
                Kind::WrongSize,
                format!(
                    "{} bytes of {}-byte records into {} of {}",
                    from.len(),
                    self.from_size,
                    to.len(),
                    self.to_size
                ),
            ));
        }
        for (one, other) in from.chunks_exact(self.from_size).zip(to.chunks_exact_mut(self.to_size)) {
            self.record(one, other);
        }
        Ok(())
    }
}

fn plan(from: &Layout, to: &Layout, from_base: usize, to_base: usize, copies: &mut Vec<Copy>) -> Result<()> {
    for field in to.fields() {
        let Some(source) = from.field(&field.name) else { continue };
        if source.shape != field.shape {
            return Err(mismatch(source, field));
        }
        let (a, b) = (from_base + source.offset, to_base + field.offset);
        match (&source.dtype, &field.dtype) {
            (DType::Scalar(s, so), DType::Scalar(t, to_order)) if s == t => {
                copies.push(Copy { from: a, to: b, len: field.bytes(), unit: swap(*s, *so, *to_order) });
            }
            (DType::Record(s), DType::Record(t)) => {
                for i in 0..field.count() {
                    plan(s, t, a + i * s.size(), b + i * t.size(), copies)?;
                }
            }
            _ => return Err(mismatch(source, field)),
        }
    }
    Ok(())
}

fn swap(scalar: Scalar, from: Order, to: Order) -> usize {
    if from == to { 1 } else { scalar.swap_unit() }
}

fn mismatch(from: &Field, to: &Field) -> Error {
    Error::new(
        Kind::Unsupported,
        format!("field `{}`: {:?} {:?} cannot become {:?} {:?}", to.name, from.dtype, from.shape, to.dtype, to.shape),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widens_swaps_and_zero_fills() {
        let from = Layout::parse_descr("[('a', '>u4', (2,)), ('b', '|u1'), ('x', '<u2')]").unwrap();
        let to = Layout::parse_descr("[('b', '|u1'), ('', '|V3'), ('a', '<u4', (2,)), ('c', '<f4')]").unwrap();
        let conform = Conform::new(&from, &to).unwrap();
        let mut out = vec![0xEE; 2 * to.size()];
        let record = [0, 0, 0, 1, 0, 0, 2, 0, 9, 5, 5];
        conform.records(&[record, record].concat(), &mut out).unwrap();
        let expected = [9, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0];
        assert_eq!(out, [expected, expected].concat());
        assert!(conform.records(&record[1..], &mut out).is_err());
    }

    #[test]
    fn another_type_or_nothing_in_common_is_refused() {
        let from = Layout::parse_descr("[('a', '<u4')]").unwrap();
        for to in ["[('a', '<f4')]", "[('a', '<u4', (2,))]", "[('b', '<u4')]"] {
            assert!(Conform::new(&from, &Layout::parse_descr(to).unwrap()).is_err());
        }
    }
}
