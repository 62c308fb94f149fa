//! A metrics snapshot -> Prometheus text. Serves nothing itself and knows no stage by name.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: String,
    kind: &'static str,
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

/// One number of one stage, as a snapshot lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name of the stage.
    pub stage: String,
    /// Kind of the stage.
    pub kind: &'static str,
    /// Name of the number.
    pub name: &'static str,
    /// The number.
    pub value: u64,
    /// Whether it only grows.
    pub grows: bool,
}

/// A snapshot as OpenMetrics text: `gristmill_stage_total` for what grows, `gristmill_stage_value` for what does not
/// (labels stage, kind, name), and `gristmill_bad_chunks_total` by kind.
pub fn text(samples: &[Sample], bad_chunks: &[(String, u64)]) -> String {
    let mut registry = Registry::with_prefix("gristmill");
    let totals = Family::<StageLabels, Counter<u64, AtomicU64>>::default();
    let values = Family::<StageLabels, Gauge<i64, std::sync::atomic::AtomicI64>>::default();
    let bad = Family::<KindLabels, Counter<u64, AtomicU64>>::default();
    for sample in samples {
        let labels = StageLabels { stage: sample.stage.clone(), kind: sample.kind, name: sample.name };
        if sample.grows {
            totals.get_or_create(&labels).inc_by(sample.value);
        } else {
            values.get_or_create(&labels).set(i64::try_from(sample.value).unwrap_or(i64::MAX));
        }
    }
    for (kind, count) in bad_chunks {
        bad.get_or_create(&KindLabels { kind: kind.clone() }).inc_by(*count);
    }
    registry.register("stage", "What each stage did since the start", totals);
    registry.register("stage_value", "What each stage holds now", values);
    registry.register("bad_chunks", "Chunks found bad since the start", bad);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let sample = |name, value, grows| Sample { stage: "po\"ol".into(), kind: "pool", name, value, grows };
        vec![sample("draws", 7, true), sample("chunks_current", 40, false)]
    }

    #[test]
    fn the_text_is_what_a_scraper_expects() {
        let text = text(&samples(), &[("truncated".into(), 2)]);
        for line in [
            r#"gristmill_stage_total{stage="po\"ol",kind="pool",name="draws"} 7"#,
            r#"gristmill_stage_value{stage="po\"ol",kind="pool",name="chunks_current"} 40"#,
            r#"gristmill_bad_chunks_total{kind="truncated"} 2"#,
            "# TYPE gristmill_stage counter",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
