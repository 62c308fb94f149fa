//! A state taken after any batch gives, in a new loader, exactly the batches that would have followed.

use std::collections::BTreeSet;

use gristmill_engine::config::{
    ChunkRescorerConfig, ChunkValidatorConfig, DataLoaderConfig, LastBatch, Lc0Preset, StageConfig, Weighted,
};
use gristmill_engine::job::generate::ChessOptions;
use gristmill_engine::{DataLoader, Error, Missing};

use super::games::{
    changed, config, generate, hash, hashes, ids, loader, mixed, next, options, preset, single, varied, with_cache,
};

/// Takes the state after every batch, restores each into a loader with other threads, and compares the tail.
fn check_every_batch(options: &Lc0Preset, alias: &str, batches: usize, tail: usize) {
    check_every_batch_of(&config(options), alias, batches, tail);
}

fn check_every_batch_of(config: &DataLoaderConfig, alias: &str, batches: usize, tail: usize) {
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
