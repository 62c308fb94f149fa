//! Options that only change speed: each of them may be another one where a state is restored, and the batches are the same.
//! Every number of a configuration is varied, so that one that is forgotten here or in the state is found.

use std::collections::BTreeSet;

use gristmill_engine::DataLoader;
use gristmill_engine::config::{ChunkRescorerConfig, ChunkValidatorConfig, DataLoaderConfig, Lc0Preset, StageConfig};
use serde_json::Value;

use super::games::{changed, config, hashes, mixed, preset, with_cache};

/// Names of the options that never change a batch.
const SPEED: [&str; 5] =
    ["threads", "queue_capacity", "chunk_loading_threads", "source_ingestion_threads", "caching_threads"];

/// A stream with every kind of stage, and every option that has a number set.
fn whole() -> DataLoaderConfig {
    let split = vec![("train".to_owned(), 3), ("test".to_owned(), 1)];
    let options = Lc0Preset { split, sampling_rate: None, position_count: Some(1), ..preset(mixed()) };
    let mut config = changed(&options, |pool, unpacker| {
        (pool.chunk_loading_threads, pool.source_ingestion_threads, pool.caching_threads) = (Some(2), Some(2), Some(2));
        unpacker.threads = Some(2);
    });
    // The other side of the split has no cache; its stages stand for themselves.
    config.output.truncate(1);
    config.stage.retain(|stage| !stage.name.ends_with("_test"));
    for stage in &mut config.stage {
        stage.name = stage.name.replace("_train", "");
        stage.input.iter_mut().for_each(|input| *input = input.replace("_train", ""));
    }
    config.output[0] = config.output[0].replace("_train", "");
    let mut config = with_cache(config, 30, 3);
    let stage = |name: &str, input: &str| StageConfig {
        name: name.into(),
        input: vec![input.into()],
        ..StageConfig::default()
    };
    let unpacker = config.stage.iter_mut().find(|stage| stage.chunk_unpacker.is_some()).unwrap();
    let from = std::mem::replace(&mut unpacker.input[0], "rescore".into());
    let validate = ChunkValidatorConfig { threads: Some(2), ..ChunkValidatorConfig::default() };
    let rescore = ChunkRescorerConfig { threads: Some(2), ..ChunkRescorerConfig::default() };
    config.stage.push(StageConfig { chunk_validator: Some(validate), ..stage("validate", &from) });
    config.stage.push(StageConfig { chunk_rescorer: Some(rescore), ..stage("rescore", "validate") });
    for stage in &mut config.stage {
        stage.chunk_source_loader.iter_mut().for_each(|loader| loader.threads = Some(2));
        stage.tensor_generator.iter_mut().for_each(|tensors| tensors.threads = Some(2));
    }
    config
}

/// The paths of all numbers in a configuration.
fn numbers(at: String, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| numbers(format!("{at}/{name}"), value, found)),
        Value::Array(items) => {
            (0..).zip(items).for_each(|(i, value): (usize, _)| numbers(format!("{at}/{i}"), value, found))
        }
        Value::Number(_) => found.push(at),
        _ => {}
    }
}

fn of(config: &Value) -> DataLoader {
    DataLoader::new(DataLoaderConfig::from_json(&config.to_string()).unwrap()).unwrap()
}

/// Whether the option at a path only changes speed. The threads of a sampler are a factor of its reservoir.
fn is_speed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap();
    SPEED.contains(&name) && !path.contains("shuffling_frame_sampler/threads")
}

/// Restores a state with each such option changed; the kinds of stages that have one.
fn vary(config: DataLoaderConfig, alias: &str) -> BTreeSet<String> {
    let config = serde_json::to_value(config).unwrap();
    let original = of(&config);
    hashes(&original, alias, 5);
    let state = original.state().unwrap();
    let expected = hashes(&original, alias, 6);
    let (mut paths, mut kinds) = (Vec::new(), BTreeSet::new());
    numbers(String::new(), &config, &mut paths);
    for path in paths.into_iter().filter(|path| is_speed(path)) {
        let mut other = config.clone();
        let number = other.pointer_mut(&path).unwrap();
        *number = (number.as_u64().unwrap() + 3).into();
        let restored = of(&other);
        restored.restore(&state).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(hashes(&restored, alias, 6), expected, "{path}");
        kinds.insert(path.split('/').nth(3).unwrap_or("loader").to_owned());
    }
    kinds
}

#[test]
fn each_option_that_only_changes_speed_may_be_another_when_a_state_is_restored() {
    let kinds = vary(whole(), "train");
    assert_eq!(kinds.len(), 11, "the loader, and each kind of stage but one: {kinds:?}");
    let passes = Lc0Preset { epochs: Some(3), ..preset(mixed()) };
    assert!(vary(config(&passes), "").contains("simple_chunk_extractor"));
}

#[test]
fn every_other_number_that_a_stream_goes_by_refuses_the_state() {
    let config = serde_json::to_value(whole()).unwrap();
    let original = of(&config);
    hashes(&original, "train", 2);
    let state = original.state().unwrap();
    let mut paths = Vec::new();
    numbers(String::new(), &config, &mut paths);
    let counts = |path: &String| !is_speed(path) && !path.contains("file_path_provider");
    for path in paths.into_iter().filter(counts) {
        let mut other = config.clone();
        let number = other.pointer_mut(&path).unwrap();
        *number = match number.as_i64() {
            Some(n) => (n + 1).into(),
            None => (number.as_f64().unwrap() / 2.0 + 0.125).into(),
        };
        let parsed = DataLoaderConfig::from_json(&other.to_string()).unwrap();
        // An impossible configuration is refused before the state is read.
        let Ok(loader) = DataLoader::new(parsed) else { continue };
        let refused = loader.restore(&state).unwrap_err().to_string();
        let name = path.rsplit('/').find(|part| part.parse::<u32>().is_err()).unwrap();
        assert!(refused.contains(name), "{path}: {refused}");
    }
}
