//! Ledgers of streams: numbers add up over ranks that change, digests are those of the frames, whoever gives them.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill_engine::config::{DataLoaderConfig, Lc0Preset, Overflow};
use gristmill_engine::job::verify_run::{VerifyRunOptions, verify_run};
use gristmill_engine::pipeline::ledger::{Account, Digests};
use gristmill_engine::{DataLoader, Error};
use xxhash_rust::xxh3::xxh3_64;

use super::games::{config, ids, mixed, next, preset};

fn base(ledger: &Path) -> DataLoaderConfig {
    let tensors = vec!["ids".to_owned()];
    let config = config(&Lc0Preset { tensors, ..preset(mixed()) });
    DataLoaderConfig { lanes: Some(4), ledger: Some(ledger.to_owned()), ..config }
}

fn ranks(ledger: &Path, world_size: u32) -> Vec<DataLoader> {
    let rank = |rank| DataLoaderConfig { rank: Some(rank), world_size: Some(world_size), ..base(ledger) };
    (0..world_size).map(|r| DataLoader::new(rank(r)).unwrap()).collect()
}

fn found(ledger: &Path) -> gristmill_engine::job::verify_run::RunVerification {
    verify_run(&VerifyRunOptions { ledgers: vec![ledger.to_owned()], pack: None, max_rows: 0 }).unwrap()
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
    assert!(verified.unproven.iter().any(|text| text.contains("which frames")), "{verified:#?}");
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
    // One rank alone goes on: what the other had to give is missing.
    let parts: Vec<String> = two.iter().map(|loader| loader.state().unwrap()).collect();
    for rank in [0, 1] {
        let loader = ranks(&ledger, 4).remove(rank);
        loader.restore(&format!("[{}]", parts.join(","))).unwrap();
        (0..2).for_each(|_| drop(next(&loader, "").unwrap()));
    }
    drop(two);
    let last = ranks(&ledger, 1).remove(0);
    let later: serde_json::Value = {
        let mut parts: Vec<serde_json::Value> = parts.iter().map(|part| serde_json::from_str(part).unwrap()).collect();
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
