//! Batches of rows that are left out: the others keep their numbers and bytes, at no cost, from every batch on.

use gristmill_engine::config::{IndexConfig, Shuffle, Skip};
use gristmill_engine::{Error, IndexLoader, Next};

use crate::fixture::pack;

fn config(skip: &[&str]) -> IndexConfig {
    let skip: Vec<Skip> = skip.iter().map(|text| text.parse().unwrap()).collect();
    let encoder = gristmill_engine::config::EncoderConfig::G2048(Default::default());
    IndexConfig {
        encoder,
        batch_size: 90,
        epochs: Some(2),
        seed: Some(9),
        skip,
        threads: Some(2),
        ..Default::default()
    }
}

fn taken(loader: &IndexLoader) -> Vec<(u64, Vec<u8>)> {
    let batches = std::iter::from_fn(|| match loader.next("", None).unwrap() {
        Next::Batch(batch) => Some((batch.number, batch.columns[0].bytes().to_vec())),
        _ => None,
    });
    batches.collect()
}

#[test]
fn the_rest_keeps_numbers_and_bytes_from_every_batch_on() {
    let (_folder, pack) = pack();
    for shuffle in [Shuffle::Rows, Shuffle::Blocks { rows: 64, blocks: 3 }] {
        let loader = |skip: &[&str], rank, world_size| {
            IndexLoader::new(pack.input(), IndexConfig { shuffle, rank, world_size, ..config(skip) }).unwrap()
        };
        let last = loader(&[], 0, 1).batches().unwrap() - 1;
        let ranges = ["0..2", "5..9", &format!("{last}..{}", last + 5)];
        for (rank, world) in [(0, 1), (1, 2)] {
            let mut left = taken(&loader(&[], rank, world));
            left.retain(|(n, _)| !(0..2).contains(n) && !(5..9).contains(n) && *n < last);
            let running = loader(&ranges, rank, world);
            for after in 0..left.len() {
                let again = loader(&ranges, rank, world);
                again.restore(&running.state().unwrap()).unwrap();
                assert_eq!(taken(&again), left[after..], "after {after} batches, {shuffle:?}");
                assert!(matches!(running.next("", None).unwrap(), Next::Batch(batch) if batch.number == left[after].0));
            }
            assert!(matches!(running.next("", None).unwrap(), Next::End));
        }
    }
}

#[test]
fn only_what_comes_can_be_changed() {
    let (_folder, pack) = pack();
    let loader = |skip: &[&str]| IndexLoader::new(pack.input(), config(skip)).unwrap();
    let running = loader(&["1..3"]);
    (0..2).for_each(|_| drop(running.next("", None).unwrap()));
    let state = running.state().unwrap();
    for wrong in [&[][..], &["1..2"]] {
        match loader(wrong).restore(&state) {
            Err(Error::State(text)) => assert!(text.contains("skip before batch 4: saved 1..3"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let edited = loader(&["1..3", "5..7"]);
    edited.restore(&state).unwrap();
    assert_eq!(taken(&edited).iter().map(|(number, _)| *number).take(3).collect::<Vec<_>>(), [4, 7, 8]);
    for wrong in ["train:1..3", "1..18446744073709551615"] {
        let refused = IndexLoader::new(pack.input(), config(&[wrong])).unwrap_err().to_string();
        assert!(refused.contains("skip"), "{refused}");
    }
}
