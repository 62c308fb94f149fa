//! A document and the rates of the last second -> the rows of the table, as data: per stage a row, its chips, its queues.
//! Draws nothing, and knows no stage, count or gauge by name.

use gristmill_engine::pipeline::{QueueStatus, StageStatus, Status};

use super::headline;
use super::history::History;
use super::numbers;

/// One row of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A stage.
    Stage(Line),
    /// What else a stage tells, in short pieces.
    Chips(Vec<Chip>),
    /// A queue after a stage.
    Queue(Line),
}

/// The columns of a stage or a queue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Threads busy, and threads that could be.
    pub load: Option<(f64, f64)>,
    /// Items per second.
    pub rate: Option<f64>,
    /// Items since the start.
    pub total: Option<u64>,
    /// What it holds, and what it can hold.
    pub fill: Option<(u64, u64)>,
    /// Items dropped, and how many a second.
    pub dropped: (u64, f64),
    /// Items per second of the last seconds, the oldest first.
    pub trail: Vec<f64>,
    /// Whether somebody waits for what it gives.
    pub awaited: bool,
}

/// A name with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// What it is.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// Which chips are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chips {
    /// Those that say something: no counts and loads of zero.
    #[default]
    Telling,
    /// All.
    All,
    /// None.
    None,
}

impl Chips {
    /// The next choice.
    pub fn next(self) -> Self {
        match self {
            Chips::Telling => Chips::All,
            Chips::All => Chips::None,
            Chips::None => Chips::Telling,
        }
    }
}

/// The rows of all stages, or of those that lead to one output; what is nearest to the trainer first.
pub fn rows(status: &Status, history: &History, stream: Option<&str>, chips: Chips) -> Vec<Row> {
    let mut rows = Vec::new();
    let shown = |stage: &&StageStatus| stream.is_none_or(|alias| stage.streams.iter().any(|own| own == alias));
    for stage in status.stages.iter().rev().filter(shown) {
        let awaited = headline::is_awaited(status, stage);
        rows.push(Row::Stage(Line { awaited, ..line(stage, history) }));
        let found = self::chips(stage, history, chips);
        if !found.is_empty() {
            rows.push(Row::Chips(found));
        }
        rows.extend(stage.queues.iter().map(|queue| Row::Queue(behind(stage, queue, history))));
    }
    rows
}

fn line(stage: &StageStatus, history: &History) -> Line {
    let given = |stage: &StageStatus| stage.counts.iter().find(|count| count.name == stage.gives).map(|c| c.total);
    let loads = |total: bool| {
        history.rate(&stage.name, |stage| {
            let one = |load: &gristmill_engine::pipeline::LoadStatus| {
                if total { load.total_seconds } else { load.load_seconds }
            };
            // The stage's main work has no name; what else it does is a chip.
            let main = stage.loads.iter().any(|load| load.name.is_empty());
            let counted = stage.loads.iter().filter(|load| !main || load.name.is_empty());
            (!stage.loads.is_empty()).then(|| counted.map(one).sum())
        })
    };
    Line {
        name: stage.name.clone(),
        load: loads(false).zip(loads(true)),
        rate: history.rate(&stage.name, |stage| given(stage).map(|total| total as f64)),
        total: given(stage),
        fill: stage.gauges.iter().find_map(|gauge| Some((gauge.value, gauge.capacity?))),
        trail: history.trail(&stage.name, |stage| given(stage).map(|total| total as f64)),
        ..Line::default()
    }
}

fn behind(stage: &StageStatus, queue: &QueueStatus, history: &History) -> Line {
    let of = |number: fn(&QueueStatus) -> u64| {
        history.rate(&stage.name, |stage| {
            stage.queues.iter().find(|found| found.name == queue.name).map(|queue| number(queue) as f64)
        })
    };
    Line {
        name: if queue.name.is_empty() { "queue".to_owned() } else { format!("queue {}", queue.name) },
        load: None,
        rate: of(|queue| queue.got),
        total: Some(queue.got),
        fill: (queue.capacity > 0).then_some((queue.waiting, queue.capacity)),
        dropped: (queue.dropped, of(|queue| queue.dropped).unwrap_or(0.0)),
        ..Line::default()
    }
}

fn chips(stage: &StageStatus, history: &History, chips: Chips) -> Vec<Chip> {
    if chips == Chips::None {
        return Vec::new();
    }
    let all = chips == Chips::All;
    let mut found = Vec::new();
    let mut add = |name: &str, value: String| found.push(Chip { name: name.to_owned(), value });
    for text in stage.texts.iter().filter(|text| all || !text.value.is_empty()) {
        add(&text.name, text.value.clone());
    }
    for gauge in &stage.gauges {
        let capacity = gauge.capacity.map(|capacity| format!("/{}", numbers::total(capacity)));
        add(&gauge.name, numbers::total(gauge.value) + &capacity.unwrap_or_default());
    }
    if stage.loads.len() > 1 {
        for load in stage.loads.iter().filter(|load| !load.name.is_empty()) {
            let of = |number: fn(&gristmill_engine::pipeline::LoadStatus) -> f64| {
                history.rate(&stage.name, |stage| stage.loads.iter().find(|l| l.name == load.name).map(number))
            };
            let rates = of(|load| load.load_seconds).zip(of(|load| load.total_seconds));
            if let Some((busy, total)) = rates.filter(|(busy, _)| all || *busy >= 0.05) {
                add(&load.name, format!("{busy:.1}/{total:.1}"));
            }
        }
    }
    for count in stage.counts.iter().filter(|count| count.name != stage.gives && (all || count.total > 0)) {
        let rate = history.rate(&stage.name, |stage| {
            stage.counts.iter().find(|found| found.name == count.name).map(|count| count.total as f64)
        });
        let total = numbers::total(count.total);
        add(
            &count.name,
            match rate {
                Some(rate) if rate > 0.0 => format!("{total} ({}/s)", numbers::short(rate)),
                _ => total,
            },
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_engine::pipeline::{CountStatus, GaugeStatus, LoadStatus, TextStatus};

    fn count(name: &str, total: u64) -> CountStatus {
        CountStatus { name: name.into(), total }
    }

    /// A stage of a kind that does not exist, which tells one of everything.
    fn novel(seconds: f64, n: u64) -> Status {
        let stage = StageStatus {
            name: "weigher".into(),
            kind: "novel_kind".into(),
            gives: "pebbles".into(),
            streams: vec!["train".into()],
            loads: ["warm", "cold"]
                .map(|name| LoadStatus { name: name.into(), load_seconds: seconds / 4.0, total_seconds: seconds })
                .to_vec(),
            counts: vec![count("pebbles", n), count("lost", n / 2), count("never", 0)],
            gauges: vec![
                GaugeStatus { name: "depth".into(), value: 7, capacity: None },
                GaugeStatus { name: "heap".into(), value: 12_000, capacity: Some(50_000) },
            ],
            queues: vec![QueueStatus {
                name: "out".into(),
                put: n + 3,
                got: n,
                dropped: 2,
                waiting: 1,
                capacity: 4,
                ..Default::default()
            }],
            texts: vec![TextStatus { name: "newest".into(), value: "a.gz".into() }, TextStatus::default()],
            ..StageStatus::default()
        };
        let idle = StageStatus { name: "idle".into(), gives: "stones".into(), ..StageStatus::default() };
        Status { uptime_seconds: seconds, stages: vec![stage, idle], ..Status::default() }
    }

    #[test]
    fn whatever_a_stage_publishes_has_its_place() {
        let mut history = History::default();
        history.add(&novel(1.0, 100));
        let status = novel(2.0, 140);
        history.add(&status);
        let found = rows(&status, &history, None, Chips::Telling);
        let stage = Line {
            name: "weigher".into(),
            load: Some((0.5, 2.0)),
            rate: Some(40.0),
            total: Some(140),
            fill: Some((12_000, 50_000)),
            trail: vec![40.0],
            ..Line::default()
        };
        assert_eq!(found[1], Row::Stage(stage));
        let Row::Chips(chips) = &found[2] else { panic!("{found:?}") };
        let chips: Vec<String> = chips.iter().map(|chip| format!("{} {}", chip.name, chip.value)).collect();
        assert_eq!(
            chips,
            ["newest a.gz", "depth 7", "heap 12'000/50'000", "warm 0.2/1.0", "cold 0.2/1.0", "lost 70 (20.0/s)"]
        );
        let Row::Queue(queue) = &found[3] else { panic!("{found:?}") };
        assert_eq!((queue.name.as_str(), queue.rate, queue.total), ("queue out", Some(40.0), Some(140)));
        assert_eq!((queue.fill, queue.dropped), (Some((1, 4)), (2, 0.0)));
        let idle = Line { name: "idle".into(), ..Line::default() };
        assert_eq!(found[..1], [Row::Stage(idle)]);
    }

    #[test]
    fn streams_and_chips_choose_what_is_shown() {
        let status = novel(1.0, 100);
        let history = History::default();
        let count = |stream, chips| rows(&status, &history, stream, chips).len();
        assert_eq!((count(None, Chips::Telling), count(None, Chips::None)), (4, 3));
        assert_eq!((count(Some("train"), Chips::Telling), count(Some("test"), Chips::Telling)), (3, 0));
        let Row::Chips(all) = &rows(&status, &history, None, Chips::All)[2] else { panic!() };
        assert!(all.iter().any(|chip| chip.name == "never" && chip.value == "0"));
        assert_eq!(Chips::default().next().next().next(), Chips::default());
    }
}
