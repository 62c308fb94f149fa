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
        let mut names = inner.into_iter().flatten().map(|(name, _)| name);
        let named = names.find(|name| unknown.is_some_and(|unknown| name.get_ref() == unknown));
        named.map_or(at, |name| name.span().start)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_that_json_has_and_others_are_refused_where_they_stand() {
        let text = "a = [1, -2, 0.5, 'x', true]\nb = 0xff\nc = 18446744073709551615\n[[d]]\ne = {}";
        let expected = serde_json::json!({"a": [1, -2, 0.5, "x", true], "b": 255, "c": u64::MAX, "d": [{"e": {}}]});
        assert_eq!(Tree::parse(text).unwrap().values().unwrap(), *expected.as_object().unwrap());
        for (value, says) in [
            ("nan", "finite"),
            ("-inf", "finite"),
            ("1e999", "finite"),
            ("18446744073709551616", "64 bits"),
            ("2026-11-28", "date"),
        ] {
            let text = format!("a = [\n{value}]");
            let refused = Tree::parse(&text).and_then(|tree| tree.values()).unwrap_err();
            assert!(refused.0 == 6 && refused.1.contains(says), "{value}: {refused:?}");
        }
    }

    #[test]
    fn paths_lead_to_values_and_to_names_that_are_not_known() {
        let text = "[[stage]]\n[[stage]]\nname = 'b'\n[stage.pool]\nsize = 5\n";
        let tree = Tree::parse(text).unwrap();
        let at = |path: &[&str], unknown| {
            let path: Vec<String> = path.iter().map(|&step| step.to_owned()).collect();
            &text[tree.place(&path, unknown)..]
        };
        assert_eq!(at(&["stage", "1", "pool", "size"], None), "5\n");
        assert_eq!(at(&["stage", "1", "pool"], Some("size")), "size = 5\n");
        assert!(at(&["stage", "1"], None).starts_with("[[stage]]\nname"));
        assert_eq!(at(&[], None), text);
    }
}
