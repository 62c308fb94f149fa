//! Batches that a trainer took ahead of its steps: states, passes and the ledger have them once they are counted, and not before.

use std::path::Path;
use std::time::Duration;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::pipeline::ledger::Account;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Next};

use super::buckets::bucket;
use super::games::{config, hash, hashes, loader, next, preset, varied};

/// Long enough for any batch on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// 40 rows of each of three passes: one of each game.
fn three(reservoir: usize) -> Lc0Preset {
    let one = Lc0Preset { sampling_rate: None, position_count: Some(1), epochs: Some(3), ..preset(varied()) };
    Lc0Preset { reservoir: Some(reservoir), ..one }
}

/// Passes that have ended after each of the eight batches of 16.
const ENDED: [u64; 8] = [0, 0, 1, 1, 2, 2, 2, 3];

/// The next batch, which does not count yet.
fn take(loader: &DataLoader) -> Option<u64> {
    match loader.take("", Some(PATIENCE), false).unwrap() {
        Next::Batch(batch) => Some(hash(&batch)),
        Next::End => None,
        Next::Pending => panic!("no batch within {PATIENCE:?}"),
    }
}

/// Batches and ends that a ledger has.
fn told(ledger: &Path) -> (usize, Vec<u64>) {
    let account = Account::read(&[ledger.to_owned()]).unwrap();
    let process = account.processes.last().unwrap();
    let batches = process.delivered.iter().map(|record| (record.end - record.first) as usize).sum();
    (batches, process.ended.iter().map(|(_, end)| *end).collect())
}

#[test]
fn what_is_taken_ahead_counts_when_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let whole = hashes(&loader(&three(30)), "", 20);
    assert_eq!(whole.len(), 8);
    let ahead = DataLoaderConfig { ledger: Some(ledger.clone()), ..config(&three(30)) };
    let ahead = DataLoader::new(ahead).unwrap();
    assert!(ahead.count("").is_ok(), "nothing is there to be counted");
    let mut taken: Vec<u64> = (0..2).map_while(|_| take(&ahead)).collect();
    for counted in 0..8 {
        let restored = loader(&Lc0Preset { threads: Some(1), ..three(30) });
        restored.restore(&ahead.state().unwrap()).unwrap();
        assert_eq!(hashes(&restored, "", 20), whole[counted..], "{counted} were counted");
        assert_eq!(told(&ledger).0, counted);
        assert_eq!(ahead.passes_ended(""), if counted > 0 { ENDED[counted - 1] } else { 0 });
        ahead.count("").unwrap();
        assert_eq!(ahead.passes_ended(""), ENDED[counted]);
        taken.extend(take(&ahead));
        if counted < 7 {
            assert!(told(&ledger).1.is_empty(), "the last batch is not used so far");
        }
    }
    assert_eq!(taken, whole);
    assert_eq!(take(&ahead), None);
    ahead.count("").unwrap();
    ahead.stop();
    assert_eq!(told(&ledger), (8, vec![8]));
}

#[test]
fn passes_end_with_the_batch_that_completes_their_rows_wherever_a_run_resumes() {
    // A pass of 40 rows ends after the first row of a batch of 13.
    for (reservoir, batch_size) in [(0, 16), (30, 16), (30, 13)] {
        let run = Lc0Preset { batch_size, ..three(reservoir) };
        let ended = |batches: usize| (batches * batch_size).min(120) as u64 / 40;
        let original = loader(&run);
        for after in 0..120_usize.div_ceil(batch_size) {
            let restored = loader(&run);
            restored.restore(&original.state().unwrap()).unwrap();
            assert_eq!(original.passes_ended(""), ended(after), "{reservoir}, {batch_size}: {after} batches");
            for taken in after + 1..=120_usize.div_ceil(batch_size) {
                next(&restored, "").unwrap();
                let since = ended(taken) - ended(after);
                assert_eq!(restored.passes_ended(""), since, "{reservoir}, {batch_size}: from {after} to {taken}");
            }
            next(&original, "").unwrap();
        }
    }
}

#[test]
fn a_ledger_in_a_bucket_has_what_a_state_counts_and_all_after_the_stop() {
    let ledger = &bucket("told").join("ledger");
    let in_bucket = DataLoaderConfig { ledger: Some(ledger.to_owned()), ..config(&three(30)) };
    let loader = DataLoader::new(in_bucket).unwrap();
    next(&loader, "").unwrap();
    loader.state().unwrap();
    assert_eq!(told(ledger).0, 1);
    (0..2).for_each(|_| drop(next(&loader, "").unwrap()));
    assert_eq!(told(ledger).0, 1, "no state needs them so far");
    loader.stop();
    assert_eq!(told(ledger).0, 3);
    let twice = Account::read(&[ledger.clone(), ledger.clone()]).unwrap();
    assert_eq!(twice.processes.len(), 1, "it is read once");
}
