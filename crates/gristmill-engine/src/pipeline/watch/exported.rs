//! The numbers of a loader as Prometheus reads them. Names families; counts nothing.

use std::collections::BTreeMap;

use gristmill_runtime::sink::prometheus::{self, Sample, Stall, Whole};

use crate::pipeline::watch::metrics::Metrics;
use crate::pipeline::watch::waits::OutputWaits;

impl OutputWaits {
    fn exported(&self, kind: &'static str) -> Stall {
        let seconds = self.waits.waits.iter().map(|waited| (waited.cause.clone(), waited.seconds));
        Stall { stage: self.stage.clone(), kind, share: self.waits.stall, seconds: seconds.collect() }
    }
}

impl Metrics {
    /// The same numbers as Prometheus text.
    pub fn prometheus(&self) -> String {
        let mut samples = Vec::new();
        for stage in &self.stages {
            let mut add = |name, value, grows| {
                samples.push(Sample { stage: stage.name.clone(), kind: stage.kind, name, value, grows });
            };
            stage.counts.iter().for_each(|count| add(count.name, count.total, true));
            stage.gauges.iter().for_each(|gauge| add(gauge.name, gauge.value, false));
            stage
                .gauges
                .iter()
                .filter_map(|g| Some((capacity_of(g.name)?, g.capacity?)))
                .for_each(|(n, v)| add(n, v, false));
            if let Some(queue) = &stage.queue {
                add("queue_put", queue.put, true);
                add("queue_got", queue.got, true);
                add("queue_dropped", queue.dropped, true);
                add("queue_waiting", queue.waiting, false);
                add("queue_capacity", queue.capacity, false);
                if let Some(waited) = queue.consumer_wait_ns {
                    add("consumer_wait_ns", waited, true);
                }
            }
        }
        let kinds = |counts: &BTreeMap<String, u64>| -> Vec<(String, u64)> {
            counts.iter().map(|(kind, n)| (kind.clone(), *n)).collect()
        };
        let unread = kinds(&self.io_errors.by_kind);
        let Metrics { uptime_seconds, rank, world_size, .. } = *self;
        let whole = Whole { uptime_seconds, rank, world_size: world_size.max(1) };
        let kind = |stage: &str| self.stages.iter().find(|row| row.name == stage).map_or("", |row| row.kind);
        let stalls: Vec<_> = self.outputs.iter().map(|of| of.exported(kind(&of.stage))).collect();
        prometheus::text(whole, &samples, &stalls, &kinds(&self.bad_chunks.by_kind), (&unread, self.io_errors.waiting))
    }
}

/// The name under which a gauge's capacity is exported, for those that have one.
fn capacity_of(name: &str) -> Option<&'static str> {
    match name {
        "chunks_current" => Some("chunks_capacity"),
        "reservoir" => Some("reservoir_capacity"),
        "cached_positions" => Some("cached_positions_capacity"),
        _ => None,
    }
}
