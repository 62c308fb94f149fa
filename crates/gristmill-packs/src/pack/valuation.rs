//! `valuation_types.json` <-> names by id. Ids are dense from 0; what is not is refused, never guessed.

use std::fmt;

use gristmill_format::g2048::log::{KNOWN_VALUATIONS, MAX_VALUATIONS};
use gristmill_format::{Error, Kind, Result};
use serde::Deserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};

/// The names of valuation types; the position is the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuationTypes(Vec<String>);

impl Default for ValuationTypes {
    /// The [`KNOWN_VALUATIONS`]: what a pack without the file means.
    fn default() -> Self {
        ValuationTypes(KNOWN_VALUATIONS.map(str::to_owned).to_vec())
    }
}

impl ValuationTypes {
    /// Parses an object name -> id, or one id -> name as other programs write it (`{"0": "search"}`), or a list of names by id.
    ///
    /// Errors: `Corrupt` for other JSON, a name or an id used twice, ids that are not dense from 0, or an empty name;
    /// `TooLarge` beyond 256 names.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = serde_json::Deserializer::from_str(text);
        let listed = parser.deserialize_any(Listed).and_then(|listed| parser.end().map(|()| listed));
        let mut listed = listed.map_err(|e| Error::new(Kind::Corrupt, format!("names of valuation types: {e}")))?;
        listed.sort_by_key(|(_, id)| *id);
        let mut types = ValuationTypes(Vec::new());
        for (name, id) in listed {
            if id != types.0.len() as u64 {
                let expected = types.0.len();
                let detail =
                    format!("valuation type `{name}` has id {id}, expected {expected}: ids count from 0 without gaps");
                return Err(Error::new(Kind::Corrupt, detail));
            }
            if types.id(&name).is_some() {
                return Err(Error::new(Kind::Corrupt, format!("valuation type `{name}` stands there twice")));
            }
            types.add(&name)?;
        }
        Ok(types)
    }

    /// The object name -> id in order of id, two spaces of indent, a final line feed.
    pub fn to_json(&self) -> String {
        let lines: Vec<String> =
            self.0.iter().enumerate().map(|(id, name)| format!("  {}: {id}", serde_json::json!(name))).collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }

    /// The id of a name.
    pub fn id(&self, name: &str) -> Option<u8> {
        self.0.iter().position(|known| known == name).and_then(|id| u8::try_from(id).ok())
    }

    /// The name of an id.
    pub fn name(&self, id: u8) -> Option<&str> {
        self.0.get(usize::from(id)).map(String::as_str)
    }

    /// The names, by id.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The id of a name; a new name gets the next one.
    ///
    /// Errors: `Corrupt` for the empty name, `TooLarge` beyond 256 names.
    pub fn add(&mut self, name: &str) -> Result<u8> {
        if let Some(id) = self.id(name) {
            return Ok(id);
        }
        if name.is_empty() {
            return Err(Error::new(Kind::Corrupt, "a valuation type has an empty name"));
        }
        match u8::try_from(self.0.len()) {
            Ok(id) => {
                self.0.push(name.to_owned());
                Ok(id)
            }
            Err(_) => Err(Error::new(
                Kind::TooLarge,
                format!("valuation type `{name}`: there are {MAX_VALUATIONS} names already"),
            )),
        }
    }

    /// Takes in the names of `other`, by name; the result gives for each of its ids the id here.
    ///
    /// Errors: `TooLarge` beyond 256 names.
    pub fn unify(&mut self, other: &ValuationTypes) -> Result<Vec<u8>> {
        other.0.iter().map(|name| self.add(name)).collect()
    }

    /// Forgets the names from id `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

/// Reads any form as pairs of name and id, with repeated keys kept.
struct Listed;

/// What a key of an object stands for.
enum Entry {
    Id(u64),
    Name(String),
}

impl<'de> serde::Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor;
        impl Visitor<'_> for EntryVisitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id, or a name where the key is an id")
            }

            fn visit_u64<E>(self, id: u64) -> Result<Entry, E> {
                Ok(Entry::Id(id))
            }

            fn visit_str<E>(self, name: &str) -> Result<Entry, E> {
                Ok(Entry::Name(name.to_owned()))
            }
        }
        deserializer.deserialize_any(EntryVisitor)
    }
}

impl<'de> Visitor<'de> for Listed {
    type Value = Vec<(String, u64)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and ids, or a list of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut pairs, mut by_id) = (Vec::new(), None);
        while let Some((key, entry)) = map.next_entry::<String, Entry>()? {
            let (pair, is_by_id) = match entry {
                Entry::Id(id) => ((key, id), false),
                Entry::Name(name) => {
                    let id = key.parse().map_err(|_| {
                        serde::de::Error::custom(format!(
                            "`{key}` names `{name}`: expected name and id, or id and name"
                        ))
                    })?;
                    ((name, id), true)
                }
            };
            if *by_id.get_or_insert(is_by_id) != is_by_id {
                let text =
                    format!("`{}` stands for an id where others stand for names, or the other way round", pair.0);
                return Err(serde::de::Error::custom(text));
            }
            pairs.push(pair);
        }
        Ok(pairs)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(name) = seq.next_element()? {
            pairs.push((name, pairs.len() as u64));
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_order_of_id_and_read_in_any() {
        let known = ValuationTypes::default();
        assert_eq!(known.to_json(), "{\n  \"search\": 0,\n  \"tuple11\": 1,\n  \"tuple10\": 2\n}\n");
        for text in [
            &*known.to_json(),
            r#"{"tuple10":2,"search":0,"tuple11":1}"#,
            r#"["search","tuple11","tuple10"]"#,
            r#"{"2":"tuple10","0":"search","1":"tuple11"}"#,
        ] {
            assert_eq!(ValuationTypes::parse(text).unwrap(), known);
        }
        let mut more = known.clone();
        assert_eq!((more.add("line \"plan\"").unwrap(), more.add("search").unwrap()), (3, 0));
        assert_eq!(ValuationTypes::parse(&more.to_json()).unwrap(), more);
        assert_eq!((more.id("tuple10"), more.name(3), more.name(4)), (Some(2), Some("line \"plan\""), None));
    }

    #[test]
    fn what_is_not_dense_and_unique_is_refused() {
        for text in [
            r#"{"search":0,"tuple11":2}"#,
            r#"{"search":1}"#,
            r#"{"search":0,"search":0}"#,
            r#"{"search":0,"search":1}"#,
            r#"{"search":0,"tuple11":0}"#,
            r#"{"":0}"#,
            r#"{"search":-1}"#,
            r#"{"search":0.0}"#,
            r#"{"search":"0"}"#,
            r#"["search","search"]"#,
            r#"{"search":0} {}"#,
            r#"{"1":"search"}"#,
            r#"{"0":"search","0":"tuple11"}"#,
            r#"{"0":"search","1":"search"}"#,
            r#"{"0":"search","tuple11":1}"#,
            r#"{"0":""}"#,
            r#"{"-0":"search"}"#,
            r#"{"first":"search"}"#,
            "7",
            "",
        ] {
            assert_eq!(ValuationTypes::parse(text).unwrap_err().kind(), Kind::Corrupt, "{text}");
        }
        let many: Vec<String> = (0..257).map(|i| format!("type{i}")).collect();
        let text = serde_json::json!(many).to_string();
        assert_eq!(ValuationTypes::parse(&text).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn enums_are_unified_by_name() {
        let mut left = ValuationTypes::default();
        let right = ValuationTypes::parse(r#"["tuple10","block_plan","search"]"#).unwrap();
        assert_eq!(left.unify(&right).unwrap(), [2, 3, 0]);
        assert_eq!(left.names(), ["search", "tuple11", "tuple10", "block_plan"]);
    }
}
