//! TOML text -> the values that stand in it, as JSON has them, and a path of names and indices -> the byte where its value begins.
//! What a field means is not known here.

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A refusal: the byte, and what was expected there.
pub(super) type Fault = (usize, String);

/// A parsed text.
pub(super) struct Tree<'a>(Spanned<DeTable<'a>>);

impl<'a> Tree<'a> {
    /// Errors: a text that is no TOML.
    pub(super) fn parse(text: &'a str) -> Result<Self, Fault> {
        let fault = |e: toml::de::Error| (e.span().map_or(0, |span| span.start), e.message().to_owned());
        DeTable::parse(text).map(Tree).map_err(fault)
    }

    /// Its values. Errors: one that JSON does not have.
    pub(super) fn values(&self) -> Result<Map<String, Value>, Fault> {
        table(self.0.get_ref())
    }

    /// Where the value of a path begins, or, if the path leads to a table, a name in it that is not known; or else the innermost value
    /// around it.
    pub(super) fn place(&self, path: &[String], unknown: Option<&str>) -> usize {
        let (mut inner, mut at) = (Some(self.0.get_ref()), 0);
        let mut value: Option<&Spanned<DeValue<'_>>> = None;
        for step in path {
            let next = match (inner, value.map(Spanned::get_ref)) {
                (Some(table), _) => table.get(step.as_str()),
                (None, Some(DeValue::Array(list))) => step.parse::<usize>().ok().and_then(|i| list.get(i)),
                _ => None,
            };
            let Some(next) = next else { break };
            (at, value, inner) = (next.span().start, Some(next), next.get_ref().as_table());
        }
        let names = inner.into_iter().flatten().map(|(name, _)| name);
        names
            .into_iter()
            .find(|name| unknown.is_some_and(|unknown| name.get_ref() == unknown))
            .map_or(at, |name| name.span().start)
    }
}

fn table(table: &DeTable<'_>) -> Result<Map<String, Value>, Fault> {
    table.iter().map(|(name, inner)| Ok((name.get_ref().to_string(), value(inner)?))).collect()
}

fn value(from: &Spanned<DeValue<'_>>) -> Result<Value, Fault> {
    let refused = |expected: &str| (from.span().start, format!("expected {expected}"));
    Ok(match from.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(said) => Value::from(*said),
        DeValue::Integer(number) => {
            let (text, radix) = (number.as_str(), number.radix());
            let unsigned = || u64::from_str_radix(text, radix).map(Value::from);
            i64::from_str_radix(text, radix)
                .map(Value::from)
                .or_else(|_| unsigned())
                .map_err(|_| refused("a number of at most 64 bits"))?
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or_else(|| refused("a finite number"))?)
        }
        DeValue::Datetime(_) => return Err(refused("a string, a number, a table or a list, found a date")),
        DeValue::Array(list) => Value::Array(list.iter().map(value).collect::<Result<_, _>>()?),
        DeValue::Table(inner) => Value::Object(table(inner)?),
    })
}
