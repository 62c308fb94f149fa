//! Chains and logs -> one row per stage: load, queue, gauges and counts, since the start and in the last second.
//! Reads numbers that the river keeps anyway; never slows it and never changes it.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::chain::Chain;
use super::roster::Roster;
use super::verdict::BadChunkCounts;
use crate::runtime::metrics::{Load, Rates};

/// A value that goes up and down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// Name, such as `chunks_current`.
    pub name: &'static str,
    /// Value now.
    pub value: u64,
    /// Most it can be, where there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
}

/// A count since the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// Name, such as `rows`; `busy_ns` is the time that threads spent in the stage, in nanoseconds.
    pub name: &'static str,
    /// Since the start.
    pub total: u64,
    /// Per second, over the last second.
    pub per_second: f64,
}

/// The queue behind a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueMetrics {
    /// Items offered.
    pub put: u64,
    /// Items taken.
    pub got: u64,
    /// Items dropped.
    pub dropped: u64,
    /// Items waiting now.
    pub waiting: u64,
    /// Items that may wait.
    pub capacity: u64,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageMetrics {
    /// The stage's name in the config.
    pub name: String,
    /// Its kind, such as `shuffling_chunk_pool`.
    pub kind: &'static str,
    /// Values now.
    pub gauges: Vec<Gauge>,
    /// Counts; their order is fixed.
    pub counts: Vec<Tally>,
    /// Its output queue, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMetrics>,
    /// A text, such as the key of the newest source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// What went wrong and was survived, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Everything a loader can tell about its running.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Metrics {
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// The root seed.
    pub seed: Option<u64>,
    /// The stages in flow order.
    pub stages: Vec<StageMetrics>,
    /// Bad chunks.
    pub bad_chunks: BadChunkCounts,
}

impl Metrics {
    /// The stages of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a StageMetrics> {
        self.stages.iter().filter(move |stage| stage.kind == kind)
    }
}

impl StageMetrics {
    /// A gauge by name.
    pub fn gauge(&self, name: &str) -> Option<&Gauge> {
        self.gauges.iter().find(|gauge| gauge.name == name)
    }

    /// A count by name.
    pub fn count(&self, name: &str) -> Option<&Tally> {
        self.counts.iter().find(|count| count.name == name)
    }
}

/// Totals of the recent past, for rates.
#[derive(Debug, Clone, Default)]
pub(super) struct Sampled(Arc<Mutex<Rates>>);

impl Sampled {
    pub(super) fn take(&self, stages: &[StageMetrics]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sample(totals(stages));
    }

    pub(super) fn metrics(
        &self,
        mut stages: Vec<StageMetrics>,
        seed: Option<u64>,
        bad_chunks: BadChunkCounts,
    ) -> Metrics {
        let rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut per_second = rates.per_second(&totals(&stages)).into_iter();
        for count in stages.iter_mut().flat_map(|stage| &mut stage.counts) {
            count.per_second = per_second.next().unwrap_or_default();
        }
        Metrics { uptime_seconds: rates.uptime(), seed, stages, bad_chunks }
    }
}

fn totals(stages: &[StageMetrics]) -> Vec<u64> {
    stages.iter().flat_map(|stage| &stage.counts).map(|count| count.total).collect()
}

fn gauge(name: &'static str, value: u64, capacity: Option<u64>) -> Gauge {
    Gauge { name, value, capacity }
}

fn tally(name: &'static str, total: u64) -> Tally {
    Tally { name, total, per_second: 0.0 }
}

fn busy(load: &Load) -> Tally {
    tally("busy_ns", load.nanos())
}

fn row(name: &str, kind: &'static str, gauges: Vec<Gauge>, counts: Vec<Tally>) -> StageMetrics {
    StageMetrics { name: name.to_owned(), kind, gauges, counts, queue: None, latest: None, faults: Vec::new() }
}

/// One row per stage, without rates.
pub(super) fn collect(chains: &[Arc<Chain>], rosters: &[Arc<Roster>]) -> Vec<StageMetrics> {
    let mut stages: Vec<StageMetrics> = rosters.iter().map(|roster| sources(roster)).collect();
    chains.iter().for_each(|chain| of_chain(chain, &mut stages));
    stages
}

fn sources(roster: &Roster) -> StageMetrics {
    let log = roster.log();
    let found = log.faults();
    let files = log.initial().map_or(0, |files| files.len() as u64) + roster.arrivals(0).len() as u64;
    StageMetrics {
        latest: (!found.last_chunk_key.is_empty()).then_some(found.last_chunk_key),
        faults: found.faults.messages().map(str::to_owned).collect(),
        ..row(
            &roster.loader,
            "chunk_source_loader",
            vec![gauge("files", files, None)],
            vec![
                tally("skipped_files", found.skipped_files),
                tally("duplicate_files", found.duplicate_files),
                tally("faults", found.faults.total()),
            ],
        )
    }
}

fn of_chain(chain: &Chain, stages: &mut Vec<StageMetrics>) {
    let inner = chain.lock();
    for (branch, totals) in inner.branches.iter().zip(&chain.branch_totals) {
        let [sources, chunks, capacity, total, passes] =
            branch.drawer.as_ref().map_or([0; 5], |drawer| drawer.gauges());
        let pool = !branch.drawer.as_ref().is_some_and(|drawer| drawer.ends());
        stages.push(row(
            &branch.plan.stage,
            if pool { "shuffling_chunk_pool" } else { "simple_chunk_extractor" },
            vec![
                gauge("chunk_sources", sources, None),
                gauge("chunks_current", chunks, Some(capacity)),
                gauge("chunks_total", total, None),
                gauge("tickets", branch.window.len() as u64, None),
            ],
            vec![
                busy(&totals.reading),
                tally("reshuffles", passes),
                tally("stored_bytes", totals.stored_bytes.get()),
                tally("dropped", totals.empty_chunks.get()),
            ],
        ));
        stages.push(row(
            &branch.plan.unpacker,
            "chunk_unpacker",
            vec![gauge("chunks_decoding", branch.decoding as u64, None)],
            vec![
                busy(&totals.decoding),
                tally("chunks", totals.chunks.get()),
                tally("frames_decoded", totals.frames_decoded.get()),
            ],
        ));
    }
    let (held, frames) = (inner.fold.reservoir.held().len() as u64, chain.plan.reservoir.1 as u64);
    drop(inner);
    if frames > 0 {
        let gauges = vec![gauge("reservoir", held, Some(frames))];
        stages.push(row(&chain.plan.reservoir.0, "shuffling_frame_sampler", gauges, vec![busy(&chain.totals.filling)]));
    }
    let counts = chain.handoff.counts();
    let totals = &chain.totals;
    let (batches, rows) = (tally("batches", totals.batches.get()), tally("rows", totals.rows.get()));
    stages.push(StageMetrics {
        queue: Some(QueueMetrics {
            put: counts.put,
            got: counts.got,
            dropped: counts.dropped,
            waiting: counts.waiting as u64,
            capacity: chain.handoff.capacity() as u64,
        }),
        ..row(&chain.plan.stage, "tensor_generator", Vec::new(), vec![busy(&totals.encoding), batches, rows])
    });
}
