//! The bytes of one member -> the value or values of its field, by the suffix that says how they were written.
//! Pickles go through the safe unpickler alone; every size is bounded before it is allocated.

use std::borrow::Cow;

use gristmill_bytes::container::gzip::{Inflater, Stored};
use gristmill_bytes::container::npy::Header;
use gristmill_bytes::container::npz::Npz;
use gristmill_bytes::container::pickle::{Pattern, Pickle, PickleLimits, parse};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Order, Scalar, c_order};

use super::from_json::from_json;
use crate::budget::Budget;
use crate::names::shown;
use crate::value::{Extra, Value};

/// Suffixes whose text is one whole number.
const NUMBERS: [&str; 6] = ["cls", "cls2", "class", "count", "index", "inx"];

/// A member once it is read: values may lie in a pickle, which lives as long as they are in use.
#[derive(Debug)]
pub(super) enum Read<'a> {
    /// One pickled value, over the member's bytes.
    Pickle(Pickle<'a>),
    /// One value under the field's name, or for an `.npz` one for each array.
    Values(Vec<(String, Value<'a>)>),
}

impl Read<'_> {
    /// What is around the bytes `own` of an array that lies in `bytes`, those of the whole member.
    pub(super) fn pattern(&self, bytes: &[u8], own: &[u8]) -> Option<Pattern> {
        match self {
            Read::Pickle(pickle) => Pattern::of(pickle),
            Read::Values(_) => Pattern::around(bytes, own),
        }
    }

    /// Adds the values to those of a frame.
    ///
    /// Errors: `Unsupported` for pickled values that are no field.
    pub(super) fn values<'v>(&'v self, field: &str, to: &mut Vec<(String, Value<'v>)>) -> Result<()> {
        match self {
            Read::Pickle(pickle) => {
                to.push((field.to_owned(), Value::of_pickle(pickle, pickle.root(), pickle.input())?));
            }
            Read::Values(values) => to.extend(values.iter().cloned()),
        }
        Ok(())
    }
}

/// Reads the member called `name`, which holds `field` in the form that `suffix` says.
///
/// Errors, with the byte within the member: what the form says; `Unsupported` for forms that are known and not read here,
/// naming what to use; `TooLarge` beyond `max` bytes.
pub(super) fn read<'a>(name: &str, field: &str, suffix: &str, bytes: &'a [u8], max: usize) -> Result<Read<'a>> {
    let kind = suffix.rsplit('.').next().unwrap_or_default();
    if matches!(kind, "pickle" | "pyd" | "pkl") {
        return parse(bytes, &PickleLimits { max_bytes: max.max(1 << 20) }).map(Read::Pickle);
    }
    plain(name, field, suffix, bytes, max).map(Read::Values)
}

fn plain<'a>(name: &str, field: &str, suffix: &str, bytes: &'a [u8], max: usize) -> Result<Vec<(String, Value<'a>)>> {
    let kind = suffix.rsplit('.').next().unwrap_or_default();
    if kind == "gz" {
        let mut inflated = Vec::new();
        let found = Inflater::default().inflate(bytes, max, &mut inflated)?;
        if found.stored != Stored::Gzip {
            return Err(Error::new(Kind::Corrupt, "expected gzip").at_byte(0));
        }
        let inner = suffix.strip_suffix(".gz").unwrap_or(field);
        // What is packed several times is held several times.
        let (inner, mut values) = (read(name, field, inner, &inflated, max - inflated.len())?, Vec::new());
        inner.values(field, &mut values)?;
        return Ok(values.into_iter().map(|(name, value)| (name, owned(value))).collect());
    }
    let one = |value| Ok(vec![(field.to_owned(), value)]);
    match kind {
        "npy" => one(npy(bytes)?),
        "npz" => {
            let (npz, mut inflated, mut all) = (Npz::open(bytes)?, Vec::new(), Vec::new());
            let budget = Budget::new(max);
            for array in npz.names() {
                let place =
                    |e: Error| Error::new(e.kind(), e.detail()).in_member(shown(&format!("{name}/{array}.npy")));
                npz.read(array, budget.left(), &mut inflated).map_err(place)?;
                budget.take(inflated.len()).map_err(place)?;
                all.push((format!("{field}.{array}"), owned(npy(&inflated).map_err(place)?)));
            }
            Ok(all)
        }
        "id" | "txt" | "text" | "transcript" => one(Value::Extra(Extra::Text(text(bytes)?.to_owned()))),
        "json" | "jsn" => {
            document_fits(bytes, max)?;
            one(json(text(bytes)?)?)
        }
        "png" | "jpg" | "jpeg" => one(super::super::picture::picture(bytes, max)?),
        "msgpack" | "mp" | "msg" => {
            document_fits(bytes, max)?;
            let value: rmpv::Value = rmpv::decode::read_value_with_max_depth(&mut &bytes[..], 64)
                .map_err(|e| Error::new(Kind::Corrupt, format!("MessagePack: {e}")).at_byte(0))?;
            one(document(serde_json::to_string(&value), bytes)?)
        }
        "cbor" => {
            document_fits(bytes, max)?;
            let value: ciborium::Value = ciborium::de::from_reader_with_recursion_limit(bytes, 64)
                .map_err(|e| Error::new(Kind::Corrupt, format!("CBOR: {e}")).at_byte(0))?;
            one(document(serde_json::to_string(&value), bytes)?)
        }
        "pth" | "ten" | "tb" | "ppm" | "pgm" | "mp4" | "flac" => {
            let detail = format!("`.{kind}` members are not read; write arrays as `.npy` and pictures as `.png`");
            Err(Error::new(Kind::Unsupported, detail))
        }
        kind if NUMBERS.contains(&kind) => {
            let number: i64 = text(bytes)?
                .trim()
                .parse()
                .map_err(|_| Error::new(Kind::Corrupt, "expected one whole number in decimal digits").at_byte(0))?;
            one(Value::scalar(Scalar::I64, &number.to_le_bytes()))
        }
        _ => one(Value::Extra(Extra::Bytes(bytes.to_vec()))),
    }
}

fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Array { scalar, shape, bytes } => Value::Array { scalar, shape, bytes: Cow::Owned(bytes.into_owned()) },
        Value::Extra(extra) => Value::Extra(extra),
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| Error::new(Kind::Corrupt, "expected UTF-8").at_byte(e.valid_up_to() as u64))
}

/// A JSON number or truth value is an array of one element; any other document an extra.
fn json(text: &str) -> Result<Value<'static>> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|e| Error::new(Kind::Corrupt, format!("JSON: {e}")).at_byte(0))?;
    Ok(match value {
        serde_json::Value::Bool(value) => Value::scalar(Scalar::Bool, &[u8::from(value)]),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(n), _) => Value::scalar(Scalar::I64, &n.to_le_bytes()),
            (None, Some(n)) => Value::scalar(Scalar::F64, &n.to_le_bytes()),
            (None, None) => return Err(Error::new(Kind::OutOfRange, format!("the number {n}"))),
        },
        serde_json::Value::String(text) => Value::Extra(Extra::Text(text)),
        _ => Value::Extra(from_json(text)?.map_or_else(|| Extra::Json(text.to_owned()), Extra::Pickle)),
    })
}

/// The values of a document take at most as many times its bytes.
const PER_BYTE: usize = 64;

fn document_fits(bytes: &[u8], max: usize) -> Result<()> {
    match bytes.len() <= max / PER_BYTE {
        true => Ok(()),
        false => {
            let detail = format!(
                "a document of {} bytes, whose values may take {PER_BYTE} times as much; the bound is {max}",
                bytes.len()
            );
            Err(Error::new(Kind::TooLarge, detail).at_byte(0))
        }
    }
}

/// A document of another language as JSON, or its bytes where JSON cannot say it (keys that are no text).
fn document(as_json: serde_json::Result<String>, bytes: &[u8]) -> Result<Value<'static>> {
    as_json.map_or_else(|_| Ok(Value::Extra(Extra::Bytes(bytes.to_vec()))), |text| json(&text))
}

/// An array of a `.npy` file, little-endian and in C order; where it is so in the file, over the file's bytes.
pub(crate) fn npy(file: &[u8]) -> Result<Value<'_>> {
    let header = Header::read(file)?;
    let DType::Scalar(scalar, order) = *header.dtype() else {
        return Err(Error::new(Kind::Unsupported, "an array of records; expected numbers"));
    };
    let shape: Vec<usize> = header.shape().iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX)).collect();
    let start = usize::try_from(header.data_offset()).unwrap_or(usize::MAX);
    let len = usize::try_from(header.data_bytes()).unwrap_or(usize::MAX);
    let data = file.get(start..start.saturating_add(len));
    let data = data.ok_or_else(|| Error::new(Kind::Truncated, "the array's data is cut").at_byte(file.len() as u64))?;
    let turned = header.fortran_order() && shape.len() > 1;
    let mut bytes = if turned { Cow::Owned(c_order(data, scalar.size(), &shape)) } else { Cow::Borrowed(data) };
    let unit = scalar.swap_unit();
    if order == Order::Big && unit > 1 {
        bytes.to_mut().chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    Ok(Value::Array { scalar, shape, bytes })
}
