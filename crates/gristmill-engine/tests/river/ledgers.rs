//! Ledgers of streams: numbers add up over ranks that change, digests are those of the frames, whichever rank gives
//! them.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_engine::config::{DataLoaderConfig, Overflow};
use gristmill_engine::pipeline::ledger::{Account, Digests};
use gristmill_engine::pipeline::{Reads, SightOptions};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};
use gristmill_generate::ChessOptions;
use gristmill_plans::verify_run::{Against, Place, RunVerification, VerifyRunOptions, verify_run};
use xxhash_rust::xxh3::xxh3_64;

use super::games::{config, generate, ids, mixed, next, options, preset, without_checksum};

fn base(ledger: &Path) -> DataLoaderConfig {
    let tensors = vec!["ids".to_owned()];
    let config = config(&Lc0Preset { tensors, ..preset(mixed()) });
    DataLoaderConfig { lanes: Some(4), ledger: Some(ledger.to_owned()), ..config }
}

fn ranks(ledger: &Path, world_size: u32) -> Vec<DataLoader> {
    let rank = |rank| DataLoaderConfig { rank: Some(rank), world_size: Some(world_size), ..base(ledger) };
    (0..world_size).map(|r| DataLoader::new(rank(r)).unwrap()).collect()
}

fn found(ledger: &Path) -> RunVerification {
    verify_run(
        &VerifyRunOptions { ledgers: vec![ledger.to_owned()], against: Against::Nothing, max_rows: 0 },
        &mut |_, _| (),
    )
    .unwrap()
}

fn held_against(ledger: &Path, config: &DataLoaderConfig) -> Result<RunVerification, Error> {
    let against = Against::Stream(Box::new(config.clone()));
    verify_run(&VerifyRunOptions { ledgers: vec![ledger.to_owned()], against, max_rows: 100 }, &mut |_, _| ())
}

/// All that the processes of a ledger delivered.
fn digests(ledger: &Path) -> Digests {
    let mut all = Digests::default();
    let account = Account::read(&[ledger.to_owned()]).unwrap();
    account.processes.iter().flat_map(|process| &process.delivered).for_each(|record| all.merge(&record.digests));
    all
}

#[test]
fn ranks_that_change_give_each_batch_once_and_the_frames_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, split] = ["whole", "split"].map(|name| folder.path().join(name));
    let alone = ranks(&whole, 1).remove(0);
    let mut expected = Digests::default();
    for _ in 0..9 {
        for (source, chunk, frame) in ids(&next(&alone, "").unwrap()) {
            let name = alone.source_path(source).unwrap();
            let file = xxh3_64(&[b"load", &[0][..], name.as_bytes()].concat());
            expected.frame(file, chunk as u32, frame as u32);
        }
    }
    alone.state().unwrap();
    assert_eq!(digests(&whole), expected);
    let mut state: Option<String> = None;
    for (world, batches) in [(2, 3), (4, 4), (1, 2)] {
        let loaders = ranks(&split, world);
        let mut parts = Vec::new();
        for loader in &loaders {
            if let Some(state) = &state {
                loader.restore(state).unwrap();
            }
            (0..batches).for_each(|_| drop(next(loader, "").unwrap()));
            parts.push(loader.state().unwrap());
        }
        state = Some(format!("[{}]", parts.join(",")));
    }
    assert_eq!(digests(&split), expected);
    let verified = found(&split);
    assert!(verified.ok && verified.outputs[0].until == 9 && verified.starts == 3, "{verified:#?}");
    assert!(verified.unproven.iter().any(|text| text.contains("give the configuration")), "{verified:#?}");
    let verified = held_against(&split, &base(&split)).unwrap();
    assert!(verified.ok && verified.proven.iter().any(|text| text.contains("the frames of the plan")), "{verified:#?}");
    let other = DataLoaderConfig { lanes: Some(8), ..base(&split) };
    let refused = held_against(&split, &other).unwrap_err().to_string();
    assert!(refused.contains("lanes: saved 4, configured 8"), "{refused}");
}

#[test]
fn what_was_taken_back_is_not_counted_and_what_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let first = ranks(&ledger, 1).remove(0);
    (0..5).for_each(|_| drop(next(&first, "").unwrap()));
    let state = first.state().unwrap();
    (0..3).for_each(|_| drop(next(&first, "").unwrap()));
    drop(first);
    let two = ranks(&ledger, 2);
    for loader in &two {
        loader.restore(&state).unwrap();
        (0..4).for_each(|_| drop(next(loader, "").unwrap()));
        loader.state().unwrap();
    }
    let verified = found(&ledger);
    assert!(verified.ok && verified.outputs[0].discarded_batches == 3, "{verified:#?}");
    let state: BTreeMap<String, serde_json::Value> = serde_json::from_str(&two[0].state().unwrap()).unwrap();
    assert_eq!(state["outputs"][""]["batch"], 9);
    // One rank alone resumes: what the other had to give is missing.
    let parts: Vec<String> = two.iter().map(|loader| loader.state().unwrap()).collect();
    for rank in [0, 1] {
        let loader = ranks(&ledger, 4).remove(rank);
        loader.restore(&format!("[{}]", parts.join(","))).unwrap();
        (0..2).for_each(|_| drop(next(&loader, "").unwrap()));
    }
    drop(two);
    let last = ranks(&ledger, 1).remove(0);
    let later: serde_json::Value = {
        let plain = |part: &String| serde_json::from_str(&without_checksum(part)).unwrap();
        let mut parts: Vec<serde_json::Value> = parts.iter().map(plain).collect();
        parts.iter_mut().for_each(|part| part["outputs"][""]["batch"] = 11.into());
        parts.into()
    };
    last.restore(&later.to_string()).unwrap();
    drop(next(&last, "").unwrap());
    last.state().unwrap();
    let verified = found(&ledger);
    let missing = &verified.outputs[0].missing;
    assert!(!verified.ok && missing.len() == 1, "{verified:#?}");
    assert_eq!((missing[0].first, missing[0].end, missing[0].every, missing[0].rows.clone()), (9, 11, 4, vec![2, 3]));
    // Against the plan: its rows have names, and the batch that the forged state calls 11 has the frames of batch 9.
    let output = held_against(&ledger, &base(&ledger)).unwrap().outputs.remove(0);
    let wrong: Vec<(u64, u64)> = output.wrong_records.iter().map(|record| (record.first, record.end)).collect();
    assert_eq!(wrong, [(11, 12)]);
    let alone = DataLoader::new(DataLoaderConfig { ledger: None, ..base(&ledger) }).unwrap();
    let batches: Vec<_> = (0..11).map(|_| ids(&next(&alone, "").unwrap())).collect();
    let mut expected = Vec::new();
    for (number, batch) in batches.iter().enumerate().skip(9) {
        for (row, (source, game, ply)) in batch.iter().enumerate().filter(|(row, _)| row % 4 > 1) {
            expected.push(("missing", number as u64, row, alone.source_path(*source).unwrap(), *game, *ply));
        }
    }
    let named = output.rows.into_iter().map(|row| match row.place {
        Place::Frame(frame) => (row.fault, row.batch, row.row, frame.file, frame.game, frame.ply),
        Place::Row(_) => panic!("a stream has no rows of a pack"),
    });
    assert_eq!(named.collect::<Vec<_>>(), expected);
}

/// Another process resumes and gives five batches. Then all that the run delivered is held against the configuration.
fn resumed_and_proven(config: &DataLoaderConfig, state: &str) -> RunVerification {
    let second = DataLoader::new(config.clone()).unwrap();
    second.restore(state).unwrap();
    (0..5).for_each(|_| drop(next(&second, "").unwrap()));
    drop(second);
    held_against(config.ledger.as_ref().unwrap(), config).unwrap()
}

#[test]
fn runs_that_watch_are_proven_by_their_journal() {
    let (games, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [ledger, journal] = ["ledger", "journal"].map(|name| folder.path().join(name));
    generate(options(games.path(), 30));
    let tensors = vec!["ids".to_owned()];
    let config = config(&Lc0Preset { tensors, watch: Some(true), seed: None, ..preset(games.path()) });
    let config = DataLoaderConfig { ledger: Some(ledger.clone()), journal: Some(journal), ..config };
    let first = DataLoader::new(config.clone()).unwrap();
    (0..4).for_each(|_| drop(next(&first, "").unwrap()));
    generate(ChessOptions { first: 101, ..options(games.path(), 10) });
    let arrived = |loader: &DataLoader| {
        let new = |(source, _, _): &(u64, u64, u64)| loader.source_path(*source).unwrap().contains("training.1");
        while !ids(&next(loader, "").unwrap()).iter().any(|id| new(id) && id.0 > 30) {}
    };
    arrived(&first);
    let state = first.state().unwrap();
    (0..3).for_each(|_| drop(next(&first, "").unwrap()));
    drop(first);
    let verified = resumed_and_proven(&config, &state);
    assert!(verified.ok && verified.proven.iter().any(|text| text.contains("the frames of the plan")), "{verified:#?}");
    let without = held_against(&ledger, &DataLoaderConfig { journal: None, ..config.clone() }).unwrap();
    let not = without.outputs[0].not_compared.as_ref().unwrap();
    assert!(not.from == 0 && not.why.contains("give the journal of the run"), "{without:#?}");
    assert!(without.unproven.iter().any(|text| text.contains("from batch 0 on")), "{without:#?}");
}

/// A digest that knew a file by its name of the moment was another one after the file was renamed.
#[test]
fn games_that_are_renamed_are_proven_by_their_first_names() {
    let (games, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [ledger, journal] = ["ledger", "journal"].map(|name| folder.path().join(name));
    generate(options(games.path(), 30));
    let config = config(&Lc0Preset { watch: Some(true), ..preset(games.path()) });
    let config = DataLoaderConfig { ledger: Some(ledger.clone()), journal: Some(journal), ..config };
    let first = DataLoader::new(config.clone()).unwrap();
    (0..4).for_each(|_| drop(next(&first, "").unwrap()));
    let moved = games.path().join("moved");
    std::fs::create_dir(&moved).unwrap();
    for name in (1..=30).map(|game| format!("training.{game}.gz")) {
        std::fs::rename(games.path().join(&name), moved.join(&name)).unwrap();
    }
    let state = first.state().unwrap();
    drop(first);
    let verified = resumed_and_proven(&config, &state);
    assert!(verified.ok && verified.outputs[0].until == 9, "{verified:#?}");
    assert!(verified.proven.iter().any(|text| text.contains("the frames of the plan")), "{verified:#?}");
}

#[test]
fn ranks_that_watch_are_proven_by_their_journals() {
    let (games, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [ledger, journal] = ["ledger", "journal"].map(|name| folder.path().join(name));
    generate(options(games.path(), 30));
    let watched = Lc0Preset { tensors: vec!["ids".to_owned()], watch: Some(true), ..preset(games.path()) };
    let config = config(&Lc0Preset { lanes: Some(4), ..watched });
    let config = DataLoaderConfig { ledger: Some(ledger.clone()), journal: Some(journal), ..config };
    let rank = |rank| DataLoaderConfig { rank: Some(rank), world_size: Some(2), ..config.clone() };
    let loaders = [0, 1].map(|r| DataLoader::new(rank(r)).unwrap());
    for loader in &loaders {
        (0..4).for_each(|_| drop(next(loader, "").unwrap()));
    }
    generate(ChessOptions { first: 101, ..options(games.path(), 10) });
    for loader in &loaders {
        (0..60).for_each(|_| drop(next(loader, "").unwrap()));
        loader.state().unwrap();
        drop(loader.stop());
    }
    let verified = held_against(&ledger, &config).unwrap();
    assert!(verified.ok && verified.outputs[0].until == 64, "{verified:#?}");
    assert!(verified.proven.iter().any(|text| text.contains("the frames of the plan")), "{verified:#?}");
}

#[test]
fn games_that_went_bad_are_found_by_reading_them_all() {
    let (games, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ledger = folder.path().join("ledger");
    generate(options(games.path(), 30));
    let (tensors, index) = (vec!["ids".to_owned()], Some(folder.path().join("index")));
    let config = config(&Lc0Preset { tensors, index, pool: 30, ..preset(games.path()) });
    // Counts are kept, then the games change without notice.
    let counted = DataLoader::new(config.clone()).unwrap();
    (0..40).for_each(|_| drop(next(&counted, "").unwrap()));
    drop(counted);
    for game in 1..=5 {
        let path = games.path().join(format!("training.{game}.gz"));
        let (meta, bytes) = (std::fs::metadata(&path).unwrap(), std::fs::read(&path).unwrap());
        std::fs::write(&path, vec![0; bytes.len()]).unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(meta.modified().unwrap()).unwrap();
    }
    let config = DataLoaderConfig { ledger: Some(ledger.clone()), ..config };
    let loader = DataLoader::new(config.clone()).unwrap();
    let batches: Vec<_> = (0..20).map(|_| ids(&next(&loader, "").unwrap())).collect();
    let sight = loader.sight(&SightOptions { reads: Reads::Uncounted, ..SightOptions::default() }).unwrap();
    let mut seen = batches.iter().map(|_| sight.next_batch(&mut || true).unwrap().unwrap().rows);
    assert!(
        batches.iter().any(|batch| seen.next().unwrap().iter().map(|row| row.source).ne(batch.iter().map(|id| id.0)))
    );
    drop(loader);
    let verified = held_against(&ledger, &config).unwrap();
    assert!(verified.ok && verified.proven.iter().any(|text| text.contains("the frames of the plan")), "{verified:#?}");
}

#[test]
fn outputs_that_drop_batches_have_no_ledger() {
    let mut config = base(Path::new("ledger"));
    for tensors in config.stage.iter_mut().filter_map(|stage| stage.tensor_generator.as_mut()) {
        tensors.output.overflow_behavior = Overflow::DropNew;
    }
    match DataLoader::new(config) {
        Err(Error::Config { message, .. }) => assert!(message.contains("ledger"), "{message}"),
        other => panic!("{other:?}"),
    }
}
