//! The rescorer as a stage: what it changes comes out of the loader, the same for any number of threads, and is counted.

use gristmill_engine::config::{ChunkRescorerConfig, DataLoaderConfig, StageConfig};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};
use gristmill_format::chess::Version;

use crate::games::{config, generate, hashes, next, options, preset};

/// The usual graph with a rescorer between pool and unpacker.
fn with_rescorer(options: &Lc0Preset, rescorer: ChunkRescorerConfig) -> DataLoaderConfig {
    let mut config = config(options);
    let unpacker = config.stage.iter_mut().find(|stage| stage.chunk_unpacker.is_some()).unwrap();
    let input = std::mem::replace(&mut unpacker.input, vec!["rescorer".into()]);
    config.stage.push(StageConfig {
        name: "rescorer".into(),
        input,
        chunk_rescorer: Some(rescorer),
        ..StageConfig::default()
    });
    config
}

fn small(folder: &std::path::Path) -> Lc0Preset {
    let tensors = ["planes:u8", "probs", "values"].map(String::from).to_vec();
    Lc0Preset { epochs: Some(1), reservoir: Some(0), sampling_rate: Some(1.0), tensors, ..preset(folder) }
}

#[test]
fn short_term_values_and_formats_come_out_of_the_loader() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 6));
    let v7 = tempfile::tempdir().unwrap();
    generate(gristmill_generate::ChessOptions { version: Version::V7, ..options(v7.path(), 6) });
    // A player that writes V7 itself knows the same short-term values as a rescorer of its V6 games.
    let values = |folder: &std::path::Path, rescorer: Option<ChunkRescorerConfig>| {
        let options = small(folder);
        let config = rescorer.map_or_else(|| config(&options), |rescorer| with_rescorer(&options, rescorer));
        let loader = DataLoader::new(config).unwrap();
        loader.start().unwrap();
        let mut all = Vec::new();
        while let Some(batch) = next(&loader, "") {
            let rows = batch.rows;
            all.extend_from_slice(&batch.column("values").unwrap().bytes()[..rows * 72]);
        }
        let metrics = serde_json::to_value(loader.metrics()).unwrap();
        (all, metrics)
    };
    let (raw, _) = values(folder.path(), None);
    let (rescored, metrics) = values(folder.path(), Some(ChunkRescorerConfig::default()));
    let (written, _) = values(v7.path(), None);
    assert_ne!(raw, rescored);
    let close = |a: &[u8], b: &[u8]| {
        let f = |x: &[u8]| f32::from_le_bytes(x.try_into().unwrap());
        a.chunks_exact(4).zip(b.chunks_exact(4)).all(|(a, b)| {
            let (a, b) = (f(a), f(b));
            a.to_bits() == b.to_bits() || (a - b).abs() < 1e-6
        })
    };
    assert!(close(&rescored, &written));
    let text = metrics.to_string();
    assert!(text.contains("chunk_rescorer") && text.contains("frames_to_v7"), "{text}");
}

#[test]
fn threads_never_change_what_a_rescorer_gives() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 20));
    let rescorer = ChunkRescorerConfig {
        dist_temp: 1.3,
        new_input_format: 4,
        deblunder_threshold: Some(0.1),
        deblunder_width: Some(0.06),
        ..ChunkRescorerConfig::default()
    };
    let run = |threads| {
        let options = Lc0Preset { threads: Some(threads), ..preset(folder.path()) };
        let loader = DataLoader::new(with_rescorer(&options, rescorer.clone())).unwrap();
        loader.start().unwrap();
        hashes(&loader, "", 12)
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn fields_that_cannot_be_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let default = ChunkRescorerConfig::default;
    for (rescorer, field) in [
        (ChunkRescorerConfig { dist_temp: 0.0, ..default() }, "dist_temp"),
        (ChunkRescorerConfig { dist_offset: 0.5, ..default() }, "dist_offset"),
        (ChunkRescorerConfig { dtz_boost: 0.1, ..default() }, "dtz_boost"),
        (ChunkRescorerConfig { new_input_format: 7, ..default() }, "new_input_format"),
        (ChunkRescorerConfig { new_input_format: -2, ..default() }, "new_input_format"),
        (ChunkRescorerConfig { deblunder_width: Some(0.1), ..default() }, "deblunder_threshold"),
        (ChunkRescorerConfig { deblunder_threshold: Some(0.1), ..default() }, "deblunder_width"),
        (ChunkRescorerConfig { gaviota_paths: Some("g".into()), ..default() }, "gaviota_paths"),
        (ChunkRescorerConfig { compat: vec!["all_of_them".into()], ..default() }, "compat"),
        (ChunkRescorerConfig { syzygy_paths: folder.path().display().to_string(), ..default() }, "syzygy_paths"),
        (ChunkRescorerConfig { policy_directory: Some(folder.path().into()), ..default() }, "policy_directory"),
    ] {
        match DataLoader::new(with_rescorer(&preset(folder.path()), rescorer)) {
            Err(Error::Config { stage, field: named, .. }) => {
                assert_eq!((stage.as_deref(), named.as_deref()), (Some("rescorer"), Some(field)));
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    // A folder that is not there is named with stage, field and the way out.
    let gone = || "/no/such/folder".to_owned();
    for (rescorer, field, way) in [
        (ChunkRescorerConfig { syzygy_paths: gone(), ..default() }, "syzygy_paths", "allow_missing_tables"),
        (
            ChunkRescorerConfig { policy_directory: Some(gone().into()), ..default() },
            "policy_directory",
            "leave the field",
        ),
    ] {
        let refused = DataLoader::new(with_rescorer(&preset(folder.path()), rescorer)).unwrap_err();
        let text = refused.to_string();
        assert!(text.starts_with(&format!("stage `rescorer`, field `{field}`: /no/such/folder")), "{text}");
        assert!(matches!(refused, Error::Config { .. }) && text.contains(way), "{text}");
    }
}

#[test]
fn tables_that_may_be_missing_are_warned_of_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 4));
    let run = |rescorer| {
        let loader = DataLoader::new(with_rescorer(&small(folder.path()), rescorer)).unwrap();
        loader.start().unwrap();
        let told: Vec<String> = loader.status(0).events.iter().map(|event| event.message.clone()).collect();
        (hashes(&loader, "", 100), loader.warnings(), told)
    };
    let (plain, nothing, _) = run(ChunkRescorerConfig::default());
    assert!(nothing.is_empty());
    let gone = ChunkRescorerConfig {
        syzygy_paths: "/no/such/folder".into(),
        allow_missing_tables: true,
        ..ChunkRescorerConfig::default()
    };
    let (same, warnings, told) = run(gone);
    assert_eq!(same, plain);
    let [folder, set] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(folder.starts_with("stage `rescorer`: /no/such/folder") && set.starts_with("stage `rescorer`: "));
    assert!(told.iter().any(|event| event.contains("/no/such/folder")), "{told:?}");
}

#[test]
fn policies_of_a_directory_are_those_of_the_stream() {
    let (folder, book) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 1));
    generate(options(book.path(), 1));
    let rescorer = |directory: Option<std::path::PathBuf>| ChunkRescorerConfig {
        policy_directory: directory,
        dist_temp: 2.0,
        ..ChunkRescorerConfig::default()
    };
    let run = |rescorer| {
        let loader = DataLoader::new(with_rescorer(&small(folder.path()), rescorer)).unwrap();
        loader.start().unwrap();
        let state = || serde_json::from_str::<serde_json::Value>(&loader.state().unwrap()).unwrap();
        let config = state()["config"].to_string();
        (hashes(&loader, "", 100), config)
    };
    // The same game: its policies are replaced by its own.
    let ((plain, before), (own, after)) = (run(rescorer(None)), run(rescorer(Some(book.path().into()))));
    assert_eq!(plain, own);
    assert_ne!(before, after, "the state tells what was read");
    assert!(!after.contains(&*book.path().display().to_string()), "but not from where");
}
