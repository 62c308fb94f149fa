//! Text -> config, config -> text. An unknown key is refused with the nearest known one.
//! Every refusal has line and column, and the stage and field that it lies in.

use gristmill_runtime::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::text::{TextForm, line_and_column};
use super::tree::{Fault, Tree};
use super::{DataLoaderConfig, PositionSamplingConfig, json};

impl DataLoaderConfig {
    /// Reads TOML. Errors: `Config` with line, column, stage and field.
    pub fn from_toml(text: &str) -> Result<Self> {
        let fault = |(at, message): Fault| TextForm::Toml.fault(text, at, suggest(&message));
        let tree = Tree::parse(text).map_err(fault)?;
        let values = tree.values().map_err(fault)?;
        tracked(Value::Object(values)).map_err(|(path, message)| fault((tree.place(&path, unknown(&message)), message)))
    }

    /// Writes TOML that [`DataLoaderConfig::from_toml`] reads back to the same config.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| Error::config("", e.to_string()))
    }

    /// Reads JSON. Errors: `Config` with line, column, stage and field.
    pub fn from_json(text: &str) -> Result<Self> {
        from_json(text)
    }

    /// Writes JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl PositionSamplingConfig {
    /// Reads the words of an option: names and numbers with commas between them, as between the braces of TOML.
    ///
    /// Errors: `Config` in `option`; an unknown name comes with the nearest known one.
    pub fn from_words(option: &str, words: &str) -> Result<Self> {
        let refused = |message: &str| Error::config(option, format!("{}, in `{words}`", suggest(message)));
        let text = format!("rule = {{ {words} }}");
        let tree = Tree::parse(&text);
        let mut rule = tree.and_then(|tree| tree.values()).map_err(|(_, message)| refused(&message))?;
        let more = || Error::config(option, format!("expected names and numbers of one rule, found `{words}`"));
        let rule = rule.remove("rule").filter(|_| rule.is_empty()).ok_or_else(more)?;
        tracked(rule).map_err(|(_, message)| refused(&message))
    }
}

/// Reads any config type from JSON, with a suggestion for unknown keys. Errors: `Config` with line, column, stage and field.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    let tree = json::values(text).map_err(|e| {
        let message = e.to_string();
        let place = format!(" at line {} column {}", e.line(), e.column());
        let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        Error::Config { at: Some((e.line(), e.column())), stage: None, field: None, message }
    })?;
    let name = |stage: &Value| Some(stage.get("name")?.as_str()?.to_owned());
    let stages: Vec<Option<String>> =
        tree.get("stage").and_then(Value::as_array).into_iter().flatten().map(name).collect();
    tracked(tree).map_err(|(path, message)| {
        let at = line_and_column(text, json::place(text, &path, unknown(&message)));
        match refused(&path, &stages, suggest(&message)) {
            Error::Config { stage, field, message, .. } => Error::Config { at: Some(at), stage, field, message },
            other => other,
        }
    })
}

/// Reads options that a program wrote as JSON, as [`from_json`] does; refusals say no line and column of a text that nobody sees.
pub fn options<T: DeserializeOwned>(text: &str) -> Result<T> {
    from_json(text).map_err(|error| match error {
        Error::Config { stage, field, message, .. } => {
            Error::Config { at: None, stage, field, message: in_words(&message) }
        }
        other => other,
    })
}

/// What was found and expected, without names of types of Rust.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other => other,
    };
    let found = found.trim_start_matches("invalid value: ").trim_start_matches("invalid type: ");
    format!("{found}; expected {words}")
}

/// A config out of the values of a text, whatever its form; a refusal comes with the path of names and indices that leads to it, up to
/// the table of a name that is not known.
pub(super) fn tracked<T: DeserializeOwned>(from: Value) -> Result<T, (Vec<String>, String)> {
    serde_path_to_error::deserialize(from).map_err(|e| {
        let step = |step: &Segment| match step {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => String::new(),
        };
        let mut path: Vec<String> = e.path().iter().map(step).collect();
        let message = e.into_inner().to_string();
        path.pop_if(|last| unknown(&message) == Some(last));
        (path, message)
    })
}

/// The name in a refusal of one that is not known.
fn unknown(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// A refusal at a path: in a stage, by its name, and in the innermost field of the path, or the unknown one below it.
pub(super) fn refused(path: &[String], stages: &[Option<String>], message: String) -> Error {
    let index = |step: &String| step.parse::<usize>().ok();
    let stage = match path {
        [stage, number, ..] if stage == "stage" => index(number).and_then(|i| stages.get(i)?.clone()),
        _ => None,
    };
    let field = unknown(&message).or(path.iter().rfind(|step| index(step).is_none()).map(String::as_str));
    let field = field.filter(|field| !field.is_empty() && (*field != "stage" || stage.is_none())).map(str::to_owned);
    Error::Config { at: None, stage, field, message }
}

/// What is looked for in a splitter and is not there, and what there is instead.
const SPLIT_BY: (&str, &str) = (
    "unknown variant `content`, expected `name` or `file`",
    "; streams are split by the names of files: pack the games, and `split(by=\"content\")` of the pack keeps copies and mirrored \
     games on one side, or let `gristmill split --by content` make a folder for each side",
);

/// Adds "did you mean" to serde's message about an unknown field or variant.
fn suggest(message: &str) -> String {
    if message.starts_with(SPLIT_BY.0) {
        return message.trim_end().to_owned() + SPLIT_BY.1;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let nearest = match (message.contains("unknown field") || message.contains("unknown variant"), quoted.next()) {
        (true, Some(found)) => quoted
            .map(|known| (strsim::damerau_levenshtein(found, known), known))
            .filter(|(distance, known)| *distance <= known.len().max(found.len()) / 2)
            .min(),
        _ => None,
    };
    match nearest {
        Some((_, known)) => format!("{}; did you mean `{known}`?", message.trim_end()),
        None => message.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"
        seed = 7
        memory = "2GiB"
        output = ["train:tensors"]
        [[stage]]
        name = "files"
        file_path_provider = { directory = "games" }
        [[stage]]
        name = "pool"
        input = ["files"]
        [stage.shuffling_chunk_pool]
        chunk_pool_size = 5
        hanse_sampling_threshold = 80
        hanse_sampling_form = "length"
        position_sampling = { diff_focus_q_weight = 6.0 }
        cachehit_output = { name = "hits" }
        [stage.shuffling_chunk_pool.output]
        overflow_behavior = "KEEP_NEWEST"
    "#;

    #[test]
    fn toml_and_json_round_trip() {
        let config = DataLoaderConfig::from_toml(GRAPH).unwrap();
        assert_eq!(DataLoaderConfig::from_toml(&config.to_toml().unwrap()).unwrap(), config);
        assert_eq!(DataLoaderConfig::from_json(&config.to_json()).unwrap(), config);
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_known_one() {
        let error = DataLoaderConfig::from_toml(&GRAPH.replace("chunk_pool_size", "chunk_pol_size")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("did you mean `chunk_pool_size`"), "{text}");
        assert!(text.starts_with("line 12, column 9: stage `pool`, field `chunk_pol_size`: unknown field"), "{text}");
        let error = DataLoaderConfig::from_json(r#"{"sede": 3}"#).unwrap_err().to_string();
        assert!(error.starts_with("line 1, column 2: `sede`: unknown field `sede`"), "{error}");
        assert!(error.ends_with("did you mean `seed`?"), "{error}");
        let split = r#"{"stage": [{"name": "split", "chunk_source_splitter": {"by": "content"}}]}"#;
        let error = DataLoaderConfig::from_json(split).unwrap_err().to_string();
        assert!(
            error.contains("stage `split`, field `by`") && error.contains("gristmill split --by content"),
            "{error}"
        );
    }
}
