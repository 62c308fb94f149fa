//! Options that say that they never change a batch: each of them may be another one where a state is restored, and the
//! batches are the same. All that are declared are varied, none by a list of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gristmill_engine::DataLoader;
use gristmill_engine::config::{ChunkRescorerConfig, ChunkValidatorConfig, DataLoaderConfig, StageConfig};
use gristmill_engine::options::{Effect, Opt, Options};
use gristmill_engine::preset::Lc0Preset;
use serde_json::{Value, json};

use super::dedup::windowed;
use super::games::{changed, config, hashes, mixed, preset, with_cache};

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
    let mut config = windowed(config, 50, false);
    for stage in &mut config.stage {
        stage.chunk_source_loader.iter_mut().for_each(|loader| loader.threads = Some(2));
        stage.tensor_generator.iter_mut().for_each(|tensors| tensors.threads = Some(2));
    }
    config
}

/// An option of a configuration, by its path, and what it says of itself.
type Found = (String, Effect);

/// Every option that is declared, at each place of a configuration where it stands or may stand.
fn options(at: &str, options: &[Opt], value: &Value, found: &mut Vec<Found>) {
    if let Value::Array(items) = value {
        items.iter().enumerate().for_each(|(i, item)| self::options(&format!("{at}/{i}"), options, item, found));
        return;
    }
    for Opt { name, effect } in options {
        let path = format!("{at}/{name}");
        match (effect, value.get(name)) {
            (Effect::Table(inner), Some(value)) => self::options(&path, inner, value, found),
            (Effect::Table(_), None) => {}
            (effect, _) => found.push((path, *effect)),
        }
    }
}

fn all(config: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    options("", DataLoaderConfig::OPTIONS, config, &mut found);
    for (i, stage) in config["stage"].as_array().unwrap().iter().enumerate() {
        for (kind, declared) in StageConfig::KINDS {
            stage.get(kind).into_iter().for_each(|value| {
                options(&format!("/stage/{i}/{kind}"), declared, value, &mut found);
            });
        }
    }
    found
}

/// The same configuration with another value of an option, if there is one that a loader can be made of.
fn other(config: &Value, path: &str, places: &Path) -> Option<Value> {
    let (table, name) = path.rsplit_once('/').unwrap();
    let now = config.pointer(path).cloned().unwrap_or_default();
    let number = now.as_f64().map_or(3.0, |number| if number.fract() == 0.0 { number + 3.0 } else { number / 2.0 });
    let whole = if number.fract() == 0.0 { Value::from(number as u64) } else { number.into() };
    let words = ["bytes", "length", "compat", "V6TrainingData", "shuffled", "stop", "pad", "DROP_NEW", "file", "raise"];
    let text = if name.ends_with("limit") || name == "memory" { json!("1GiB") } else { json!(places) };
    let values = [whole, text, json!(!now.as_bool().unwrap_or(false)), json!({"queue_capacity": 9})];
    values.into_iter().chain(words.map(Value::from)).filter(|value| *value != now).find_map(|value| {
        let mut other = config.clone();
        // What goes with another option alone.
        match name {
            "quarantine" => other["bad_chunks"] = "quarantine".into(),
            "spill_limit" => other["spill"] = json!(places),
            _ => {}
        }
        other.pointer_mut(table).unwrap()[name] = value;
        DataLoader::new(DataLoaderConfig::from_json(&other.to_string()).ok()?).ok()?;
        Some(other)
    })
}

fn of(config: &Value) -> DataLoader {
    DataLoader::new(DataLoaderConfig::from_json(&config.to_string()).unwrap()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &copied);
            continue;
        }
        fs::copy(&path, &copied).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::File::options().write(true).open(copied).unwrap().set_modified(time).unwrap();
    }
}

/// Restores a state with each option another one that says that it never changes a batch; the names of the tables that
/// have such an option.
fn vary(config: DataLoaderConfig, alias: &str) -> BTreeSet<String> {
    // The same games elsewhere: what is there counts, and not where it is.
    let elsewhere = tempfile::tempdir().unwrap();
    copy(mixed(), elsewhere.path());
    let config = serde_json::to_value(config).unwrap();
    let original = of(&config);
    hashes(&original, alias, 5);
    let state = original.state().unwrap();
    let expected = hashes(&original, alias, 6);
    let mut kinds = BTreeSet::new();
    for (path, effect) in all(&config) {
        let places = match path.as_str() {
            "/spill" | "/spill_limit" | "/index" | "/quarantine" => elsewhere.path().join("new").join(&path[1..]),
            _ => elsewhere.path().to_owned(),
        };
        // A folder of this machine sends no events: tests/test_stores_events.py resumes with a queue, and replays without it.
        if effect == Effect::Apart || effect == Effect::Batches || path.ends_with("/events") {
            continue;
        }
        let other = other(&config, &path, &places).unwrap_or_else(|| panic!("{path} has no other value"));
        fs::create_dir_all(elsewhere.path().join("new")).unwrap();
        let restored = of(&other);
        restored.restore(&state).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(hashes(&restored, alias, 6), expected, "{path}");
        restored.stop();
        fs::remove_dir_all(elsewhere.path().join("new")).unwrap();
        kinds.insert(path.split('/').nth(3).unwrap_or("loader").to_owned());
    }
    kinds
}

#[test]
fn each_option_that_never_changes_a_batch_may_be_another_when_a_state_is_restored() {
    let mut kinds = vary(whole(), "train");
    let passes = Lc0Preset { epochs: Some(3), ..preset(mixed()) };
    kinds.extend(vary(config(&passes), ""));
    let every = StageConfig::KINDS.iter().map(|(kind, _)| (*kind).to_owned()).chain(["loader".to_owned()]);
    assert_eq!(kinds, every.collect(), "the loader, and each kind of stage");
}

/// Every option that says that it changes batches refuses the state, by its name.
#[test]
fn every_other_option_refuses_the_state() {
    let config = serde_json::to_value(whole()).unwrap();
    let original = of(&config);
    hashes(&original, "train", 2);
    let state = original.state().unwrap();
    let mut varied = 0;
    for (path, _) in all(&config).into_iter().filter(|(_, effect)| *effect == Effect::Batches) {
        // An impossible configuration is refused before the state is read.
        let Some(other) = other(&config, &path, Path::new("none")) else { continue };
        let refused = of(&other).restore(&state).err().map(|e| e.to_string()).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap();
        assert!(refused.contains(name), "{path}: {refused}");
        varied += 1;
    }
    assert!(varied > 25, "{varied}");
}
