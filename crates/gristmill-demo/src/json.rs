//! Plain values of a pickle -> JSON, for reports and metadata. Arrays are named by type and shape, never spelled out.

use gristmill_bytes::container::pickle::{Id, Node, Pickle};
use serde_json::{Map, Value};

/// How deep values are followed; what lies deeper, and what contains itself, becomes `"…"`.
const MAX_DEPTH: usize = 32;

/// Maximum number of values in the text, shared ones each time: a small pickle can stand for a very large document.
const MAX_VALUES: usize = 100_000;

/// Maximum number of bytes of text, shared ones each time.
const MAX_TEXT: usize = 64 << 20;

/// The JSON form of a value. Integers beyond 64 bits, bytes and instances are named by their type.
pub fn json(pickle: &Pickle<'_>, id: Id) -> Value {
    Writer { pickle, left: MAX_VALUES, text: MAX_TEXT }.value(id, 0)
}

struct Writer<'a, 'b> {
    pickle: &'a Pickle<'b>,
    left: usize,
    text: usize,
}

impl Writer<'_, '_> {
    /// A text, where there is room for it.
    fn text(&mut self, text: &str) -> String {
        match self.text.checked_sub(text.len()) {
            Some(left) => {
                self.text = left;
                text.to_owned()
            }
            None => "…".to_owned(),
        }
    }

    fn value(&mut self, id: Id, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        if depth > MAX_DEPTH || self.left == 0 {
            return Value::from("…");
        }
        match self.pickle.node(id) {
            Node::None => Value::Null,
            Node::Bool(value) => Value::from(*value),
            Node::Int(value) => Value::from(*value),
            Node::Float(value) => {
                serde_json::Number::from_f64(*value).map_or_else(|| Value::from(value.to_string()), Value::from)
            }
            Node::Text(_) => Value::from(self.text(self.pickle.text(id).unwrap_or_default())),
            Node::Scalar(element, blob) => {
                let number = element.scalar().and_then(|scalar| scalar.number(self.pickle.bytes(blob)));
                let number = number.and_then(serde_json::Number::from_f64);
                match self.pickle.int(id) {
                    Some(int) => Value::from(int),
                    None => number.map_or_else(|| Value::from(self.text(&element.descr())), Value::from),
                }
            }
            Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::FrozenSet(items) | Node::Deque(items) => {
                items.iter().map(|item| self.value(*item, depth + 1)).collect()
            }
            Node::Dict(_, pairs) => {
                let mut map = Map::new();
                for (key, value) in pairs {
                    let key = match self.pickle.text(*key) {
                        Some(text) => self.text(text),
                        None => self.value(*key, depth + 1).to_string(),
                    };
                    map.insert(key, self.value(*value, depth + 1));
                }
                Value::Object(map)
            }
            Node::Array(array) => Value::from(self.text(&format!("{} {:?}", array.element.descr(), array.shape))),
            Node::DType(element) => Value::from(self.text(&element.descr())),
            other => Value::from(format!("<{}>", other.type_name())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_bytes::container::pickle::{PickleLimits, parse};

    fn text(bytes: &[u8]) -> String {
        let pickle = parse(bytes, &PickleLimits::default()).unwrap();
        json(&pickle, pickle.root()).to_string()
    }

    #[test]
    fn values_are_spelled_out() {
        assert_eq!(text(b"(dVa\n(lI1\naNaF1.5\nasI2\nVx\ns."), r#"{"2":"x","a":[1,null,1.5]}"#);
        assert_eq!(text(b"Fnan\n."), r#""NaN""#);
    }

    #[test]
    fn what_contains_itself_or_explodes_ends() {
        assert!(text(b"]q\0(K\x01h\0e.").contains('…'));
        let mut laughs = b"(]q\0".to_vec();
        for i in 0..30u8 {
            laughs.extend([b']', b'q', i + 1, b'(', b'h', i, b'h', i, b'e']);
        }
        laughs.extend(*b"1h\x1e.");
        assert!(text(&laughs).len() < 10 * MAX_VALUES);
    }

    #[test]
    fn a_long_text_that_is_shared_ends() {
        let mut shared = b"](X\0\0\x10\0".to_vec();
        shared.extend(vec![b'x'; 1 << 20]);
        shared.extend(b"q\0");
        shared.extend([b'h', 0].repeat(10_000));
        shared.extend(b"e.");
        assert!(text(&shared).len() < MAX_TEXT + (1 << 20));
    }
}
