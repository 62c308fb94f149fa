//! JSON text -> the values that stand in it, and a path of names and indices -> the byte where its value begins.
//! What a field means is not known here. Never takes one of two values of the same name.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The values of a text. Errors: it is no JSON, or a name stands twice in one table.
pub(super) fn values(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str::<Once>(text).map(|Once(value)| value)
}

/// Where the value of a path begins, or a name in it that is not known; or else the innermost value around it.
pub(super) fn place(text: &str, path: &[String], unknown: Option<&str>) -> usize {
    let mut inner = text;
    for step in path {
        let named = serde_json::from_str::<BTreeMap<String, &RawValue>>(inner).map(|fields| fields.get(step).copied());
        let listed = || serde_json::from_str::<Vec<&RawValue>>(inner).ok()?.get(step.parse::<usize>().ok()?).copied();
        let Some(next) = named.unwrap_or_else(|_| listed()) else { break };
        inner = next.get();
    }
    let within = unknown.and_then(|name| inner.find(&format!("\"{name}\""))).unwrap_or(0);
    inner.as_ptr() as usize - text.as_ptr() as usize + within
}

/// A value in which each name stands once.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(OfValues).map(Once)
    }
}

struct OfValues;

impl<'de> Visitor<'de> for OfValues {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(value)) = from.next_element()? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate field `{name}`")));
            }
            let Once(value) = from.next_value()?;
            fields.insert(name, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_text_and_a_name_stands_once() {
        let text = r#"{"a": [1, -2, 0.5, "x", null, true], "b": {"a": {}}, "c": 18446744073709551615}"#;
        assert_eq!(values(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        let twice = values("{\"a\": 1,\n \"b\": {\"c\": 2, \"c\": 3}}").unwrap_err();
        assert!(twice.to_string().starts_with("duplicate field `c`") && twice.line() == 2, "{twice}");
        assert!(values("{} {}").is_err());
    }

    #[test]
    fn paths_lead_to_values_and_to_names_that_are_not_known() {
        let text = r#"{"stage": [{}, {"name": "b", "pool": {"size": 5}}]}"#;
        let at = |path: &[&str], unknown| {
            let path: Vec<String> = path.iter().map(|&step| step.to_owned()).collect();
            &text[place(text, &path, unknown)..]
        };
        assert!(at(&["stage", "1", "pool", "size"], None).starts_with("5}"));
        assert!(at(&["stage", "1", "pool"], Some("size")).starts_with("\"size\": 5"));
        assert!(at(&["stage", "7", "pool"], None).starts_with("[{}"));
        assert_eq!(at(&[], None), text);
    }
}
