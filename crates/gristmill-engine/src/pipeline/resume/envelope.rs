//! The document of any state -> what it is of, and its fields with the checksum taken off. Knows every version that was written,
//! and nothing of what a version says.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::document;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the envelope; raised whenever the meaning of any state changes.
pub(in crate::pipeline) const VERSION: u32 = 4;

/// What a state is of: which engine resumes from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::pipeline) enum Of {
    /// A stream of files.
    Stream,
    /// Rows by number.
    Rows,
}

impl Of {
    /// What such a loader is called.
    fn loader(self) -> &'static str {
        match self {
            Of::Stream => "a stream",
            Of::Rows => "a loader of rows",
        }
    }

    /// What a loader that is none says of a state of this one.
    fn instead(self) -> &'static str {
        match self {
            Of::Stream => "it is of a stream: a loader of its configuration resumes from it",
            Of::Rows => "it is of rows: a loader of the same selection of a pack resumes from it",
        }
    }
}

/// What documents of before said their version by; the second version of each has a checksum.
const ROWS: &str = "gristmill_index_state";
const PAIRS: &str = "gristmill_pairs_state";

/// Who wrote a document.
enum Author {
    Engine(Of),
    /// The loader of pairs and steps.
    Pairs,
}

/// Opens a state for the engine that `wanted` names: the fields as they are now called, without the checksum.
///
/// Errors: `State` for what is no state, of another engine, of another version, or damaged.
pub(in crate::pipeline) fn opened(mut value: Value, wanted: Of) -> Result<Value> {
    let Some((author, sealed)) = author(&value)? else {
        return Err(Error::State(format!("no state of {}: it has no `gristmill_state`", wanted.loader())));
    };
    let instead = match author {
        Author::Engine(of) if of == wanted => None,
        Author::Engine(of) => Some(of.instead()),
        Author::Pairs => Some("it is of pairs or steps: a loader of the same of them resumes from it"),
    };
    if let Some(instead) = instead {
        return Err(Error::State(format!("{instead}; this one is {}", wanted.loader())));
    }
    unseal(&mut value, sealed)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove(ROWS);
        fields.insert("gristmill_state".to_owned(), VERSION.into());
        fields.insert("of".to_owned(), serde_json::to_value(wanted).unwrap_or_default());
    }
    Ok(value)
}

/// Whether it is a state of a stream, of whatever version, whose ranks have a part each: all others are the same for all ranks.
pub(in crate::pipeline) fn has_parts(value: &Value) -> bool {
    value.get("gristmill_state").is_some() && value.get("of").is_none_or(|of| of == "stream")
}

/// Checks the checksum of a state of any engine; what is no state passes.
///
/// Errors: `State`.
pub(in crate::pipeline) fn check(value: &Value) -> Result<()> {
    author(value)?.map_or(Ok(()), |(_, sealed)| unseal(&mut value.clone(), sealed))
}

/// Who wrote a document, and whether it has a checksum; none for what is no state.
fn author(value: &Value) -> Result<Option<(Author, bool)>> {
    let version = |key: &str| value.get(key).map(|version| version.as_u64().unwrap_or(0));
    if let Some(version) = version("gristmill_state") {
        let of = match version {
            4 => serde_json::from_value(value.get("of").cloned().unwrap_or_default()).map_err(|_| {
                Error::State(format!("it does not say what it is `of`, `stream` or `rows`: {}", document::DAMAGED))
            })?,
            2 | 3 => Of::Stream,
            other => return Err(Error::State(format!("version {other}; expected a state of version {VERSION}"))),
        };
        return Ok(Some((Author::Engine(of), version > 2)));
    }
    for (key, author) in [(ROWS, Author::Engine(Of::Rows)), (PAIRS, Author::Pairs)] {
        match version(key) {
            Some(version @ 1..=2) => return Ok(Some((author, version > 1))),
            Some(other) => return Err(Error::State(format!("`{key}` {other}; expected 1 or 2"))),
            None => {}
        }
    }
    Ok(None)
}

/// Takes the checksum out of a document, which has one or is of a version that has none.
fn unseal(value: &mut Value, expected: bool) -> Result<()> {
    let found = value.as_object_mut().map_or(Ok(false), document::unseal).map_err(Error::State)?;
    let what = match (found, expected) {
        (false, true) => "it lacks its checksum",
        (true, false) => "it has a checksum, which its version has not",
        _ => return Ok(()),
    };
    Err(Error::State(format!("{what}: {}", document::DAMAGED)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sealed(value: &Value) -> Value {
        serde_json::from_str(&serde_json::to_string(value).and_then(document::seal).unwrap()).unwrap()
    }

    #[test]
    fn documents_of_every_version_open_under_one_name() {
        let now = json!({"gristmill_state": 4, "of": "rows", "batch": 7});
        assert_eq!(opened(sealed(&now), Of::Rows).unwrap(), now);
        assert_eq!(opened(sealed(&json!({"gristmill_index_state": 2, "batch": 7})), Of::Rows).unwrap(), now);
        assert_eq!(opened(json!({"gristmill_index_state": 1, "batch": 7}), Of::Rows).unwrap(), now);
        let now = json!({"gristmill_state": 4, "of": "stream", "seed": 7});
        for before in
            [sealed(&now), sealed(&json!({"gristmill_state": 3, "seed": 7})), json!({"gristmill_state": 2, "seed": 7})]
        {
            assert!(has_parts(&before));
            assert_eq!(opened(before, Of::Stream).unwrap(), now);
        }
    }

    #[test]
    fn what_another_engine_resumes_from_is_refused_by_its_name() {
        let states = [
            (sealed(&json!({"gristmill_state": 4, "of": "rows"})), Of::Stream, "it is of rows: a loader of the same"),
            (json!({"gristmill_index_state": 1}), Of::Stream, "it is of rows: a loader of the same"),
            (sealed(&json!({"gristmill_state": 4, "of": "stream"})), Of::Rows, "it is of a stream: a loader of its"),
            (json!({"gristmill_state": 2}), Of::Rows, "it is of a stream: a loader of its"),
            (json!({"gristmill_pairs_state": 1}), Of::Stream, "it is of pairs or steps"),
            (json!({"gristmill_pairs_state": 2}), Of::Rows, "it is of pairs or steps"),
            (json!({"gristmill_state": 1}), Of::Stream, "version 1; expected a state of version 4"),
            (json!({"gristmill_state": 5, "of": "new"}), Of::Rows, "version 5; expected a state of version 4"),
            (json!({"gristmill_index_state": 3}), Of::Rows, "`gristmill_index_state` 3; expected 1 or 2"),
            (json!({"gristmill_state": 4, "of": "pears"}), Of::Rows, "it does not say what it is `of`"),
            (json!({"gristmill_state": 4, "of": "rows"}), Of::Rows, "lacks its checksum"),
            (sealed(&json!({"gristmill_state": 2})), Of::Stream, "it has a checksum, which its version has not"),
            (json!({"batch": 3}), Of::Rows, "no state of a loader of rows"),
            (json!([1]), Of::Stream, "no state of a stream"),
        ];
        for (state, wanted, expected) in states {
            let said = opened(state, wanted).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}, expected {expected}");
        }
    }

    #[test]
    fn a_state_of_any_engine_is_checked_and_only_one_of_a_stream_has_parts() {
        let rows = json!({"gristmill_state": 4, "of": "rows", "batch": 7});
        for state in [sealed(&rows), json!({"gristmill_index_state": 1}), json!({"batch": 7}), json!([1])] {
            check(&state).unwrap();
            assert!(!has_parts(&state), "{state}");
        }
        let mut damaged = sealed(&rows);
        damaged["batch"] = 8.into();
        for state in [damaged, rows] {
            assert!(check(&state).unwrap_err().to_string().contains("checksum"));
        }
    }
}
