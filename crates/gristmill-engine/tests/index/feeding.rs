//! Batches of rows by number: exact epochs, the same for any number of threads, from any batch on.

use std::time::Duration;

use gristmill_engine::config::{
    Augmentation, EncoderConfig, G2048EncoderConfig, G2048Target, IndexConfig, LastBatch, Shuffle,
};
use gristmill_engine::selection::Selection;
use gristmill_engine::{Batch, Error, IndexLoader, Next, RowEncoder};
use gristmill_format::g2048::StepRow;

use crate::fixture::{Form, open, pack, rows, runs, taken, without_checksum, write_rows, write_runs};

fn steps_encoder() -> EncoderConfig {
    EncoderConfig::G2048(G2048EncoderConfig {
        rotate: Augmentation::Any,
        flip: Augmentation::Any,
        ..G2048EncoderConfig::default()
    })
}

fn config(shuffle: Shuffle) -> IndexConfig {
    IndexConfig {
        encoder: steps_encoder(),
        batch_size: 300,
        epochs: Some(2),
        seed: Some(9),
        shuffle,
        threads: Some(2),
        ..IndexConfig::default()
    }
}

const SHUFFLES: [Shuffle; 3] = [Shuffle::Off, Shuffle::Rows, Shuffle::Blocks { rows: 64, blocks: 3 }];

fn loader(rows: &Selection, config: &IndexConfig) -> IndexLoader {
    IndexLoader::new(rows.input(), config.clone()).unwrap()
}

fn next(loader: &IndexLoader) -> Option<Batch> {
    match loader.next("", Some(Duration::from_secs(20))).unwrap() {
        Next::Batch(batch) => Some(batch),
        Next::End => None,
        Next::Pending => panic!("no batch came"),
    }
}

fn bytes(batch: &Batch) -> Vec<Vec<u8>> {
    batch.columns.iter().map(|column| column.bytes().to_vec()).collect()
}

fn all(loader: &IndexLoader) -> Vec<Vec<Vec<u8>>> {
    std::iter::from_fn(|| next(loader)).map(|batch| bytes(&batch)).collect()
}

fn ints(bytes: &[u8]) -> Vec<i64> {
    bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Run and step of every row.
fn identities(batches: &[Vec<Vec<u8>>]) -> Vec<(i64, i64)> {
    batches.iter().flat_map(|b| ints(&b[1]).into_iter().zip(ints(&b[2]))).collect()
}

#[test]
fn every_epoch_has_each_selected_row_once() {
    let (_folder, pack) = pack();
    let (train, _) = pack.split(0.3, 42).unwrap();
    let mut expected: Vec<(i64, i64)> =
        taken(&train).iter().map(|row| (row.run_id.into(), row.step_index.into())).collect();
    for shuffle in SHUFFLES {
        let batches = all(&loader(&train, &config(shuffle)));
        let seen = identities(&batches);
        assert_eq!(seen.len(), 2 * expected.len());
        let (first, second) = seen.split_at(expected.len());
        assert_eq!(first == second, shuffle == Shuffle::Off);
        assert_eq!(first == expected, shuffle == Shuffle::Off);
        for epoch in [first, second] {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            expected.sort_unstable();
            assert_eq!(sorted, expected, "{shuffle:?}");
        }
    }
}

#[test]
fn threads_never_change_a_batch() {
    let (_folder, pack) = pack();
    for shuffle in SHUFFLES {
        let config = IndexConfig { batch_size: 500, ..config(shuffle) };
        let alone = all(&loader(&pack, &IndexConfig { threads: Some(1), ..config.clone() }));
        for threads in [2, 8] {
            let more = IndexConfig { threads: Some(threads), queue_capacity: 1, ..config.clone() };
            assert_eq!(all(&loader(&pack, &more)), alone, "{threads} threads, {shuffle:?}");
        }
    }
}

#[test]
fn a_row_looks_the_same_in_every_order_and_alone() {
    let (_folder, pack) = pack();
    let (train, _) = pack.split(0.3, 42).unwrap();
    let plain = all(&loader(&train, &config(Shuffle::Off)));
    let blocks = all(&loader(&train, &config(Shuffle::Blocks { rows: 64, blocks: 3 })));
    let looks = |batches: &[Vec<Vec<u8>>], epoch: usize| {
        let boards = batches.iter().flat_map(|b| b[0].chunks_exact(128).map(<[u8]>::to_vec).collect::<Vec<_>>());
        let all: Vec<((i64, i64), Vec<u8>)> = identities(batches).into_iter().zip(boards).collect();
        let mut epoch = all[epoch * all.len() / 2..(epoch + 1) * all.len() / 2].to_vec();
        epoch.sort_unstable();
        epoch
    };
    assert_eq!(looks(&plain, 0), looks(&blocks, 0), "bits belong to the row");
    assert_ne!(looks(&plain, 0), looks(&plain, 1), "and to the epoch");
    let single = RowEncoder::new(&train.input(), &steps_encoder(), &[]).unwrap();
    let places: Vec<u64> = (0..train.rows().len()).collect();
    let mut out: Vec<Vec<u8>> = single.outputs().iter().map(|spec| vec![0; places.len() * spec.row_bytes()]).collect();
    single.encode(&places, 9, 1, out.iter_mut().map(Vec::as_mut_slice).collect()).unwrap();
    assert_eq!(
        looks(&[vec![out[0].clone(), out[1].clone(), out[2].clone()], Vec::from([vec![], vec![], vec![]])], 0).len(),
        places.len() / 2
    );
    let expected: Vec<u8> = plain.iter().flat_map(|b| b[0].clone()).skip(places.len() * 128).collect();
    assert_eq!(out[0], expected, "the second epoch in stored order");
    assert!(single.encode(&[train.rows().len()], 9, 0, out.iter_mut().map(Vec::as_mut_slice).collect()).is_err());
}

#[test]
fn a_state_continues_to_the_bit_from_every_batch_and_for_other_ranks() {
    let (_folder, pack) = pack();
    for shuffle in SHUFFLES {
        let config = IndexConfig { batch_size: 120, ..config(shuffle) };
        let whole = all(&loader(&pack, &config));
        let running = loader(&pack, &config);
        for taken in 0..=whole.len() {
            let again = loader(&pack, &IndexConfig { seed: None, threads: Some(1), ..config.clone() });
            again.restore(&running.state().unwrap()).unwrap();
            assert_eq!(again.config().seed, Some(9));
            if taken == whole.len() || taken % 5 == 0 {
                assert_eq!(all(&again), whole[taken..], "after {taken} batches");
            } else if let Some(batch) = next(&again) {
                assert_eq!((batch.number, bytes(&batch)), (taken as u64, whole[taken].clone()));
            }
            let half = IndexConfig { rank: 1, world_size: 2, ..config.clone() };
            let half = loader(&pack, &half);
            half.restore(&running.state().unwrap()).unwrap();
            assert_eq!(next(&half).map(|batch| batch.number), (taken < whole.len()).then_some(taken as u64));
            next(&running);
        }
        let sought = loader(&pack, &config);
        sought.seek(3).unwrap();
        assert_eq!(all(&sought), whole[3..]);
    }
}

#[test]
fn states_of_other_rows_orders_or_encoders_are_refused() {
    let (_folder, pack) = pack();
    let config = config(Shuffle::Rows);
    let state = loader(&pack, &config).state().unwrap();
    let (train, _) = pack.split(0.3, 42).unwrap();
    let hard = EncoderConfig::G2048(G2048EncoderConfig { target: G2048Target::HardMove, ..Default::default() });
    for (rows, config, word) in [
        (&train, config.clone(), "selection"),
        (&pack, IndexConfig { batch_size: 30, ..config.clone() }, "batch_size"),
        (&pack, IndexConfig { shuffle: Shuffle::Off, ..config.clone() }, "shuffle"),
        (&pack, IndexConfig { seed: Some(3), ..config.clone() }, "seed"),
        (&pack, IndexConfig { encoder: hard, ..config.clone() }, "encoder"),
    ] {
        let error = loader(rows, &config).restore(&state).unwrap_err();
        assert!(matches!(error, Error::State(_)) && error.to_string().contains(word), "{error}");
    }
    for wrong in [
        "",
        "{}",
        &state.replace("_state\":4", "_state\":5"),
        &state.replace("\"batch\":0", "\"batch\":1"),
        &without_checksum(&state).replace("\"batch\":0", "\"batch\":999"),
    ] {
        assert!(matches!(loader(&pack, &config).restore(wrong), Err(Error::State(_))), "{wrong}");
    }
    let started = loader(&pack, &config);
    started.start().unwrap();
    assert!(matches!(started.restore(&state), Err(Error::State(_))));
    assert!(matches!(started.seek(1), Err(Error::State(_))));
    loader(&pack, &IndexConfig { epochs: Some(7), threads: Some(5), ..config }).restore(&state).unwrap();
}

#[test]
fn a_row_that_cannot_be_encoded_is_an_error_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = rows(12);
    rows[150] = StepRow { move_dir: 9, ..rows[150] };
    write_rows(folder.path(), &rows, &Form { shard_rows: Some(100), ..Form::default() });
    write_runs(folder.path(), &runs(12));
    let encoder = G2048EncoderConfig { target: G2048Target::HardMove, ..Default::default() };
    let config = IndexConfig {
        encoder: EncoderConfig::G2048(encoder),
        batch_size: 40,
        shuffle: Shuffle::Off,
        ..IndexConfig::default()
    };
    let loader = loader(&open(folder.path()).unwrap(), &config);
    for number in 0..rows.len().div_ceil(40) {
        let found = loader.next("", None);
        if number == 3 {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("steps-00001.npy, frame 50") && error.contains("move 9"), "{error}");
        } else {
            assert!(matches!(found, Ok(Next::Batch(batch)) if batch.number == number as u64), "batch {number}");
        }
    }
    assert!(next(&loader).is_none());
}

#[test]
fn the_last_batch_is_kept_dropped_or_padded_for_every_rank() {
    let (_folder, pack) = pack();
    let total = pack.rows().len() as usize;
    for last_batch in [LastBatch::Keep, LastBatch::Drop, LastBatch::Pad] {
        let mut seen = 0;
        for rank in 0..4 {
            let config = IndexConfig {
                last_batch,
                rank,
                world_size: 4,
                batch_size: 400,
                epochs: Some(1),
                ..config(Shuffle::Rows)
            };
            let loader = loader(&pack, &config);
            let last = std::iter::from_fn(|| next(&loader)).inspect(|batch| seen += batch.rows).last().unwrap();
            let shown = last.columns[0].shape()[0];
            match last_batch {
                LastBatch::Keep => assert!(shown == last.rows && last.rows < 100),
                LastBatch::Drop => assert!(shown == 100 && last.rows == 100),
                LastBatch::Pad => {
                    assert!(shown == 100 && last.rows < 100);
                    let tokens = last.columns[0].bytes();
                    assert!(tokens[last.rows * 128..].iter().all(|byte| *byte == 0));
                }
            }
        }
        assert_eq!(seen, if last_batch == LastBatch::Drop { total / 400 * 400 } else { total });
    }
}

#[test]
fn a_loader_stops_and_says_what_it_did() {
    let (_folder, pack) = pack();
    let loader = loader(&pack, &IndexConfig { epochs: None, ..config(Shuffle::Rows) });
    assert!(loader.metrics().stages.is_empty());
    for _ in 0..20 {
        next(&loader).unwrap();
    }
    assert!(loader.batches().is_none());
    let metrics = loader.metrics();
    let stage = metrics.of_kind("tensor_generator").next().unwrap();
    assert!(stage.count("rows").unwrap().total >= 20 * 300);
    assert!(stage.queue.as_ref().unwrap().got == 20);
    assert!(loader.next("val", None).unwrap_err().to_string().contains("val"));
    assert!(loader.stop().is_empty());
    while let Ok(Next::Batch(_)) = loader.next("", None) {}
    assert!(matches!(loader.next("", None), Err(Error::Stopped)));
}
