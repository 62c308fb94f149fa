//! Batches that are left out of a stream: the others keep their numbers and bytes, for any ranks, from every state on.

use gristmill_engine::config::{DataLoaderConfig, LastBatch, Skip};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};

use super::games::{changed, config, hash, mixed, next, preset, single, varied, with_cache};

fn skips(ranges: &[&str]) -> Vec<Skip> {
    ranges.iter().map(|text| text.parse().unwrap()).collect()
}

fn with(config: &DataLoaderConfig, ranges: &[&str]) -> DataLoader {
    DataLoader::new(DataLoaderConfig { skip: skips(ranges), ..config.clone() }).unwrap()
}

/// Number and hash of up to `n` batches.
fn taken(loader: &DataLoader, alias: &str, n: usize) -> Vec<(u64, u64)> {
    let batches = std::iter::from_fn(|| next(loader, alias));
    batches.take(n).map(|batch| (batch.number, hash(&batch))).collect()
}

/// Leaves out ranges and compares what is left, from the start and from the state after every batch on.
fn check(config: &DataLoaderConfig, batches: usize) {
    let whole = taken(&with(config, &[]), "", batches);
    let left: Vec<(u64, u64)> =
        whole.iter().copied().filter(|(n, _)| !(3..5).contains(n) && !(7..13).contains(n)).collect();
    let ranges = ["7..13", "3..5"];
    let running = with(config, &ranges);
    let mut states = vec![running.state().unwrap()];
    let mut found = Vec::new();
    while found.len() < left.len() {
        found.extend(taken(&running, "", 1));
        states.push(running.state().unwrap());
    }
    assert_eq!(found, left);
    for (after, state) in states.iter().enumerate() {
        let again = with(config, &ranges);
        again.restore(state).unwrap();
        assert_eq!(taken(&again, "", left.len() - after), left[after..], "from the state after {after} batches");
    }
}

#[test]
fn of_pools_with_lanes_joined_and_whole_passes() {
    check(&config(&preset(mixed())), 18);
    check(&DataLoaderConfig { lanes: Some(4), threads: Some(3), ..config(&preset(mixed())) }, 18);
    let passes = Lc0Preset { epochs: Some(1), reservoir: Some(64), last_batch: LastBatch::Pad, ..preset(mixed()) };
    check(&config(&passes), 1000);
    let options = Lc0Preset { tensors: preset(varied()).tensors, reservoir: Some(50), ..single(varied()) };
    let hanse = changed(&options, |pool, _| pool.hanse_sampling_threshold = Some(1));
    check(&with_cache(hanse, 100, 6), 18);
}

#[test]
fn the_end_of_a_stream_may_be_left_out() {
    for last_batch in [LastBatch::Keep, LastBatch::Pad, LastBatch::Drop] {
        let options = Lc0Preset { epochs: Some(1), reservoir: Some(64), last_batch, ..preset(mixed()) };
        let whole = taken(&with(&config(&options), &[]), "", 1000);
        let last = whole.len() as u64 - 1;
        let cut = with(&config(&options), &[&format!("{last}..{}", last + 9)]);
        assert_eq!(taken(&cut, "", 1000), whole[..last as usize], "{last_batch:?}");
        assert!(matches!(cut.next("", None), Ok(Next::End)));
    }
}

#[test]
fn every_rank_leaves_out_the_same() {
    let base = DataLoaderConfig { lanes: Some(4), ..config(&preset(mixed())) };
    let ranks = |world_size: u32, ranges: &[&str]| -> Vec<DataLoader> {
        let rank = |rank| DataLoaderConfig { rank: Some(rank), world_size: Some(world_size), ..base.clone() };
        (0..world_size).map(|r| with(&rank(r), ranges)).collect()
    };
    let mut whole: Vec<Vec<(u64, u64)>> = ranks(4, &[]).iter().map(|loader| taken(loader, "", 12)).collect();
    whole.iter_mut().for_each(|batches| batches.retain(|(number, _)| !(4..9).contains(number)));
    let two = ranks(2, &["4..9"]);
    two.iter().for_each(|loader| assert_eq!(taken(loader, "", 5).last().unwrap().0, 9));
    let parts: Vec<String> = two.iter().map(|loader| loader.state().unwrap()).collect();
    for (loader, expected) in ranks(4, &["4..9"]).iter().zip(&whole) {
        loader.restore(&format!("[{}]", parts.join(","))).unwrap();
        assert_eq!(taken(loader, "", 2), expected[5..7]);
    }
    let refused = ranks(4, &[])[0].restore(&format!("[{}]", parts.join(","))).unwrap_err().to_string();
    assert!(refused.contains("skip before batch 10: saved 4..9, configured none"), "{refused}");
}

#[test]
fn what_was_left_out_before_a_state_cannot_be_changed_and_what_comes_can() {
    let base = config(&preset(mixed()));
    let whole = taken(&with(&base, &[]), "", 12);
    let running = with(&base, &["2..4"]);
    taken(&running, "", 3);
    let state = running.state().unwrap();
    for wrong in [&[][..], &["2..3"], &["1..4"], &["2..4", "0..1"]] {
        match with(&base, wrong).restore(&state) {
            Err(Error::State(text)) => assert!(text.contains("skip before batch 5: saved 2..4"), "{text}"),
            other => panic!("{other:?}"),
        }
    }
    let edited = with(&base, &["2..4", "6..10"]);
    edited.restore(&state).unwrap();
    assert_eq!(taken(&edited, "", 2), [whole[5], whole[10]]);
    let inside = with(&base, &["2..9"]);
    assert!(inside.restore(&state).unwrap_err().to_string().contains("configured 2..5"));
    let text = DataLoader::new(DataLoaderConfig {
        skip: skips(&["test:1..2"]),
        ..config(&Lc0Preset { split: vec![("train".into(), 2), ("val".into(), 1)], ..preset(mixed()) })
    });
    assert!(text.unwrap_err().to_string().contains("one of: train, val"));
}
