//! Rows of stages, look after look -> what happened in each period, under the lc0 loader's names.
//! Kept after the stop. Reads totals that others keep; the clock comes in as an argument.

use std::collections::HashMap;
use std::time::Duration;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::aggregate::Aggregator;
use gristmill_runtime::runtime::period::{
    CountMetric, GaugeMetric, LoadMetric, Period, QueueMetric, Samples, StageMetric, Statistics, StatisticsMetric,
};
use gristmill_stages::config::{DataLoaderConfig, QueueConfig, StageConfig, StageKind};

use crate::pipeline::plan::graph::queues;
use crate::pipeline::watch::metrics::{QueueMetrics, StageMetrics};

/// The finest period.
const TICK: Duration = Duration::from_millis(250);

/// What is known of a stage before it runs.
struct Known {
    name: String,
    kind: &'static str,
    /// Stages that it reads, then those that read it.
    neighbours: Vec<String>,
    /// Name and capacity of each queue, and the stages that read it.
    queues: Vec<(String, u64, Vec<String>)>,
    /// Chunks of a pool's window.
    window: Option<u64>,
}

/// What the stages of a loader did.
pub(in crate::pipeline) struct History {
    stages: Vec<Known>,
    all: Aggregator<Period>,
    /// Totals at the last look, by stage and name.
    totals: HashMap<(String, String), u64>,
    last: Duration,
    closed: bool,
}

impl History {
    /// Of a loader that starts at time 0.
    pub(in crate::pipeline) fn new(config: &DataLoaderConfig) -> Result<Self> {
        let known = |stage: &StageConfig| -> Result<Known> {
            let kind = stage.kind()?;
            let reads = |other: &&StageConfig| inputs(other).any(|input| input == stage.name);
            let readers = config.stage.iter().filter(reads).map(|other| other.name.clone());
            let named = |queue: &QueueConfig| {
                let own = matches!(
                    kind,
                    StageKind::ChunkSourceSplitter(_) | StageKind::ShufflingChunkPool(_) | StageKind::ChunkUnpacker(_)
                );
                let name = if own { queue.name.clone() } else { "output".to_owned() };
                let port = format!("{}.{}", stage.name, queue.name);
                let port = if queue.name.is_empty() { &stage.name } else { &port };
                let readers = config.stage.iter().filter(|other| other.input.contains(port));
                (name, queue.queue_capacity as u64, readers.map(|other| other.name.clone()).collect())
            };
            Ok(Known {
                name: stage.name.clone(),
                kind: kind.name(),
                neighbours: inputs(stage).map(str::to_owned).chain(readers).collect(),
                queues: queues(kind).into_iter().map(named).collect(),
                window: match kind {
                    StageKind::ShufflingChunkPool(pool) => Some(pool.chunk_pool_size),
                    _ => None,
                },
            })
        };
        Ok(History {
            stages: config.stage.iter().map(known).collect::<Result<_>>()?,
            all: Aggregator::new(TICK),
            totals: HashMap::new(),
            last: Duration::ZERO,
            closed: false,
        })
    }

    /// Takes the totals of this moment, and what the chunks of each pool weighed since the last look.
    pub(in crate::pipeline) fn record(&mut self, now: Duration, rows: &[StageMetrics], weights: &[(&str, Statistics)]) {
        if self.closed {
            return;
        }
        let elapsed = now.saturating_sub(self.last).as_secs_f64();
        let stages = std::mem::take(&mut self.stages);
        let mut stage_metrics: Vec<_> = stages.iter().map(|known| self.stage(known, rows, elapsed)).collect();
        for (pool, samples) in weights.iter().filter(|(_, samples)| samples.count > 0) {
            let metric = StatisticsMetric { name: "chunk_weight".to_owned(), samples: samples.clone() };
            let stage = stage_metrics.iter_mut().find(|stage| stage.name == *pool);
            stage.into_iter().for_each(|stage| stage.statistics_metrics.push(metric.clone()));
        }
        self.stages = stages;
        self.all.record(Period { stage_metrics });
        self.all.advance(now);
        self.last = self.last.max(now);
    }

    /// No more looks: what is pending is complete.
    pub(in crate::pipeline) fn close(&mut self, now: Duration) {
        if !self.closed {
            self.all.close(now);
            self.last = now;
            self.closed = true;
        }
    }

    /// The latest complete period of 2^`exponent` seconds, and its age in seconds.
    ///
    /// Errors: `Config` for a period below a quarter of a second.
    pub(in crate::pipeline) fn bucket(&self, exponent: i32, pending: bool, now: Duration) -> Result<(Period, f64)> {
        let ticks = exponent.checked_add(TICKS_PER_SECOND_LOG2).and_then(|e| u32::try_from(e).ok());
        let text = || format!("2^{exponent} seconds; expected at least 2^-{TICKS_PER_SECOND_LOG2}");
        let ticks = ticks.ok_or_else(|| Error::config("period_exponent", text()))?;
        let (found, age) = self.all.bucket(ticks, self.moment(pending, now));
        Ok((found, age.as_secs_f64()))
    }

    /// The last `seconds`, or everything where they are infinite, and the seconds that this covers.
    ///
    /// Errors: `Config` for a duration that is negative or no number.
    pub(in crate::pipeline) fn ending_now(&self, seconds: f64, pending: bool, now: Duration) -> Result<(Period, f64)> {
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Error::config(
                "duration_seconds",
                format!("{seconds}; expected 0 or more, inf for everything"),
            ));
        }
        let (found, covered) =
            self.all.ending_now(Duration::try_from_secs_f64(seconds).ok(), self.moment(pending, now));
        Ok((found, covered.as_secs_f64()))
    }

    fn moment(&self, pending: bool, now: Duration) -> Option<Duration> {
        pending.then_some(if self.closed { self.last } else { now })
    }

    /// What a total has grown by since the last look.
    fn growth(&mut self, stage: &str, name: &str, total: u64) -> u64 {
        let before = self.totals.insert((stage.to_owned(), name.to_owned()), total);
        total.saturating_sub(before.unwrap_or_default())
    }

    fn stage(&mut self, known: &Known, rows: &[StageMetrics], elapsed: f64) -> StageMetric {
        let row = rows.iter().find(|row| row.name == known.name);
        let mut metric = StageMetric { name: known.name.clone(), ..StageMetric::default() };
        for count in row.iter().flat_map(|row| &row.counts) {
            let count_of = self.growth(&known.name, count.name, count.total);
            match load_name(known.kind, count.name) {
                Some(name) => metric.load_metrics.push(LoadMetric {
                    name: name.to_owned(),
                    load_seconds: count_of as f64 / 1e9,
                    total_seconds: row.map_or(1, |row| row.threads_in(count.name)) as f64 * elapsed,
                }),
                None => {
                    let name = count_name(known.kind, count.name).to_owned();
                    metric.count_metrics.push(CountMetric { name, count: count_of });
                }
            }
        }
        if metric.load_metrics.is_empty() && known.kind != "chunk_source_splitter" {
            let name = load_name(known.kind, "busy_ns").unwrap_or_default().to_owned();
            metric.load_metrics.push(LoadMetric { name, load_seconds: 0.0, total_seconds: elapsed });
        }
        for gauge in row.iter().flat_map(|row| &row.gauges) {
            let window = known.window.filter(|_| gauge.name == "chunks_current");
            metric.gauge_metrics.push(GaugeMetric {
                name: gauge.name.to_owned(),
                value: gauge.value,
                capacity: window.or(gauge.capacity),
            });
        }
        let latest = row.and_then(|row| row.latest.clone());
        match known.kind {
            "shuffling_chunk_pool" => metric.anchor = latest,
            _ => metric.last_chunk_key = latest,
        }
        for (place, (name, capacity, _)) in known.queues.iter().enumerate() {
            let own = row.and_then(|row| row.queue.as_ref()).filter(|_| place == 0);
            let through = own.cloned().unwrap_or_else(|| {
                let given = given((known, place), row, rows);
                QueueMetrics {
                    put: given,
                    got: given,
                    dropped: 0,
                    waiting: 0,
                    capacity: *capacity,
                    consumer_wait_ns: None,
                }
            });
            let mut growth = |what: &str, total| self.growth(&known.name, &format!("{place}.{what}"), total);
            metric.queue_metrics.push(QueueMetric {
                name: name.clone(),
                put_count: growth("put", through.put),
                get_count: growth("got", through.got),
                drop_count: growth("dropped", through.dropped),
                queue_fullness: Samples::of(i64::try_from(through.waiting).unwrap_or(i64::MAX)),
                queue_capacity: through.capacity,
            });
        }
        metric
    }
}

/// 2^2 ticks are a second.
const TICKS_PER_SECOND_LOG2: i32 = 2;

/// What lc0 calls the time that a count of nanoseconds stands for; `None` for other counts.
fn load_name<'a>(kind: &str, count: &'a str) -> Option<&'a str> {
    match (count, kind) {
        ("busy_ns", "shuffling_chunk_pool") => Some("chunk_loading"),
        ("busy_ns", _) => Some("load"),
        _ => count.strip_suffix("_ns"),
    }
}

/// What lc0 calls a count.
fn count_name<'a>(kind: &str, count: &'a str) -> &'a str {
    match (kind, count) {
        ("simple_chunk_extractor", "chunks") => "chunks_processed",
        ("simple_chunk_extractor", "dropped") => "chunks_dropped",
        ("chunk_rescorer", "dropped") => "failed_rescores",
        _ => count,
    }
}

fn inputs(stage: &StageConfig) -> impl Iterator<Item = &str> {
    stage.input.iter().map(|input| input.split('.').next().unwrap_or_default())
}

/// How many items a stage has handed on through a queue that it does not count itself: what it or its neighbour counts.
fn given((known, place): (&Known, usize), row: Option<&StageMetrics>, rows: &[StageMetrics]) -> u64 {
    let total = |row: &StageMetrics, name: &str| row.count(name).map(|count| count.total);
    let named = |name: &String| rows.iter().find(|row| row.name == *name);
    let counted = |row: &StageMetrics| ["sources", "frames", "chunks", "files"].iter().find_map(|n| total(row, n));
    let found = match (known.kind, place) {
        // A source goes to each side on which it has chunks.
        ("chunk_source_splitter", _) => {
            let readers = known.queues.get(place).map_or(&[][..], |(_, _, readers)| readers);
            readers.iter().filter_map(named).filter_map(|reader| total(reader, "sources")).max()
        }
        ("shuffling_chunk_pool", 1) => row.and_then(|row| total(row, "cache_hits")),
        ("chunk_unpacker", 1) => known.neighbours.iter().filter_map(named).find_map(|pool| total(pool, "cache_misses")),
        ("chunk_validator" | "chunk_rescorer", _) => {
            row.and_then(|row| Some(total(row, "chunks")?.saturating_sub(total(row, "dropped")?)))
        }
        _ => row.and_then(counted).or_else(|| known.neighbours.iter().filter_map(named).find_map(counted)),
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{Gauge, Tally, period_message};
    use crate::preset::{Lc0Preset, Weighted, lc0};
    use gristmill_stages::config::proto::schema;

    const SECOND: Duration = Duration::from_secs(1);

    fn rows(n: u64) -> Vec<StageMetrics> {
        let row = |name: &str, kind, counts: &[(&'static str, u64)]| StageMetrics {
            name: name.into(),
            kind,
            threads: 2,
            gauges: Vec::new(),
            counts: counts.iter().map(|(name, total)| Tally { name, total: *total, per_second: 0.0 }).collect(),
            queue: None,
            latest: None,
            oldest_needed: None,
            faults: Vec::new(),
        };
        let sources = row("load", "chunk_source_loader", &[("sources", n), ("skipped_files", n / 2)]);
        let pool =
            row("pool", "shuffling_chunk_pool", &[("busy_ns", n * 500_000_000), ("reshuffles", 1), ("dropped", n)]);
        let window = Gauge { name: "chunks_current", value: n, capacity: Some(0) };
        let batches =
            QueueMetrics { put: 3 * n, got: 2 * n, dropped: n, waiting: n, capacity: 4, consumer_wait_ns: None };
        vec![
            StageMetrics { latest: Some(format!("training.{n}.gz")), ..sources },
            StageMetrics { gauges: vec![window], ..pool },
            row("unpack", "chunk_unpacker", &[("busy_ns", 0), ("chunks", n), ("frames", 20 * n)]),
            StageMetrics { queue: Some(batches), ..row("tensors", "tensor_generator", &[("busy_ns", n)]) },
        ]
    }

    fn history() -> History {
        let directories = vec![Weighted { directory: "a".into(), weight: 1.0 }];
        History::new(&lc0(&Lc0Preset { directories, pool: 77, ..Lc0Preset::default() }).unwrap()).unwrap()
    }

    fn of<'a>(period: &'a Period, name: &str) -> &'a StageMetric {
        period.stage_metrics.iter().find(|stage| stage.name == name).unwrap()
    }

    #[test]
    fn stages_tell_what_they_did_under_the_published_names() {
        let mut history = history();
        history.record(SECOND, &rows(10), &[]);
        let weights = [("pool", Statistics::of(2.5)), ("pool", Statistics::default())];
        history.record(SECOND * 2, &rows(40), &weights);
        let (all, covered) = history.ending_now(f64::INFINITY, false, SECOND * 2).unwrap();
        assert_eq!(covered, 2.0);
        let names: Vec<&str> = all.stage_metrics.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["files", "load", "pool", "unpack", "sample", "tensors"]);
        let loads = all.stage_metrics.iter().map(|stage| stage.load_metrics[0].name.as_str());
        assert_eq!(loads.collect::<Vec<_>>(), ["load", "load", "chunk_loading", "load", "load", "load"]);
        let queues = all.stage_metrics.iter().map(|stage| stage.queue_metrics[0].name.as_str());
        assert_eq!(queues.collect::<Vec<_>>(), ["output", "output", "", "", "output", "output"]);
        let pool = of(&all, "pool");
        assert_eq!((pool.load_metrics[0].load_seconds, pool.load_metrics[0].total_seconds), (20.0, 4.0));
        assert_eq!(pool.count_metrics[1], CountMetric { name: "dropped".into(), count: 40 });
        assert_eq!((pool.gauge_metrics[0].value, pool.gauge_metrics[0].capacity), (40, Some(77)));
        let [weight] = pool.statistics_metrics.as_slice() else { panic!("{pool:?}") };
        assert_eq!((weight.name.as_str(), weight.samples.latest), ("chunk_weight", 2.5));
        assert_eq!(of(&all, "load").last_chunk_key.as_deref(), Some("training.40.gz"));
        let queue = &of(&all, "tensors").queue_metrics[0];
        assert_eq!((queue.put_count, queue.get_count, queue.drop_count, queue.queue_capacity), (120, 80, 40, 4));
        assert_eq!((queue.queue_fullness.min, queue.queue_fullness.max, queue.queue_fullness.count), (10, 40, 2));
        for (stage, through) in [("files", 40), ("load", 40), ("unpack", 800), ("sample", 800)] {
            assert_eq!(of(&all, stage).queue_metrics[0].put_count, through, "{stage}");
        }
    }

    #[test]
    fn periods_hold_what_was_added_in_them_and_the_end_is_kept() {
        let mut history = history();
        for second in 1..=4 {
            history.record(SECOND * second, &rows(u64::from(second) * 10), &[]);
        }
        let sources = |period: &Period| of(period, "load").count_metrics[0].count;
        // The first tick of a second's four takes what came in it, so it stands in the second that ends.
        let (second, age) = history.bucket(0, false, SECOND * 4).unwrap();
        assert_eq!((sources(&second), age), (10, 0.0));
        history.record(SECOND * 4 + TICK / 2, &rows(47), &[]);
        let now = SECOND * 4 + TICK / 2;
        assert_eq!(sources(&history.ending_now(f64::INFINITY, false, now).unwrap().0), 40);
        let (all, covered) = history.ending_now(f64::INFINITY, true, now).unwrap();
        assert_eq!((sources(&all), covered), (47, 4.125));
        history.close(now);
        history.record(SECOND * 9, &rows(99), &[]);
        let (all, covered) = history.ending_now(f64::INFINITY, true, SECOND * 9).unwrap();
        assert_eq!((sources(&all), covered), (47, 4.25));
        assert!(history.bucket(-2, false, now).is_ok());
        for refused in [history.bucket(-3, false, now), history.bucket(i32::MAX, false, now)] {
            assert!(refused.unwrap_err().to_string().contains("period_exponent"));
        }
        for seconds in [-1.0, f64::NAN] {
            assert!(history.ending_now(seconds, false, now).is_err());
        }
    }

    #[test]
    fn a_period_is_written_with_the_published_numbers() {
        let mut history = history();
        history.record(SECOND, &rows(10), &[]);
        let bytes = period_message(&history.ending_now(f64::INFINITY, false, SECOND).unwrap().0).unwrap();
        let message = schema::message("lczero.DataLoaderMetricsProto").unwrap();
        let read = schema::decode(&message, &bytes).unwrap();
        assert_eq!(read["stage_metrics"][1]["last_chunk_key"], "training.10.gz");
        // Field 1, a stage; in it field 1, its name.
        assert_eq!(&bytes[..1], b"\x0a");
        assert!(bytes.windows(7).any(|found| found == b"\x0a\x05files"));
        assert_eq!(period_message(&Period::default()).unwrap(), b"");
    }
}
