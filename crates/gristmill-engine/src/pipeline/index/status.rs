//! A loader of rows -> its stages with their numbers, and the document that a view draws of them.
//! Reads counters only; rates are left to the caller.

use std::sync::{Mutex, PoisonError};

use gristmill_runtime::runtime::metrics::Rates;

use super::feed::Feed;
use crate::pipeline::ledger::Book;
use crate::pipeline::plan::flow::FlowStage;
use crate::pipeline::watch::certified::Certified;
use crate::pipeline::watch::metrics::{Gauge, Metrics, QueueMetrics, StageMetrics, Tally};
use crate::pipeline::watch::status::{OutputStatus, RunState, STATUS_VERSION, Status, describe, resident};
use crate::pipeline::watch::waits::{OutputWaits, Waits};

/// One row per step, without rates.
pub(super) fn stages(feed: &Feed) -> Vec<StageMetrics> {
    let stage = |name: &str, kind, counts: &[(&'static str, u64)], queue| StageMetrics {
        name: name.to_owned(),
        kind,
        threads: feed.workers() as u64,
        gauges: Vec::new(),
        counts: counts.iter().map(|(name, total)| Tally { name, total: *total, per_second: 0.0 }).collect(),
        queue,
        latest: None,
        oldest_needed: None,
        faults: Vec::new(),
    };
    let (counts, capacity) = feed.queue();
    let queue = QueueMetrics {
        put: counts.put,
        got: counts.got,
        dropped: counts.dropped,
        waiting: counts.waiting as u64,
        capacity: capacity as u64,
        consumer_wait_ns: Some(feed.waited_ns()),
    };
    let totals = &feed.totals;
    let encoded =
        [("rows", totals.rows.get()), ("batches", totals.batches.get()), ("busy_ns", totals.encoding.nanos())];
    let mut gathered = vec![("rows", totals.rows.get()), ("busy_ns", totals.gathering.nanos())];
    gathered.extend(totals.traffic.counts());
    let (selected, all) = feed.rows();
    let gauge = |name, value| Gauge { name, value, capacity: None };
    let passing = vec![gauge("rows_selected", selected), gauge("rows_of_table", all)];
    let gather = StageMetrics { gauges: passing, ..stage("gather", "gather", &gathered, None) };
    vec![gather, stage("tensors", "tensor_generator", &encoded, Some(queue))]
}

/// The document of a loader.
pub(super) fn status(
    feed: &Feed,
    rates: &Mutex<Rates>,
    seed: u64,
    (state, certified): (RunState, &Certified),
) -> Status {
    let found = metrics(feed, rates, seed, (0, 1));
    let (rows, waits, uptime) = (found.stages, found.waits, found.uptime_seconds);
    let flow = |name: &str, kind, gives, inputs: &[&str]| FlowStage {
        name: name.to_owned(),
        kind,
        gives,
        inputs: inputs.iter().map(|stage| ((*stage).to_owned(), String::new())).collect(),
        streams: vec![String::new()],
    };
    let flow = [flow("gather", "gather", "rows", &[]), flow("tensors", "tensor_generator", "batches", &["gather"])];
    let found = |stage: &FlowStage| describe(stage, rows.iter().find(|row| row.name == stage.name), uptime);
    Status {
        memory_bytes: resident(),
        gristmill_status: STATUS_VERSION,
        gristmill: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        uptime_seconds: uptime,
        state,
        seed,
        stall: waits.stall,
        limited_by: waits.limited_by.clone(),
        stall_since_start: waits.stall_since_start,
        limited_by_since_start: waits.limited_by_since_start.clone(),
        outputs: vec![OutputStatus {
            waits,
            alias: String::new(),
            stage: "tensors".to_owned(),
            ended: state == RunState::Ended,
        }],
        stages: flow.iter().map(found).collect(),
        ledger: feed.book().map(Book::status),
        certificates: certified.all(),
        ..Status::default()
    }
}

/// All totals, in order.
pub(super) fn totals(feed: &Feed) -> Vec<u64> {
    let stages = stages(feed);
    let counts = stages.iter().flat_map(|stage| stage.counts.iter().map(|count| count.total));
    counts.chain(feed.waited()).collect()
}

/// What a feed did so far and in the last second.
pub(super) fn metrics(feed: &Feed, rates: &Mutex<Rates>, root: u64, (rank, world_size): (u64, u64)) -> Metrics {
    let mut stages = stages(feed);
    let rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
    let mut per_second = rates.per_second(&totals(feed)).into_iter();
    for count in stages.iter_mut().flat_map(|stage| &mut stage.counts) {
        count.per_second = per_second.next().unwrap_or_default();
    }
    let uptime_seconds = rates.uptime().as_secs_f64();
    let waits = Waits::of(&feed.waited(), per_second.as_slice());
    let outputs = vec![OutputWaits { alias: String::new(), stage: "tensors".to_owned(), waits: waits.clone() }];
    Metrics { uptime_seconds, seed: Some(root), rank, world_size, stages, waits, outputs, ..Metrics::default() }
}
