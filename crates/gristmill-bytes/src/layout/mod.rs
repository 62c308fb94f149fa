//! The shape of a frame: named fields at fixed offsets in a fixed-size record.
//! Exactly a NumPy structured dtype, both ways (`descr`), and records of one layout become records of another (`conform`).

mod conform;
mod declaration;
mod descr;
mod scalar;
mod transpose;

pub use conform::Conform;
pub use declaration::Declaration;
pub use scalar::{Order, Scalar};
pub use transpose::c_order;

use std::collections::HashSet;

use crate::error::{Error, Kind, Result};

/// Maximum number of bytes a record may have; anything larger is a damaged or hostile header.
const MAX_RECORD: usize = 1 << 30;

/// What a field holds: a scalar in some byte order, or a nested record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DType {
    /// A scalar element.
    Scalar(Scalar, Order),
    /// A nested record.
    Record(Layout),
}

impl DType {
    /// Bytes of one element.
    pub fn size(&self) -> usize {
        match self {
            DType::Scalar(scalar, _) => scalar.size(),
            DType::Record(layout) => layout.size(),
        }
    }
}

/// One named field: a dense row-major array of `shape` elements (`[]` for a single one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, unique within the layout.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape of the field within one record.
    pub shape: Vec<usize>,
    /// Byte offset within the record.
    pub offset: usize,
}

impl Field {
    /// How many elements the field has.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the field.
    pub fn bytes(&self) -> usize {
        self.count() * self.dtype.size()
    }
}

/// The fields of a fixed-size record, in order of offset, without overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    fields: Vec<Field>,
    size: usize,
}

impl Layout {
    /// A layout from its fields and record size.
    ///
    /// Errors: `WrongSize` when fields overlap, leave the record, or sizes overflow;
    /// `Corrupt` when two fields share a name or a name is empty.
    pub fn new(fields: Vec<Field>, size: usize) -> Result<Self> {
        if size == 0 || size > MAX_RECORD {
            return Err(Error::new(Kind::WrongSize, format!("record of {size} bytes; expected 1..={MAX_RECORD}")));
        }
        let (mut end, mut names) = (0usize, HashSet::with_capacity(fields.len()));
        for (i, field) in fields.iter().enumerate() {
            if field.name.is_empty() || !names.insert(field.name.as_str()) {
                return Err(Error::new(
                    Kind::Corrupt,
                    format!("field {i}: name `{}` is empty or used twice", field.name),
                ));
            }
            let bytes = field
                .shape
                .iter()
                .try_fold(field.dtype.size(), |n, &dim| n.checked_mul(dim))
                .and_then(|n| n.checked_add(field.offset));
            match bytes {
                Some(last) if field.offset >= end && last <= size => end = last,
                _ => {
                    return Err(Error::new(
                        Kind::WrongSize,
                        format!(
                            "field `{}` at byte {} overlaps another or leaves the {size}-byte record",
                            field.name, field.offset
                        ),
                    ));
                }
            }
        }
        drop(names);
        Ok(Layout { fields, size })
    }

    /// A packed little-endian layout: each field starts where the previous one ends.
    pub fn packed(fields: &[(&str, Scalar, &[usize])]) -> Result<Self> {
        Self::place(fields, false)
    }

    /// A little-endian layout with C alignment and tail padding, as NumPy's `align=True` gives.
    pub fn aligned(fields: &[(&str, Scalar, &[usize])]) -> Result<Self> {
        Self::place(fields, true)
    }

    fn place(fields: &[(&str, Scalar, &[usize])], align: bool) -> Result<Self> {
        let mut offset = 0usize;
        let mut widest = 1;
        let mut placed = Vec::with_capacity(fields.len());
        for &(name, scalar, shape) in fields {
            let field_align = if align { scalar.align() } else { 1 };
            widest = widest.max(field_align);
            offset = offset.next_multiple_of(field_align);
            let dtype = DType::Scalar(scalar, Order::Little);
            let field = Field { name: name.to_owned(), dtype, shape: shape.to_vec(), offset };
            offset += field.bytes();
            placed.push(field);
        }
        Layout::new(placed, offset.next_multiple_of(widest))
    }

    /// The fields, in order of offset.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Bytes of one record, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_and_aligned_follow_numpy() {
        let fields: &[(&str, Scalar, &[usize])] =
            &[("flag", Scalar::U8, &[]), ("planes", Scalar::U64, &[3]), ("q", Scalar::F32, &[2, 2])];
        let packed = Layout::packed(fields).unwrap();
        assert_eq!((packed.size(), packed.field("q").unwrap().offset), (41, 25));
        let aligned = Layout::aligned(fields).unwrap();
        assert_eq!((aligned.size(), aligned.field("planes").unwrap().offset), (48, 8));
    }

    #[test]
    fn overlap_overflow_and_repeated_names_are_refused() {
        let field = |name: &str, shape: &[usize], offset| Field {
            name: name.into(),
            dtype: DType::Scalar(Scalar::U32, Order::Little),
            shape: shape.to_vec(),
            offset,
        };
        assert!(Layout::new(vec![field("a", &[], 0), field("b", &[], 3)], 8).is_err());
        assert!(Layout::new(vec![field("a", &[3], 0)], 8).is_err());
        assert!(Layout::new(vec![field("a", &[usize::MAX, 8], 0)], 8).is_err());
        assert!(Layout::new(vec![field("a", &[], 0), field("a", &[], 4)], 8).is_err());
        assert!(Layout::new(vec![field("a", &[], usize::MAX)], 8).is_err());
        assert!(Layout::new(vec![], 0).is_err());
    }
}
