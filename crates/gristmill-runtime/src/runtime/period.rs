//! What stages did in a span of time, under the names of the lc0 loader's metrics: adds up by name.
//! Numbers and texts only; which stage counts what is decided elsewhere.

use serde::Serialize;

use super::aggregate::Merge;

/// Busy thread-seconds of those there were.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LoadMetric {
    /// What is done.
    pub name: String,
    /// Busy.
    pub load_seconds: f64,
    /// In all.
    pub total_seconds: f64,
}

/// How many times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CountMetric {
    /// What is counted.
    pub name: String,
    /// The count.
    pub count: u64,
}

/// The latest of a value that goes up and down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GaugeMetric {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: u64,
    /// The most that it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
}

/// Samples of an integer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each field is what its name says of the samples")]
pub struct Samples {
    pub min: i64,
    pub max: i64,
    pub sum: i64,
    pub count: i64,
    pub latest: i64,
}

impl Default for Samples {
    fn default() -> Self {
        Samples { min: i64::MAX, max: -i64::MAX, sum: 0, count: 0, latest: 0 }
    }
}

/// Samples of a number.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each field is what its name says of the samples")]
pub struct Statistics {
    pub min: f64,
    pub max: f64,
    pub sum: f64,
    pub count: i64,
    pub latest: f64,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics { min: f64::MAX, max: -f64::MAX, sum: 0.0, count: 0, latest: 0.0 }
    }
}

/// Samples of a number, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StatisticsMetric {
    /// What is sampled.
    pub name: String,
    /// The samples.
    #[serde(flatten)]
    pub samples: Statistics,
}

/// What went through a queue, and how full it was at each look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each field is what its name says of the queue")]
pub struct QueueMetric {
    pub name: String,
    pub put_count: u64,
    pub get_count: u64,
    pub drop_count: u64,
    pub queue_fullness: Samples,
    pub queue_capacity: u64,
}

/// One stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each field is a list of what its name says")]
pub struct StageMetric {
    pub name: String,
    pub load_metrics: Vec<LoadMetric>,
    pub queue_metrics: Vec<QueueMetric>,
    pub count_metrics: Vec<CountMetric>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_chunk_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    pub gauge_metrics: Vec<GaugeMetric>,
    pub statistics_metrics: Vec<StatisticsMetric>,
}

/// All stages, in the order of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Period {
    /// The stages.
    pub stage_metrics: Vec<StageMetric>,
}

/// What is found by name among its like.
trait Named: Merge {
    fn name(&self) -> &str;
}

macro_rules! named {
    ($($kind:ty),*) => {
        $(impl Named for $kind {
            fn name(&self) -> &str {
                &self.name
            }
        })*
    };
}
named!(LoadMetric, QueueMetric, CountMetric, GaugeMetric, StatisticsMetric, StageMetric);

fn absorb_by_name<M: Named>(older: &mut Vec<M>, newer: Vec<M>) {
    for metric in newer {
        match older.iter_mut().find(|known| known.name() == metric.name()) {
            Some(known) => known.absorb(metric),
            None => older.push(metric),
        }
    }
}

impl Merge for LoadMetric {
    fn absorb(&mut self, newer: Self) {
        self.load_seconds += newer.load_seconds;
        self.total_seconds += newer.total_seconds;
    }
}

impl Merge for CountMetric {
    fn absorb(&mut self, newer: Self) {
        self.count += newer.count;
    }
}

impl Merge for GaugeMetric {
    fn absorb(&mut self, newer: Self) {
        *self = newer;
    }
}

impl Samples {
    /// One sample.
    pub fn of(value: i64) -> Self {
        Samples { min: value, max: value, sum: value, count: 1, latest: value }
    }
}

impl Merge for Samples {
    fn absorb(&mut self, newer: Self) {
        if newer.count > 0 {
            self.min = self.min.min(newer.min);
            self.max = self.max.max(newer.max);
            self.sum = self.sum.saturating_add(newer.sum);
            self.count += newer.count;
            self.latest = newer.latest;
        }
    }
}

impl Statistics {
    /// One sample.
    pub fn of(value: f64) -> Self {
        Statistics { min: value, max: value, sum: value, count: 1, latest: value }
    }
}

impl Merge for Statistics {
    fn absorb(&mut self, newer: Self) {
        if newer.count > 0 {
            self.min = self.min.min(newer.min);
            self.max = self.max.max(newer.max);
            self.sum += newer.sum;
            self.count += newer.count;
            self.latest = newer.latest;
        }
    }
}

impl Merge for StatisticsMetric {
    fn absorb(&mut self, newer: Self) {
        self.samples.absorb(newer.samples);
    }
}

impl Merge for QueueMetric {
    fn absorb(&mut self, newer: Self) {
        self.put_count += newer.put_count;
        self.get_count += newer.get_count;
        self.drop_count += newer.drop_count;
        self.queue_fullness.absorb(newer.queue_fullness);
        self.queue_capacity = newer.queue_capacity;
    }
}

impl Merge for StageMetric {
    fn absorb(&mut self, newer: Self) {
        self.name = newer.name;
        absorb_by_name(&mut self.load_metrics, newer.load_metrics);
        absorb_by_name(&mut self.queue_metrics, newer.queue_metrics);
        absorb_by_name(&mut self.count_metrics, newer.count_metrics);
        absorb_by_name(&mut self.gauge_metrics, newer.gauge_metrics);
        absorb_by_name(&mut self.statistics_metrics, newer.statistics_metrics);
        self.last_chunk_key = newer.last_chunk_key.or(self.last_chunk_key.take());
        self.anchor = newer.anchor.or(self.anchor.take());
    }
}

impl Merge for Period {
    fn absorb(&mut self, newer: Self) {
        absorb_by_name(&mut self.stage_metrics, newer.stage_metrics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(puts: u64, full: i64, key: Option<&str>) -> Period {
        let queue =
            QueueMetric { put_count: puts, queue_fullness: Samples::of(full), queue_capacity: 4, ..Default::default() };
        let load = LoadMetric { name: "load".into(), load_seconds: 0.75, total_seconds: 1.0 };
        let gauge = GaugeMetric { name: "chunks_current".into(), value: puts, capacity: Some(9) };
        let samples = Statistics { min: 1.0, max: full as f64, sum: 3.0, count: 2, latest: 2.0 };
        let weight = StatisticsMetric { name: "chunk_weight".into(), samples };
        let stage = StageMetric {
            name: "pool".into(),
            load_metrics: vec![load],
            queue_metrics: vec![queue],
            count_metrics: vec![CountMetric { name: "dropped".into(), count: puts }],
            gauge_metrics: vec![gauge],
            statistics_metrics: vec![weight],
            last_chunk_key: key.map(str::to_owned),
            anchor: None,
        };
        Period { stage_metrics: vec![stage] }
    }

    #[test]
    fn each_kind_of_metric_adds_up_in_its_way() {
        let mut all = Period::default();
        all.absorb(stage(3, 2, Some("a")));
        all.absorb(stage(5, 7, None));
        all.absorb(Period { stage_metrics: vec![StageMetric { name: "other".into(), ..Default::default() }] });
        let [pool, other] = all.stage_metrics.as_slice() else { panic!("{all:?}") };
        assert_eq!((pool.load_metrics[0].load_seconds, pool.load_metrics[0].total_seconds), (1.5, 2.0));
        let queue = &pool.queue_metrics[0];
        assert_eq!((queue.put_count, queue.queue_capacity), (8, 4));
        assert_eq!(queue.queue_fullness, Samples { min: 2, max: 7, sum: 9, count: 2, latest: 7 });
        assert_eq!((pool.count_metrics[0].count, pool.gauge_metrics[0].value), (8, 5));
        assert_eq!((pool.statistics_metrics[0].samples.max, pool.statistics_metrics[0].samples.count), (7.0, 4));
        assert_eq!((pool.last_chunk_key.as_deref(), other.name.as_str()), (Some("a"), "other"));
        let before = all.clone();
        all.absorb(Period::default());
        assert_eq!(all, before);
    }

    #[test]
    fn samples_of_nothing_change_nothing() {
        let mut all = Samples::of(3);
        all.absorb(Samples::default());
        assert_eq!(all, Samples::of(3));
        let mut none = Statistics::default();
        none.absorb(Statistics::default());
        assert_eq!((none.min, none.max, none.count), (f64::MAX, -f64::MAX, 0));
    }
}
