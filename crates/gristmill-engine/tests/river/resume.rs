//! A state taken after any batch gives, in a new loader, exactly the batches that would have followed.

use std::collections::BTreeSet;

use gristmill_engine::config::{
    CacheQuota, ChunkRescorerConfig, ChunkValidatorConfig, DataLoaderConfig, EncoderConfig, Exhausted, ExtractOrder,
    HanseForm, KeyOrder, LastBatch, LaterWeights, PositionSamplingConfig, StageConfig,
};
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{DataLoader, Error, Missing};
use gristmill_generate::ChessOptions;

use super::games::{
    changed, config, generate, hash, hashes, ids, loader, mixed, next, options, preset, single, varied, with_cache,
    without_checksum,
};
use super::logs::logs;

/// Takes the state after every batch, restores each into a loader with other threads, and compares the tail.
fn check_every_batch(options: &Lc0Preset, alias: &str, batches: usize, tail: usize) {
    check_every_batch_of(&config(options), alias, batches, tail);
}

pub(super) fn check_every_batch_of(config: &DataLoaderConfig, alias: &str, batches: usize, tail: usize) {
    let loader = |threads| DataLoader::new(DataLoaderConfig { threads, ..config.clone() }).unwrap();
    let original = loader(config.threads);
    let mut states = vec![original.state().unwrap()];
    let mut expected = Vec::new();
    while expected.len() < batches + tail {
        let Some(batch) = next(&original, alias) else { break };
        expected.push(hash(&batch));
        states.push(original.state().unwrap());
    }
    for (after, state) in states.iter().enumerate().take(batches + 1) {
        let threads = [1, 2, 8][after % 3];
        let restored = loader(Some(threads));
        restored.restore(state).unwrap();
        let rest = &expected[after..(after + tail).min(expected.len())];
        assert_eq!(hashes(&restored, alias, rest.len()), rest, "after batch {after}, {threads} threads");
        if after + tail > expected.len() {
            assert!(next(&restored, alias).is_none(), "the restored stream ends where the original did");
        }
    }
}

#[test]
fn pool_and_reservoir() {
    check_every_batch(&preset(mixed()), "", 25, 12);
}

#[test]
fn a_pool_without_a_reservoir_and_counts() {
    let options = Lc0Preset { reservoir: Some(0), sampling_rate: None, position_count: Some(5), ..preset(mixed()) };
    check_every_batch(&options, "", 20, 10);
}

#[test]
fn a_whole_pass_to_its_end() {
    let options = Lc0Preset { epochs: Some(2), reservoir: Some(64), last_batch: LastBatch::Pad, ..preset(mixed()) };
    check_every_batch(&options, "", 1000, 8);
}

#[test]
fn split_outputs_each_where_they_were() {
    let options = Lc0Preset { split: vec![("train".into(), 2), ("test".into(), 1)], ..preset(mixed()) };
    check_every_batch(&options, "test", 6, 8);
}

#[test]
fn both_outputs_of_a_split_from_any_pair_of_batches() {
    let options = Lc0Preset { split: vec![("train".into(), 2), ("test".into(), 1)], ..preset(mixed()) };
    let whole = ["train", "test"].map(|alias| hashes(&loader(&options), alias, 10));
    for (train, test) in [(0, 0), (5, 0), (0, 4), (3, 6)] {
        let original = loader(&options);
        assert_eq!(hashes(&original, "train", train), whole[0][..train]);
        assert_eq!(hashes(&original, "test", test), whole[1][..test]);
        let restored = loader(&Lc0Preset { threads: Some(1), ..options.clone() });
        restored.restore(&original.state().unwrap()).unwrap();
        assert_eq!(hashes(&restored, "test", 10 - test), whole[1][test..], "train {train}, test {test}");
        assert_eq!(hashes(&restored, "train", 10 - train), whole[0][train..], "train {train}, test {test}");
    }
}

#[test]
fn shuffled_passes_that_leave_rows_behind() {
    let options = Lc0Preset { epochs: Some(3), reservoir: Some(64), last_batch: LastBatch::Drop, ..preset(varied()) };
    let mut config = config(&options);
    for stage in &mut config.stage {
        if let Some(extract) = &mut stage.simple_chunk_extractor {
            (extract.order, extract.key_order) = (ExtractOrder::Shuffled, KeyOrder::Bytes);
        }
        stage.shuffling_frame_sampler.iter_mut().for_each(|sampler| sampler.drain = false);
    }
    check_every_batch_of(&config, "", 1000, 4);
}

#[test]
fn joins_whose_inputs_end() {
    let short = tempfile::tempdir().unwrap();
    generate(options(short.path(), 3));
    let mut options = Lc0Preset { epochs: Some(2), reservoir: Some(30), ..preset(varied()) };
    options.directories.push(Weighted { directory: short.path().to_owned(), weight: 1.0 });
    for (exhausted, batches) in [(Exhausted::Drop, 1000), (Exhausted::Stop, 1000), (Exhausted::Restart, 30)] {
        let mut config = config(&options);
        config.stage.iter_mut().flat_map(|stage| &mut stage.join_positions).for_each(|j| j.exhausted = exhausted);
        check_every_batch_of(&config, "", batches, 4);
    }
}

#[test]
fn raw_logs_in_other_symmetries() {
    let folder = tempfile::tempdir().unwrap();
    logs(folder.path());
    let options = Lc0Preset { pool: 8, reservoir: Some(60), ..preset(folder.path()) };
    let encoder = r#"{"g2048": {"target": "hard_move", "rotate": "any", "flip": "any"}}"#;
    for lanes in [None, Some(2)] {
        let mut config = DataLoaderConfig { lanes, ..config(&options) };
        let mut generators = config.stage.iter_mut().filter_map(|stage| stage.tensor_generator.as_mut());
        generators.next().unwrap().encoder = EncoderConfig::from_json(encoder).unwrap();
        check_every_batch_of(&config, "", 10, 6);
    }
}

#[test]
fn chunks_that_are_validated_and_rescored() {
    let mut config = config(&preset(mixed()));
    let stage = |name: &str, input: &str| StageConfig {
        name: name.into(),
        input: vec![input.into()],
        ..StageConfig::default()
    };
    let unpacker = config.stage.iter_mut().find(|stage| stage.chunk_unpacker.is_some()).unwrap();
    let from = std::mem::replace(&mut unpacker.input[0], "rescore".into());
    let (validate, rescore) = (ChunkValidatorConfig::default(), ChunkRescorerConfig::default());
    config.stage.push(StageConfig { chunk_validator: Some(validate), ..stage("validate", &from) });
    config.stage.push(StageConfig { chunk_rescorer: Some(rescore), ..stage("rescore", "validate") });
    check_every_batch_of(&config, "", 12, 8);
}

#[test]
fn lanes() {
    let config = DataLoaderConfig { lanes: Some(4), ..config(&preset(mixed())) };
    check_every_batch_of(&config, "", 15, 8);
}

#[test]
fn joined_directories() {
    let other = tempfile::tempdir().unwrap();
    generate(options(other.path(), 5));
    let second = Weighted { directory: other.path().to_owned(), weight: 0.5 };
    let mut options = preset(mixed());
    options.directories.push(second);
    check_every_batch(&options, "", 15, 8);
}

#[test]
fn joined_directories_whose_weights_change() {
    let other = tempfile::tempdir().unwrap();
    generate(ChessOptions { first: 900, ..super::games::options(other.path(), 40) });
    let second = Weighted { directory: other.path().to_owned(), weight: 1.0 };
    let mut options = preset(mixed());
    options.directories.push(second);
    let mut config = config(&options);
    let join = config.stage.iter_mut().find_map(|stage| stage.join_positions.as_mut()).unwrap();
    join.later = vec![
        LaterWeights { frame: 60, weight: vec![0.001, 1.0] },
        LaterWeights { frame: 150, weight: vec![1.0, 0.001] },
    ];
    check_every_batch_of(&config, "", 12, 5);
    check_every_batch_of(&DataLoaderConfig { lanes: Some(4), ..config }, "", 12, 5);
}

#[test]
fn hanse_sampling_with_and_without_what_is_known() {
    let index = tempfile::tempdir().unwrap();
    for index in ["off".into(), index.path().to_owned()] {
        let options = Lc0Preset { index: Some(index), tensors: preset(varied()).tensors, ..single(varied()) };
        let hanse = changed(&options, |pool, _| {
            (pool.hanse_sampling_threshold, pool.hanse_sampling_gamma) = (Some(1), 1.5);
        });
        check_every_batch_of(&hanse, "", 15, 10);
    }
}

#[test]
fn the_position_cache_by_reference() {
    let options = Lc0Preset { tensors: preset(varied()).tensors, ..single(varied()) };
    for reservoir in [0, 50] {
        let options = Lc0Preset { reservoir: Some(reservoir), ..options.clone() };
        let hanse = changed(&options, |pool, _| pool.hanse_sampling_threshold = Some(1));
        check_every_batch_of(&with_cache(hanse, 100, 6), "", 20, 12);
    }
}

#[test]
fn hanse_sampling_and_caches_of_every_kind_and_in_lanes() {
    let options = Lc0Preset { tensors: preset(varied()).tensors, ..single(varied()) };
    let weighing = PositionSamplingConfig { diff_focus_q_weight: Some(6.0), ..PositionSamplingConfig::default() };
    let hanse = changed(&options, |pool, unpacker| {
        (pool.hanse_sampling_threshold, pool.hanse_sampling_gamma) = (Some(20), 0.7);
        (pool.hanse_sampling_form, pool.key_order) = (HanseForm::Length, KeyOrder::Bytes);
        (pool.cache_quota, pool.cache_lookahead) = (CacheQuota::Compat, 9);
        unpacker.position_sampling = Some(weighing);
    });
    check_every_batch_of(&hanse, "", 8, 8);
    check_every_batch_of(&with_cache(hanse.clone(), 60, 4), "", 12, 8);
    let two = Lc0Preset { reservoir: Some(60), ..options };
    let weighed = changed(&two, |pool, _| pool.hanse_sampling_threshold = Some(1));
    check_every_batch_of(&DataLoaderConfig { lanes: Some(4), ..with_cache(weighed, 80, 4) }, "", 12, 8);
}

#[test]
fn a_cache_with_a_bad_game() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 10));
    let path = folder.path().join("training.4.gz");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let options = Lc0Preset { pool: 10, batch_size: 7, ..single(folder.path()) };
    check_every_batch_of(&with_cache(config(&options), 40, 8), "", 12, 12);
}

#[test]
fn a_cache_of_another_size_is_refused() {
    let with = |size| with_cache(config(&single(varied())), size, 6);
    let original = DataLoader::new(with(100)).unwrap();
    next(&original, "");
    match DataLoader::new(with(50)).unwrap().restore(&original.state().unwrap()) {
        Err(Error::State(text)) => assert!(text.contains("position_cache_size: saved 100, configured 50"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_state_of_a_state_is_as_good() {
    let whole = hashes(&loader(&preset(mixed())), "", 30);
    let mut state = loader(&preset(mixed())).state().unwrap();
    let mut seen = Vec::new();
    for _ in 0..10 {
        let hop = loader(&preset(mixed()));
        hop.restore(&state).unwrap();
        seen.extend(hashes(&hop, "", 3));
        state = hop.state().unwrap();
    }
    assert_eq!(seen, whole);
}

#[test]
fn what_does_not_fit_is_refused_with_the_difference() {
    let original = loader(&preset(mixed()));
    next(&original, "");
    let state = original.state().unwrap();
    let refuse = |options: &Lc0Preset| match DataLoader::new(config(options)).unwrap().restore(&state) {
        Err(Error::State(text)) => text,
        other => panic!("{other:?}"),
    };
    let text = refuse(&Lc0Preset { batch_size: 32, ..preset(mixed()) });
    assert!(text.contains("batch_size: saved 16, configured 32"), "{text}");
    assert!(refuse(&Lc0Preset { seed: Some(5), ..preset(mixed()) }).contains("seed"));
    assert!(original.restore(&state).is_err(), "a running loader takes no state");
    assert!(loader(&preset(mixed())).restore("{}").is_err());
    assert!(loader(&preset(mixed())).restore("not json").is_err());
}

#[test]
fn a_state_whose_draws_cannot_be_made_again_is_refused() {
    let original = loader(&preset(mixed()));
    next(&original, "");
    let mut damaged: serde_json::Value = serde_json::from_str(&without_checksum(&original.state().unwrap())).unwrap();
    let head = &mut damaged["outputs"][""]["lanes"]["0"]["branches"][0]["head"];
    assert!(head.is_u64());
    *head = 1_000_000_000_000_u64.into();
    let again = loader(&preset(mixed()));
    let refused = again.restore(&damaged.to_string()).and_then(|()| again.next("", None)).unwrap_err().to_string();
    assert!(refused.contains("it is damaged"), "{refused}");
}

/// Every place of a number in a document, as a JSON pointer.
fn numbers(at: &str, value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| numbers(&format!("{at}/{key}"), value, found));
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| numbers(&format!("{at}/{i}"), item, found));
        }
        serde_json::Value::Number(number) if number.is_u64() => found.push(at.to_owned()),
        _ => {}
    }
}

#[test]
fn numbers_that_no_run_reaches_are_refused_with_their_place() {
    let original = loader(&preset(mixed()));
    hashes(&original, "", 4);
    let state = without_checksum(&original.state().unwrap());
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let mut places = Vec::new();
    for part in ["files", "outputs"] {
        numbers(&format!("/{part}"), &state[part], &mut places);
    }
    assert!(places.len() > 20 && places.iter().any(|place| place.ends_with("/batch")), "{places:?}");
    for (place, wild) in places.iter().flat_map(|place| [u64::MAX, 1 << 63, 1 << 44].map(|wild| (place, wild))) {
        let mut state = state.clone();
        *state.pointer_mut(place).unwrap() = wild.into();
        let restored = loader(&preset(mixed())).restore(&state.to_string());
        if place.ends_with("/size") || place.ends_with("/mtime") {
            let said = restored.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(!said.contains("is impossible"), "files may be of any size and time: {said}");
            continue;
        }
        let refused = restored.unwrap_err();
        assert!(matches!(refused, Error::State(_)), "{place}: {refused}");
        let key = place.rsplit('/').find(|key| key.parse::<u64>().is_err()).unwrap();
        assert!(refused.to_string().contains(key), "{place}: {refused}");
    }
}

#[test]
fn vanished_or_changed_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 8));
    let original = loader(&preset(folder.path()));
    next(&original, "");
    let state = original.state().unwrap();
    let gone = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&gone).unwrap();
    let restored = loader(&preset(folder.path()));
    restored.restore(&state).unwrap();
    let error = restored.start().unwrap_err().to_string();
    assert!(error.contains(gone.file_name().unwrap().to_str().unwrap()), "{error}");
}

#[test]
fn what_vanished_is_left_out_by_choice_and_nothing_else_changes() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    generate(ChessOptions { first: 101, games_per_tar: Some(10), ..options(folder.path(), 20) });
    let run = Lc0Preset { reservoir: Some(0), ..preset(folder.path()) };
    let original = loader(&run);
    hashes(&original, "", 3);
    let state = folder.path().with_extension("state");
    original.save(&state).unwrap();
    let expected: Vec<_> = (0..40).flat_map(|_| ids(&next(&original, "").unwrap())).collect();
    let mut tars: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    tars.retain(|path| path.extension().is_some_and(|ending| ending == "tar"));
    let gone = [folder.path().join("training.3.gz"), folder.path().join("training.7.gz"), tars[0].clone()];
    gone.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let names: BTreeSet<String> = gone.iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let refused = loader(&run);
    refused.load(&state, Missing::Refuse).unwrap();
    let text = refused.start().unwrap_err().to_string();
    assert!(text.contains("3 of the files") && text.contains("12 chunks of the windows"), "{text}");
    assert!(names.iter().all(|name| text.contains(&format!("`{name}` is gone"))), "{text}");
    let restored = loader(&run);
    restored.load(&state, Missing::Skip).unwrap();
    restored.start().unwrap();
    let vanished = restored.vanished();
    assert_eq!(vanished.iter().map(|file| file.name.clone()).collect::<BTreeSet<_>>(), names);
    assert_eq!(vanished.iter().map(|file| file.chunks).sum::<u64>(), 12);
    let lost = |source: u64| names.contains(original.source_path(source).unwrap().as_str());
    let expected: Vec<_> = expected.into_iter().filter(|(source, ..)| !lost(*source)).collect();
    let found: Vec<_> = (0..20).flat_map(|_| ids(&next(&restored, "").unwrap())).collect();
    assert_eq!(found, expected[..found.len()]);
    std::fs::remove_file(state).unwrap();
}

#[test]
fn a_chunk_that_vanished_half_taken_gives_no_more_rows() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    let run = Lc0Preset { reservoir: Some(0), sampling_rate: Some(1.0), ..preset(folder.path()) };
    let original = loader(&run);
    for _ in 0..4 {
        let last = ids(&next(&original, "").unwrap()).last().unwrap().0;
        let state = original.state().unwrap();
        let rest: Vec<_> = (0..6).flat_map(|_| ids(&next(&original, "").unwrap())).collect();
        let path = folder.path().join(original.source_path(last).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let restored = loader(&run);
        restored.restore_with(&state, Missing::Skip).unwrap();
        let expected: Vec<_> = rest.into_iter().filter(|(source, ..)| *source != last).collect();
        let found: Vec<_> = (0..3).flat_map(|_| ids(&next(&restored, "").unwrap())).collect();
        assert_eq!(found, expected[..found.len()]);
        restored.stop();
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_reservoir_goes_on_without_what_vanished() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    let original = loader(&preset(folder.path()));
    hashes(&original, "", 3);
    let state = original.state().unwrap();
    std::fs::remove_file(folder.path().join("training.5.gz")).unwrap();
    let go_on = || {
        let restored = loader(&preset(folder.path()));
        restored.restore_with(&state, Missing::Skip).unwrap();
        let rows: Vec<_> = (0..60).flat_map(|_| ids(&next(&restored, "").unwrap())).collect();
        (restored.vanished(), rows)
    };
    let (vanished, rows) = go_on();
    assert!(vanished.len() == 1 && vanished[0].chunks == 1 && vanished[0].rows > 0, "{vanished:?}");
    let of: BTreeSet<u64> = rows.iter().map(|(source, ..)| *source).collect();
    assert_eq!(of.len(), 11, "all but the one that is gone: {of:?}");
    assert_eq!(go_on().1, rows, "and the same each time");
}

#[test]
fn a_state_goes_to_another_folder() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    [&here, &there].into_iter().for_each(|folder| generate(options(folder.path(), 12)));
    let original = loader(&preset(here.path()));
    hashes(&original, "", 5);
    let state = here.path().with_extension("state");
    original.save(&state).unwrap();
    let moved = loader(&preset(there.path()));
    moved.load(&state, Missing::Refuse).unwrap();
    assert_eq!(hashes(&moved, "", 10), hashes(&original, "", 10));
    std::fs::remove_file(state).unwrap();
}

#[test]
fn a_state_is_small() {
    let original = loader(&preset(mixed()));
    hashes(&original, "", 20);
    let bytes = original.state().unwrap().len();
    assert!(bytes < 20_000, "{bytes} bytes for 38 files and a reservoir of 150 frames");
}
