//! A record -> what rules may ask of it: every field that is one number, small arrays number by number, and what the kind of
//! data makes of a record. Says names and reads values; knows no game and no SQL.

use std::collections::HashSet;

use gristmill_format::layout::{DType, Layout, Order, Scalar};

/// Longest array of which every number has a column.
const MOST_NUMBERS: usize = 16;

/// A number in records.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    scalar: Scalar,
    order: Order,
    offset: usize,
}

/// What a column holds in one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

/// The columns of records of a layout. A name that is `taken` or was given before gets `field_` in front: SQL knows no case.
pub(in crate::marks) fn columns(layout: &Layout, taken: &[&str]) -> Vec<Column> {
    let mut taken: HashSet<String> = taken.iter().map(|name| name.to_ascii_lowercase()).collect();
    let mut columns = Vec::new();
    for field in layout.fields() {
        let DType::Scalar(scalar, order) = field.dtype else { continue };
        if !is_number(scalar) || field.count() > MOST_NUMBERS {
            continue;
        }
        for i in 0..field.count() {
            let mut name = if field.shape.is_empty() { field.name.clone() } else { format!("{}_{i}", field.name) };
            while !taken.insert(name.to_ascii_lowercase()) {
                name.insert_str(0, "field_");
            }
            columns.push(Column { name, scalar, order, offset: field.offset + i * scalar.size() });
        }
    }
    columns
}

fn is_number(scalar: Scalar) -> bool {
    use Scalar::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(scalar, Bool | I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64 | F32 | F64)
}

impl Column {
    /// Its value in a record. Numbers of 64 bits keep their bits.
    pub(super) fn of(&self, record: &[u8]) -> Number {
        let size = self.scalar.size();
        let mut bytes = [0; 8];
        if let Some(found) = record.get(self.offset..self.offset + size) {
            bytes[..size].copy_from_slice(found);
        }
        if self.order == Order::Big {
            bytes[..size].reverse();
        }
        let bits = u64::from_le_bytes(bytes);
        let signed = |width: u32| Number::Whole((bits << (64 - width)).cast_signed() >> (64 - width));
        match self.scalar {
            Scalar::F32 => Number::Real(f32::from_bits(bits as u32).into()),
            Scalar::F64 => Number::Real(f64::from_bits(bits)),
            Scalar::I8 => signed(8),
            Scalar::I16 => signed(16),
            Scalar::I32 => signed(32),
            _ => Number::Whole(bits.cast_signed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_kind_are_read() {
        let descr = "[('a', '|i1'), ('b', '>i4'), ('c', '<f4', (2,)), ('text', '|S4'), ('many', '<f4', (17,)), ('d', '<u8'), \
                     ('e', '<f8'), ('f', '<u2')]";
        let layout = Layout::parse_descr(descr).unwrap();
        let found = columns(&layout, &[]);
        let names: Vec<&str> = found.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["a", "b", "c_0", "c_1", "d", "e", "f"]);
        let mut record = vec![0; layout.size()];
        let mut put = |name: &str, bytes: &[u8]| {
            let at = layout.field(name).unwrap().offset;
            record[at..at + bytes.len()].copy_from_slice(bytes);
        };
        put("a", &[0xFE]);
        put("b", &(-5i32).to_be_bytes());
        put("c", &[1.5f32.to_le_bytes(), (-2.0f32).to_le_bytes()].concat());
        put("d", &u64::MAX.to_le_bytes());
        put("e", &0.25f64.to_le_bytes());
        put("f", &65535u16.to_le_bytes());
        let values: Vec<Number> = found.iter().map(|column| column.of(&record)).collect();
        let (whole, real) = (Number::Whole, Number::Real);
        assert_eq!(values, [whole(-2), whole(-5), real(1.5), real(-2.0), whole(-1), real(0.25), whole(65535)]);
    }
    #[test]
    fn every_column_has_a_name_of_its_own() {
        let layout =
            Layout::parse_descr("[('frame', '<i8'), ('A', '<f4'), ('a', '<f4'), ('b', '<f4', (2,)), ('b_1', '|u1')]");
        let found = columns(&layout.unwrap(), &["frame", "ply"]);
        let names: Vec<&str> = found.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["field_frame", "A", "field_a", "b_0", "b_1", "field_b_1"]);
    }
}
