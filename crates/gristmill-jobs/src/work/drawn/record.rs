//! A record of any layout -> every field of it, by name and in order.
//! Judges nothing; element types that have no number of their own come as hexadecimal bytes.

use gristmill_format::layout::{DType, Layout, Order, Scalar};
use serde::{Serialize, Serializer};

/// Every field of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record(pub Vec<(String, Cell)>);

impl Serialize for Record {
    /// As a map, in order of offset.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, cell)| (name, cell)))
    }
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A whole number.
    Unsigned(u64),
    /// A whole number with a sign.
    Signed(i64),
    /// A binary32, shown with as few digits as tell it apart; not a number is `null`.
    Single(f32),
    /// A binary64.
    Double(f64),
    /// A truth value.
    Truth(bool),
    /// Bytes of anything else, two hexadecimal digits each.
    Bytes(String),
    /// An array, in row-major order, whatever its shape.
    Array(Vec<Cell>),
    /// A nested record.
    Record(Record),
}

/// The fields of `bytes`, which are one record of `layout`.
pub(crate) fn record(layout: &Layout, bytes: &[u8]) -> Record {
    let cells = layout.fields().iter().map(|field| {
        let stored = &bytes[field.offset..field.offset + field.bytes()];
        let mut elements = stored.chunks_exact(field.dtype.size().max(1)).map(|element| match &field.dtype {
            DType::Scalar(scalar, order) => cell(*scalar, *order, element),
            DType::Record(inner) => Cell::Record(record(inner, element)),
        });
        let cell = match (field.shape.is_empty(), elements.next()) {
            (true, Some(only)) => only,
            (_, first) => Cell::Array(first.into_iter().chain(elements).collect()),
        };
        (field.name.clone(), cell)
    });
    Record(cells.collect())
}

fn cell(scalar: Scalar, order: Order, bytes: &[u8]) -> Cell {
    let mut word = [0; 8];
    let n = bytes.len();
    if n <= 8 {
        word[..n].copy_from_slice(bytes);
        if order == Order::Big {
            word[..n].reverse();
        }
    }
    let bits = u64::from_le_bytes(word);
    match scalar {
        Scalar::Bool => Cell::Truth(bits != 0),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Cell::Unsigned(bits),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            let spare = 64 - 8 * n;
            Cell::Signed((bits << spare).cast_signed() >> spare)
        }
        Scalar::F32 => Cell::Single(f32::from_bits(bits as u32)),
        Scalar::F64 => Cell::Double(f64::from_bits(bits)),
        Scalar::F16
        | Scalar::Bf16
        | Scalar::C64
        | Scalar::C128
        | Scalar::Bytes(_)
        | Scalar::Text(_)
        | Scalar::Void(_) => Cell::Bytes(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_field_is_told() {
        let descr =
            "[('a', '<u2'), ('b', '>i4'), ('c', '<f4', (2,)), ('d', '|b1'), ('e', 'S3'), ('f', [('g', '<f8')])]";
        let layout = Layout::parse_descr(descr).unwrap();
        let mut bytes = vec![2, 1, 255, 255, 255, 254];
        bytes.extend([0.1f32, f32::NAN].iter().flat_map(|x| x.to_le_bytes()));
        bytes.extend([1, b'x', 0, 0xff]);
        bytes.extend(0.5f64.to_le_bytes());
        let text = serde_json::to_string(&record(&layout, &bytes)).unwrap();
        assert_eq!(text, r#"{"a":258,"b":-2,"c":[0.1,null],"d":true,"e":"7800ff","f":{"g":0.5}}"#);
    }
}
