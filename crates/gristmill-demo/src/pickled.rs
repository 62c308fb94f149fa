//! Records, extras, spaces and JSON -> pickles as shards hold them: plain values alone, which every reader of shards knows.
//! Each value keeps its type and bits; names lose the dots that shards have no room for.

use gristmill_bytes::container::pickle::PickleWriter;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Layout, Order, Scalar};
use serde_json::Value as Json;

use super::space::Space;
use super::value::Extra;
use crate::shard::plain_pickle;

/// Maximum number of bytes of one pickled value.
const MAX_VALUE: usize = 1 << 30;

/// Deepest JSON that becomes a pickle.
const MAX_DEPTH: usize = 128;

/// Fields that readers of shards make, and that writers make again.
const MADE_BY_READERS: [&str; 2] = ["frame", "__key__"];

/// The name that a field has in a shard and in a dictionary of arrays: `obs.ego` is `obs_ego`.
pub fn plain_name(name: &str) -> String {
    name.replace('.', "_")
}

/// Whether a field is data, and not something that readers of shards add to each frame.
pub fn is_data(name: &str) -> bool {
    !MADE_BY_READERS.contains(&name)
}

/// The fields of one frame: numbers as NumPy scalars, arrays, and the extras, each as a pickle.
///
/// Errors: `Unsupported` for nested records, big-endian ones, and extras that are not plain data, naming the field.
pub fn fields<'a>(
    layout: &Layout,
    record: &[u8],
    extras: impl IntoIterator<Item = (&'a str, &'a Extra)>,
) -> Result<Vec<(String, Vec<u8>)>> {
    let mut out = Vec::with_capacity(layout.fields().len());
    for field in layout.fields().iter().filter(|field| is_data(&field.name)) {
        let DType::Scalar(scalar, Order::Little) = field.dtype else {
            let detail = format!("field `{}`: expected little-endian numbers", field.name);
            return Err(Error::new(Kind::Unsupported, detail));
        };
        let bytes = &record[field.offset..field.offset + field.bytes()];
        let mut writer = PickleWriter::new(MAX_VALUE);
        match field.shape.as_slice() {
            [] => writer.numpy_scalar(scalar, bytes)?,
            shape => writer.array(scalar, shape, bytes)?,
        }
        out.push((plain_name(&field.name), writer.finish()));
    }
    for (name, extra) in extras.into_iter().filter(|(name, _)| is_data(name)) {
        let named = |e: Error| Error::new(e.kind(), format!("field `{name}`: {}", e.detail()));
        out.push((plain_name(name), self::extra(extra).map_err(named)?));
    }
    Ok(out)
}

/// An extra as a pickle.
///
/// Errors: `Unsupported` for what is not plain data, `Corrupt` for JSON that is none.
pub fn extra(extra: &Extra) -> Result<Vec<u8>> {
    let mut writer = PickleWriter::new(MAX_VALUE);
    match extra {
        Extra::Text(text) => writer.text(text)?,
        Extra::Bytes(bytes) => writer.bytes(bytes)?,
        Extra::Pickle(bytes) => return plain_pickle(bytes),
        Extra::Json(text) => {
            let value = serde_json::from_str(text).map_err(|e| Error::new(Kind::Corrupt, format!("JSON: {e}")))?;
            json(&value, &mut writer, 0)?;
        }
    }
    Ok(writer.finish())
}

/// A JSON document as a pickle: objects as dictionaries, `null` as `None`.
///
/// Errors: `Unsupported` for depths beyond 128.
pub fn json_pickle(value: &Json) -> Result<Vec<u8>> {
    let mut writer = PickleWriter::new(MAX_VALUE);
    json(value, &mut writer, 0)?;
    Ok(writer.finish())
}

fn json(value: &Json, to: &mut PickleWriter, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::new(Kind::Unsupported, format!("JSON nested deeper than {MAX_DEPTH}")));
    }
    match value {
        Json::Null => to.none(),
        Json::Bool(value) => to.bool(*value),
        Json::Number(n) => match n.as_i64() {
            Some(n) => to.int(n),
            None => to.float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => to.text(text)?,
        Json::Array(items) => {
            to.begin_list();
            items.iter().try_for_each(|item| json(item, to, depth + 1))?;
            to.end_list();
        }
        Json::Object(pairs) => {
            to.dict();
            to.mark();
            for (key, value) in pairs {
                to.text(key)?;
                json(value, to, depth + 1)?;
            }
            to.set_items();
        }
    }
    Ok(())
}

/// Kind of a space, and the pickled dictionary that the readers of shards make it with.
///
/// Errors: `Unsupported` for spaces that shards have no form for, and for discrete ones that do not begin at 0.
pub fn made_with(space: &Space) -> Result<(&'static str, Vec<u8>)> {
    let mut writer = PickleWriter::new(MAX_VALUE);
    writer.dict();
    writer.mark();
    let kind = match space {
        Space::Discrete { n, start: 0 } => {
            writer.text("n")?;
            writer.int(*n);
            "Discrete"
        }
        Space::Box { dtype, shape, low, high } => {
            for (name, bounds) in [("low", low), ("high", high)] {
                let mut bytes = Vec::with_capacity(bounds.len() * dtype.size());
                for bound in bounds {
                    number(*dtype, *bound, &mut bytes)?;
                }
                writer.text(name)?;
                writer.array(*dtype, shape, &bytes)?;
            }
            writer.text("shape")?;
            writer.mark();
            shape.iter().for_each(|dim| writer.int(i64::try_from(*dim).unwrap_or(i64::MAX)));
            writer.tuple();
            writer.text("dtype")?;
            writer.dtype(*dtype, Order::Little)?;
            "Box"
        }
        other => {
            let detail = format!("the space {other}; shards can hold Box, and Discrete from 0 on");
            return Err(Error::new(Kind::Unsupported, detail));
        }
    };
    writer.set_items();
    Ok((kind, writer.finish()))
}

/// A number as an element; what the type has no room for becomes its nearest value.
fn number(scalar: Scalar, value: f64, to: &mut Vec<u8>) -> Result<()> {
    match scalar {
        Scalar::Bool => to.push(u8::from(value != 0.0)),
        Scalar::U8 => to.push(value as u8),
        Scalar::I8 => to.extend((value as i8).to_le_bytes()),
        Scalar::U16 => to.extend((value as u16).to_le_bytes()),
        Scalar::I16 => to.extend((value as i16).to_le_bytes()),
        Scalar::U32 => to.extend((value as u32).to_le_bytes()),
        Scalar::I32 => to.extend((value as i32).to_le_bytes()),
        Scalar::U64 => to.extend((value as u64).to_le_bytes()),
        Scalar::I64 => to.extend((value as i64).to_le_bytes()),
        Scalar::F16 => to.extend(half::f16::from_f64(value).to_le_bytes()),
        Scalar::Bf16 => to.extend(half::bf16::from_f64(value).to_le_bytes()),
        Scalar::F32 => to.extend((value as f32).to_le_bytes()),
        Scalar::F64 => to.extend(value.to_le_bytes()),
        Scalar::C64 | Scalar::C128 | Scalar::Bytes(_) | Scalar::Text(_) | Scalar::Void(_) => {
            return Err(Error::new(Kind::Unsupported, format!("a space of {}", scalar.code())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json as told;
    use crate::shard::{ShardMeta, metadata};
    use crate::value::Value;
    use gristmill_bytes::container::pickle::{PickleLimits, parse};

    #[test]
    fn a_record_becomes_pickles_of_the_same_values() {
        let layout = Layout::aligned(&[
            ("obs.ego", Scalar::U8, &[2, 2]),
            ("acts", Scalar::I64, &[]),
            ("frame", Scalar::I64, &[]),
        ]);
        let layout = layout.unwrap();
        let mut record = vec![1, 2, 3, 4, 0, 0, 0, 0];
        record.extend((-5i64).to_le_bytes());
        record.extend(7i64.to_le_bytes());
        let (note, key) = (Extra::Json(r#"{"a":[1,null,2.5]}"#.into()), Extra::Text("frame_007".into()));
        let fields = fields(&layout, &record, [("note", &note), ("__key__", &key)]).unwrap();
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["obs_ego", "acts", "note"]);
        let value = |i: usize| {
            let bytes: &[u8] = &fields[i].1;
            let pickle = parse(bytes, &PickleLimits::default()).unwrap();
            (told(&pickle, pickle.root()).to_string(), format!("{:?}", Value::of_pickle(&pickle, pickle.root(), bytes)))
        };
        assert_eq!(value(0).0, r#""|u1 [2, 2]""#);
        assert!(value(0).1.contains("[1, 2, 3, 4]"), "{}", value(0).1);
        assert_eq!((value(1).0.as_str(), value(2).0.as_str()), ("-5", r#"{"a":[1,null,2.5]}"#));
    }

    #[test]
    fn spaces_come_back_as_they_were() {
        let low = vec![0.0, -1.5];
        let boxed = Space::Box { dtype: Scalar::F32, shape: vec![2], low, high: vec![1.0, f64::INFINITY] };
        let six = Space::Discrete { n: 6, start: 0 };
        let ((kind, one), (other, two)) = (made_with(&six).unwrap(), made_with(&boxed).unwrap());
        let cfg = json_pickle(&serde_json::json!({"task_name": "pong", "steps": null})).unwrap();
        let meta = metadata(&cfg, (kind, &one), (other, &two), "GRAY").unwrap();
        let meta = ShardMeta::parse(&meta, 1 << 20).unwrap();
        assert_eq!((meta.action_space, meta.observation_space), (six, boxed));
        assert_eq!(meta.env_cfg, r#"{"steps":null,"task_name":"pong"}"#);
        let from_one = Space::Discrete { n: 6, start: 1 };
        assert_eq!(made_with(&from_one).unwrap_err().kind(), Kind::Unsupported);
    }
}
