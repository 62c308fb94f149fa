//! Plain values and metadata of a shard -> JSON that any reader of JSON takes, for shards without pickles. What JSON has no word
//! for (arrays, tuples, NaN, keys that are no text) is an object whose first key is `__gristmill__`; nothing is lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gristmill_bytes::container::pickle::{Class, Data, Element, Id, Mapping, Node, Object, Pickle, Space};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Order, Scalar};

use crate::value::little;

/// The key that says that an object stands for another value.
pub(super) const TAG: &str = "__gristmill__";

/// How deep values may lie in each other.
pub(super) const MAX_DEPTH: usize = 64;

/// Maximum number of bytes of a value.
pub(super) const MAX_BYTES: usize = 1 << 30;

/// The JSON of a plain value.
///
/// Errors: `Unsupported` for what is no plain data, and values deeper than 64 in each other; `TooLarge`.
pub(super) fn to_json(pickle: &Pickle<'_>, id: Id) -> Result<String> {
    let mut out = String::new();
    Writing { pickle, out: &mut out }.value(id, 0)?;
    Ok(out)
}

/// The JSON of a pickled metadata.
///
/// Errors: as [`to_json`]; `Missing` for a key that is not there.
pub(super) fn metadata_to_json(pickle: &Pickle<'_>) -> Result<String> {
    let mut out = String::from(r#"{"gristmill_shard": 1"#);
    for key in ["env_cfg", "action_space", "observation_space"] {
        let missing = || Error::new(Kind::Missing, format!("the metadata has no `{key}`"));
        let id = pickle.get(pickle.root(), key).ok_or_else(missing)?;
        out.push_str(&format!(", \"{key}\": "));
        Writing { pickle, out: &mut out }.value(id, 0)?;
    }
    let colors = pickle.get(pickle.root(), "color_space").map(|id| match pickle.node(id) {
        Node::Object(object) => object.args.first().and_then(|value| pickle.text(*value)).unwrap_or_default(),
        _ => pickle.text(id).unwrap_or_default(),
    });
    out.push_str(r#", "color_space": "#);
    text(colors.unwrap_or_default(), &mut out);
    out.push('}');
    Ok(out)
}

struct Writing<'a, 'b> {
    pickle: &'a Pickle<'b>,
    out: &'a mut String,
}

impl Writing<'_, '_> {
    fn value(&mut self, id: Id, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let detail = format!("values deeper than {MAX_DEPTH} in each other, or one that holds itself");
            return Err(Error::new(Kind::Unsupported, detail));
        }
        if self.out.len() > MAX_BYTES {
            return Err(Error::new(Kind::TooLarge, format!("a value of more than {MAX_BYTES} bytes")));
        }
        let pickle = self.pickle;
        match pickle.node(id) {
            Node::None => self.out.push_str("null"),
            Node::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Node::Int(value) => self.out.push_str(&value.to_string()),
            Node::BigInt(blob) => self.bytes("int", pickle.bytes(blob)),
            Node::Float(value) => self.float(*value),
            Node::Complex(re, im) => self.bytes("complex", &[re.to_le_bytes(), im.to_le_bytes()].concat()),
            Node::Text(_) => text(pickle.text(id).unwrap_or_default(), self.out),
            Node::Bytes(blob) => self.bytes("bytes", pickle.bytes(blob)),
            Node::ByteArray(blob) => self.bytes("bytearray", pickle.bytes(blob)),
            Node::List(items) => self.list(items, depth)?,
            Node::Tuple(items) => self.items("tuple", items, depth)?,
            Node::Set(items) => self.items("set", items, depth)?,
            Node::FrozenSet(items) => self.items("frozenset", items, depth)?,
            Node::Deque(items) => self.items("deque", items, depth)?,
            Node::Dict(mapping, pairs) => self.mapping(*mapping, pairs, depth)?,
            Node::Scalar(element, blob) => {
                let (scalar, bytes) = little(element, pickle.bytes(blob).into())?;
                self.dtype("scalar", scalar);
                self.encoded(&bytes);
                self.out.push('}');
            }
            Node::Array(array) if matches!(array.data, Data::Raw(_)) => {
                let bytes = array.c_order(pickle).unwrap_or_default();
                let (scalar, bytes) = little(&array.element, bytes)?;
                self.dtype("array", scalar);
                self.out.push_str(&format!(r#", "shape": {:?}"#, array.shape));
                self.encoded(&bytes);
                self.out.push('}');
            }
            Node::DType(Element::Scalar(scalar, order)) => {
                self.tag("dtype");
                self.out.push_str(r#", "value": "#);
                text(&DType::Scalar(*scalar, *order).to_descr().replace('\'', ""), self.out);
                self.out.push('}');
            }
            Node::Object(Object { class: Class::Space(kind), state: Some(state), .. }) => {
                self.space(*kind, *state, depth)?;
            }
            other => {
                let detail = format!("a {} has no form without pickles; write it with pickles", other.type_name());
                return Err(Error::new(Kind::Unsupported, detail));
            }
        }
        Ok(())
    }

    fn tag(&mut self, kind: &str) {
        self.out.push_str(&format!(r#"{{"{TAG}": "{kind}""#));
    }

    fn dtype(&mut self, kind: &str, scalar: Scalar) {
        self.tag(kind);
        self.out.push_str(r#", "dtype": "#);
        text(&DType::Scalar(scalar, Order::Little).to_descr().replace('\'', ""), self.out);
    }

    fn encoded(&mut self, bytes: &[u8]) {
        self.out.push_str(r#", "base64": ""#);
        BASE64.encode_string(bytes, self.out);
        self.out.push('"');
    }

    fn bytes(&mut self, kind: &str, bytes: &[u8]) {
        self.tag(kind);
        self.encoded(bytes);
        self.out.push('}');
    }

    fn float(&mut self, value: f64) {
        match serde_json::Number::from_f64(value) {
            Some(number) => self.out.push_str(&number.to_string()),
            None => self.bytes("float", &value.to_le_bytes()),
        }
    }

    fn list(&mut self, items: &[Id], depth: usize) -> Result<()> {
        self.out.push('[');
        for (i, item) in items.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.value(*item, depth + 1)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn items(&mut self, kind: &str, items: &[Id], depth: usize) -> Result<()> {
        self.tag(kind);
        self.out.push_str(r#", "items": "#);
        self.list(items, depth)?;
        self.out.push('}');
        Ok(())
    }

    fn mapping(&mut self, mapping: Mapping, pairs: &[(Id, Id)], depth: usize) -> Result<()> {
        let pickle = self.pickle;
        let keys: Option<Vec<&str>> = pairs.iter().map(|(key, _)| pickle.text(*key)).collect();
        let plain = keys.filter(|keys| mapping == Mapping::Dict && !keys.contains(&TAG));
        if let Some(keys) = plain {
            self.out.push('{');
            for (i, (key, (_, value))) in keys.iter().zip(pairs).enumerate() {
                self.out.push_str(if i > 0 { ", " } else { "" });
                text(key, self.out);
                self.out.push_str(": ");
                self.value(*value, depth + 1)?;
            }
            self.out.push('}');
            return Ok(());
        }
        self.tag(match mapping {
            Mapping::Dict => "dict",
            Mapping::Ordered => "ordered",
            Mapping::Default => "default",
        });
        self.out.push_str(r#", "items": ["#);
        for (i, (key, value)) in pairs.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.list(&[*key, *value], depth + 1)?;
        }
        self.out.push_str("]}");
        Ok(())
    }

    /// A space: its class, and what it is made with; the state of its random generator has no meaning here.
    fn space(&mut self, kind: Space, state: Id, depth: usize) -> Result<()> {
        let (name, arguments): (&str, &[&str]) = match kind {
            Space::Box => ("Box", &["low", "high", "shape", "dtype"]),
            Space::Discrete => ("Discrete", &["n", "start"]),
            Space::MultiDiscrete => ("MultiDiscrete", &["nvec"]),
            Space::MultiBinary => ("MultiBinary", &["n"]),
            Space::Text => ("Text", &["min_length", "max_length", "charset"]),
            Space::Dict => ("Dict", &["spaces"]),
            Space::Tuple => ("Tuple", &["spaces"]),
        };
        self.tag("space");
        self.out.push_str(&format!(r#", "kind": "{name}", "made_with": {{"#));
        let mut first = true;
        for argument in arguments {
            let found = self.pickle.get(state, argument).or_else(|| self.pickle.get(state, &format!("_{argument}")));
            let Some(value) = found.filter(|id| *argument != "start" || self.pickle.int(*id) != Some(0)) else {
                continue;
            };
            self.out.push_str(if first { "" } else { ", " });
            first = false;
            text(argument, self.out);
            self.out.push_str(": ");
            self.value(value, depth + 1)?;
        }
        self.out.push_str("}}");
        Ok(())
    }
}

fn text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
