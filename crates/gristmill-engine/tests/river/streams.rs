//! What flows: whole passes, splits, pools, reservoirs, batches and their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gristmill_engine::config::{LastBatch, Overflow};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};

use super::games::{all_ids, config, ids, loader, mixed, next, preset};

fn pass(options: &Lc0Preset) -> Lc0Preset {
    Lc0Preset { epochs: Some(1), sampling_rate: None, reservoir: None, ..options.clone() }
}

#[test]
fn one_pass_gives_every_position_once_in_order() {
    let loader = loader(&pass(&preset(mixed())));
    let rows = all_ids(&loader, "");
    let unique: BTreeSet<_> = rows.iter().collect();
    assert_eq!(unique.len(), rows.len());
    assert!(rows.is_sorted(), "sources by key, chunks and frames by index");
    assert_eq!(rows.iter().map(|id| (id.0, id.1)).collect::<BTreeSet<_>>().len(), 56, "24 + 12 + 20 games");
    assert!(matches!(loader.next("", None), Ok(Next::End)), "the end stays the end");
    assert!(loader.source_path(0).is_some_and(|path| path.contains("training")), "ids lead back to files");
}

#[test]
fn a_drained_reservoir_gives_the_same_positions_in_another_order() {
    let ordered = all_ids(&loader(&pass(&preset(mixed()))), "");
    let options = Lc0Preset { reservoir: Some(300), ..pass(&preset(mixed())) };
    let shuffled = all_ids(&loader(&options), "");
    assert_ne!(shuffled, ordered);
    let sorted: BTreeSet<_> = shuffled.iter().copied().collect();
    assert_eq!(sorted.into_iter().collect::<Vec<_>>(), ordered);
    assert_eq!(shuffled.len(), ordered.len());
    let mut config = config(&options);
    let sampler = config.stage.iter_mut().find_map(|s| s.shuffling_frame_sampler.as_mut()).unwrap();
    sampler.drain = false;
    let left = all_ids(&DataLoader::new(config).unwrap(), "").len();
    assert_eq!(left, ordered.len() - 300, "without a drain the reservoir's rows stay in it");
}

#[test]
fn the_last_batch_is_kept_dropped_or_padded() {
    let rows = all_ids(&loader(&pass(&preset(mixed()))), "").len();
    assert_ne!(rows % 16, 0, "these games leave a partial batch");
    for last_batch in [LastBatch::Keep, LastBatch::Drop, LastBatch::Pad] {
        let loader = loader(&Lc0Preset { last_batch, ..pass(&preset(mixed())) });
        let batches: Vec<_> = std::iter::from_fn(|| next(&loader, "")).collect();
        let last = batches.last().unwrap();
        let shown = last.columns[0].shape()[0];
        match last_batch {
            LastBatch::Keep => assert_eq!((last.rows, shown), (rows % 16, rows % 16)),
            LastBatch::Drop => assert_eq!((last.rows, batches.len()), (16, rows / 16)),
            LastBatch::Pad => {
                assert_eq!((last.rows, shown), (rows % 16, 16));
                let column = last.column("values").unwrap();
                assert!(column.bytes()[last.rows * 72..].iter().all(|byte| *byte == 0));
            }
        }
        assert!(batches.iter().enumerate().all(|(i, batch)| batch.number == i as u64));
    }
}

#[test]
fn a_split_deals_every_game_to_one_side_and_always_the_same() {
    let split = vec![("train".to_string(), 9), ("none".to_string(), 0), ("test".to_string(), 3)];
    let sides = |threads| {
        let loader = loader(&Lc0Preset { split: split.clone(), threads: Some(threads), ..pass(&preset(mixed())) });
        let side = |alias| all_ids(&loader, alias).iter().map(|id| (id.0, id.1)).collect::<BTreeSet<_>>();
        (side("train"), side("test"))
    };
    let (train, test) = sides(1);
    assert!(train.is_disjoint(&test));
    assert_eq!(train.len() + test.len(), 56);
    assert!(train.len() > test.len() && !test.is_empty());
    assert_eq!(sides(8), (train, test));
}

#[test]
fn each_side_of_a_split_counts_the_sources_that_go_there() {
    let split = vec![("train".to_string(), 9), ("none".to_string(), 0), ("test".to_string(), 3)];
    let loader = loader(&Lc0Preset { split, ..pass(&preset(mixed())) });
    let sources = |alias| all_ids(&loader, alias).iter().map(|id| id.0).collect::<BTreeSet<_>>().len() as u64;
    let (train, test) = (sources("train"), sources("test"));
    assert!(loader.stop().is_empty());
    let (period, _) = loader.aggregate_metrics(f64::INFINITY, true).unwrap();
    let splitter = period.stage_metrics.iter().find(|stage| stage.name == "split").unwrap();
    let through =
        |put| splitter.queue_metrics.iter().map(move |queue| if put { queue.put_count } else { queue.get_count });
    assert_eq!(through(true).collect::<Vec<_>>(), [train, 0, test]);
    assert_eq!(through(false).collect::<Vec<_>>(), [train, 0, test]);
    assert!(train + test > 38, "36 files of one game, and tars that are on both sides");
}

#[test]
fn a_pool_serves_each_chunk_once_per_pass_and_each_use_other_positions() {
    let loader = loader(&Lc0Preset { pool: 1000, reservoir: Some(0), ..preset(mixed()) });
    let total = all_ids(&super::games::loader(&pass(&preset(mixed()))), "").len();
    let mut seen = BTreeMap::new();
    // At rate 1/4, four passes use every position once; a little less is sure to repeat none.
    let rows = (0..total / 16 - 8).flat_map(|_| ids(&next(&loader, "").unwrap()));
    rows.for_each(|id| *seen.entry(id).or_insert(0) += 1);
    let repeated = seen.values().filter(|n| **n > 1).count();
    assert_eq!(repeated, 0, "of {} positions", seen.len());
}

#[test]
fn the_window_keeps_the_newest_games() {
    let loader = loader(&Lc0Preset { pool: 30, reservoir: Some(0), ..preset(mixed()) });
    let drawn: BTreeSet<(u64, u64)> =
        (0..200).flat_map(|_| ids(&next(&loader, "").unwrap())).map(|id| (id.0, id.1)).collect();
    assert_eq!(drawn.len(), 30);
    let whole = all_ids(&super::games::loader(&pass(&preset(mixed()))), "");
    let order: Vec<(u64, u64)> = {
        let mut games: Vec<_> = whole.iter().map(|id| (id.0, id.1)).collect();
        games.dedup();
        games
    };
    let newest: BTreeSet<_> = order[order.len() - 30..].iter().copied().collect();
    assert_eq!(drawn, newest);
    let metrics = loader.metrics();
    let pool = metrics.of_kind("shuffling_chunk_pool").next().unwrap();
    let current = pool.gauge("chunks_current").unwrap();
    assert_eq!((current.value, current.capacity), (30, Some(30)));
    assert!(pool.count("reshuffles").unwrap().total > 1);
}

#[test]
fn a_pool_without_games_says_so_in_its_gauges() {
    let empty = tempfile::tempdir().unwrap();
    let loader = loader(&Lc0Preset { watch: Some(true), pool: 20, ..preset(empty.path()) });
    loader.start().unwrap();
    let metrics = loader.metrics();
    let pool = metrics.of_kind("shuffling_chunk_pool").next().unwrap();
    let current = pool.gauge("chunks_current").unwrap();
    assert_eq!((current.value, current.capacity), (0, Some(20)));
    assert_eq!(pool.gauge("chunks_total").unwrap().value, 0);
}

#[test]
fn dropping_queues_never_stop_the_stream_and_count_what_they_drop() {
    for policy in [Overflow::DropNew, Overflow::KeepNewest] {
        let mut config = config(&preset(mixed()));
        let tensors = config.stage.iter_mut().find_map(|s| s.tensor_generator.as_mut()).unwrap();
        (tensors.output.overflow_behavior, tensors.output.queue_capacity) = (policy, 2);
        let loader = DataLoader::new(config).unwrap();
        loader.start().unwrap();
        let dropped = |loader: &DataLoader| {
            loader.metrics().of_kind("tensor_generator").next().unwrap().queue.as_ref().map_or(0, |q| q.dropped)
        };
        while dropped(&loader) < 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let number = next(&loader, "").unwrap().number;
        assert_eq!(number == 0, policy == Overflow::DropNew, "{policy:?}: first batch taken is number {number}");
    }
}

#[test]
fn an_alias_that_nobody_reads_stops_nobody() {
    let split = vec![("train".to_string(), 1), ("test".to_string(), 1)];
    let loader = loader(&Lc0Preset { split, ..preset(mixed()) });
    assert_eq!((0..100).filter_map(|_| next(&loader, "test")).count(), 100);
    match loader.next("valid", None) {
        Err(Error::UnknownAlias { known, .. }) => assert_eq!(known, "`train`, `test`"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_batch_goes_to_one_of_many_consumers() {
    let loader = loader(&preset(mixed()));
    let taken: Vec<u64> = std::thread::scope(|scope| {
        let consumers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..25).filter_map(|_| next(&loader, "")).map(|b| b.number).collect::<Vec<_>>()))
            .collect();
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().collect::<BTreeSet<_>>(), (0..100).collect::<Vec<u64>>().iter().collect());
}

#[test]
fn stop_wakes_those_who_wait_and_is_final() {
    let empty = tempfile::tempdir().unwrap();
    let loader = loader(&Lc0Preset { watch: Some(true), ..preset(empty.path()) });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| loader.next("", None));
        while loader.metrics().stages.is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(loader.stop().is_empty());
        assert!(matches!(waiting.join().unwrap(), Err(Error::Stopped)));
    });
    assert!(loader.stop().is_empty());
    assert!(matches!(loader.next("", None), Err(Error::Stopped)));
}

#[test]
fn metrics_are_served_as_prometheus_text() {
    use std::io::{Read, Write};
    let loader = loader(&preset(mixed()));
    (0..5).for_each(|_| drop(next(&loader, "")));
    let address = loader.serve_metrics("127.0.0.1:0", None).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    for name in [
        "gristmill_chunks_current{stage=\"pool\",kind=\"shuffling_chunk_pool\"} 40",
        "gristmill_reservoir{stage=\"sample\",kind=\"shuffling_frame_sampler\"} 150",
        "gristmill_queue_got_total{stage=\"tensors\",kind=\"tensor_generator\"} 5",
        "gristmill_busy_seconds_total{stage=\"tensors\"",
    ] {
        assert!(answer.contains(name), "{name} in\n{answer}");
    }
    assert!(loader.serve_metrics(&address.to_string(), None).is_err(), "the address is taken");
    assert!(loader.stop().is_empty());
    assert!(loader.metrics().of_kind("tensor_generator").next().unwrap().count("rows").unwrap().total >= 80);
}
