//! Text -> config, config -> text. An unknown key is refused with the nearest known one.
//! TOML errors carry line and column; JSON comes from Python dataclasses and says which field.

use super::DataLoaderConfig;
use crate::error::{Error, Result};

impl DataLoaderConfig {
    /// Reads TOML.
    pub fn from_toml(text: &str) -> Result<Self> {
        toml::from_str(text).map_err(|e| Error::config("", suggest(&e.to_string())))
    }

    /// Writes TOML that [`DataLoaderConfig::from_toml`] reads back to the same config.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| Error::config("", e.to_string()))
    }

    /// Reads JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        from_json(text)
    }

    /// Writes JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Reads any config type from JSON, with a suggestion for unknown keys.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::config("", suggest(&e.to_string())))
}

/// Adds "did you mean" to serde's message about an unknown field or variant.
fn suggest(message: &str) -> String {
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
        assert!(text.contains("line 12"), "{text}");
        let error = DataLoaderConfig::from_json(r#"{"sede": 3}"#).unwrap_err().to_string();
        assert!(error.contains("did you mean `seed`"), "{error}");
    }
}
