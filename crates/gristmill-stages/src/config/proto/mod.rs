//! The text-protobuf and the serialized messages of existing lc0 trainers <-> our config, both ways without loss.
//! Absent fields mean what they mean there; of a whole training configuration only `data_loader` is read.

pub mod schema;
pub(super) mod text;

use gristmill_runtime::error::{Error, Result};
use miette::Diagnostic;
use prost_reflect::DynamicMessage;
use serde_json::{Map, Value, json};

use super::parse::{refused, tracked};
use super::text::{Field, TextForm, follow, line_and_column, loader};
use super::{DataLoaderConfig, QueueConfig};

pub use schema::DESCRIPTORS;
use schema::Refusal;

const ROOT: &str = "lczero.training.RootConfig";
const LOADER: &str = "lczero.training.DataLoaderConfig";

/// Where an absent field means something else to lc0 than to us: kind, field, what it means to lc0.
const LC0_WAYS: [(&str, &str, &str); 6] = [
    ("chunk_source_loader", "frame_format", "V6TrainingData"),
    ("shuffling_chunk_pool", "key_order", "bytes"),
    ("simple_chunk_extractor", "key_order", "bytes"),
    ("simple_chunk_extractor", "order", "shuffled"),
    ("shuffling_frame_sampler", "drain", "false"),
    ("tensor_generator", "last_batch", "drop"),
];

impl DataLoaderConfig {
    /// Reads the text-protobuf of a training configuration (`data_loader { … }`, its other fields skipped), or
    /// that of the loader's message alone.
    ///
    /// Errors: `Config` with line, column, stage and field.
    pub fn from_textproto(text: &str) -> Result<Self> {
        read(set(text)?).map_err(|refusal| placed(text, &text::fields(text).unwrap_or_default(), refusal))
    }

    /// Writes text-protobuf, `data_loader { … }`, that [`DataLoaderConfig::from_textproto`] reads back to the same
    /// config. Fields that lc0 does not know appear only where they differ from what it does anyway.
    ///
    /// Errors: `Config` for what protobuf cannot hold: an empty list where absence means another one, a number
    /// that is not finite, a path that is no UTF-8, a kind of stage without a message.
    pub fn to_textproto(&self) -> Result<String> {
        let root = Map::from_iter([("data_loader".to_owned(), Value::Object(self.fields()?))]);
        let text = schema::to_text(&message(ROOT)?, &root).map_err(|e| Error::config("", e))?;
        Ok(text + "\n")
    }

    /// Reads a serialized `lczero.training.DataLoaderConfig`.
    ///
    /// Errors: `Config` for bytes that are no such message or have a field that is not known, naming stage and field.
    pub fn from_proto_bytes(bytes: &[u8]) -> Result<Self> {
        let message = schema::parse(&message(LOADER)?, bytes).map_err(|e| Error::config("", e))?;
        let names = schema::names(&message, "stage");
        let found = |(path, message): Refusal| refused(&path, &names, message);
        read(schema::to_json(&message).map_err(found)?).map_err(found)
    }

    /// Serializes as `lczero.training.DataLoaderConfig`. Errors: as [`DataLoaderConfig::to_textproto`].
    pub fn to_proto_bytes(&self) -> Result<Vec<u8>> {
        schema::encode(&message(LOADER)?, &self.fields()?).map_err(|e| Error::config("", e))
    }

    /// The fields that protobuf needs: those that differ from what their absence means.
    fn fields(&self) -> Result<Map<String, Value>> {
        let refused = |e: serde_json::Error| Error::config("", format!("this config has no form in protobuf: {e}"));
        let plain = |value: &Self| -> Result<Map<String, Value>> {
            match serde_json::to_value(value).map_err(refused)? {
                Value::Object(fields) => Ok(fields),
                _ => Ok(Map::new()),
            }
        };
        let absent = |fields: Value| -> Result<Map<String, Value>> {
            let fields = fields.as_object().cloned().unwrap_or_default();
            plain(&read(fields).map_err(|(_, message)| Error::config("", message))?)
        };
        let mut fields = plain(self)?;
        for stage in fields.get_mut("stage").and_then(Value::as_array_mut).into_iter().flatten() {
            for (kind, config) in stage.as_object_mut().into_iter().flatten() {
                let Value::Object(config) = config else { continue };
                let baseline = absent(json!({"stage": [{kind: {}}]}))?;
                let baseline = stages(&baseline).next().and_then(|stage| stage.get(kind)?.as_object());
                prune(config, baseline.unwrap_or(&Map::new()))?;
            }
        }
        prune(&mut fields, &absent(json!({}))?)?;
        Ok(fields)
    }
}

/// The fields of the loader's message that a text sets, whether it is that message or a whole training configuration.
///
/// Errors: `Config` with line, column, stage and field.
pub(super) fn set(text: &str) -> Result<Map<String, Value>> {
    let fault = |offset, message| TextForm::Textproto.fault(text, offset, message);
    let tree = text::fields(text).map_err(|broken| fault(broken.at, broken.message))?;
    let whole = tree.iter().any(|field| field.name == "data_loader");
    let desc = message(if whole { ROOT } else { LOADER })?;
    if !whole && !tree.is_empty() && tree.iter().all(|field| desc.get_field_by_name(field.name).is_none()) {
        return Err(Error::Config {
            at: Some(line_and_column(text, tree[0].span.start)),
            stage: None,
            field: None,
            message: "there is no `data_loader { … }` in this text".to_owned(),
        });
    }
    let seen = if whole { only(text, &tree, "data_loader") } else { text.to_owned() };
    let parsed = DynamicMessage::parse_text_format(desc, &seen).map_err(|e| {
        let label = e.labels().and_then(|mut labels| labels.next());
        fault(label.map_or(text.len(), |label| label.offset()), advice(&e.to_string()))
    })?;
    let mut fields = schema::to_json(&parsed).map_err(|refusal| placed(text, &tree, refusal))?;
    Ok(match fields.remove("data_loader") {
        Some(Value::Object(inner)) => inner,
        _ => fields,
    })
}

/// A refusal with the place in the text that its path leads to.
fn placed(text: &str, tree: &[Field<'_>], (path, message): Refusal) -> Error {
    let path = if path.first().is_some_and(|name| name == "data_loader") { &path[1..] } else { &path[..] };
    let start = follow(loader(tree), path).map_or(0, |field| field.span.start);
    TextForm::Textproto.fault(text, start, message)
}

fn message(name: &str) -> Result<prost_reflect::MessageDescriptor> {
    schema::message(name).map_err(|e| Error::config("", e))
}

/// The text with everything but some root fields blanked out, so that offsets stay what they are.
fn only(text: &str, tree: &[Field<'_>], name: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for field in tree.iter().filter(|field| field.name == name) {
        seen.extend(text[seen.len()..field.span.start].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        seen.push_str(&text[field.span.clone()]);
    }
    seen
}

/// The parser's words about an unknown field or value, with the nearest known one.
fn advice(message: &str) -> String {
    let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
    let &[found, owner] = quoted.as_slice() else { return message.to_owned() };
    let known: Vec<String> = match (schema::message(owner), schema::enumeration(owner)) {
        (Ok(message), _) => message.fields().map(|field| field.name().to_owned()).collect(),
        (_, Some(values)) => values,
        _ => return message.to_owned(),
    };
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(found, known), known));
    let near = near.filter(|(distance, known)| *distance <= known.len().max(found.len()) / 2).min();
    let hint = near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    format!("`{}` has no `{found}`{hint}", owner.rsplit('.').next().unwrap_or(owner))
}

/// Fields of the loader's message to a config; a refusal comes with the path that leads to it.
pub(super) fn read(mut fields: Map<String, Value>) -> std::result::Result<DataLoaderConfig, Refusal> {
    for stage in fields.get_mut("stage").and_then(Value::as_array_mut).into_iter().flatten() {
        for (kind, field, ways) in LC0_WAYS {
            if let Some(Value::Object(config)) = stage.get_mut(kind)
                && !config.contains_key(field)
            {
                let value = ways.parse::<bool>().map_or(Value::from(ways), Value::from);
                config.insert(field.to_owned(), value);
            }
        }
    }
    tracked(Value::Object(fields))
}

fn stages(fields: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    fields.get("stage").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Takes out what absence means anyway.
fn prune(fields: &mut Map<String, Value>, baseline: &Map<String, Value>) -> Result<()> {
    let queue = serde_json::to_value(QueueConfig::default()).unwrap_or_default();
    for (name, value) in fields.iter_mut() {
        match (value, baseline.get(name)) {
            (Value::Object(inner), Some(Value::Object(baseline))) => prune(inner, baseline)?,
            (Value::Array(list), Some(Value::Array(meant))) if list.is_empty() && !meant.is_empty() => {
                let text = "an empty list looks like an absent one in protobuf";
                return Err(Error::config(name, text));
            }
            (Value::Array(list), _) if name == "output" => {
                let queues = list.iter_mut().filter_map(Value::as_object_mut);
                queues.for_each(|fields| fields.retain(|name, value| queue.get(name) != Some(value)));
            }
            _ => {}
        }
    }
    let emptied = |name: &String, value: &Value| {
        value.as_object().is_some_and(Map::is_empty) && baseline.get(name).is_some_and(Value::is_object)
    };
    fields.retain(|name, value| baseline.get(name) != Some(value) && !emptied(name, value));
    Ok(())
}

#[cfg(test)]
mod tests;
