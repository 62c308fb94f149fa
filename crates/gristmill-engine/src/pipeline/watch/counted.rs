//! What a loader without threads of its own has given -> the numbers and documents that all loaders serve.
//! It makes no batch: pairs and steps are made when they are wanted, in the thread that wants them or by a trainer's workers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::metrics::{Clock, Counter};
use gristmill_runtime::runtime::scheduler::Scheduler;
use gristmill_runtime::sink::http::Pages;

use crate::pipeline::plan::flow::FlowStage;
use crate::pipeline::watch::metrics::{Gauge, Metrics, QueueMetrics, StageMetrics, Tally};
use crate::pipeline::watch::serve::{endpoint, failed};
use crate::pipeline::watch::status::{OutputStatus, RunState, STATUS_VERSION, Status, describe, resident};
use crate::pipeline::watch::waits::{OutputWaits, Waits};

/// Batches that were given, and who serves their numbers. Shared freely between threads.
#[derive(Debug)]
pub struct Counted {
    totals: Arc<Totals>,
    scheduler: Scheduler,
    made_in: u32,
}

#[derive(Debug)]
struct Totals {
    /// Name and kind of the one stage.
    stage: &'static str,
    seed: u64,
    /// Which rank this is, of how many.
    ranks: (u64, u64),
    clock: Clock,
    batches: Counter,
    rows: Counter,
    waited_ns: Counter,
    /// When the first batch was wanted, from the making on; absent before.
    first: OnceLock<f64>,
    epoch: AtomicU64,
}

impl Counted {
    /// Nothing was given yet. `ranks` are this rank and how many there are.
    pub fn new(stage: &'static str, seed: u64, ranks: (u64, u64)) -> Self {
        let totals = Totals {
            stage,
            seed,
            ranks,
            clock: Clock::default(),
            batches: Counter::default(),
            rows: Counter::default(),
            waited_ns: Counter::default(),
            first: OnceLock::new(),
            epoch: AtomicU64::new(0),
        };
        Counted { totals: Arc::new(totals), scheduler: Scheduler::new(), made_in: std::process::id() }
    }

    /// A batch of `rows` rows was given, for which the consumer waited `waited_ns` nanoseconds.
    pub fn add(&self, rows: u64, waited_ns: u64) {
        self.totals.first.get_or_init(|| self.totals.clock.seconds() - waited_ns as f64 / 1e9);
        self.totals.batches.add(1);
        self.totals.rows.add(rows);
        self.totals.waited_ns.add(waited_ns);
    }

    /// The next batch is of this pass.
    pub fn turn(&self, epoch: u64) {
        self.totals.epoch.store(epoch, Ordering::Relaxed);
    }

    /// What was given so far. Rates are left to the reader.
    pub fn metrics(&self) -> Metrics {
        self.totals.metrics()
    }

    /// Serves `/metrics` (Prometheus text) and `/status` (docs/format/status.md) at `address` for as long as this lives. An
    /// address that other machines can reach needs a token. Returns where it listens.
    ///
    /// Errors: `Config` for an address that cannot be bound or a token that is missing or too simple; `Forked`.
    pub fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr> {
        let used_in = std::process::id();
        if used_in != self.made_in {
            return Err(Error::Forked { made_in: self.made_in, used_in });
        }
        let endpoint = endpoint(address, token)?;
        let bound = endpoint.address();
        let (stop, totals) = (self.scheduler.stop_flag(), Arc::clone(&self.totals));
        let serve = move || {
            let text = || totals.metrics().prometheus();
            let document = |_| {
                let state = if stop.load(Ordering::Relaxed) { RunState::Stopped } else { RunState::Running };
                serde_json::to_string(&totals.status(state)).unwrap_or_default()
            };
            endpoint.serve(&stop, &Pages { metrics: &text, status: &document });
        };
        self.scheduler.spawn("metrics-http", serve).map_err(|e| failed(address, &e))?;
        Ok(bound)
    }
}

impl Totals {
    fn stage(&self) -> StageMetrics {
        let batches = self.batches.get();
        let tally = |name, total| Tally { name, total, per_second: 0.0 };
        StageMetrics {
            name: self.stage.to_owned(),
            kind: self.stage,
            threads: 0,
            gauges: vec![Gauge { name: "epoch", value: self.epoch.load(Ordering::Relaxed), capacity: None }],
            counts: vec![tally("batches", batches), tally("rows", self.rows.get())],
            // No batch waits: each is made when it is wanted.
            queue: Some(QueueMetrics {
                put: batches,
                got: batches,
                dropped: 0,
                waiting: 0,
                capacity: 0,
                consumer_wait_ns: Some(self.waited_ns.get()),
            }),
            latest: None,
            oldest_needed: None,
            faults: Vec::new(),
        }
    }

    /// Who waited for whom since the first batch was wanted: what is made when it is wanted is gathered.
    fn waits(&self) -> Waits {
        let Some(first) = self.first.get() else { return Waits::default() };
        let waited = self.waited_ns.get() as f64 / 1e9;
        Waits::made_when_wanted((self.clock.seconds() - first - waited).max(0.0), waited)
    }

    fn metrics(&self) -> Metrics {
        let (waits, stage) = (self.waits(), self.stage.to_owned());
        Metrics {
            outputs: vec![OutputWaits { alias: String::new(), stage, waits: waits.clone() }],
            waits,
            uptime_seconds: self.clock.seconds(),
            seed: Some(self.seed),
            rank: self.ranks.0,
            world_size: self.ranks.1,
            stages: vec![self.stage()],
            ..Metrics::default()
        }
    }

    fn status(&self, state: RunState) -> Status {
        let (uptime_seconds, waits) = (self.clock.seconds(), self.waits());
        let flow = FlowStage {
            name: self.stage.to_owned(),
            kind: self.stage,
            gives: "batches",
            inputs: Vec::new(),
            streams: vec![String::new()],
        };
        Status {
            gristmill_status: STATUS_VERSION,
            gristmill: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            started_unix_ms: self.clock.unix_ms(),
            uptime_seconds,
            state,
            seed: self.seed,
            memory_bytes: resident(),
            stall_since_start: waits.stall_since_start,
            limited_by_since_start: waits.limited_by_since_start.clone(),
            outputs: vec![OutputStatus { stage: self.stage.to_owned(), waits, ..OutputStatus::default() }],
            stages: vec![describe(&flow, Some(&self.stage()), uptime_seconds)],
            ..Status::default()
        }
    }
}
