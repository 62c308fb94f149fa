//! A config and the text of a partial one -> the config with what that text sets laid over it.
//! Only what stands in the text counts: a field that is absent there leaves everything as it was.

use gristmill_runtime::error::{Error, Result};
use serde_json::{Map, Value};

use super::parse::tracked;
use super::text::TextForm;
use super::tree::Tree;
use super::{DataLoaderConfig, proto};

impl DataLoaderConfig {
    /// This config with what `text` sets: a plain value or a list replaces what was there, a table is laid over field by
    /// field, a stage over the one of its name. A stage that is not there is added where the text says what it reads.
    ///
    /// Errors: `Config` with line, column, stage and field for a text that cannot be read, and for a stage that is not there.
    pub fn overlaid(&self, text: &str, form: TextForm) -> Result<Self> {
        let mut over = set(text, form)?;
        let own = serde_json::to_value(self).map_err(|e| Error::config("", e.to_string()))?;
        let Value::Object(mut merged) = own else { return Ok(self.clone()) };
        let stages = over.remove("stage");
        lay(&mut merged, over);
        if let (Some(Value::Array(stages)), Some(Value::Array(own))) = (stages, merged.get_mut("stage")) {
            for stage in stages {
                lay_stage(own, stage).map_err(|e| form.place(text, e))?;
            }
        }
        match form {
            TextForm::Toml => tracked(Value::Object(merged)).map_err(|(_, message)| Error::config("", message)),
            TextForm::Textproto => proto::read(merged).map_err(|(_, message)| Error::config("", message)),
        }
    }
}

/// The fields that a text sets, once it has proved to be a config.
fn set(text: &str, form: TextForm) -> Result<Map<String, Value>> {
    match form {
        TextForm::Toml => {
            DataLoaderConfig::from_toml(text)?;
            Tree::parse(text).and_then(|tree| tree.values()).map_err(|(at, message)| form.fault(text, at, message))
        }
        TextForm::Textproto => {
            DataLoaderConfig::from_textproto(text)?;
            proto::set(text)
        }
    }
}

fn lay(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (name, value) in over {
        match (under.get_mut(&name), value) {
            (Some(Value::Object(under)), Value::Object(over)) => lay(under, over),
            (_, value) => drop(under.insert(name, value)),
        }
    }
}

fn lay_stage(stages: &mut Vec<Value>, stage: Value) -> Result<()> {
    let Value::Object(over) = stage else { return Ok(()) };
    let name = over.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let name_of = |stage: &Value| stage.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut own = stages.iter_mut().filter_map(Value::as_object_mut);
    if let Some(under) = own.find(|under| under.get("name").and_then(Value::as_str).unwrap_or_default() == name) {
        lay(under, over);
        return Ok(());
    }
    if over.contains_key("input") || over.contains_key("file_path_provider") {
        stages.push(Value::Object(over));
        return Ok(());
    }
    let known = stages.iter().map(name_of).map(|known| (strsim::damerau_levenshtein(&name, &known), known));
    let near = known.filter(|(distance, known)| *distance <= known.len().max(name.len()) / 2).min();
    let hint = near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    let text =
        format!("there is no stage of this name to lay it over{hint}; one that is to be added says what it reads");
    Err(Error::stage(&name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNDER: &str = r#"
        stage { name: "files" file_path_provider { directory: "games" } }
        stage { name: "load" input: "files" chunk_source_loader { } }
        stage { name: "pool" input: "load" shuffling_chunk_pool { chunk_pool_size: 100 output { queue_capacity: 9 } } }
        stage { name: "unpack" input: "pool" chunk_unpacker { position_sampling_rate: 0.5 } }
        stage { name: "tensors" input: "unpack" tensor_generator { batch_size: 16 } }
        output: "tensors"
    "#;

    fn under() -> DataLoaderConfig {
        DataLoaderConfig::from_textproto(UNDER).unwrap()
    }

    #[test]
    fn what_stands_in_the_text_replaces_and_the_rest_stays() {
        let toml = "seed = 7\nmemory = \"1GiB\"\nspill = \"held\"\nbad_chunks = \"quarantine\"\n[[stage]]\nname = \"pool\"\n\
                    shuffling_chunk_pool = { chunk_pool_size = 5, output = { name = \"x\" } }\n";
        let textproto = r#"seed: 7 memory: "1GiB" spill: "held" bad_chunks: quarantine
                           stage { name: "pool" shuffling_chunk_pool { chunk_pool_size: 5 output { name: "x" } } }"#;
        let mut expected = under();
        expected.seed = Some(7);
        expected.memory = Some("1GiB".parse().unwrap());
        expected.spill = Some("held".into());
        expected.bad_chunks = crate::config::BadChunks::Quarantine;
        let pool = expected.stage[2].shuffling_chunk_pool.as_mut().unwrap();
        (pool.chunk_pool_size, pool.output.name) = (5, "x".into());
        assert_eq!(under().overlaid(toml, TextForm::Toml).unwrap(), expected);
        assert_eq!(under().overlaid(textproto, TextForm::Textproto).unwrap(), expected);
        let whole = format!("name: \"a run\" data_loader {{ {textproto} }}");
        assert_eq!(under().overlaid(&whole, TextForm::Textproto).unwrap(), expected);
        for form in [TextForm::Toml, TextForm::Textproto] {
            assert_eq!(under().overlaid("", form).unwrap(), under());
        }
    }

    #[test]
    fn a_stage_that_reads_something_is_added_and_others_are_refused_by_name() {
        let validator = r#"
            stage { name: "check" input: "pool" chunk_validator { } }
            stage { name: "unpack" input: "check" }"#;
        let merged = under().overlaid(validator, TextForm::Textproto).unwrap();
        assert_eq!(merged.stage.len(), 6);
        assert_eq!(merged.stage[3].input, ["check"]);
        assert_eq!(merged.stage[3].chunk_unpacker, under().stage[3].chunk_unpacker);
        // Absent fields of a new stage mean what they mean in its own form.
        let sampler = |text, form| under().overlaid(text, form).unwrap().stage[5].shuffling_frame_sampler.clone();
        let toml = "[[stage]]\nname = \"s\"\ninput = [\"unpack\"]\nshuffling_frame_sampler = {}";
        assert!(sampler(toml, TextForm::Toml).unwrap().drain);
        let textproto = "stage { name: \"s\" input: \"unpack\" shuffling_frame_sampler { } }";
        assert!(!sampler(textproto, TextForm::Textproto).unwrap().drain);
        let wrong = "seed = 1\n[[stage]]\nname = \"pol\"\nshuffling_chunk_pool = { chunk_pool_size = 5 }";
        let error = under().overlaid(wrong, TextForm::Toml).unwrap_err().to_string();
        assert!(error.starts_with("line 2, column 1: stage `pol`: ") && error.contains("`pool`"), "{error}");
    }

    #[test]
    fn faults_of_the_text_have_their_place_in_it() {
        for (text, form, says) in [
            ("seed = 1\nmemry = 3", TextForm::Toml, "line 2, column 1: `memry`"),
            ("seed: 1\nmemry: 3", TextForm::Textproto, "did you mean `memory`"),
            ("seed = ", TextForm::Toml, "line 1"),
            ("stage { name: \"pool\" shuffling_chunk_pool { chunk_pool_size: -1 } }", TextForm::Textproto, "line 1"),
        ] {
            let error = under().overlaid(text, form).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
