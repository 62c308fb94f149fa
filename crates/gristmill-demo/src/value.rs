//! One field of one frame: an array that becomes part of a record, or something of no fixed size that travels beside it.
//! Plain values of a pickle become arrays where they can; nothing is converted that would change its bits.

use std::borrow::Cow;

use gristmill_bytes::container::pickle::{Blob, Data, Element, Id, Node, Pickle};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Order, Scalar};

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A dense array; `[]` is the shape of a single element. Little-endian, C order.
    Array {
        /// Element type.
        scalar: Scalar,
        /// Shape.
        shape: Vec<usize>,
        /// Its bytes.
        bytes: Cow<'a, [u8]>,
    },
    /// What has no fixed size.
    Extra(Extra),
}

/// A value that travels beside the records: strings, dictionaries, anything without a fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extra {
    /// A text.
    Text(String),
    /// Bytes without a meaning that is known here.
    Bytes(Vec<u8>),
    /// A JSON document.
    Json(String),
    /// A pickle, to be read by the safe unpickler alone.
    Pickle(Vec<u8>),
}

impl Extra {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Extra::Text(text) | Extra::Json(text) => text.len(),
            Extra::Bytes(bytes) | Extra::Pickle(bytes) => bytes.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> Value<'a> {
    /// A single element.
    pub fn scalar(scalar: Scalar, bytes: &[u8]) -> Value<'static> {
        Value::Array { scalar, shape: Vec::new(), bytes: Cow::Owned(bytes.to_vec()) }
    }

    /// What a pickled value is as a field. Python numbers become int64, float64 and bool; texts and bytes become extras, as
    /// does what has no fixed size, for which `whole` (the pickle's own bytes) is kept.
    ///
    /// Errors: `Unsupported` for arrays of records, dates and objects, and integers beyond 64 bits.
    pub fn of_pickle(pickle: &'a Pickle<'_>, id: Id, whole: &[u8]) -> Result<Value<'a>> {
        Ok(match pickle.node(id) {
            Node::Bool(value) => Value::scalar(Scalar::Bool, &[u8::from(*value)]),
            Node::Int(value) => Value::scalar(Scalar::I64, &value.to_le_bytes()),
            Node::Float(value) => Value::scalar(Scalar::F64, &value.to_le_bytes()),
            Node::BigInt(_) => return Err(Error::new(Kind::Unsupported, "an integer beyond 64 bits")),
            Node::Scalar(element, blob) => {
                let (scalar, bytes) = little(element, Cow::Borrowed(pickle.bytes(blob)))?;
                Value::Array { scalar, shape: Vec::new(), bytes }
            }
            Node::Array(array) if matches!(array.data, Data::Raw(_)) => {
                let bytes = array.c_order(pickle).unwrap_or_default();
                let (scalar, bytes) = little(&array.element, bytes)?;
                Value::Array { scalar, shape: array.shape.clone(), bytes }
            }
            Node::Text(_) => Value::Extra(Extra::Text(pickle.text(id).unwrap_or_default().to_owned())),
            Node::Bytes(blob) | Node::ByteArray(blob) => Value::Extra(Extra::Bytes(bytes(pickle, blob))),
            _ => Value::Extra(Extra::Pickle(whole.to_vec())),
        })
    }
}

fn bytes(pickle: &Pickle<'_>, blob: &Blob) -> Vec<u8> {
    pickle.bytes(blob).to_vec()
}

/// The scalar of an element and its bytes, least significant first.
pub(crate) fn little<'a>(element: &Element, mut bytes: Cow<'a, [u8]>) -> Result<(Scalar, Cow<'a, [u8]>)> {
    let Element::Scalar(scalar, order) = element else {
        return Err(Error::new(Kind::Unsupported, format!("an array of {}; expected numbers", element.descr())));
    };
    let unit = scalar.swap_unit();
    if *order == Order::Big && unit > 1 {
        bytes.to_mut().chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    Ok((*scalar, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::container::pickle::{PickleLimits, parse};

    fn value(bytes: &[u8]) -> Value<'static> {
        let pickle = parse(bytes, &PickleLimits::default()).unwrap();
        match Value::of_pickle(&pickle, pickle.root(), bytes).unwrap() {
            Value::Array { scalar, shape, bytes } => Value::Array { scalar, shape, bytes: bytes.into_owned().into() },
            Value::Extra(extra) => Value::Extra(extra),
        }
    }

    #[test]
    fn python_values_become_fields_or_extras() {
        assert_eq!(value(b"K\x07."), Value::scalar(Scalar::I64, &7i64.to_le_bytes()));
        assert_eq!(value(b"\x80\x02\x88."), Value::scalar(Scalar::Bool, &[1]));
        assert_eq!(value(b"VA\n."), Value::Extra(Extra::Text("A".into())));
        assert_eq!(value(b"}."), Value::Extra(Extra::Pickle(b"}.".to_vec())));
    }

    #[test]
    fn big_endian_arrays_are_turned() {
        let array = b"\x80\x05cnumpy._core.numeric\n_frombuffer\n(\x96\x04\0\0\0\0\0\0\0\0\x01\0\x02cnumpy\ndtype\nX\x02\0\0\0\
                      i2\x89\x88\x87R(K\x03X\x01\0\0\0>NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbK\x02\x85X\x01\0\0\0CtR.";
        let expected = Value::Array { scalar: Scalar::I16, shape: vec![2], bytes: Cow::Owned(vec![1, 0, 2, 0]) };
        assert_eq!(value(array), expected);
    }
}
