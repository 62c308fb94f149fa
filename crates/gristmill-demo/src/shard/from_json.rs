//! JSON that `to_json` wrote -> the pickles of plain values and of metadata that it was made of, to the byte. Other JSON stands for
//! itself. Every size is checked against the bytes that are there.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gristmill_bytes::container::pickle::PickleWriter;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Order, Scalar};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::to_json::{MAX_BYTES, MAX_DEPTH, TAG};
use super::write::SPACES;

/// The pickle that a JSON document was made of; `None` for one that stands for itself.
///
/// Errors: `Corrupt` for a tag that is not known, or lacks something.
pub(super) fn from_json(text: &str) -> Result<Option<Vec<u8>>> {
    if memchr::memmem::find(text.as_bytes(), TAG.as_bytes()).is_none() {
        return Ok(None);
    }
    let mut writer = PickleWriter::new(MAX_BYTES);
    pickled(&parsed(text)?, &mut writer, 0)?;
    Ok(Some(writer.finish()))
}

/// The pickled metadata that a JSON document was made of, as [`super::metadata`] makes it.
///
/// Errors: `Corrupt` for what is no such document; `Unsupported` for one of a later version.
pub(super) fn metadata_from_json(bytes: &[u8]) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|e| Error::new(Kind::Corrupt, "expected UTF-8").at_byte(e.valid_up_to() as u64))?;
    let document = parsed(text)?;
    match document.get("gristmill_shard") {
        Some(Document::Int(1)) => {}
        Some(Document::Int(version)) => {
            return Err(Error::new(Kind::Unsupported, format!("metadata of version {version}; this reads version 1")));
        }
        _ => return Err(Error::new(Kind::Corrupt, "expected the metadata of a shard, with `gristmill_shard`")),
    }
    let mut writer = PickleWriter::new(MAX_BYTES);
    writer.dict();
    writer.mark();
    for key in ["env_cfg", "action_space", "observation_space", "color_space"] {
        let missing = || Error::new(Kind::Missing, format!("the metadata has no `{key}`"));
        let value = document.get(key).ok_or_else(missing)?;
        writer.text(key)?;
        match value {
            Document::Text(colors) if key == "color_space" => {
                writer.global("imitation.augment.color", "ColorSpace");
                writer.mark();
                writer.text(colors)?;
                writer.tuple();
                writer.reduce();
            }
            value => pickled(value, &mut writer, 0)?,
        }
    }
    writer.set_items();
    Ok(writer.finish())
}

/// JSON whose objects keep their order.
#[derive(Debug)]
enum Document {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Document>),
    Map(Vec<(String, Document)>),
}

impl Document {
    fn get(&self, key: &str) -> Option<&Document> {
        match self {
            Document::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        if let Document::Text(text) = self { Some(text) } else { None }
    }

    fn list(&self) -> Option<&[Document]> {
        if let Document::List(items) = self { Some(items) } else { None }
    }
}

fn parsed(text: &str) -> Result<Document> {
    serde_json::from_str(text).map_err(|e| Error::new(Kind::Corrupt, format!("JSON: {e}")).at_byte(0))
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> std::result::Result<Document, E> {
                Ok(Document::Null)
            }

            fn visit_bool<E>(self, value: bool) -> std::result::Result<Document, E> {
                Ok(Document::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> std::result::Result<Document, E> {
                Ok(Document::Int(value))
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> std::result::Result<Document, E> {
                i64::try_from(value).map(Document::Int).map_err(|_| E::custom(format!("the whole number {value}")))
            }

            fn visit_f64<E>(self, value: f64) -> std::result::Result<Document, E> {
                Ok(Document::Float(value))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Document, E> {
                Ok(Document::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Document, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Document::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> std::result::Result<Document, A::Error> {
                let mut map = Vec::new();
                while let Some(pair) = pairs.next_entry()? {
                    map.push(pair);
                }
                Ok(Document::Map(map))
            }
        }
        from.deserialize_any(Any)
    }
}

/// Writes what a document stands for.
fn pickled(document: &Document, to: &mut PickleWriter, depth: usize) -> Result<()> {
    if depth > 2 * MAX_DEPTH {
        return Err(Error::new(Kind::Unsupported, format!("values deeper than {} in each other", 2 * MAX_DEPTH)));
    }
    match document {
        Document::Null => to.none(),
        Document::Bool(value) => to.bool(*value),
        Document::Int(value) => to.int(*value),
        Document::Float(value) => to.float(*value),
        Document::Text(text) => to.text(text)?,
        Document::List(items) => {
            to.begin_list();
            items.iter().try_for_each(|item| pickled(item, to, depth + 1))?;
            to.end_list();
        }
        Document::Map(pairs) => match document.get(TAG) {
            Some(kind) => tagged(kind.text().unwrap_or_default(), document, to, depth)?,
            None => {
                to.dict();
                to.mark();
                for (key, value) in pairs {
                    to.text(key)?;
                    pickled(value, to, depth + 1)?;
                }
                to.set_items();
            }
        },
    }
    Ok(())
}

fn tagged(kind: &str, document: &Document, to: &mut PickleWriter, depth: usize) -> Result<()> {
    let wrong = |what: &str| Error::new(Kind::Corrupt, format!("a value tagged `{kind}` {what}"));
    let bytes = || -> Result<Vec<u8>> {
        let text = document.get("base64").and_then(Document::text).ok_or_else(|| wrong("without `base64`"))?;
        BASE64.decode(text).map_err(|e| wrong(&format!("whose base64 is none: {e}")))
    };
    let items = || document.get("items").and_then(Document::list).ok_or_else(|| wrong("without `items`"));
    let descr = |key: &str| -> Result<(Scalar, Order)> {
        match document.get(key).and_then(Document::text).map(|text| DType::parse_descr(&format!("'{text}'"))) {
            Some(Ok(DType::Scalar(scalar, order))) => Ok((scalar, order)),
            _ => Err(wrong(&format!("without a `{key}` that is known"))),
        }
    };
    match kind {
        "float" => match bytes()?.first_chunk() {
            Some(value) => to.float(f64::from_le_bytes(*value)),
            None => return Err(wrong("of less than 8 bytes")),
        },
        "complex" => match bytes()?.as_chunks::<8>() {
            ([re, im], []) => to.complex(f64::from_le_bytes(*re), f64::from_le_bytes(*im)),
            _ => return Err(wrong("of other than 16 bytes")),
        },
        "int" => to.big_int(&bytes()?)?,
        "bytes" => to.bytes(&bytes()?)?,
        "bytearray" => to.byte_array(&bytes()?)?,
        "scalar" | "array" => {
            let (scalar, _) = descr("dtype")?;
            let size = |item: &Document| match item {
                Document::Int(size) => usize::try_from(*size).ok(),
                _ => None,
            };
            let shape: Option<Vec<usize>> = match kind {
                "scalar" => Some(Vec::new()),
                _ => document.get("shape").and_then(Document::list).and_then(|dims| dims.iter().map(size).collect()),
            };
            let (shape, bytes) = (shape.ok_or_else(|| wrong("without `shape`"))?, bytes()?);
            let expected = shape.iter().try_fold(scalar.size(), |all, dim| all.checked_mul(*dim));
            if expected != Some(bytes.len()) {
                return Err(wrong(&format!("of {} bytes, which are not {shape:?} of {}", bytes.len(), scalar.code())));
            }
            match kind {
                "scalar" => to.numpy_scalar(scalar, &bytes)?,
                _ => to.array(scalar, &shape, &bytes)?,
            }
        }
        "dtype" => {
            let (scalar, order) = descr("value")?;
            to.dtype(scalar, order)?;
        }
        "tuple" => {
            to.mark();
            items()?.iter().try_for_each(|item| pickled(item, to, depth + 1))?;
            to.tuple();
        }
        "set" | "frozenset" | "deque" => {
            to.global(if kind == "deque" { "collections" } else { "builtins" }, kind);
            to.mark();
            to.begin_list();
            items()?.iter().try_for_each(|item| pickled(item, to, depth + 1))?;
            to.end_list();
            to.tuple();
            to.reduce();
        }
        "dict" | "ordered" | "default" => {
            match kind {
                "dict" => to.dict(),
                "ordered" => to.empty("OrderedDict"),
                _ => to.empty("defaultdict"),
            }
            to.mark();
            for pair in items()? {
                let Some([key, value]) = pair.list() else { return Err(wrong("with what is no pair")) };
                pickled(key, to, depth + 1)?;
                pickled(value, to, depth + 1)?;
            }
            to.set_items();
        }
        "space" => {
            let name = document.get("kind").and_then(Document::text).unwrap_or_default();
            let known = SPACES.iter().find(|(_, known)| *known == name);
            let (module, name) = known.ok_or_else(|| wrong(&format!("of the kind `{name}`, which is not known")))?;
            let made_with = document.get("made_with").ok_or_else(|| wrong("without `made_with`"))?;
            to.global("il_representations.envs.utils", "_inflate_object");
            to.mark();
            to.global(module, name);
            pickled(made_with, to, depth + 1)?;
            to.tuple();
            to.reduce();
        }
        _ => return Err(wrong("is not known; a later release may have written it")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::to_json::to_json;
    use super::*;
    use crate::shard::plain_pickle;
    use gristmill_bytes::container::pickle::{PickleLimits, parse};

    /// Whether what is plain comes back to the byte.
    fn comes_back(pickle: &[u8]) -> String {
        let plain = plain_pickle(pickle).unwrap();
        let parsed = parse(&plain, &PickleLimits::default()).unwrap();
        let text = to_json(&parsed, parsed.root()).unwrap();
        if let Some(back) = from_json(&text).unwrap() {
            assert_eq!(back, plain, "{text}");
        }
        text
    }

    #[test]
    fn values_of_json_are_plain_json() {
        assert_eq!(
            comes_back(b"(dVb\n(lI1\naNaF1.5\naF2.0\nasVa\nVx\"\xc3\xbc\ns."),
            "{\"b\": [1, null, 1.5, 2.0], \"a\": \"x\\\"Ã¼\"}"
        );
    }

    #[test]
    fn other_values_are_tagged_and_come_back() {
        let many: [&[u8]; 7] = [
            b"(lFnan\naFinf\naF-inf\na.",
            b"(dI1\nVx\nsVa\nVb\ns.",
            b"(dV__gristmill__\nVx\ns.",
            b"\x80\x03(lC\x02ab\x8a\x09\0\0\0\0\0\0\0\0\x01\x86a.",
            b"\x80\x03(lcbuiltins\nset\n](K\x01e\x85Racbuiltins\ncomplex\nG?\xf0\0\0\0\0\0\0G@\0\0\0\0\0\0\0\x86Ra.",
            b"\x80\x03(lcnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\0\0\0f4\x89\x88\x87R(K\x03X\x01\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbC\x04\0\0\x80?\x86Ra.",
            b"\x80\x03(lccollections\nOrderedDict\n)R(X\x01\0\0\0aK\x01uaccollections\ndeque\n](K\x01K\x02e\x85Ra.",
        ];
        for pickle in many {
            let text = comes_back(pickle);
            assert!(text.contains(TAG) && serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn tags_that_say_nothing_are_refused() {
        for (text, says) in [
            (r#"{"__gristmill__": "later"}"#, "later release"),
            (r#"{"__gristmill__": "array", "dtype": "<f8", "shape": [2], "base64": "AAAA"}"#, "of 3 bytes"),
            (
                r#"{"__gristmill__": "array", "dtype": "<f8", "shape": [4611686018427387904, 4], "base64": ""}"#,
                "of 0 bytes",
            ),
            (r#"{"__gristmill__": "scalar", "dtype": "O", "base64": ""}"#, "`dtype`"),
            (r#"{"__gristmill__": "tuple"}"#, "`items`"),
            (r#"{"__gristmill__": "dict", "items": [[1]]}"#, "no pair"),
            (r#"{"__gristmill__": "bytes", "base64": "?"}"#, "base64"),
            (r#"{"__gristmill__": "space", "kind": "Graph"}"#, "Graph"),
            (r#"["__gristmill__""#, "JSON"),
        ] {
            let e = from_json(text).unwrap_err();
            assert!(e.kind() == Kind::Corrupt && e.detail().contains(says), "{e}");
        }
        assert_eq!(metadata_from_json(br#"{"gristmill_shard": 2}"#).unwrap_err().kind(), Kind::Unsupported);
        assert_eq!(metadata_from_json(b"{}").unwrap_err().kind(), Kind::Corrupt);
        assert_eq!(metadata_from_json(br#"{"gristmill_shard": 1}"#).unwrap_err().kind(), Kind::Missing);
    }
}
