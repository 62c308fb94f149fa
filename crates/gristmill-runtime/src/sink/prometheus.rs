//! A metrics snapshot -> Prometheus text: one family for each quantity, with its unit, in an order that never changes.
//! Serves nothing itself and knows no stage by name.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::quantity::{BAD_CHUNKS, BUILD, IO_ERRORS, IO_WAITING, Quantity, RANK, STALL, UPTIME, WAITED, WORLD_SIZE};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: String,
    kind: String,
}

#[derive(Debug, EncodeLabelSet)]
struct CauseLabels {
    stage: String,
    kind: String,
    cause: String,
}

#[derive(Debug, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Debug, EncodeLabelSet)]
struct BuildLabels {
    version: String,
}

/// One number of one stage, as a snapshot lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name of the stage.
    pub stage: String,
    /// Kind of the stage.
    pub kind: &'static str,
    /// Name of the number: with `_ns` after it nanoseconds.
    pub name: &'static str,
    /// The number.
    pub value: u64,
    /// Whether it only grows.
    pub grows: bool,
}

/// Who waits for whom at an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Stall {
    /// Name of the stage that gives batches.
    pub stage: String,
    /// Kind of the stage.
    pub kind: &'static str,
    /// Share of the last second in which the consumer waited.
    pub share: f64,
    /// What was waited for, and for how many seconds since the start.
    pub seconds: Vec<(String, f64)>,
}

/// What holds for the whole loader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Which rank this is, of how many.
    pub rank: u64,
    /// See `rank`.
    pub world_size: u64,
}

/// A snapshot as OpenMetrics text. Families have the names of the numbers, counters end in `_total`, times are in seconds;
/// labels are `stage` and `kind`. Docs: `docs/guide/top.md`.
pub fn text(
    whole: Whole,
    samples: &[Sample],
    stalls: &[Stall],
    bad_chunks: &[(String, u64)],
    (io_errors, waiting): (&[(String, u64)], u64),
) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for sample in samples {
        let quantity = Quantity::of(sample.name);
        let labels = StageLabels { stage: sample.stage.clone(), kind: sample.kind.to_owned() };
        let name = quantity.name.to_owned();
        let family =
            families.entry(name).or_insert_with(|| Family { quantity, grows: sample.grows, values: BTreeMap::new() });
        family.values.insert(labels, sample.value);
    }
    let mut registry = Registry::with_prefix("gristmill");
    let (bad_chunks, io_errors, stalls) = (bad_chunks.to_vec(), io_errors.to_vec(), stalls.to_vec());
    registry.register_collector(Box::new(Snapshot { whole, families, stalls, bad_chunks, io_errors, waiting }));
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Family {
    quantity: Quantity,
    grows: bool,
    values: BTreeMap<StageLabels, u64>,
}

#[derive(Debug)]
struct Snapshot {
    whole: Whole,
    families: BTreeMap<String, Family>,
    stalls: Vec<Stall>,
    bad_chunks: Vec<(String, u64)>,
    io_errors: Vec<(String, u64)>,
    /// Files that cannot be read now.
    waiting: u64,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut build = encoder.encode_descriptor(BUILD.0, BUILD.1, None, MetricType::Info)?;
        build.encode_info(&BuildLabels { version: env!("CARGO_PKG_VERSION").to_owned() })?;
        let Whole { uptime_seconds, rank, world_size } = self.whole;
        let seconds = Unit::Other("seconds".to_owned());
        let uptime = encoder.encode_descriptor(UPTIME.0, UPTIME.1, Some(&seconds), MetricType::Gauge)?;
        ConstGauge::new(uptime_seconds).encode(uptime)?;
        for ((name, help), value) in [(RANK, rank), (WORLD_SIZE, world_size), (IO_WAITING, self.waiting)] {
            ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder.encode_descriptor(
                name,
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        for ((name, help), counts) in [(BAD_CHUNKS, &self.bad_chunks), (IO_ERRORS, &self.io_errors)] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (kind, count) in counts {
                ConstCounter::new(*count).encode(family.encode_family(&KindLabels { kind: kind.clone() })?)?;
            }
        }
        for family in self.families.values() {
            family.encode(&mut encoder)?;
        }
        let ratio = Unit::Other("ratio".to_owned());
        let mut shares = encoder.encode_descriptor(STALL.0, STALL.1, Some(&ratio), MetricType::Gauge)?;
        for Stall { stage, kind, share, .. } in &self.stalls {
            let labels = StageLabels { stage: stage.clone(), kind: (*kind).to_owned() };
            ConstGauge::new(*share).encode(shares.encode_family(&labels)?)?;
        }
        let mut waited = encoder.encode_descriptor(WAITED.0, WAITED.1, Some(&seconds), MetricType::Counter)?;
        for Stall { stage, kind, seconds, .. } in &self.stalls {
            for (cause, seconds) in seconds {
                let (stage, kind, cause) = (stage.clone(), (*kind).to_owned(), cause.clone());
                ConstCounter::new(*seconds).encode(waited.encode_family(&CauseLabels { stage, kind, cause })?)?;
            }
        }
        Ok(())
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Quantity { name, unit, scale, ref help } = self.quantity;
        let unit = unit.map(|unit| Unit::Other(unit.to_owned()));
        let kind = if self.grows { MetricType::Counter } else { MetricType::Gauge };
        let mut metrics = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in &self.values {
            let metric = metrics.encode_family(labels)?;
            let divided = *value as f64 / scale;
            match (self.grows, scale == 1.0) {
                (true, true) => ConstCounter::new(*value).encode(metric)?,
                (true, false) => ConstCounter::new(divided).encode(metric)?,
                (false, true) => ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX)).encode(metric)?,
                (false, false) => ConstGauge::new(divided).encode(metric)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let sample = |stage: &str, name, value, grows| Sample { stage: stage.into(), kind: "pool", name, value, grows };
        vec![
            sample("po\"ol", "draws", 7, true),
            sample("b", "busy_ns", 1_500_000_000, true),
            sample("a", "busy_ns", 250_000_000, true),
            sample("a", "chunks", 5, true),
            sample("a", "chunks_total", 40, false),
            sample("a", "hanse_accepted_permille", 250, false),
        ]
    }

    #[test]
    fn the_text_is_what_a_scraper_expects() {
        let whole = Whole { uptime_seconds: 2.5, rank: 1, world_size: 4 };
        let stall = Stall { stage: "a".into(), kind: "pool", share: 0.5, seconds: vec![("decode".into(), 1.25)] };
        let found = text(
            whole,
            &samples(),
            std::slice::from_ref(&stall),
            &[("truncated".into(), 2)],
            (&[("away".into(), 3)], 1),
        );
        let lines: Vec<&str> = found.lines().collect();
        for line in [
            r#"gristmill_draws_total{stage="po\"ol",kind="pool"} 7"#,
            r#"gristmill_busy_seconds_total{stage="a",kind="pool"} 0.25"#,
            r#"gristmill_busy_seconds_total{stage="b",kind="pool"} 1.5"#,
            r#"gristmill_chunks_total{stage="a",kind="pool"} 5"#,
            r#"gristmill_chunks_known{stage="a",kind="pool"} 40"#,
            r#"gristmill_hanse_accepted_ratio{stage="a",kind="pool"} 0.25"#,
            r#"gristmill_bad_chunks_total{kind="truncated"} 2"#,
            r#"gristmill_io_errors_total{kind="away"} 3"#,
            r#"gristmill_stall_ratio{stage="a",kind="pool"} 0.5"#,
            r#"gristmill_waited_seconds_total{stage="a",kind="pool",cause="decode"} 1.25"#,
            "gristmill_io_waiting 1",
            "gristmill_uptime_seconds 2.5",
            "gristmill_rank 1",
            "gristmill_world_size 4",
            "# UNIT gristmill_busy_seconds seconds",
            "# TYPE gristmill_busy_seconds counter",
            "# EOF",
        ] {
            assert!(lines.contains(&line), "{line} in\n{found}");
        }
        let version = format!(r#"gristmill_build_info{{version="{}"}} 1"#, env!("CARGO_PKG_VERSION"));
        assert!(lines.contains(&version.as_str()), "{found}");
        assert_eq!(
            found,
            text(
                whole,
                &samples(),
                std::slice::from_ref(&stall),
                &[("truncated".into(), 2)],
                (&[("away".into(), 3)], 1)
            ),
            "the order never changes"
        );
    }
}
