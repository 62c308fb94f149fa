//! A running loader -> one document that a view draws: stages in flow order, edges, totals, gauges, queues, events.
//! Versioned, readable by other processes (docs/format/status.md); rates are left to the reader of two of them.

use std::sync::atomic::Ordering;

use gristmill_runtime::runtime::events::Event;
use serde::{Deserialize, Serialize};

use crate::pipeline::plan::flow::FlowStage;
use crate::pipeline::watch::metrics::{Observer, StageMetrics};
use crate::pipeline::watch::waits::Waits;

/// Version of the document.
pub const STATUS_VERSION: u32 = 1;

/// How a loader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its threads work, or wait for what they need.
    #[default]
    Running,
    /// Every output has ended by itself.
    Ended,
    /// It was stopped.
    Stopped,
    /// Something that a newer loader says.
    #[serde(other)]
    Other,
}

/// A loader at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Version of this document.
    pub gristmill_status: u32,
    /// Version of gristmill.
    pub gristmill: String,
    /// Process that the loader runs in.
    pub process: u32,
    /// When it started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Seconds since the start: the clock of the totals below and of the events.
    pub uptime_seconds: f64,
    /// How it is.
    pub state: RunState,
    /// The root seed.
    pub seed: u64,
    /// Bytes that the process has resident now; absent where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Share of the last second in which the trainer waited for the loader.
    pub stall: f64,
    /// What limited in the last second.
    pub limited_by: String,
    /// The same since the first batch was wanted.
    pub stall_since_start: f64,
    /// The same since the first batch was wanted.
    pub limited_by_since_start: String,
    /// The loader's outputs.
    pub outputs: Vec<OutputStatus>,
    /// The stages, each after those that it reads.
    pub stages: Vec<StageStatus>,
    /// Chunks found bad.
    pub bad_chunks: BadChunksStatus,
    /// Files that could not be read.
    pub io_errors: IoErrorsStatus,
    /// The ledger that this process writes, where it writes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerStatus>,
    /// The last certificate that was made of the shuffle of each output.
    pub certificates: Vec<CertificateStatus>,
    /// Number of the newest event; the next request may name it as `after`.
    pub newest_event: u64,
    /// Events after the requested number, oldest first; of each kind the latest are kept.
    pub events: Vec<Event>,
}

/// One output of a loader.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputStatus {
    /// Its name in calls; empty for the only one.
    pub alias: String,
    /// The stage that gives it.
    pub stage: String,
    /// Whether it has ended.
    pub ended: bool,
    /// Who waits for whom.
    #[serde(flatten)]
    pub waits: Waits,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StageStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind, such as `chunk_unpacker`.
    pub kind: String,
    /// What it gives, in the plural, such as `frames`. A count of this name tells how many it gave.
    pub gives: String,
    /// What it reads.
    pub inputs: Vec<InputStatus>,
    /// Aliases of the outputs that it leads to.
    pub streams: Vec<String>,
    /// Time that threads were busy in it, of the time that they could have been.
    pub loads: Vec<LoadStatus>,
    /// Totals since the start.
    pub counts: Vec<CountStatus>,
    /// Values now.
    pub gauges: Vec<GaugeStatus>,
    /// Queues after it.
    pub queues: Vec<QueueStatus>,
    /// Texts, such as the key of the newest source.
    pub texts: Vec<TextStatus>,
}

/// An edge: a stage and the name of its output that is read, empty for the only one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InputStatus {
    /// The stage read.
    pub stage: String,
    /// Its output.
    pub output: String,
}

/// A load; both numbers only grow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadStatus {
    /// What is done; empty for the only thing.
    pub name: String,
    /// Thread-seconds that were spent.
    pub load_seconds: f64,
    /// Thread-seconds that could have been spent.
    pub total_seconds: f64,
}

/// A count since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CountStatus {
    /// Its name.
    pub name: String,
    /// The count.
    pub total: u64,
}

/// A value that goes up and down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GaugeStatus {
    /// Its name.
    pub name: String,
    /// The value now.
    pub value: u64,
    /// The most that it can be, where there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
}

/// A queue; the first three numbers only grow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueStatus {
    /// The name of the stage's output; empty for the only one.
    pub name: String,
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
    /// Seconds that the consumer waited here for items; of queues that consumers take from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_wait_seconds: Option<f64>,
}

/// A text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TextStatus {
    /// Its name, such as `last_chunk_key`.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// Chunks found bad since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BadChunksStatus {
    /// Different chunks.
    pub chunks: u64,
    /// The same by kind.
    pub by_kind: std::collections::BTreeMap<String, u64>,
    /// How many of them the quarantine report has.
    pub quarantined: u64,
    /// Why the quarantine report could not be written, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_fault: Option<String>,
}

/// Files that could not be read since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IoErrorsStatus {
    /// Files that cannot be read now: what needs them waits.
    pub waiting: u64,
    /// Errors, each try counted, by kind.
    pub by_kind: std::collections::BTreeMap<String, u64>,
    /// Why files cannot be read now, some of them.
    pub latest: Vec<String>,
}

/// The ledger that a process writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerStatus {
    /// Its file.
    pub path: String,
    /// Batches of all outputs that this process noted; the last may not be written yet.
    pub batches: u64,
    /// Why the last line could not be written, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What a certificate says of the shuffle of an output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateStatus {
    /// Alias of the output; empty for the only one.
    pub output: String,
    /// How good the shuffle is: `good`, `fair`, `weak` or `none`.
    pub level: String,
    /// Why, in a sentence.
    pub says: String,
}

impl Observer {
    /// The document, with the events after number `after`.
    pub(in crate::pipeline) fn status(&self, after: u64) -> Status {
        let clock = self.events.clock();
        let metrics = self.metrics();
        let waits = &metrics.outputs;
        let outputs: Vec<OutputStatus> = self
            .chains
            .iter()
            .map(|chain| OutputStatus {
                alias: chain.plan.alias.clone(),
                stage: chain.plan.stage.clone(),
                ended: chain.handoff.is_closed(),
                waits: waits
                    .iter()
                    .find(|of| of.stage == chain.plan.stage)
                    .map(|of| of.waits.clone())
                    .unwrap_or_default(),
            })
            .collect();
        let state = match () {
            () if self.stop.load(Ordering::Relaxed) => RunState::Stopped,
            () if !outputs.is_empty() && outputs.iter().all(|output| output.ended) => RunState::Ended,
            () => RunState::Running,
        };
        let uptime_seconds = clock.seconds();
        let row = |stage: &FlowStage| {
            let found = metrics.stages.iter().find(|row| row.name == stage.name);
            describe(stage, found, uptime_seconds)
        };
        Status {
            gristmill_status: STATUS_VERSION,
            gristmill: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            started_unix_ms: clock.unix_ms(),
            uptime_seconds,
            state,
            seed: self.root,
            memory_bytes: resident(),
            stall: metrics.waits.stall,
            limited_by: metrics.waits.limited_by.clone(),
            stall_since_start: metrics.waits.stall_since_start,
            limited_by_since_start: metrics.waits.limited_by_since_start.clone(),
            outputs,
            stages: self.flow.iter().map(row).collect(),
            bad_chunks: BadChunksStatus {
                chunks: metrics.bad_chunks.chunks,
                by_kind: metrics.bad_chunks.by_kind,
                quarantined: metrics.bad_chunks.quarantined,
                report_fault: metrics.bad_chunks.report_fault,
            },
            io_errors: IoErrorsStatus {
                waiting: metrics.io_errors.waiting,
                by_kind: metrics.io_errors.by_kind,
                latest: metrics.io_errors.latest,
            },
            ledger: self.book.as_ref().map(|book| book.status()),
            certificates: self.certified.all(),
            newest_event: self.events.newest(),
            events: self.events.since(after),
        }
    }
}

/// Bytes that this process has resident.
pub(in crate::pipeline) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// A stage with its numbers, where it has some.
pub(in crate::pipeline) fn describe(stage: &FlowStage, row: Option<&StageMetrics>, uptime: f64) -> StageStatus {
    let inputs =
        stage.inputs.iter().map(|(stage, output)| InputStatus { stage: stage.clone(), output: output.clone() });
    let mut status = StageStatus {
        name: stage.name.clone(),
        kind: stage.kind.to_owned(),
        gives: stage.gives.to_owned(),
        inputs: inputs.collect(),
        streams: stage.streams.clone(),
        ..StageStatus::default()
    };
    let Some(row) = row else { return status };
    for count in &row.counts {
        match count.name.strip_suffix("_ns") {
            Some(name) => status.loads.push(LoadStatus {
                name: if name == "busy" { String::new() } else { name.to_owned() },
                load_seconds: count.total as f64 / 1e9,
                total_seconds: row.threads_in(count.name) as f64 * uptime,
            }),
            None => status.counts.push(CountStatus { name: count.name.to_owned(), total: count.total }),
        }
    }
    let gauge = |gauge: &crate::pipeline::Gauge| GaugeStatus {
        name: gauge.name.to_owned(),
        value: gauge.value,
        capacity: gauge.capacity,
    };
    status.gauges = row.gauges.iter().map(gauge).collect();
    status.queues.extend(row.queue.as_ref().map(|queue| QueueStatus {
        name: String::new(),
        put: queue.put,
        got: queue.got,
        dropped: queue.dropped,
        waiting: queue.waiting,
        capacity: queue.capacity,
        consumer_wait_seconds: queue.consumer_wait_ns.map(|ns| ns as f64 / 1e9),
    }));
    let latest = row.latest.iter();
    let name = if row.kind == "shuffling_chunk_pool" { "anchor" } else { "last_chunk_key" };
    let latest = latest.map(|key| (name, key)).chain(row.oldest_needed.iter().map(|file| ("oldest_needed", file)));
    status.texts = latest.map(|(name, text)| TextStatus { name: name.to_owned(), value: text.clone() }).collect();
    status
}
