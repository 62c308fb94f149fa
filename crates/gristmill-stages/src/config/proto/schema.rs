//! Messages of the lc0 interface by name: protobuf bytes or text <-> plain JSON values with the fields' own names.
//! Fields and numbers come from the `.proto` files alone; nothing here knows what a message means.

use std::sync::OnceLock;

use prost_reflect::prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};
use serde_json::{Map, Value as Json};

/// Every message, compiled from `python/gristmill/compat/protos/` by the test beside this.
pub const DESCRIPTORS: &[u8] = include_bytes!("lczero.binpb");

/// Holds a value in its JSON form, for what has no message of its own.
const JSON_TEXT: &str = "lczero.training.Json";

fn pool() -> Option<&'static DescriptorPool> {
    static POOL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(DESCRIPTORS).ok()).as_ref()
}

/// A message type by full name, such as `lczero.training.DataLoaderConfig`.
pub fn message(name: &str) -> Result<MessageDescriptor, String> {
    let found = pool().and_then(|pool| pool.get_message_by_name(name));
    found.ok_or_else(|| format!("there is no message `{name}`"))
}

/// The value names of an enumeration by full name.
pub(crate) fn enumeration(name: &str) -> Option<Vec<String>> {
    let found = pool()?.get_enum_by_name(name)?;
    Some(found.values().map(|value| value.name().to_owned()).collect())
}

/// What is wrong with a message, after the path of names and indices that leads there.
pub(crate) type Refusal = (Vec<String>, String);

fn no_message(desc: &MessageDescriptor, why: &str) -> String {
    format!("these bytes are no serialized `{}`: {why}", desc.full_name())
}

/// Reads serialized bytes; fields that are not known stay in the message.
pub(crate) fn parse(desc: &MessageDescriptor, bytes: &[u8]) -> Result<DynamicMessage, String> {
    DynamicMessage::decode(desc.clone(), bytes).map_err(|e| no_message(desc, &e.to_string()))
}

/// Reads serialized bytes. An unknown field is refused: no setting is lost silently.
pub fn decode(desc: &MessageDescriptor, bytes: &[u8]) -> Result<Map<String, Json>, String> {
    to_json(&parse(desc, bytes)?).map_err(|(_, why)| no_message(desc, &why))
}

/// The `name` of each message in a list, where it is set.
pub(crate) fn names(message: &DynamicMessage, list: &str) -> Vec<Option<String>> {
    let name = |value: &Value| Some(value.as_message()?.get_field_by_name("name")?.as_str()?.to_owned());
    let list = message.get_field_by_name(list);
    list.iter().filter_map(|list| list.as_list()).flatten().map(name).collect()
}

/// Serializes; bytes are the same for the same value.
pub fn encode(desc: &MessageDescriptor, value: &Map<String, Json>) -> Result<Vec<u8>, String> {
    Ok(from_json(desc, value)?.encode_to_vec())
}

/// Writes protobuf text, one field per line.
pub(crate) fn to_text(desc: &MessageDescriptor, value: &Map<String, Json>) -> Result<String, String> {
    Ok(from_json(desc, value)?.to_text_format_with_options(&FormatOptions::new().pretty(true)))
}

/// The fields that are set.
pub(crate) fn to_json(message: &DynamicMessage) -> Result<Map<String, Json>, Refusal> {
    if let Some(unknown) = message.unknown_fields().next() {
        let why = format!("`{}` has no field {}", message.descriptor().name(), unknown.number());
        return Err((Vec::new(), why));
    }
    let field = |(field, value): (FieldDescriptor, &Value)| {
        let value = plain(&field, value).map_err(|refusal| below(field.name(), refusal))?;
        Ok((field.name().to_owned(), value))
    };
    message.fields().map(field).collect()
}

fn below(step: &str, (mut path, why): Refusal) -> Refusal {
    path.insert(0, step.to_owned());
    (path, why)
}

fn plain(field: &FieldDescriptor, value: &Value) -> Result<Json, Refusal> {
    let here = |why: String| (Vec::new(), why);
    let number = |value: f64| {
        let finite = serde_json::Number::from_f64(value).map(Json::Number);
        finite.ok_or_else(|| here(format!("`{}` is {value}; expected a finite number", field.name())))
    };
    Ok(match value {
        Value::Bool(value) => Json::from(*value),
        Value::I32(value) => Json::from(*value),
        Value::I64(value) => Json::from(*value),
        Value::U32(value) => Json::from(*value),
        Value::U64(value) => Json::from(*value),
        Value::F32(value) => number(f64::from(*value))?,
        Value::F64(value) => number(*value)?,
        Value::String(value) => Json::from(value.as_str()),
        Value::EnumNumber(value) => Json::from(name_of(field, *value).map_err(here)?),
        Value::Message(message) if message.descriptor().full_name() == JSON_TEXT => {
            let text = message.get_field_by_name("json");
            let text = text.as_deref().and_then(Value::as_str).unwrap_or_default();
            serde_json::from_str(text).map_err(|e| here(format!("`{}` is no JSON: {e}", field.name())))?
        }
        Value::Message(message) => Json::Object(to_json(message)?),
        Value::List(values) => {
            let one = |(i, value)| plain(field, value).map_err(|refusal| below(&format!("{i}"), refusal));
            values.iter().enumerate().map(one).collect::<Result<_, _>>()?
        }
        Value::Bytes(_) | Value::Map(_) => {
            return Err(here(format!("`{}` has a type without a plain form", field.name())));
        }
    })
}

fn name_of(field: &FieldDescriptor, number: i32) -> Result<String, String> {
    let value = match field.kind() {
        Kind::Enum(values) => values.get_value(number),
        _ => None,
    };
    value.map(|value| value.name().to_owned()).ok_or_else(|| format!("`{}` has no value {number}", field.name()))
}

/// A message with these fields. Errors name a field that it does not have, or whose type does not fit.
pub(crate) fn from_json(desc: &MessageDescriptor, values: &Map<String, Json>) -> Result<DynamicMessage, String> {
    let mut message = DynamicMessage::new(desc.clone());
    for (name, value) in values {
        let Some(field) = desc.get_field_by_name(name) else {
            return Err(format!("`{name}` has no form in protobuf (message `{}`)", desc.full_name()));
        };
        let value = match (field.is_list(), value) {
            (true, Json::Array(values)) => {
                Value::List(values.iter().map(|value| typed(&field, value)).collect::<Result<_, _>>()?)
            }
            (true, other) => return Err(format!("`{name}` is {other}; expected a list")),
            (false, value) => typed(&field, value)?,
        };
        message.set_field(&field, value);
    }
    Ok(message)
}

fn typed(field: &FieldDescriptor, value: &Json) -> Result<Value, String> {
    let fits = || -> Option<Value> {
        Some(match field.kind() {
            Kind::Bool => Value::Bool(value.as_bool()?),
            Kind::Int32 => Value::I32(i32::try_from(value.as_i64()?).ok()?),
            Kind::Int64 => Value::I64(value.as_i64()?),
            Kind::Uint32 => Value::U32(u32::try_from(value.as_u64()?).ok()?),
            Kind::Uint64 => Value::U64(value.as_u64()?),
            Kind::Float => Value::F32(value.as_f64()? as f32),
            Kind::Double => Value::F64(value.as_f64()?),
            Kind::String => Value::String(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            Kind::Enum(values) => Value::EnumNumber(number_of(&values, value.as_str()?)?),
            _ => return None,
        })
    };
    match field.kind() {
        Kind::Message(desc) if desc.full_name() == JSON_TEXT => {
            let mut holder = DynamicMessage::new(desc);
            holder.set_field_by_name("json", Value::String(value.to_string()));
            Ok(Value::Message(holder))
        }
        Kind::Message(desc) => match value.as_object() {
            Some(values) => Ok(Value::Message(from_json(&desc, values)?)),
            None => Err(format!("`{}` is {value}; expected a message", field.name())),
        },
        _ => fits().ok_or_else(|| format!("`{}` is {value}, which protobuf cannot hold there", field.name())),
    }
}

fn number_of(values: &EnumDescriptor, name: &str) -> Option<i32> {
    values.get_value_by_name(name).map(|value| value.number())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn compiled() -> Vec<u8> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/gristmill/compat/protos");
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        files.retain(|name| name.to_str().unwrap().ends_with(".proto"));
        files.sort();
        let mut set = protox::compile(files, [folder]).unwrap();
        for file in &mut set.file {
            file.source_code_info = None;
            // The compiler writes the largest double in 309 digits, more than Python's protobuf reads.
            let fields = file.message_type.iter_mut().flat_map(|message| &mut message.field);
            for default in fields.filter_map(|field| field.default_value.as_mut()).filter(|text| text.len() > 100) {
                *default = format!("{:e}", default.parse::<f64>().unwrap());
            }
        }
        set.encode_to_vec()
    }

    #[test]
    fn the_descriptors_are_those_of_the_proto_files() {
        assert!(compiled() == DESCRIPTORS, "run the ignored test `write_descriptors`");
    }

    #[test]
    #[ignore = "compiles the .proto files into the descriptors"]
    fn write_descriptors() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/config/proto/lczero.binpb");
        std::fs::write(path, compiled()).unwrap();
    }

    #[test]
    fn values_survive_bytes_and_what_does_not_fit_is_named() {
        let desc = message("lczero.training.TensorGeneratorConfig").unwrap();
        let text = r#"{"batch_size": 18446744073709551615, "tensors": ["a", "b"], "last_batch": "pad",
                       "encoder": {"other": [1, {"deep": null}]}, "output": {"overflow_behavior": "KEEP_NEWEST"}}"#;
        let value: Map<String, Json> = serde_json::from_str(text).unwrap();
        assert_eq!(decode(&desc, &encode(&desc, &value).unwrap()).unwrap(), value);
        for (text, says) in [
            (r#"{"batch_size": -1}"#, "`batch_size` is -1"),
            (r#"{"last_batch": "kep"}"#, "`last_batch` is \"kep\""),
            (r#"{"batches": 1}"#, "`batches` has no form"),
            (r#"{"output": 3}"#, "expected a message"),
            (r#"{"tensors": "planes"}"#, "expected a list"),
        ] {
            let error = encode(&desc, &serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn bytes_that_are_another_message_are_refused() {
        let desc = message("lczero.training.DataLoaderConfig").unwrap();
        for (bytes, says) in [
            (&b"\x08\x01"[..], "wire type"),
            (b"\x0a\xff", "no serialized"),
            (b"\x7a\x01a", "has no field 15"),
            (b"\x12\x01\xff", "UTF-8"),
            (b"\xc2\x3e\x01x", "wire type"),
        ] {
            let error = decode(&desc, bytes).unwrap_err();
            assert!(error.contains("lczero.training.DataLoaderConfig"), "{error}");
            assert!(error.contains(says), "{bytes:?}: {error}");
        }
        let error = decode(&message("lczero.training.QueueConfig").unwrap(), b"\x18\x09").unwrap_err();
        assert!(error.contains("`overflow_behavior` has no value 9"), "{error}");
        let error = decode(
            &message("lczero.training.JoinPositionsConfig").unwrap(),
            &[0xc1, 0x3e, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
        );
        assert!(error.unwrap_err().contains("finite"));
    }
}
