//! Batches of rows that a trainer took ahead of its steps, passes with batches of their own, and the place where a run begins.

use std::path::Path;
use std::time::Duration;

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, Shuffle, Skip};
use gristmill_engine::pipeline::ledger::Account;
use gristmill_engine::selection::Selection;
use gristmill_engine::{Error, IndexLoader, Next};
use gristmill_faultserver::{Network, start};

use crate::fixture::{Form, open, reach, write_pack};

/// Long enough for any batch on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// 118 rows: five batches of 24 make a pass, the last of 22 rows.
fn rows(folder: &Path) -> Selection {
    write_pack(folder, 6, &Form::default());
    let rows = open(folder).unwrap();
    assert_eq!(rows.rows().len(), 118);
    rows
}

fn config(last_batch: LastBatch) -> IndexConfig {
    let encoder = EncoderConfig::G2048(Default::default());
    let (epochs, seed, threads) = (Some(3), Some(9), Some(2));
    let base = IndexConfig { encoder, batch_size: 24, epochs, seed, threads, ..IndexConfig::default() };
    IndexConfig { shuffle: Shuffle::Rows, apart: true, last_batch, ..base }
}

fn of(rows: &Selection, config: &IndexConfig) -> IndexLoader {
    IndexLoader::new(rows.input(), config.clone()).unwrap()
}

/// The next batch, which counts `at_once` or later: its number, and the bytes of each of its rows.
fn take(loader: &IndexLoader, at_once: bool) -> Option<(u64, Vec<Vec<u8>>)> {
    match loader.take("", Some(PATIENCE), at_once).unwrap() {
        Next::Batch(batch) => {
            let column = &batch.columns[0];
            let size = column.bytes().len() / column.shape()[0].max(1);
            Some((batch.number, column.bytes().chunks_exact(size).take(batch.rows).map(<[u8]>::to_vec).collect()))
        }
        Next::End => None,
        Next::Pending => panic!("no batch within {PATIENCE:?}"),
    }
}

fn all(loader: &IndexLoader) -> Vec<(u64, Vec<Vec<u8>>)> {
    std::iter::from_fn(|| take(loader, true)).collect()
}

/// Batches and ends that a ledger has.
fn told(ledger: &Path) -> (u64, Vec<u64>) {
    let account = Account::read(&[ledger.to_owned()]).unwrap();
    let process = account.processes.last().unwrap();
    let batches = process.delivered.iter().map(|record| record.end - record.first).sum();
    (batches, process.ended.iter().map(|(_, end)| *end).collect())
}

#[test]
fn what_is_taken_ahead_counts_when_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, ledger) = (rows(folder.path()), folder.path().join("ledger"));
    let config = config(LastBatch::Keep);
    let whole = all(&of(&rows, &config));
    assert_eq!(whole.len(), 15);
    let ahead = of(&rows, &IndexConfig { ledger: Some(ledger.clone()), ..config.clone() });
    ahead.count().unwrap();
    let mut taken: Vec<_> = (0..2).map_while(|_| take(&ahead, false)).collect();
    for counted in 0..15 {
        let restored = of(&rows, &config);
        restored.restore(&ahead.state().unwrap()).unwrap();
        assert_eq!(restored.upcoming(), Some(counted as u64));
        assert_eq!(all(&restored), whole[counted..], "{counted} were counted");
        assert_eq!((told(&ledger).0, ahead.upcoming()), (counted as u64, Some(counted as u64)));
        assert_eq!((ahead.passes_ended(), restored.passes_ended()), (counted as u64 / 5, 3 - counted as u64 / 5));
        ahead.count().unwrap();
        taken.extend(take(&ahead, false));
        assert_eq!(
            told(&ledger).1,
            if counted < 14 { Vec::new() } else { vec![15] },
            "the end is noted when all count"
        );
    }
    assert_eq!((taken, ahead.upcoming(), ahead.passes_ended()), (whole, None, 3));
    ahead.count().unwrap();
    ahead.stop();
    assert_eq!(told(&ledger), (15, vec![15]));
}

#[test]
fn a_pass_begins_at_any_of_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path());
    for (last_batch, per_pass) in [(LastBatch::Keep, 5), (LastBatch::Drop, 4)] {
        let config = config(last_batch);
        let whole = all(&of(&rows, &config));
        let loader = of(&rows, &config);
        assert_eq!((loader.pass_batches(), loader.batches(), loader.rows()), (Some(per_pass), Some(3 * per_pass), 118));
        let of_pass = |pass: u64| -> Vec<Vec<u8>> {
            let all = whole.iter().filter(|(number, _)| number / per_pass == pass);
            all.flat_map(|(_, rows)| rows.clone()).collect()
        };
        for row in [0, 1, 23, 24, 30, 95, 96, 117] {
            let loader = of(&rows, &config);
            loader.seek_row(1, row).unwrap();
            let upcoming = loader.upcoming();
            let given = all(&loader);
            assert_eq!(upcoming, given.first().map(|(number, _)| *number), "row {row}");
            let here: Vec<Vec<u8>> =
                given.iter().filter(|(number, _)| number / per_pass == 1).flat_map(|(_, rows)| rows.clone()).collect();
            let full = if last_batch == LastBatch::Keep { 118 - row } else { (118 - row) / 24 * 24 };
            assert_eq!(here.len() as u64, full, "row {row}, {last_batch:?}");
            let known = of_pass(1).into_iter().skip(row as usize);
            assert!(here.into_iter().zip(known).all(|(here, known)| here == known), "row {row}, {last_batch:?}");
            let next: Vec<_> = given.into_iter().filter(|(number, _)| number / per_pass == 2).collect();
            assert_eq!(next, whole[2 * per_pass as usize..], "the pass after it is whole");
            assert_eq!(loader.passes_ended(), if full > 0 { 2 } else { 1 }, "row {row}, {last_batch:?}");
        }
        let refused = of(&rows, &config);
        assert!(matches!(refused.seek_row(1, 118), Err(Error::State(text)) if text.contains("a pass has 118")));
        assert!(matches!(refused.seek_row(u64::MAX, 0), Err(Error::State(text)) if text.contains("64 bits")));
        assert!(matches!(refused.seek_row(3, 24), Err(Error::State(text)) if text.contains("raise epochs")));
        assert!(matches!(refused.seek(3 * per_pass + 1), Err(Error::State(text)) if text.contains("raise epochs")));
        refused.seek(3 * per_pass).unwrap();
        assert_eq!((refused.upcoming(), all(&refused).len()), (None, 0), "after the last batch nothing comes");
        assert!(matches!(refused.seek_row(0, 0), Err(Error::State(text)) if text.contains("has started")));
    }
    let endless = of(&rows, &IndexConfig { epochs: None, apart: false, ..config(LastBatch::Keep) });
    assert!(matches!(endless.seek(u64::MAX), Err(Error::State(text)) if text.contains("64 bits")));
    assert!(matches!(endless.seek_row(0, 0), Err(Error::State(text)) if text.contains("pass")));
    assert_eq!((endless.pass_batches(), endless.passes_ended(), endless.batches()), (None, 0, None));
}

#[test]
fn batches_that_are_left_out_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path());
    let skip = |first, end| Skip { output: None, first, end };
    let loader = of(&rows, &IndexConfig { skip: vec![skip(0, 2), skip(6, 9)], ..config(LastBatch::Keep) });
    let spans = [(0, 15, 10), (0, 2, 0), (1, 3, 1), (5, 10, 2), (7, 8, 0), (8, 8, 0), (9, 5, 0), (3, 7, 3)];
    for (first, end, given) in spans {
        assert_eq!(loader.given(first, end), given, "from {first} to {end}");
    }
    assert_eq!(loader.upcoming(), Some(2), "the first that is not left out");
    let numbers: Vec<u64> = all(&loader).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 9, 10, 11, 12, 13, 14]);
}

#[test]
fn a_ledger_in_a_bucket_has_what_a_state_counts_and_all_after_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rows-told")).unwrap();
    let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
    reach("s3://rows-told", &server.address);
    let ledger = Path::new("s3://rows-told/ledger");
    let loader = of(&rows(folder.path()), &IndexConfig { ledger: Some(ledger.to_owned()), ..config(LastBatch::Keep) });
    take(&loader, true).unwrap();
    loader.state().unwrap();
    assert_eq!(told(ledger).0, 1);
    (0..2).for_each(|_| drop(take(&loader, true)));
    assert_eq!(told(ledger).0, 1, "no state needs them so far");
    loader.stop();
    assert_eq!(told(ledger).0, 3);
}
