//! Where the rows of batches of a stream come from, by its plan alone, against the batches themselves.

use std::path::Path;

use gristmill_engine::config::{DataLoaderConfig, TensorGeneratorConfig};
use gristmill_engine::pipeline::{Reads, SightOptions};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Result};
use gristmill_plans::xray::{SeenFrame, seen_frames, xray_stream};

use super::games::{changed, config, generate, ids, mixed, next, options, preset, single, varied, with_cache};

fn look(first: u64, survey: bool) -> SightOptions {
    let reads = if survey { Reads::Uncounted } else { Reads::Nothing };
    SightOptions { first, reads, ..SightOptions::default() }
}

fn sight(config: &DataLoaderConfig, state: Option<&str>, options: &SightOptions) -> Result<Vec<SeenFrame>> {
    xray_stream(config, state, options, None)
}

fn places(rows: &[SeenFrame]) -> Vec<(String, u64, u64)> {
    rows.iter().map(|row| (row.origin.file.clone(), row.origin.game, row.origin.ply)).collect()
}

/// Looks at past and future batches from several states, and compares with what came.
fn check(config: &DataLoaderConfig, survey: bool) {
    let mut config = config.clone();
    for tensors in config.stage.iter_mut().filter_map(|stage| stage.tensor_generator.as_mut()) {
        *tensors = TensorGeneratorConfig { tensors: vec!["ids".into(), "values".into()], ..tensors.clone() };
    }
    let loader = DataLoader::new(config.clone()).unwrap();
    let (mut states, mut came) = (vec![loader.state().unwrap()], Vec::new());
    while came.len() < 14 {
        let Some(batch) = next(&loader, "") else { break };
        let name = |(source, chunk, frame)| (loader.source_path(source).unwrap(), chunk, frame);
        came.push(ids(&batch).into_iter().map(name).collect::<Vec<_>>());
        states.push(loader.state().unwrap());
    }
    for (batch, from) in [(0, None), (9, None), (3, Some(0)), (9, Some(4)), (13, Some(8)), (8, Some(8))] {
        let state = from.map(|from: usize| states[from].as_str());
        let seen = sight(&config, state, &look(batch, survey)).unwrap();
        assert_eq!(places(&seen), came[batch as usize], "batch {batch} from {from:?}");
        assert!(seen.iter().zip(0..).all(|(row, number)| (row.batch, row.row) == (batch, number)));
    }
    let early = sight(&config, Some(&states[8]), &look(7, survey)).unwrap_err().to_string();
    assert!(early.contains("lies before the state, which resumes with batch 8"), "{early}");
    let past = seen_frames(&loader.sight(&look(2, survey)).unwrap(), 2, None, &mut || true).unwrap();
    assert_eq!(places(&past), came[2], "the running loader, of the past");
}

#[test]
fn rows_of_any_batch_are_those_that_come() {
    let base = config(&preset(mixed()));
    check(&base, true);
    check(&DataLoaderConfig { lanes: Some(4), rank: Some(1), world_size: Some(2), ..base.clone() }, true);
    check(
        &config(&Lc0Preset { reservoir: Some(0), position_count: Some(5), sampling_rate: None, ..preset(mixed()) }),
        true,
    );
    check(&config(&Lc0Preset { epochs: Some(2), ..preset(mixed()) }), true);
    let hanse = Lc0Preset { tensors: preset(varied()).tensors, ..single(varied()) };
    let hanse = changed(&hanse, |pool, _| pool.hanse_sampling_threshold = Some(1));
    check(&hanse, true);
    check(&with_cache(hanse, 60, 4), true);
}

#[test]
fn games_of_known_length_are_not_read_and_others_are_named() {
    let (games, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(games.path(), 30));
    let options = Lc0Preset { index: Some(index.path().to_owned()), ..preset(games.path()) };
    let config = config(&options);
    let unknown = sight(&config, None, &look(2, false)).unwrap_err().to_string();
    assert!(unknown.contains("training.") && unknown.contains("--survey"), "{unknown}");
    let surveyed = sight(&config, None, &look(2, true)).unwrap();
    sight(&config, None, &look(13, true)).unwrap();
    check(&config, false);
    // No byte is read: they could be anything.
    let damaged: Vec<_> = std::fs::read_dir(games.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in damaged.iter().filter(|path| path.is_file()) {
        let (meta, bytes) = (std::fs::metadata(path).unwrap(), std::fs::read(path).unwrap());
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        std::io::Write::write_all(&mut &file, &vec![7; bytes.len()]).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    }
    assert_eq!(sight(&config, None, &look(2, false)).unwrap(), surveyed);
}

#[test]
fn what_may_still_change_is_refused() {
    let (games, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(games.path(), 30));
    let journal = |path: &Path| {
        let watched = config(&Lc0Preset { watch: Some(true), ..preset(games.path()) });
        DataLoaderConfig { journal: Some(path.to_owned()), ..watched }
    };
    let path = folder.path().join("journal");
    let refused = |config: &DataLoaderConfig, batch| sight(config, None, &look(batch, true));
    let unsure = refused(&journal(&path), 0).unwrap_err().to_string();
    assert!(unsure.contains("may change all from draw 0 on"), "{unsure}");
    let running = DataLoader::new(journal(&path)).unwrap();
    let batches: Vec<_> = (0..12).map(|_| next(&running, "").unwrap()).collect();
    let name = |(source, chunk, frame)| (running.source_path(source).unwrap(), chunk, frame);
    for batch in [0, 7, 11] {
        let came: Vec<_> = ids(&batches[batch as usize]).into_iter().map(name).collect();
        assert_eq!(places(&refused(&journal(&path), batch).unwrap()), came, "batch {batch}, by the journal");
    }
    let late = refused(&journal(&path), 3000).unwrap_err().to_string();
    assert!(late.contains("give the journal of the run, or a later state"), "{late}");
    assert!(running.sight(&look(3000, true)).unwrap().next_batch(&mut || true).is_err());
    let far = running.sight(&look(1 << 40, true)).unwrap();
    assert!(matches!(far.next_batch(&mut || false), Err(Error::Stopped)), "it can be left off");
    assert_eq!(batches[11].number, 11);
}
